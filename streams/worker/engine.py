"""Takes fetched batches in: checks that nothing was passed over, applies them in slices, and keeps the queue short.

This is what an agent does with a batch. Batches of an ownership that has ended are dropped here, and a batch that
does not follow the one before it ends the process unless the log says that nothing was lost.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from streams.worker.faults import EXIT_FAILED, EXIT_GAP
from streams.worker.ownership import EXTRA_OWNER
from streams.worker.positions import Meaning, meaning
from streams.worker.settings import (
    MAX_QUEUED_BYTES,
    MAX_QUEUED_RECORDS,
    MAX_UNCOMMITTED_BYTES,
    MAX_UNCOMMITTED_RECORDS,
    SLICE_RECORDS,
    SLICE_SECONDS,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import NoReturn

    from aiokafka import TopicPartition
    from aiokafka.structs import ConsumerRecord

    from schemas.topics import Topic
    from streams.fetching import UnreadableBatch
    from streams.worker.apply import Applier
    from streams.worker.metrics import WorkerMetrics
    from streams.worker.overrides import OverridesFollower
    from streams.worker.ownership import Ownerships
    from streams.worker.partition import Partition
    from streams.worker.settings import WorkerSettings

logger = logging.getLogger(__name__)

LAST_PAUSE = 0.02
"""Seconds between two looks whether all that waits is applied, when the process must end."""

LAST_LOOKS = 250
"""How often is looked: 5 s."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one fetch brought of one input partition.

    Attributes:
        owner: the ownership under which it was fetched; None when the partition was not ours.
        tp: the input partition.
        start: position from which was fetched.
        end: position after it; beyond the last record where markers or aborted records follow.
        records: the records; may be none.
        size: bytes of their values.
    """

    owner: Partition | None
    tp: TopicPartition
    start: int
    end: int
    records: Sequence[ConsumerRecord] = field(repr=False)
    size: int


class Slice:
    """Some records of a batch: those that are begun within a time.

    Args:
        records: the batch.
        begin: the place of the first.
    """

    def __init__(self, records: Sequence[ConsumerRecord], begin: int) -> None:
        self._records = records
        self._begin = begin
        self.end = begin
        """The place after the last one that was given out."""

    def __iter__(self) -> Iterator[ConsumerRecord]:
        until = monotonic() + SLICE_SECONDS
        for record in self._records[self._begin : self._begin + SLICE_RECORDS]:
            self.end += 1
            yield record
            if monotonic() >= until:
                return


class Bounds(Protocol):
    """What is asked of the group's consumer."""

    async def bounds(self, tp: TopicPartition) -> tuple[int, int]:
        """Give the first position of a partition's log, and the position after its last record."""


