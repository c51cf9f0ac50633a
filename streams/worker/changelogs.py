"""Keeps what is stored of each partition in step with its changelog: those that are ours, and copies of others'.

Batches read from the changelogs are applied here as they come, so that Faust, which decides what is read and when,
sees only how far that is; it swallows errors, and drops what it has queued. Whatever cannot be applied whole ends the
process (of ours) or the copy (of others'). Nothing here writes to Kafka.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from aiokafka import TopicPartition

from streams.kafka import in_words
from streams.topic_ids import topic_ids
from streams.topics import SESSIONS_TABLE, TASKS_TABLE, TOMBSTONES_KEPT_HOURS
from streams.worker.faults import EXIT_FAILED, EXIT_LOST
from streams.worker.records import HEARTBEAT_KEY, UnsupportedRecord, check_stored

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import NoReturn

    from aiokafka.structs import ConsumerRecord

    from streams.metrics import WorkerMetrics
    from streams.worker.partition import Partition
    from streams.worker.settings import WorkerSettings
    from streams.worker.states import Changes, States, Stores

logger = logging.getLogger(__name__)

MARK_SECONDS = 300.0
"""Between two notes of which copies are in step: for so much less than they could, they are of use after a stop."""

MS_PER_HOUR = 3_600_000

USABLE_MS = (TOMBSTONES_KEPT_HOURS - 1) * MS_PER_HOUR
"""How long ago a copy may have been in step: an hour less than tombstones are kept, in which it is brought up to date,
and by which clocks may differ."""


@dataclass(frozen=True, slots=True)
class Read:
    """What one fetch brought of one changelog partition.

    Attributes:
        during: what was ours when it was fetched: see `Ownerships.current`.
        tp: the changelog partition.
        start: position from which was fetched.
        end: position after it; beyond the last record where markers or aborted records follow.
        records: the records; may be none.
    """

    during: Mapping[int, Partition]
    tp: TopicPartition
    start: int
    end: int
    records: Sequence[ConsumerRecord] = field(repr=False)


class Ends(Protocol):
    """What is asked of the group's consumer."""

    async def ends(self, tps: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Give the offset after the last committed record of each partition."""


class Changelogs:
    """The stored states of all partitions that are assigned to this process.

    Args:
        settings: names and times.
        stores: where they are kept.
        metrics: counts.
        abandon: ends the process.
    """

    def __init__(
        self,
        settings: WorkerSettings,
        *,
        stores: Stores,
        metrics: WorkerMetrics,
        abandon: Callable[[int, str], NoReturn],
    ) -> None:
        self._settings = settings
        self._stores = stores
        self._metrics = metrics
        self._abandon = abandon
        self.tables = {settings.sessions_changelog: SESSIONS_TABLE, settings.tasks_changelog: TASKS_TABLE}
        """The changelogs' names, and the tables that they are of."""
        self._states: dict[TopicPartition, States] = {}
        self._given_up: set[TopicPartition] = set()
        self._topics: Mapping[str, str] = {}
        self._during: Mapping[int, Partition] = {}
        self.read: Counter[TopicPartition] = Counter()
        """How many records were read of each since it was assigned."""

    def states(self, changelog: str, number: int) -> States:
        """Give what is stored of a partition that is assigned to us."""
        return self._states[TopicPartition(changelog, number)]

    def offset(self, tp: TopicPartition) -> int | None:
        """Give the offset after which a changelog is to be read on; None for from its beginning."""
        states = self._states.get(tp)
        return None if states is None else states.offset

    async def take(self, assigned: Collection[TopicPartition], during: Mapping[int, Partition], log: Ends) -> None:
        """Open what is stored of the partitions assigned, and close the others; what cannot be used is thrown away.

        Args:
            assigned: everything assigned to this process; of the changelogs also those that it keeps a copy of.
            during: what is ours now.
            log: for the ends of the changelogs.
        """
        try:
            async with asyncio.timeout(self._settings.away_timeout):
                await self._take({TopicPartition(*tp) for tp in assigned if tp[0] in self.tables}, during, log)
        except Exception as problem:  # noqa: BLE001 - the process ends with it; aiokafka would log it and go on
            what = in_words(self._settings.kafka, problem)
            self._abandon(EXIT_LOST, f"what is stored of the partitions cannot be taken over ({what})")

    async def _take(self, wanted: set[TopicPartition], during: Mapping[int, Partition], log: Ends) -> None:
        self._during = during
        for tp in self._states.keys() - wanted:
            self._states.pop(tp).close()
        self._given_up.clear()
        self.read.clear()
        self._topics = await topic_ids(self._settings.kafka, self.tables)
        ends = await log.ends(wanted) if wanted else {}
        for tp in sorted(wanted):
            topic = self._topics[tp.topic]
            states = self._states.get(tp) or self._stores.open(self.tables[tp.topic], tp.partition)
            self._states[tp] = states
            unusable = self._unusable(states, topic, ends[tp])
            if unusable is not None:
                logger.warning("what is stored of %s-%d is read anew: %s", tp.topic, tp.partition, unusable)
                states = self._anew(tp)
            if states.offset is None:  # what is read from now on misses nothing for as long as tombstones are kept
                states.mark(topic, _now_ms())
            await asyncio.sleep(0)  # opening one takes 10 ms

    def apply(self, read: Read) -> None:
        """Apply a batch, if it is of what is assigned to us now."""
        tp, states = read.tp, self._states.get(read.tp)
        if read.during is not self._during or states is None or tp in self._given_up:
            return
        ours, offset = tp.partition in read.during, states.offset
        if offset is not None and read.start > offset + 1:
            problem = f"of {tp.topic}-{tp.partition} the records between {offset} and {read.start} were not read"
            self._cannot(tp, problem, ours=ours)
            return
        changes: Changes = []
        for record in read.records:
            if (offset is not None and record.offset <= offset) or record.key in {None, HEARTBEAT_KEY}:
                continue
            try:
                if record.value is not None:
                    check_stored(record.value)
            except UnsupportedRecord as problem:
                self._cannot(tp, f"{tp.topic}-{tp.partition} at offset {record.offset}: {problem}", ours=ours)
                return
            changes.append((record.key, record.value))
        if offset is None or read.end - 1 > offset:
            states.write(changes, read.end - 1)
        self.read[tp] += len(read.records)
        self._metrics.recovered_records.labels("own" if ours else "standby").inc(len(read.records))

    def recovered(self) -> None:
        """Say that what is ours was read up to its end."""
        for tp, states in self._states.items():
            if tp.partition in self._during:
                states.mark(self._topics[tp.topic], _now_ms())

    async def keep_marking(self, log: Ends, recovering: Callable[[], bool]) -> None:
        """Note from time to time what is in step with its changelog; never returns.

        Args:
            log: for the ends of the changelogs.
            recovering: tells whether what is ours is not in step yet.
        """
        while True:
            await asyncio.sleep(MARK_SECONDS)
            if not recovering():
                self.recovered()
                await self._mark_copies(log)

    async def _mark_copies(self, log: Ends) -> None:
        copies = [tp for tp in self._states if tp.partition not in self._during]
        now_ms = _now_ms()
        try:
            ends = await log.ends(copies) if copies else {}
        except Exception as problem:  # noqa: BLE001 - nothing depends on it; a rebalance may come in between
            logger.debug("the ends of the changelogs cannot be learnt: %s", problem)
            return
        for tp, end in ends.items():
            offset = self.offset(tp)
            if offset is not None and offset + 1 >= end:
                self._states[tp].mark(self._topics[tp.topic], now_ms)

    def close(self) -> None:
        """Close everything."""
        for states in self._states.values():
            states.close()
        self._states.clear()
        self._stores.close()

    def _unusable(self, states: States, topic: str, end: int) -> str | None:
        if states.topic is None or states.offset is None or states.in_step_ms is None:
            # A first reading that broke off begins anew: some of it may have been removed since.
            return None if states.offset is None else "it does not tell what it rests on"
        if states.topic != topic:
            return "the topic was deleted and made anew"
        if states.offset >= end:
            return f"the topic ends at offset {end}, and what is stored was read up to {states.offset}: is it the same?"
        age_ms = _now_ms() - states.in_step_ms
        if not -MS_PER_HOUR <= age_ms <= USABLE_MS:
            return (
                f"it was in step with it {age_ms / MS_PER_HOUR:.0f} hours ago, and the topic tells for "
                f"{TOMBSTONES_KEPT_HOURS} hours what was removed"
            )
        return None

    def _anew(self, tp: TopicPartition) -> States:
        self._states.pop(tp).close()
        self._stores.discard(self.tables[tp.topic], tp.partition)
        states = self._states[tp] = self._stores.open(self.tables[tp.topic], tp.partition)
        return states

    def _cannot(self, tp: TopicPartition, problem: str, *, ours: bool) -> None:
        if ours:
            self._abandon(EXIT_FAILED, problem)
        logger.warning("no copy of %s-%d is kept any more: %s", tp.topic, tp.partition, problem)
        self._given_up.add(tp)
        self._anew(tp)


def _now_ms() -> int:
    return int(time.time() * 1_000)
