"""Creates the topics and checks that what is on the brokers fits together: partitions, cleanup, sizes.

The worker and the escalation consumer call `check_topics` when they start and never create a topic themselves: one
made by accident, with the broker's defaults, would split sessions or lose state.
"""

from __future__ import annotations

import asyncio
import shlex
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from aiokafka.admin import NewTopic
from aiokafka.errors import TopicAlreadyExistsError, for_code

from schemas import topics as contract
from schemas.topics import Topic
from streams.kafka import MAX_DEAD_LETTER_BYTES, MAX_INPUT_BYTES, KafkaSettings, admin, running

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from aiokafka.admin import AIOKafkaAdminClient

DEFAULT_PARTITIONS = 8
"""Enough for eight workers; more can only be had by making the topics anew, since keys would move."""

DEFAULT_APP_ID = "traction"
"""The worker's application id."""

REPLICATION = 3
"""Default replication, where there are as many brokers: one of them can be lost without losing or refusing a record."""

WHOLE = (contract.OVERRIDES, contract.KNOWN_FLAPPING, contract.FITNESS)
"""Small topics that readers read whole: one partition."""

SESSIONS_TABLE = "sessions"
TASKS_TABLE = "tasks"

TASK_EVENTS = Topic(
    name="task-events",
    direction="in",
    record=None,
    key="task_id",
    cleanup="delete",
    retention_hours=contract.WEEK_HOURS,
    description="What sessions' events mean to their task, as workers tell each other.",
)
"""A topic of the workers' own, no part of the contract: named by `task_events_name`, its form may change any time."""

KNOWN_SECONDS = 3.0
"""How long the brokers may take to learn of a topic that was just created."""

MS_PER_HOUR = 3_600_000

TOMBSTONES_KEPT_HOURS = 24
"""How long a changelog tells that a state was removed: Kafka's default. A copy away for longer is read anew."""

STATES_CONFIG = {
    "cleanup.policy": "compact",
    "delete.retention.ms": str(TOMBSTONES_KEPT_HOURS * MS_PER_HOUR),
    # By default half of a log must be old, and its newest segment, of a week or 1 GiB, waits: all of it is read back.
    "max.compaction.lag.ms": str(12 * MS_PER_HOUR),  # closes segments as well; reads each topic twice a day
    "segment.bytes": str(2**26),  # 64 MiB are read in a second or so
}
"""Configuration of changelogs and ladders, no part of the contract."""

Outcome = Literal["created", "exists"]


class TopicsError(Exception):
    """Topics are missing or do not fit together: `problems` has one sentence for each, with its remedy."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


@dataclass(frozen=True, slots=True)
class Plan:
    """One topic as it should be.

    Attributes:
        name: its name on the brokers.
        partitions: how many.
        config: its configuration, in the broker's names.
        same_partitions: whether it must have as many partitions as the session inputs.
    """

    name: str
    partitions: int
    config: dict[str, str]
    same_partitions: bool


@dataclass(frozen=True, slots=True)
class Found:
    """One topic as it is.

    Attributes:
        name: its name on the brokers.
        partitions: how many.
        replication: copies of the partition that has fewest.
        config: its configuration as it is in force, in the broker's names; empty unless asked for.
        chosen: the names of those that were set for this topic; empty unless asked for.
    """

    name: str
    partitions: int
    replication: int
    config: dict[str, str] = field(default_factory=dict)
    chosen: frozenset[str] = frozenset()


def changelog_name(app_id: str, table: str = SESSIONS_TABLE) -> str:
    """Name the topic that keeps the state of the worker's sessions or tasks; the name is Faust's, for such a table."""
    return f"{app_id}-{table}-changelog"


def task_events_name(app_id: str) -> str:
    """Name the topic on which workers forward events to the tasks that they concern."""
    return f"{app_id}-{TASK_EVENTS.name}"


def default_group(app_id: str) -> str:
    """Name the group of the escalation consumer that belongs to a worker, where none is given."""
    return f"{app_id}-escalation"


def bridge_group(app_id: str) -> str:
    """Name the group of the bridge that belongs to a worker, where none is given."""
    return f"{app_id}-bridge"


def ladders_name(group: str) -> str:
    """Name the topic that keeps what the escalation consumer remembers of tasks."""
    return f"{group}-ladders"


def plan(
    settings: KafkaSettings,
    *,
    partitions: int,
    app_id: str = DEFAULT_APP_ID,
    group: str | None = None,
    config: Mapping[str, Mapping[str, str]] | None = None,
) -> tuple[Plan, ...]:
    """Say which topics there should be.

    Args:
        settings: gives the prefix.
        partitions: of the session inputs, the processes' own topics, and what is written by session or task.
        app_id: the worker's.
        group: the escalation consumer's; None for `default_group`.
        config: by a topic's name on the brokers, what goes before our own configuration of it.
    """
    plans = [
        Plan(
            name=settings.topic(topic),
            partitions=1 if topic in WHOLE else partitions,
            config=_config(topic),
            same_partitions=_same_partitions(topic),
        )
        for topic in contract.TOPICS
    ]
    own = worker_topics(app_id) | {ladders_name(group or default_group(app_id)): STATES_CONFIG}
    plans += [Plan(name, partitions, states, same_partitions=True) for name, states in own.items()]
    chosen = config or {}
    return tuple(replace(each, config=each.config | dict(chosen.get(each.name, {}))) for each in plans)


def copies(wanted: int | None, brokers: int) -> int:
    """Say how many copies each partition should have: as many as wanted, else 3, or as many as there are brokers."""
    return min(REPLICATION, brokers) if wanted is None else wanted


def configured(wanted: Plan, replication: int) -> dict[str, str]:
    """Give the whole configuration of a topic that has so many copies."""
    # A record counts as written when two brokers have it.
    return ({"min.insync.replicas": "2"} if replication >= REPLICATION else {}) | wanted.config


def _same_partitions(topic: Topic) -> bool:
    return topic.session_input or topic is contract.ALERTS


def worker_topics(app_id: str) -> dict[str, dict[str, str]]:
    """Give the configuration of the workers' own topics, by name: no part of the contract."""
    changelogs = {changelog_name(app_id, table): STATES_CONFIG for table in (SESSIONS_TABLE, TASKS_TABLE)}
    return {task_events_name(app_id): _config(TASK_EVENTS)} | changelogs


