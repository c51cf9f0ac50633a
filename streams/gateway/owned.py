"""Which partitions of a collector's topics this process owns, and where each is read.

Taking one reads the committed offset once its former owner is fenced, and goes on there. Nothing in here knows what is
read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streams.kafka import KafkaSettings, producer
from streams.otlp import Memory
from streams.ownership import Ownership, Start, Unit, start

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from aiokafka import TopicPartition

    from streams.health import Health
    from streams.metrics import ConsumerMetrics


@dataclass(slots=True, eq=False)
class Collected(Unit):
    """One ownership of one partition.

    Attributes:
        tp: the partition.
        memory: what is known of earlier records' traces.
        position: what comes next after what was committed.
        next: where the consumer reads next.
        deleted: records that were deleted unread and are not committed as passed over yet.
        timestamp: time of the record committed last, in seconds since 1970.
    """

    tp: TopicPartition
    memory: Memory = field(default_factory=Memory)
    position: int = 0
    next: int = 0
    deleted: int = 0
    timestamp: float | None = None

    @property
    def name(self) -> str:
        """Topic and number."""
        return f"{self.tp.topic}-{self.tp.partition}"


class CollectedPartitions(Ownership["TopicPartition", Collected]):
    """All partitions of a collector's topics that this process owns now.

    Args:
        kafka: where and how to connect.
        metrics: see `Ownership`.
        health: see `Ownership`.
        names: what the transactional ids begin with, by topic.
        transaction_timeout_ms: after this the brokers abort a transaction that its owner left open.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        metrics: ConsumerMetrics,
        health: Health,
        *,
        names: Mapping[str, str],
        transaction_timeout_ms: int,
    ) -> None:
        super().__init__(kafka, metrics, health)
        self._names = names
        self._transaction_timeout_ms = transaction_timeout_ms

    def make(self, assigned: Collection[TopicPartition]) -> Mapping[TopicPartition, Collected]:
        """Make a unit of each partition."""
        return {tp: self._unit(tp) for tp in assigned}

    def _unit(self, tp: TopicPartition) -> Collected:
        client = producer(
            self._kafka,
            transactional_id=f"{self._names[tp.topic]}-{tp.partition}",
            transaction_timeout_ms=self._transaction_timeout_ms,
        )
        return Collected(tp, producer=client)

    async def take(self, unit: Collected) -> None:
        """Read what is committed, which nobody else can move now, and read from there."""
        consumer, _ = self.clients()
        committed = await consumer.committed(unit.tp)
        unit.steps += 1
        begun = await self._start(unit.tp, committed)
        if unit.owned:
            unit.position = unit.next = begun.position
            unit.deleted = begun.deleted
            consumer.seek(unit.tp, begun.position)
            unit.ready = True

    async def pass_over_deleted(self, tp: TopicPartition, offset: int) -> None:
        """Go on behind what retention deleted before it was read; logged, and counted once that is committed.

        Args:
            tp: the partition.
            offset: the offset that the brokers said they have nothing at.
        """
        unit = self._units.get(tp)
        if unit is None or not unit.ready or unit.position != offset:
            return  # asked for under another ownership
        consumer, _ = self.clients()
        going_on = await self._start(tp, offset)
        if unit.owned:
            consumer.seek(tp, going_on.position)
            unit.position = max(unit.position, going_on.position)
            unit.deleted += going_on.deleted

    async def _start(self, tp: TopicPartition, committed: int | None) -> Start:
        _, offsets = self.clients()
        beginning, end = (await offsets.beginning_offsets([tp]))[tp], (await offsets.end_offsets([tp]))[tp]
        return start(tp, committed, beginning, end)
