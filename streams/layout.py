"""Reads the file that says what an installation has on its brokers: its topics, and who may do what with them.

`traction topics` and `traction acl` take it (`--layout`), and the manifests for Strimzi are made of it. What things are
called is not in it, but in the options of these names. It talks to no broker.
"""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import msgspec

from schemas import topics as contract
from streams.access.roles import Names, roles
from streams.config import suggest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

OWN = ("{app_id}-task-events", "{app_id}-sessions-changelog", "{app_id}-tasks-changelog", "{group}-ladders")
"""The processes' own topics, as the file names them: with the options --app-id and --group in braces."""

TOPICS = (*(topic.name for topic in contract.TOPICS), *OWN)
"""What topics are called in the file: those of the contract without their prefix."""

FIXED = ("cleanup.policy", "message.timestamp.type")
"""What the program relies on: another value would lose records, or forget sessions at the wrong time."""


class InvalidLayout(Exception):
    """The file cannot be used: the message names what in it, and the remedy."""


class TopicSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[topics]`.

    Attributes:
        partitions: of every topic with many writers; None for the default.
        replication: copies of each partition; None for 3, or as many as there are brokers where these are fewer.
        config: by a topic's name as in `TOPICS`, what is configured otherwise than by default, in the broker's names.
    """

    partitions: int | None = None
    replication: int | None = None
    config: dict[str, dict[str, str | int | bool]] = {}


class Layout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the file says.

    Attributes:
        topics: how they are made.
        principals: who has which role, by role.
    """

    topics: TopicSettings = TopicSettings()
    principals: dict[str, tuple[str, ...]] = {}

    def configs(self, names: Names) -> dict[str, dict[str, str]]:
        """Give what is configured, by the topics' names on the brokers.

        Args:
            names: what things are called.
        """
        return {name: _texts(config) for short, config in self.topics.config.items() for name in names.named(short)}


def _texts(config: Mapping[str, str | int | bool]) -> dict[str, str]:
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in config.items()}


def principal_problem(role: str, principal: str) -> str | None:
    """Say why a principal cannot have a role; None when it can. Whether brokers know it they alone can tell."""
    if role not in roles():
        return f"there is no role {role!r}; there are {', '.join(roles())}"
    kind, _, name = principal.partition(":")
    if not (kind and name and name.isprintable()) or name == "*":
        return f"{principal!r} is no one's principal; give for example {role}=User:{role}"
    return None


def read_layout(path: Path) -> Layout:
    """Read and check a layout.

    Raises:
        InvalidLayout: it cannot be read or used.
    """
    try:
        found = msgspec.convert(tomllib.loads(path.read_text("utf-8")), Layout)
    except OSError as problem:
        raise InvalidLayout(f"it cannot be read ({problem.strerror})") from problem
    except (ValueError, RecursionError) as problem:  # no UTF-8, no TOML, or not these tables
        raise InvalidLayout(
            f"{problem}; write a table [topics] with partitions, replication and config, and a table [principals] with "
            'a line for each role, for example worker = ["User:traction-worker"]'
        ) from problem
    for key, most in (("partitions", 10_000), ("replication", 100)):
        value = getattr(found.topics, key)
        if value is not None and not 1 <= value <= most:
            raise InvalidLayout(f"[topics] {key} is {value}; write a number from 1 to {most}")
    for topic, config in found.topics.config.items():
        if topic not in TOPICS:
            raise InvalidLayout(f"[topics.config] names no topic {topic!r}; {suggest(topic, TOPICS)}")
        for key in (each for each in FIXED if each in config):
            raise InvalidLayout(f"[topics.config] sets {key} of {topic}, which the program relies on: leave it out")
    for role, named in found.principals.items():
        for wrong in (said for each in named if (said := principal_problem(role, each))):
            raise InvalidLayout(f"[principals] {wrong}")
    return found
