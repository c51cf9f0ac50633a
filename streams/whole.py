"""Follows a small compacted topic that every process reads whole: to its end at the start, and on from then on.

It joins no group and commits nothing. What a record means is its users' business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streams.kafka import consumer, stop_client

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiokafka import AIOKafkaConsumer, TopicPartition
    from aiokafka.structs import ConsumerRecord

    from streams.kafka import KafkaSettings

POLL_MS = 500
"""How long one fetch may wait for news: half of the shortest stall limit, in which something must be seen to turn."""


class WholeTopic:
    """Hands over all records of a topic, committed ones only.

    Args:
        kafka: where the topic is.
        topic: its name on the brokers.
        apply: takes each record, tombstones included.
    """

    def __init__(self, kafka: KafkaSettings, topic: str, apply: Callable[[ConsumerRecord], None]) -> None:
        self.topic = topic
        self._apply = apply
        self._consumer: AIOKafkaConsumer = consumer(kafka)
        self.positions: dict[TopicPartition, int] = {}
        """For each partition of the topic the offset to read next."""
        self.turns = 0
        """How often was read; rises as long as the topic is followed, whether anything comes or not."""

    async def start(self) -> None:
        """Read the whole topic.

        Raises:
            KafkaError: it cannot be read.
        """
        self._consumer.subscribe([self.topic])  # without a group, that is all partitions of it
        await self._consumer.start()
        tps = sorted(self._consumer.assignment())
        ends: dict[TopicPartition, int] = await self._consumer.end_offsets(tps)
        while any([await self._consumer.position(tp) < ends[tp] for tp in tps]):
            await self._take()
        for tp in tps:
            self.positions[tp] = await self._consumer.position(tp)

    async def follow(self, on_change: Callable[[], None]) -> None:
        """Take over what comes; never returns.

        Args:
            on_change: called after records were taken over.
        """
        while True:
            if await self._take():
                on_change()

    async def reached(self, ends: dict[TopicPartition, int]) -> bool:
        """Tell whether all before these offsets was taken over; markers of transactions count as read."""
        return all([await self._consumer.position(tp) >= end for tp, end in ends.items()])

    async def stop(self) -> None:
        """Leave the brokers."""
        await stop_client(self._consumer)

    async def _take(self) -> int:
        self.turns += 1
        fetched: dict[TopicPartition, list[ConsumerRecord]] = await self._consumer.getmany(timeout_ms=POLL_MS)
        for tp, records in fetched.items():
            for record in records:
                self._apply(record)
            self.positions[tp] = records[-1].offset + 1
        return len(fetched)
