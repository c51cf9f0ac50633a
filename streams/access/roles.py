"""The roles of `roles.toml`, and the rules that they become for given principals and names. Talks to no broker."""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from schemas import topics as contract
from streams.access.rules import Kind, Operation, Pattern, Rule
from streams.topics import (
    DEFAULT_APP_ID,
    SESSIONS_TABLE,
    TASKS_TABLE,
    bridge_group,
    changelog_name,
    default_group,
    ladders_name,
)
from streams.topics import task_events_name as task_events

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FILE = Path(__file__).with_name("roles.toml")

EVERY = "*"
"""In the file: all topics, and at the end of a group's name all that begin so."""

DEFAULT_ORCHESTRATOR_GROUP = "orchestrator"
"""The consumer group of orchestrators, where nothing else is said."""

DEFAULT_SPANS_TOPIC = "otlp_spans"
DEFAULT_LOGS_TOPIC = "otlp_logs"
"""Where OpenTelemetry's collector writes, where nothing else is said (its Kafka exporter's defaults)."""


class Role(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a role may do; names as in the file."""

    about: str
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    describe: tuple[str, ...] = ()
    create: tuple[str, ...] = ()
    configs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    transactions: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()


@cache
def roles() -> Mapping[str, Role]:
    """Give the roles of the file by name, in its order."""
    return msgspec.convert(tomllib.loads(FILE.read_text("utf-8")), dict[str, Role])


@dataclass(frozen=True, slots=True)
class Names:
    """What an installation calls its things.

    Attributes:
        prefix: of the contract's topics.
        app_id: the workers' application id.
        group: the escalation consumer's.
        orchestrator_group: the orchestrators'.
        bridge_group: the bridge's.
        spans_topic: the collector's topic of traces.
        logs_topic: the collector's topic of log records.
    """

    prefix: str = contract.DEFAULT_PREFIX
    app_id: str = DEFAULT_APP_ID
    group: str = default_group(DEFAULT_APP_ID)
    orchestrator_group: str = DEFAULT_ORCHESTRATOR_GROUP
    bridge_group: str = bridge_group(DEFAULT_APP_ID)
    spans_topic: str = DEFAULT_SPANS_TOPIC
    logs_topic: str = DEFAULT_LOGS_TOPIC

    @property
    def topics(self) -> tuple[str, ...]:
        """All topics, by their names on the brokers."""
        return (
            *(f"{self.prefix}{topic.name}" for topic in contract.TOPICS),
            task_events(self.app_id),
            *(changelog_name(self.app_id, table) for table in (SESSIONS_TABLE, TASKS_TABLE)),
            ladders_name(self.group),
        )

    def own(self, name: str) -> str:
        """Give a name that the file writes with braces: of a group, an id, or a topic of the processes' own."""
        return name.format_map(asdict(self))

    def named(self, name: str) -> tuple[str, ...]:
        """Give the topics on the brokers that a name in the file means."""
        if name == EVERY:
            return self.topics
        return (self.own(name) if "{" in name else f"{self.prefix}{name}",)


def topic_rights(role: Role, names: Names) -> dict[str, set[Operation]]:
    """Say what a role may do with which topic; what comes with something else is left out."""
    found: dict[str, set[Operation]] = {}
    for operation, listed in (
        (Operation.READ, role.read),
        (Operation.WRITE, role.write),
        (Operation.CREATE, role.create),
        (Operation.DESCRIBE_CONFIGS, role.configs),
        (Operation.DESCRIBE, (*role.describe, *role.configs)),
    ):
        for topic in (topic for name in listed for topic in names.named(name)):
            rights = found.setdefault(topic, set())
            if operation is not Operation.DESCRIBE or not rights & {Operation.READ, Operation.WRITE}:
                rights.add(operation)
    return found


def rules(principals: Mapping[str, tuple[str, ...]], names: Names) -> list[Rule]:
    """Give the rules that principals need for their roles.

    Args:
        principals: by role.
        names: what things are called.
    """
    found = {
        rule
        for role, named in principals.items()
        for principal in named
        for rule in _rules(roles()[role], principal, names)
    }
    return sorted(found)


def _rules(role: Role, principal: str, names: Names) -> Iterator[Rule]:
    for topic, operations in topic_rights(role, names).items():
        for operation in operations:
            yield Rule(principal, Kind.TOPIC, topic, Pattern.LITERAL, operation)
    for name in role.groups:  # what an option was given as is never a beginning, whatever it ends with
        pattern = Pattern.PREFIXED if name.endswith(EVERY) else Pattern.LITERAL
        yield Rule(principal, Kind.GROUP, names.own(name.removesuffix(EVERY)), pattern, Operation.READ)
    for name in map(names.own, role.ids):
        yield Rule(principal, Kind.TRANSACTIONAL_ID, name, Pattern.LITERAL, Operation.WRITE)
    for name in map(names.own, role.transactions):
        # One for each digit: `traction-` alone would also begin the ids of `traction-escalation`.
        for digit in range(10):
            yield Rule(principal, Kind.TRANSACTIONAL_ID, f"{name}-{digit}", Pattern.PREFIXED, Operation.WRITE)
