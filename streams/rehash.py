"""Says what adding partitions would do: which sessions and tasks would find their state left behind in another one.

Kafka sends a key to another partition when there are more; a state stays where it was written. So this only counts,
from the keys that are remembered now, and says whether the topics agree as they are. It moves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streams.reading import partition_of, reading
from streams.topic_diff import find_topics
from streams.topics import (
    SESSIONS_TABLE,
    TASKS_TABLE,
    changelog_name,
    ladders_name,
    plan,
    unequal_partitions,
)
from streams.worker.records import HEARTBEAT_KEY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streams.kafka import KafkaSettings
    from streams.reading import Reader


@dataclass(frozen=True, slots=True)
class Moves:
    """What more partitions would mean for one topic of states.

    Attributes:
        topic: its name on the brokers.
        kept: sessions or tasks that are remembered.
        moved: those whose next event would come in a partition that knows nothing of them.
        astray: those that are not in the partition of their key as it is, as after partitions were added.
    """

    topic: str
    kept: int
    moved: int
    astray: int


@dataclass(frozen=True, slots=True)
class Rehash:
    """What would happen.

    Attributes:
        partitions: how many there are now, by topic, of those that must have equally many.
        wanted: how many there are to be.
        problems: what does not fit together as it is, a sentence each.
        moves: of each topic of states.
    """

    partitions: Mapping[str, int]
    wanted: int
    problems: tuple[str, ...]
    moves: tuple[Moves, ...]

    @property
    def safe(self) -> bool:
        """Tell whether nobody would be split: the topics agree, and nothing that is remembered would move."""
        return not self.problems and not any(each.moved or each.astray for each in self.moves)


async def rehash(kafka: KafkaSettings, wanted: int, *, app_id: str, group: str, seconds: float) -> Rehash:
    """Say what so many partitions would do to what is remembered now.

    Args:
        kafka: where and how to connect.
        wanted: how many partitions there are to be.
        app_id: the workers'.
        group: the escalation consumer's.
        seconds: how long nothing may come while a topic is read.

    Raises:
        KafkaUnavailable: the brokers cannot be reached.
        TopicsError: a topic of states is missing.
        TooSlow: a topic cannot be read to its end.
    """
    found = await find_topics(kafka, app_id=app_id, group=group)
    same = {each.name for each in plan(kafka, partitions=1, app_id=app_id, group=group) if each.same_partitions}
    counts = {name: there.partitions for name, there in found.items() if there is not None and name in same}
    problems = unequal_partitions(counts)
    problems += [
        f"{name} has {count} partitions, and none can be taken away: give a larger number, or topics of other names"
        for name, count in sorted(counts.items())
        if count > wanted
    ]
    names = [changelog_name(app_id, SESSIONS_TABLE), changelog_name(app_id, TASKS_TABLE), ladders_name(group)]
    async with reading(kafka, names, seconds=seconds) as reader:
        moves = [await _moves(reader, name, counts[name], wanted) for name in names]
    return Rehash(counts, wanted, tuple(problems), tuple(moves))


async def _moves(reader: Reader, name: str, count: int, wanted: int) -> Moves:
    kept: set[tuple[bytes, int]] = set()
    async for record in reader.read(name, long=True):
        place = record.key or b"", record.partition
        if record.value is None:
            kept.discard(place)
        elif place[0] != HEARTBEAT_KEY:
            kept.add(place)
    moved = sum(partition_of(key, wanted) != number for key, number in kept)
    return Moves(name, len(kept), moved, sum(partition_of(key, count) != number for key, number in kept))
