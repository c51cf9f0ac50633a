"""Keeps what is stored of each partition in step with its changelog: those that are ours, and copies of others'.

Batches read from the changelogs are applied here as they come, so that Faust, which decides what is read and when,
sees only how far that is; it swallows errors, and drops what it has queued. Whatever cannot be applied whole ends the
process (of ours) or the copy (of others'). Nothing here writes to Kafka.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from aiokafka import TopicPartition

from streams.kafka import in_words
from streams.topic_ids import topic_ids
from streams.topics import MS_PER_HOUR, SESSIONS_TABLE, TASKS_TABLE, TOMBSTONES_KEPT_HOURS
from streams.worker.faults import EXIT_FAILED, EXIT_LOST
from streams.worker.records import HEARTBEAT_KEY, UnsupportedRecord, check_stored

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import NoReturn

    from aiokafka.structs import ConsumerRecord

    from streams.worker.metrics import Copy, WorkerMetrics
    from streams.worker.partition import Partition
    from streams.worker.settings import WorkerSettings
    from streams.worker.states import Changes, States, Stores

logger = logging.getLogger(__name__)

LOOK_SECONDS = 300.0
"""Between two looks at what is in step: for up to twice that less than they could, copies are of use after a stop."""

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


class Log(Protocol):
    """What is asked of the group's consumer."""

    async def beginnings(self, tps: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Give the first offset of each partition's log."""

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
        self._begins: dict[TopicPartition, int] = {}
        # Where each ended, and when that was asked for: what is ours and not read so far yet, and of the last look.
        self._unread: dict[TopicPartition, tuple[int, int]] = {}
        self._looked: dict[TopicPartition, tuple[int, int]] = {}
        self._topics: Mapping[str, str] = {}
        self._during: Mapping[int, Partition] = {}
        self.read: Counter[TopicPartition] = Counter()
        """How many records were read of each since it was assigned."""
        self.steps = 0
        """Partitions that were opened or closed; rises as long as a takeover goes on."""

    def whole(self, number: int) -> bool:
        """Tell whether all that is stored of a partition that is ours was read back."""
        return not any(TopicPartition(changelog, number) in self._unread for changelog in self.tables)

    def states(self, changelog: str, number: int) -> States:
        """Give what is stored of a partition that is ours, and was read up to where it ended when it was fenced.

        Before that it ends the process: whatever Faust believes, nothing is decided by states that are not whole.
        """
        tp = TopicPartition(changelog, number)
        if tp in self._unread:
            self._abandon(EXIT_FAILED, f"{changelog}-{number} was to be used before it was read back; please report it")
        return self._states[tp]

    def held(self, table: str, copy: Copy) -> list[States]:
        """Give what is stored of a table: of what is ours, or the copies that are kept of others'."""
        ours, held = self._during, list(self._states.items())
        return [
            states
            for tp, states in held
            if self.tables[tp.topic] == table and (copy == "own") == (tp.partition in ours)
        ]

    def offset(self, tp: TopicPartition) -> int | None:
        """Give the offset after which a changelog is to be read on; None for from its beginning."""
        states = self._states.get(tp)
        return None if states is None else states.offset

    async def take(self, assigned: Collection[TopicPartition], during: Mapping[int, Partition], log: Log) -> None:
        """Open what is stored of the partitions assigned, and close the others; what cannot be used is thrown away.

        Args:
            assigned: everything assigned to this process; of the changelogs also those that it keeps a copy of.
            during: what is ours now.
            log: for the beginnings and ends of the changelogs.
        """
        try:
            async with asyncio.timeout(self._settings.away_timeout):
                await self._take({TopicPartition(*tp) for tp in assigned if tp[0] in self.tables}, during, log)
        except Exception as problem:  # noqa: BLE001 - the process ends with it; aiokafka would log it and go on
            what = in_words(self._settings.kafka, problem)
            self._abandon(EXIT_LOST, f"what is stored of the partitions cannot be taken over ({what})")

    async def _take(self, wanted: set[TopicPartition], during: Mapping[int, Partition], log: Log) -> None:
        self._during = {}  # nothing that is fetched meanwhile counts
        self._unread = {tp: (sys.maxsize, 0) for tp in wanted if tp.partition in during}
        self._looked = {}
        self._given_up.clear()
        self.read.clear()
        for tp in self._states.keys() - wanted:
            self._states.pop(tp).close()
            self.steps += 1
            await asyncio.sleep(0)  # closing one writes what is not in files yet
        self._topics = await topic_ids(self._settings.kafka, self.tables)
        asked_ms = _now_ms()
        self._begins = await log.beginnings(wanted) if wanted else {}
        ends = await log.ends(wanted) if wanted else {}
        for tp in sorted(wanted):
            topic = self._topics[tp.topic]
            states = self._states.get(tp) or self._stores.open(self.tables[tp.topic], tp.partition)
            self._states[tp] = states
            unusable = self._unusable(states, topic, self._begins[tp], ends[tp])
            if unusable is not None:
                logger.warning("what is stored of %s-%d is read anew: %s", tp.topic, tp.partition, unusable)
                states = self._anew(tp)
            if states.offset is None:  # what is read from now on misses nothing for as long as tombstones are kept
                states.mark(topic, _now_ms())
            self._looked[tp] = ends[tp], asked_ms
            if tp in self._unread:
                self._unread[tp] = self._looked[tp]
                self._note_read(tp)
            self.steps += 1
            await asyncio.sleep(0)  # opening one takes 10 ms
        self._during = during

    def apply(self, read: Read) -> bool:
        """Apply a batch, if it is of what is assigned to us now; tell whether the states rest on all of it."""
        tp, states = read.tp, self._states.get(read.tp)
        if read.during is not self._during or states is None or tp in self._given_up:
            return False
        ours, offset = tp.partition in read.during, states.offset
        follows = self._begins[tp] if offset is None else offset + 1
        if read.start > follows:
            problem = f"of {tp.topic}-{tp.partition} the records between {follows - 1} and {read.start} were not read"
            self._cannot(tp, problem, ours=ours)
            return False
        changes: Changes = []
        for record in read.records:
            if (offset is not None and record.offset <= offset) or record.key in {None, HEARTBEAT_KEY}:
                continue
            try:
                if record.value is not None:
                    check_stored(record.value)
            except UnsupportedRecord as problem:
                self._cannot(tp, f"{tp.topic}-{tp.partition} at offset {record.offset}: {problem}", ours=ours)
                return False
            changes.append((record.key, record.value))
        if offset is None or read.end - 1 > offset:
            states.write(changes, read.end - 1)
        self._note_read(tp)
        self.read[tp] += len(read.records)
        self._metrics.recovered_records.labels("own" if ours else "standby").inc(len(read.records))
        return True

    async def keep_marking(self, log: Log) -> None:
        """Note from time to time what is in step with its changelog; never returns.

        Args:
            log: for the ends of the changelogs.
        """
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self._look(log)

    async def _look(self, log: Log) -> None:
        """Note of what has all that there was at the last look when that was: what the brokers said, not what we think.

        A process that was frozen or cut off takes partitions for its own that are not, and a busy changelog goes on
        while its end is asked for.
        """
        asked_ms, during = _now_ms(), self._during
        try:
            ends = await log.ends(list(self._states)) if self._states else {}
        except Exception as problem:  # noqa: BLE001 - nothing depends on it; a rebalance may come in between
            logger.debug("the ends of the changelogs cannot be learnt: %s", problem)
            return
        if self._during is not during:
            return
        for tp in ends.keys() & self._looked.keys():
            states, (end, then_ms) = self._states[tp], self._looked[tp]
            ours = tp.partition in during
            if states.offset is None:
                continue
            if not ours and (age := _age(states, asked_ms)) is not None:
                self._cannot(tp, age, ours=False)
            # Behind the last record that we wrote ourselves is its transaction's marker.
            elif states.offset + (2 if ours else 1) >= end:
                states.mark(self._topics[tp.topic], then_ms)
            self._looked[tp] = ends[tp], asked_ms

    def close(self) -> None:
        """Close everything."""
        for states in self._states.values():
            states.close()
        self._states.clear()
        self._stores.close()

    def _note_read(self, tp: TopicPartition) -> None:
        states, (end, then_ms) = self._states[tp], self._unread.get(tp, (sys.maxsize, 0))
        if states.offset is not None and states.offset + 1 >= end:
            del self._unread[tp]
            states.mark(self._topics[tp.topic], then_ms)

    def _unusable(self, states: States, topic: str, begin: int, end: int) -> str | None:
        if states.topic is None or states.offset is None or states.in_step_ms is None:
            # A first reading that broke off begins anew: some of it may have been removed since.
            return None if states.offset is None else "it does not tell what it rests on"
        if states.topic != topic:
            return "the topic was deleted and made anew"
        if states.offset >= end:
            return f"the topic ends at offset {end}, and what is stored was read up to {states.offset}: is it the same?"
        if states.offset + 1 < begin:
            return f"the topic begins at offset {begin}, and what is stored was read up to {states.offset}: was it cut?"
        return _age(states, _now_ms())

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


def _age(states: States, now_ms: int) -> str | None:
    """Say of states that were read in part whether that is too long ago."""
    age_ms = now_ms - (states.in_step_ms or 0)
    if -MS_PER_HOUR <= age_ms <= USABLE_MS:
        return None
    return (
        f"it was in step with the topic {age_ms / MS_PER_HOUR:.0f} hours ago, which tells for {TOMBSTONES_KEPT_HOURS} "
        "hours what was removed"
    )


def _now_ms() -> int:
    return int(time.time() * 1_000)
