"""Takes partitions over and gives them up, in the order that keeps every event counted once.

Taking over: fence the former owner, put a data record at each changelog's end, and only then read what is committed.
Giving up: stop applying, commit, stop the producer. What is applied in between is not decided here.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Protocol, TypeVar

from aiokafka import TopicPartition

from streams.kafka import in_words, producer
from streams.worker.commit import Committer
from streams.worker.faults import EXIT_LOST
from streams.worker.live import SESSIONS, TASKS, LiveTable
from streams.worker.partition import Partition
from streams.worker.records import HEARTBEAT_KEY, HEARTBEAT_VALUE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import NoReturn

    from aiokafka import AIOKafkaProducer
    from aiokafka.structs import ConsumerRecord

    from streams.worker.changelogs import Changelogs
    from streams.worker.live import Form
    from streams.worker.metrics import WorkerMetrics
    from streams.worker.settings import WorkerSettings

S = TypeVar("S")

logger = logging.getLogger(__name__)

MAX_BATCH_BYTES = 256 * 2**10
"""Bytes of one produce request per partition: a commit writes some thousand states of about 1 kB."""

EXTRA_OWNER = 0
"""The owner of this partition also commits for topics that every worker reads whole (the overrides)."""


class Offsets(Protocol):
    """What is asked of the group's consumer."""

    async def committed(self, tps: Collection[TopicPartition]) -> dict[TopicPartition, int | None]:
        """Give the committed offset of each partition, None where there is none."""

    async def beginnings(self, tps: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Give the first offset of each partition's log."""


class Ownerships:
    """The partitions that are ours now.

    Args:
        settings: names and times.
        count: how many partitions the inputs have.
        changelogs: what is stored.
        redo: see `Partition`.
        extra: partitions of other inputs, of topics that every worker reads whole; partition 0 commits their offsets.
        metrics: counts.
        abandon: ends the process.
    """

    def __init__(
        self,
        settings: WorkerSettings,
        *,
        count: int,
        changelogs: Changelogs,
        redo: Callable[[Partition, list[ConsumerRecord]], None],
        extra: Callable[[], Collection[TopicPartition]],
        metrics: WorkerMetrics,
        abandon: Callable[[int, str], NoReturn],
    ) -> None:
        self._settings = settings
        self._count = count
        self.changelogs = changelogs
        self._redo = redo
        self._extra = extra
        self._metrics = metrics
        self._abandon = abandon
        self._committers: dict[int, Committer] = {}
        self._moving = asyncio.Lock()  # a signal to stop may come in the middle of a rebalance
        self._heart: AIOKafkaProducer = producer(settings.kafka)
        self.current: Mapping[int, Partition] = {}
        """What we own, by number. Replaced as a whole, never changed, since the consumer's thread reads it too."""
        self.steps = 0
        """Steps of takeovers that were made; rises as long as one goes on."""

    async def start(self) -> None:
        """Connect.

        Raises:
            KafkaError: the brokers cannot be reached.
        """
        await self._heart.start()

    @property
    def commit_waits(self) -> float:
        """How long the oldest commit under way has been waiting for the brokers, in seconds; 0 where none is."""
        now = time.monotonic()
        return max((now - at for each in self._committers.values() if (at := each.began) is not None), default=0.0)

    async def stop(self) -> None:
        """Give everything up and leave the brokers."""
        await self.release()
        self.changelogs.close()
        await self._heart.stop()

    async def take(self, assigned: Collection[TopicPartition], offsets: Offsets) -> None:
        """Take over what was assigned; anything owned before must have been released.

        Args:
            assigned: everything assigned to this process; what is no input of ours is left out.
            offsets: for what is committed.
        """
        inputs = self._settings.inputs
        wanted = {tp.partition for tp in assigned if tp.topic in inputs}
        given = set(assigned)
        missing = [f"{topic}-{number}" for number in sorted(wanted) for topic in inputs if (topic, number) not in given]
        if missing:
            self._abandon(
                EXIT_LOST,
                f"of the partitions {', '.join(map(str, sorted(wanted)))} not all were assigned, {', '.join(missing)} "
                "not: was a topic deleted or given partitions, or do workers of "
                f"{self._settings.app_id} read different topics? See: traction topics check",
            )
        more = sorted(number for number in wanted if number >= self._count)
        if more:
            self._abandon(
                EXIT_LOST,
                f"the topics were given partitions ({', '.join(map(str, more))}) since this worker started with "
                f"{self._count}: keys move to others, and leave what is remembered behind. What to do says: "
                f"traction topics plan-partitions {max(more) + 1}",
            )
        began = time.monotonic()
        try:
            async with self._moving, asyncio.timeout(self._settings.away_timeout):
                await self._take(sorted(wanted), offsets)
        except Exception as problem:  # noqa: BLE001 - the process ends with it; aiokafka would log it and go on
            self._abandon(EXIT_LOST, f"partitions cannot be taken over ({in_words(self._settings.kafka, problem)})")
        self._metrics.rebalances.inc()
        self._metrics.assigned_partitions.set(len(wanted))
        names = ", ".join(map(str, sorted(wanted))) or "none"
        logger.info("partitions taken over in %.1f s: %s", time.monotonic() - began, names)

    async def _take(self, numbers: list[int], offsets: Offsets) -> None:
        # 1. Fence: from here on a former owner can commit nothing, and what it had begun is aborted.
        producers = dict(zip(numbers, await asyncio.gather(*map(self._fence, numbers)), strict=True))
        # 2. Put a data record behind everything: Faust's recovery waits for the record at the last offset, which else
        #    is a commit marker, or a record that compaction took away, and never comes.
        await asyncio.gather(*map(self._beat, numbers))
        # 3. Now what is committed is final, and the next event follows it.
        positions, fresh = await self._positions(numbers, offsets)
        current = {
            number: Partition(
                number,
                sessions=self._live(SESSIONS, number, self._settings.sessions_changelog),
                tasks=self._live(TASKS, number, self._settings.tasks_changelog),
                positions={tp: at for tp, at in positions.items() if number == self._owner(tp)},
                redo=self._redo,
            )
            for number in numbers
        }
        for partition in current.values():
            partition.fresh.update(fresh & partition.positions.keys())
        self._committers = {
            number: Committer(
                partition,
                producers[number],
                settings=self._settings,
                metrics=self._metrics,
                live_limit=self._live_limit,
                abandon=self._abandon,
            )
            for number, partition in current.items()
        }
        self.current = current

    async def release(self) -> None:
        """Give up everything we own: what was applied is committed, what was not is read again by the next owner."""
        async with self._moving:
            committers, owned = self._committers, self.current
            self.current, self._committers = {}, {}
            for partition in owned.values():
                partition.ended = True  # all at once: nothing more is applied
            await asyncio.gather(*(committer.close() for committer in committers.values()))
            self._metrics.assigned_partitions.set(0)

    async def _fence(self, number: int) -> AIOKafkaProducer:
        made = producer(
            self._settings.kafka,
            transactional_id=self._settings.transactional_id(number),
            transaction_timeout_ms=int(self._settings.transaction_timeout * 1_000),
            max_batch_size=min((MAX_BATCH_BYTES, *self._settings.message_bytes.values())),
        )
        await made.start()
        self.steps += 1
        return made

    async def _beat(self, number: int) -> None:
        for changelog in (self._settings.sessions_changelog, self._settings.tasks_changelog):
            await self._heart.send_and_wait(changelog, key=HEARTBEAT_KEY, value=HEARTBEAT_VALUE, partition=number)
            self.steps += 1

    async def _positions(
        self, numbers: list[int], offsets: Offsets
    ) -> tuple[dict[TopicPartition, int], set[TopicPartition]]:
        """Give where reading goes on, and the inputs of which nothing is committed."""
        tps = [TopicPartition(topic, number) for number in numbers for topic in self._settings.inputs]
        if EXTRA_OWNER in numbers:
            tps += self._extra()
        committed = await offsets.committed(tps)
        fresh = {tp for tp in tps if committed[tp] is None}
        beginnings = await offsets.beginnings(fresh) if fresh else {}
        return {tp: beginnings[tp] if at is None else at for tp, at in committed.items()}, fresh

    def _owner(self, tp: TopicPartition) -> int:
        return tp.partition if tp.topic in self._settings.inputs else EXTRA_OWNER

    def _live(self, form: Form[S], number: int, changelog: str) -> LiveTable[S]:
        return LiveTable(form, number, self._count, lambda: self.changelogs.states(changelog, number))

    def _live_limit(self) -> int:
        return self._settings.live_sessions // max(1, len(self.current))
