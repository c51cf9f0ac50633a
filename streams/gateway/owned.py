"""Which partitions of a collector's topics this process owns: takes one when it is assigned, lets it go when revoked.

Taking fences the former owner: a transactional producer whose id names topic and partition is initialised, then the
committed offset is read, then reading starts there. A unit is one object per assignment: what was fetched for another
one must not be written. Nothing in here knows what is read.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiokafka.abc import ConsumerRebalanceListener

from streams.escalation.ownership import start
from streams.fencing import stop_producer
from streams.kafka import KafkaSettings, producer, start_client
from streams.otlp import Memory

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

    from streams.metrics import ConsumerMetrics


@dataclass(slots=True, eq=False)
class Unit:
    """One ownership of one partition, from its assignment to its revocation.

    Attributes:
        tp: the partition.
        producer: the transactional producer that fences former owners.
        memory: what is known of earlier records' traces.
        position: what comes next after what was committed.
        next: where the consumer reads next.
        timestamp: time of the record committed last, in seconds since 1970.
        ready: whether it was taken.
        lock: held during a transaction.
        task: takes it.
    """

    tp: TopicPartition
    producer: AIOKafkaProducer
    memory: Memory = field(default_factory=Memory)
    position: int = 0
    next: int = 0
    timestamp: float | None = None
    ready: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    task: asyncio.Task[None] | None = None


class Owned(ConsumerRebalanceListener):  # type: ignore[misc]  # published without types
    """All units that this process owns now.

    aiokafka calls the methods inherited from the listener in its own coordination routine and swallows what they raise.
    So taking happens in tasks, and their failures are kept for `check`.

    Args:
        kafka: where and how to connect.
        metrics: takes what was deleted unread.
        names: what the transactional ids begin with, by topic.
        transaction_timeout_ms: after this the brokers abort a transaction that its owner left open.
    """

    def __init__(
        self, kafka: KafkaSettings, metrics: ConsumerMetrics, *, names: Mapping[str, str], transaction_timeout_ms: int
    ) -> None:
        self._kafka = kafka
        self._metrics = metrics
        self._names = names
        self._transaction_timeout_ms = transaction_timeout_ms
        self._units: dict[TopicPartition, Unit] = {}
        self._clients: tuple[AIOKafkaConsumer, AIOKafkaConsumer] | None = None
        self._failure: BaseException | None = None
        self._ended = False
        self.assignments = 0
        """How often partitions were assigned; 0 means not yet."""
        self.letting_go = False
        """Whether partitions are being let go of; if that hangs, no others are assigned."""

    def use(self, consumer: AIOKafkaConsumer, offsets: AIOKafkaConsumer) -> None:
        """Tell which clients to use: the group's member, and one that asks for offsets beyond open transactions."""
        self._clients = consumer, offsets

    def current(self) -> Mapping[TopicPartition, Unit]:
        """Give the units of what was assigned last, taken or not yet."""
        return self._units

    def owns(self, unit: Unit) -> bool:
        """Tell whether an ownership still stands."""
        return self._units.get(unit.tp) is unit

    def taking(self) -> bool:
        """Tell whether some are not taken yet; until then, reading may stand anywhere."""
        return not all(unit.ready for unit in self._units.values())

    def check(self) -> None:
        """Raise what went wrong while a partition was taken."""
        if self._failure is not None:
            raise self._failure

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Begin to take partitions; called by aiokafka after a rebalance."""
        if self._ended:
            return  # a rebalance that was under way when we began to leave
        self.assignments += 1
        for tp in assigned:
            client = producer(
                self._kafka,
                transactional_id=f"{self._names[tp.topic]}-{tp.partition}",
                transaction_timeout_ms=self._transaction_timeout_ms,
            )
            unit = self._units[tp] = Unit(tp, client)
            unit.task = asyncio.create_task(self._take(unit), name=f"take {tp.topic}-{tp.partition}")
            unit.task.add_done_callback(self._taken)

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Let go of everything, after the transactions under way; called by aiokafka before a rebalance, and by us."""
        del revoked  # with aiokafka's eager protocol always all
        units, self._units = self._units, {}
        self.letting_go = True
        try:
            await asyncio.gather(*(self._release(unit) for unit in units.values()))
        finally:
            self.letting_go = False

    async def release_all(self) -> None:
        """Let go of everything at the end, and take nothing more."""
        self._ended = True
        await self.on_partitions_revoked(())

    async def pass_over_deleted(self, tp: TopicPartition, offset: int) -> None:
        """Go on behind what retention deleted before it was read; logged and counted.

        Args:
            tp: the partition.
            offset: the offset that the brokers said they have nothing at.
        """
        unit = self._units.get(tp)
        if unit is None or not unit.ready or unit.position != offset or self._clients is None:
            return  # asked for under another ownership
        consumer, _ = self._clients
        going_on = await self._start(tp, offset)
        if self.owns(unit):
            consumer.seek(tp, going_on)
            unit.position = max(unit.position, going_on)

    async def _take(self, unit: Unit) -> None:
        """Fence former owners, read what is committed, which nobody else can move now, and read from there."""
        if self._clients is None:
            raise RuntimeError("a partition was assigned before the clients were known")
        consumer, _ = self._clients
        await start_client(unit.producer, self._kafka)
        position = await self._start(unit.tp, await consumer.committed(unit.tp))
        if self.owns(unit):
            unit.position = unit.next = position
            consumer.seek(unit.tp, position)
            unit.ready = True

    async def _start(self, tp: TopicPartition, committed: int | None) -> int:
        if self._clients is None:
            raise RuntimeError("a partition is read before the clients were known")
        _, offsets = self._clients
        beginning, end = (await offsets.beginning_offsets([tp]))[tp], (await offsets.end_offsets([tp]))[tp]
        if committed is not None and committed < beginning:
            self._metrics.deleted_unread.inc(beginning - committed)
        return start(tp, committed, beginning, end)

    def _taken(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._failure = task.exception()

    @staticmethod
    async def _release(unit: Unit) -> None:
        if unit.task is not None and not unit.task.done():
            unit.task.cancel()
            await asyncio.wait([unit.task])
        async with unit.lock:
            await stop_producer(unit.producer)
