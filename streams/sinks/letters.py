"""Writes what a sink could not deliver to the dead letters, where a person finds it.

Most sinks never need it, so it connects when it is first used. It must not decide what is set aside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from schemas import topics
from streams.kafka import producer, running

if TYPE_CHECKING:
    import contextlib

    from aiokafka import AIOKafkaProducer

    from streams.kafka import KafkaSettings
    from streams.received import DeadLetter


class Letters:
    """Writes dead letters, with a producer that is there once it is needed.

    Args:
        kafka: where and how to connect.
        clients: ends the producer.
    """

    def __init__(self, kafka: KafkaSettings, clients: contextlib.AsyncExitStack) -> None:
        self._kafka = kafka
        self._clients = clients
        self._producer: AIOKafkaProducer | None = None

    async def write(self, letter: DeadLetter) -> None:
        """Write a dead letter, and wait until the brokers have it."""
        client = self._producer or await self._start()
        await client.send_and_wait(
            self._kafka.topic(topics.DEAD_LETTERS), key=letter.key, value=letter.value, headers=list(letter.headers)
        )

    async def _start(self) -> AIOKafkaProducer:
        self._producer = await self._clients.enter_async_context(running(producer(self._kafka), self._kafka))
        return self._producer