class Engine:
    """Applies batches to the partitions that are ours.

    Args:
        settings: the inputs' names.
        ownerships: what is ours.
        applier: applies records.
        follower: the overrides.
        metrics: counts.
        abandon: ends the process.
    """

    def __init__(
        self,
        settings: WorkerSettings,
        *,
        ownerships: Ownerships,
        applier: Applier,
        follower: OverridesFollower,
        metrics: WorkerMetrics,
        abandon: Callable[[int, str], NoReturn],
    ) -> None:
        self.inputs: dict[str, Topic] = settings.inputs
        self.ownerships = ownerships
        self._applier = applier
        self._follower = follower
        self._metrics = metrics
        self._abandon = abandon
        self._turn = asyncio.Lock()

    def queue(self, fetched: Fetched) -> None:
        """Note that a batch waits to be applied."""
        if fetched.owner is not None:
            fetched.owner.queued_records += len(fetched.records)
            fetched.owner.queued_of[fetched.tp] += len(fetched.records)
            fetched.owner.queued_bytes += fetched.size

    def full(self, tp: TopicPartition) -> bool:
        """Tell whether so much of a partition number waits to be applied that no more of this input should be fetched.

        An input of which nothing waits is fetched all the same: a flood in one topic holds up none of the others.
        """
        owner = self.ownerships.current.get(tp.partition)
        if owner is None or tp.topic not in self.inputs:
            return False
        full = owner.queued_records >= MAX_QUEUED_RECORDS or owner.queued_bytes >= MAX_QUEUED_BYTES
        return full and owner.queued_of[tp] > 0

    async def handle(self, fetched: Fetched, log: Bounds) -> None:
        """Apply a batch.

        Args:
            fetched: the batch.
            log: asked when the batch does not follow the one before it.
        """
        partition = fetched.owner
        if partition is None or partition.ended:
            return  # its next owner reads it again
        try:
            if fetched.start != partition.positions[fetched.tp]:
                bounds = await log.bounds(fetched.tp)
                if partition.ended:
                    return  # its next owner finds the same, and tells of it
                self._mend(partition, fetched, bounds)
            await self._apply(partition, fetched)
        finally:
            partition.queued_records -= len(fetched.records)
            partition.queued_of[fetched.tp] -= len(fetched.records)
            partition.queued_bytes -= fetched.size

    def reconcile(self) -> None:
        """Have the overrides that cannot be used written to the dead letters, by whoever has to."""
        partition = self.ownerships.current.get(EXTRA_OWNER)
        if partition is None:
            return
        for record, problem in self._follower.rejected(partition.positions):
            self._applier.refuse(partition, record, problem)
        for tp, position in self._follower.positions.items():
            if position != partition.positions.get(tp):
                partition.advance(tp, position, 0, -1)

    async def give_up(self, problem: UnreadableBatch) -> NoReturn:
        """End the process since a partition cannot be read on; what was fetched before is applied and committed first.

        Args:
            problem: which partition, and what to do.
        """
        for _ in range(LAST_LOOKS):
            if not any(partition.queued_records for partition in self.ownerships.current.values()):
                break
            await asyncio.sleep(LAST_PAUSE)
        await self.ownerships.release()
        self._abandon(EXIT_FAILED, str(problem))

    def _mend(self, partition: Partition, fetched: Fetched, bounds: tuple[int, int]) -> None:
        tp, expected = fetched.tp, partition.positions[fetched.tp]
        found = meaning(expected, fetched.start, *bounds)
        if found is Meaning.LOST:
            self._abandon(
                EXIT_GAP,
                f"{tp.topic}-{tp.partition}: a batch from {fetched.start} came after {expected}; what lies between was "
                "not applied. Ending, so that it is read again; please report it",
            )
        if found is Meaning.DELETED:
            partition.tally.count(self._metrics.deleted_unread, fetched.start - expected)
            logger.error(
                "%s-%d: offsets %d to %d were deleted before they were read (retention is shorter than our lag); "
                "their events are lost, going on behind them",
                tp.topic,
                tp.partition,
                expected,
                fetched.start - 1,
            )
        elif found is Meaning.ANEW:
            self._applier.note_anew(tp)
        if found is not Meaning.OVERLAPS:
            partition.positions[tp] = fetched.start

    async def _apply(self, partition: Partition, fetched: Fetched) -> None:
        tp, topic = fetched.tp, self.inputs[fetched.tp.topic]
        expected = partition.positions[tp]
        records = fetched.records
        if fetched.start < expected:
            records = [record for record in records if record.offset >= expected]
        if records:
            self._metrics.batch_records.observe(len(records))
            if tp in partition.fresh:
                # Brokers forget what was committed of a topic that is deleted; the states do not.
                partition.fresh.remove(tp)
                if await self._begins_again(partition, topic, records[0]):
                    self._applier.note_anew(tp)
        done = 0
        while done < len(records):
            while _has_enough(partition) and not partition.ended:
                partition.room.clear()
                await partition.room.wait()
            async with self._turn:  # first come, first served: all that have something to apply take turns
                if partition.ended:
                    return
                done = self._slice(partition, topic, tp, records, done)
                await asyncio.sleep(0)  # its turn lasts until the event loop has made one
        if not partition.ended and fetched.end > partition.positions[tp]:
            partition.advance(tp, fetched.end, 0, -1)

    def _slice(
        self, partition: Partition, topic: Topic, tp: TopicPartition, records: Sequence[ConsumerRecord], begin: int
    ) -> int:
        """Apply some of the records, and give the place after the last."""
        part = Slice(records, begin)
        try:
            self._applier.apply(partition, topic, part)
        except BaseException:
            partition.spoil()
            raise
        last = records[part.end - 1]
        partition.advance(tp, last.offset + 1, part.end - begin, last.timestamp)
        return part.end

    async def _begins_again(self, partition: Partition, topic: Topic, first: ConsumerRecord) -> bool:
        # What other inputs change meanwhile makes no difference: it is asked for what was applied of this one.
        found = partition.table(topic).begins_again(topic.name, first.offset, first.timestamp)
        while True:
            async with self._turn:  # after an upgrade all inputs may look through their states at once
                part = [] if partition.ended else list(islice(found, SLICE_RECORDS))
                if not part or any(part):
                    return bool(part)
                await asyncio.sleep(0)


def _has_enough(partition: Partition) -> bool:
    """Tell whether so much waits for the partition's next commit that nothing more is to be applied before it."""
    return partition.uncommitted >= MAX_UNCOMMITTED_RECORDS or partition.outgoing_bytes >= MAX_UNCOMMITTED_BYTES
