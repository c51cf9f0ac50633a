"""Has workers read their inputs from the beginning again, where the changelogs with what they remember were lost.

It moves committed offsets and nothing else, and only where nothing is remembered and nobody works: states that know of
their records would pass them over, and a member of the group would go on where it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiokafka import TopicPartition
from aiokafka.errors import CommitFailedError, IllegalGenerationError, RebalanceInProgressError, UnknownMemberIdError

from schemas.topics import SESSION_INPUTS
from streams.kafka import admin, consumer, running
from streams.reading import reading
from streams.topics import (
    SESSIONS_TABLE,
    TASKS_TABLE,
    TopicsError,
    changelog_name,
    missing_topics,
    partition_counts,
    task_events_name,
)
from streams.worker.records import HEARTBEAT_KEY

if TYPE_CHECKING:
    from streams.kafka import KafkaSettings

UNUSED = ("", "Dead", "Empty")
"""States of a group without members (Apache Kafka, "DescribeGroups")."""


MEMBERS = (CommitFailedError, IllegalGenerationError, RebalanceInProgressError, UnknownMemberIdError)
"""How brokers refuse offsets of a group that has members, should one have joined since it was looked for."""


@dataclass(frozen=True, slots=True)
class Rewound:
    """Where workers go on.

    Attributes:
        again: records of the inputs that are read again, by topic.
        passed: records that workers told tasks and that are passed over, since they are told again.
    """

    again: dict[str, int]
    passed: int


async def rewind(kafka: KafkaSettings, app_id: str, *, write: bool) -> Rewound:
    """Set the workers' group to the beginning of its inputs, and to the end of what workers tell tasks.

    Args:
        kafka: where and how to connect.
        app_id: the workers'; also the name of their group.
        write: whether it is done; else only what would be is told.

    Raises:
        KafkaUnavailable: the brokers cannot be reached.
        TopicsError: topics are missing, something is remembered, or workers are running.
    """
    inputs = [kafka.topic(topic) for topic in SESSION_INPUTS]
    events = task_events_name(app_id)
    changelogs = [changelog_name(app_id, table) for table in (SESSIONS_TABLE, TASKS_TABLE)]
    counts = await partition_counts(kafka, {*inputs, events, *changelogs})
    problems = missing_topics(kafka, {*inputs, events, *changelogs} - counts.keys(), app_id, None)
    if problems:
        raise TopicsError(problems)

    def of(name: str) -> list[TopicPartition]:
        return [TopicPartition(name, number) for number in range(counts[name])]

    await _see_nobody(kafka, app_id)
    await _see_empty(kafka, changelogs)
    async with running(consumer(kafka, group_id=app_id), kafka) as client:
        tps = [tp for name in inputs for tp in of(name)]
        begins, ends = await client.beginning_offsets(tps), await client.end_offsets(tps)
        told_begins, told_ends = await client.beginning_offsets(of(events)), await client.end_offsets(of(events))
        if write:
            client.assign([*tps, *of(events)])
            try:
                await client.commit({**begins, **told_ends})
            except MEMBERS as problem:
                raise TopicsError([_running(app_id)]) from problem
    again = {name: sum(ends[tp] - begins[tp] for tp in of(name)) for name in inputs}
    return Rewound(again, sum(told_ends[tp] - told_begins[tp] for tp in of(events)))


async def _see_nobody(kafka: KafkaSettings, app_id: str) -> None:
    """Refuse where the group has members: it would not take the offsets, and aiokafka logs that for each of them."""
    async with running(admin(kafka), kafka) as client:
        for response in await client.describe_consumer_groups([app_id]):
            if any(group[2] not in UNUSED for group in response.groups):
                raise TopicsError([_running(app_id)])


async def _see_empty(kafka: KafkaSettings, changelogs: list[str]) -> None:
    """Read changelogs to their end, and refuse where one has a state."""
    async with reading(kafka, changelogs) as reader:
        for name in changelogs:
            left: set[tuple[bytes, int]] = set()
            async for record in reader.read(name, long=True):
                place = record.key or b"", record.partition
                (left.discard if record.value is None else left.add)(place)
            if any(key != HEARTBEAT_KEY for key, _ in left):
                problem = (
                    f"{name} has states, which know their records: reading these again would change nothing. Where it "
                    "is damaged, delete both changelogs, create them anew (traction topics create), and run this again"
                )
                raise TopicsError([problem])


def _running(app_id: str) -> str:
    return f"workers of {app_id} are running, or were until a moment ago: stop them, and run this again"
