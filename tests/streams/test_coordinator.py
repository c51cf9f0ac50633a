"""What a group's consumer is told of committed offsets."""

from __future__ import annotations

import asyncio

from aiokafka import TopicPartition

from schemas.topics import ALERTS
from streams.kafka import KafkaSettings, consumer, producer, running

SETTLED, PENDING = 3, 5


async def test_offsets_that_a_transaction_commits_are_waited_for(kafka: KafkaSettings) -> None:
    """Never the ones before it, from which a new owner of the partition would read again."""
    tp, group = TopicPartition(kafka.topic(ALERTS), 0), f"{kafka.prefix}stable"
    async with (
        running(consumer(kafka, group_id=group), kafka) as client,
        running(producer(kafka, transactional_id=f"{group}-0"), kafka) as sender,
    ):
        assert await client.committed(tp) is None
        async with sender.transaction():
            await sender.send_offsets_to_transaction({tp: SETTLED}, group)
        assert await client.committed(tp) == SETTLED
        async with sender.transaction():
            await sender.send_offsets_to_transaction({tp: PENDING}, group)
            asking = asyncio.create_task(client.committed(tp))
            await asyncio.wait([asking], timeout=0.5)
            assert not asking.done()
        assert await asking == PENDING