def _config(topic: Topic) -> dict[str, str]:
    config: dict[str, str] = {"cleanup.policy": topic.cleanup}
    if topic.retention_hours is not None:
        config["retention.ms"] = str(topic.retention_hours * MS_PER_HOUR)
    if topic.direction == "in":
        # The broker's clock, not the producer's: a wrong or replayed time cannot make retention delete a fresh record,
        # and the latency from there to the alert is measured with one clock.
        config["message.timestamp.type"] = "LogAppendTime"
        config["max.message.bytes"] = str(MAX_INPUT_BYTES)
    if topic is contract.DEAD_LETTERS:
        config["max.message.bytes"] = str(MAX_DEAD_LETTER_BYTES)
        config["segment.bytes"] = str(2**28)  # a batch must fit into a segment, and brokers may have small ones
    return config


async def create_topics(
    settings: KafkaSettings,
    *,
    partitions: int = DEFAULT_PARTITIONS,
    replication: int | None = None,
    app_id: str = DEFAULT_APP_ID,
    group: str | None = None,
    config: Mapping[str, Mapping[str, str]] | None = None,
) -> dict[str, Outcome]:
    """Create what is missing of the contract's topics and the processes' own.

    Existing topics are left as they are. Creating is not atomic: when it fails half-way, run it again.

    Args:
        settings: where and how to connect.
        partitions: of the session inputs, the processes' own topics, and what is written by session or task.
        replication: copies of each partition; None means 3, or as many as there are brokers when these are fewer.
        app_id: the worker's.
        group: the escalation consumer's; None for `default_group`.
        config: by a topic's name, what goes before our own configuration of it.

    Returns:
        What became of each topic, by name.

    Raises:
        KafkaUnavailable: the brokers cannot be reached.
        TopicsError: an existing topic has another number of partitions (nothing is created then), or the brokers
            refuse to create one.
    """
    async with running(admin(settings), settings) as client:
        wanted = plan(settings, partitions=partitions, app_id=app_id, group=group, config=config)
        found = await describe(client, {each.name for each in wanted})
        problems = _other_partitions(wanted, found)
        if problems:
            raise TopicsError(problems)
        missing = [each for each in wanted if each.name not in found]
        created: set[str] = set()
        if missing:
            brokers = len((await client.describe_cluster())["brokers"])
            created = await _create(client, missing, copies(replication, brokers))
            found = await _describe_all(client, {each.name for each in wanted})
            problems = _other_partitions(wanted, found)  # somebody else may have been quicker, and wanted others
            if problems:
                raise TopicsError(problems)
        return {each.name: "created" if each.name in created else "exists" for each in wanted}


def _other_partitions(wanted: Iterable[Plan], found: Mapping[str, Found]) -> list[str]:
    return [
        f"topic {each.name} exists with {found[each.name].partitions} partitions, not {each.partitions}. "
        f"Give --partitions {found[each.name].partitions} if that is meant; else stop what reads and writes it, delete "
        "it, and run this again. Do not add partitions: keys would move, and sessions be split"
        for each in wanted
        if each.name in found and found[each.name].partitions != each.partitions
    ]


async def _create(client: AIOKafkaAdminClient, missing: list[Plan], replication: int) -> set[str]:
    new = [
        NewTopic(each.name, each.partitions, replication, topic_configs=configured(each, replication))
        for each in missing
    ]
    response = await client.create_topics(new)
    created, problems = set(), []
    for name, code, message, *_ in response.topic_errors:
        error = for_code(code)
        if not code:
            created.add(name)
        elif not issubclass(error, TopicAlreadyExistsError):
            problems.append(f"topic {name} cannot be created: {message or error.description} ({error.__name__})")
    if problems:
        raise TopicsError(problems)
    return created


async def check_topics(
    settings: KafkaSettings,
    *,
    app_id: str | None = None,
    group: str | None = None,
    topics: Collection[Topic] = contract.TOPICS,
) -> int:
    """Check before the start that the topics a process needs are there and fit together.

    Args:
        settings: where and how to connect.
        app_id: the worker's, when topics of its own are needed: all of them, or for a `group` what they forward.
        group: the escalation consumer's, when its own are needed.
        topics: those of the contract that the process reads or writes.

    Returns:
        The partitions of the topics that must have equally many; 0 when none of them is needed.

    Raises:
        KafkaUnavailable: the brokers cannot be reached.
        TopicsError: a topic is missing, or topics that must have equally many partitions have not.
    """
    own = set() if group is None else {ladders_name(group)}
    if app_id is not None:
        own |= worker_topics(app_id).keys() if group is None else {task_events_name(app_id)}
    names = {settings.topic(topic) for topic in topics} | own
    equal = {settings.topic(topic) for topic in topics if _same_partitions(topic)} | own
    async with running(admin(settings), settings) as client:
        found = await _describe_all(client, names)
    problems = missing_topics(settings, names - found.keys(), app_id, group) + unequal_partitions(
        {name: found[name].partitions for name in equal & found.keys()}
    )
    if problems:
        raise TopicsError(problems)
    return found[min(equal)].partitions if equal else 0


async def partition_counts(settings: KafkaSettings, names: Collection[str]) -> dict[str, int]:
    """Tell how many partitions topics have; those that are not there, or not shown to us, are left out.

    Args:
        settings: where and how to connect.
        names: their names on the brokers.

    Raises:
        KafkaUnavailable: the brokers cannot be reached.
    """
    async with running(admin(settings), settings) as client:
        return {name: found.partitions for name, found in (await describe(client, names)).items()}


def missing_topics(settings: KafkaSettings, names: Collection[str], app_id: str | None, group: str | None) -> list[str]:
    """Say which topics are missing and how to create them; nothing when none is."""
    if not names:
        return []
    command = ["traction", "topics", "create", "--bootstrap", settings.bootstrap]
    if settings.prefix != contract.DEFAULT_PREFIX:
        command += ["--prefix", settings.prefix]
    if app_id is not None and app_id != DEFAULT_APP_ID:
        command += ["--app-id", app_id]
    if group is not None and group != default_group(app_id or DEFAULT_APP_ID):
        command += ["--group", group]
    problem = (
        f"missing, or not shown to us for want of rights: {', '.join(sorted(names))}. "
        f"Create what is missing: {shlex.join(command)}"
    )
    return [problem]


def unequal_partitions(partitions: dict[str, int]) -> list[str]:
    """Say that topics which must have equally many partitions do not; nothing when they do."""
    if len(set(partitions.values())) <= 1:
        return []
    counts = ", ".join(f"{name} {count}" for name, count in sorted(partitions.items()))
    problem = (
        f"these must have equally many partitions, else a session's or task's events meet in no one place: {counts}. "
        "Stop producers and workers, delete those that differ, and run: traction topics create --partitions N"
    )
    return [problem]


async def _describe_all(client: AIOKafkaAdminClient, names: Collection[str]) -> dict[str, Found]:
    """Describe topics; those that are not there are looked for again, since brokers learn of new ones with a delay."""
    deadline = time.monotonic() + KNOWN_SECONDS
    while True:
        found = await describe(client, names)
        if len(found) == len(set(names)) or time.monotonic() > deadline:
            return found
        await asyncio.sleep(0.1)


async def describe(client: AIOKafkaAdminClient, names: Collection[str]) -> dict[str, Found]:
    """Describe those topics of the given names that there are, without their configuration."""
    # All topics are asked for, not ours by name: asking for a name creates it where the brokers allow that.
    found = {}
    for topic in await client.describe_topics():
        if topic["topic"] in names and not topic["error_code"]:
            parts = topic["partitions"]
            found[topic["topic"]] = Found(topic["topic"], len(parts), min(len(part["replicas"]) for part in parts))
    return found
