"""Sends records while brokers fail: what arrived is what counts, and of what did not nobody says that it was lost.

It chooses nothing, and knows of no session: the load does.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any

from aiokafka.errors import KafkaError

from schemas import topics
from streams.kafka import KafkaSettings, producer
from tests.waiting import SOON_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiokafka import AIOKafkaProducer

    from tests.torture.load import Item


class Publisher:
    """Sends records, and goes on with another producer when the brokers failed one: what arrived is what counts.

    Attributes:
        sent: records that the brokers acknowledged.
        unknown: records of which nobody knows whether they arrived.
    """

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka
        self._names = {topic.name: kafka.topic(topic) for topic in topics.SESSION_INPUTS}
        self.sent = 0
        self.unknown = 0

    async def send(self, items: Iterable[Item], rate: float = 0.0) -> None:
        """Send records in order, so many a second at most; 0 for as fast as possible."""
        began, waiting = time.monotonic(), list["asyncio.Future[Any]"]()
        client = await self._connected()
        for number, item in enumerate(items):
            try:
                future = await client.send(
                    self._names[item.topic], key=item.key, value=item.value, partition=item.partition
                )
                waiting.append(future)
            except (KafkaError, AssertionError):
                self.unknown += 1
                client = await self._again(client)
            if number % 50 == 49:
                if any(future.done() and future.exception() for future in waiting):
                    client = await self._again(client)
                waiting = self._counted(waiting)
                if rate:
                    await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
        await asyncio.wait(waiting) if waiting else None
        self._counted(waiting)
        await self._stop(client)

    def _counted(self, waiting: list[asyncio.Future[Any]]) -> list[asyncio.Future[Any]]:
        for future in waiting:
            if future.done():
                self.sent += future.exception() is None
                self.unknown += future.exception() is not None
        return [future for future in waiting if not future.done()]

    async def _connected(self) -> AIOKafkaProducer:
        while True:
            client = producer(self._kafka, linger_ms=5, metadata_max_age_ms=5_000)
            try:
                await client.start()
            except (KafkaError, OSError, AssertionError):
                await self._stop(client)
                await asyncio.sleep(0.5)
            else:
                return client

    async def _again(self, client: AIOKafkaProducer) -> AIOKafkaProducer:
        await self._stop(client)
        return await self._connected()

    @staticmethod
    async def _stop(client: AIOKafkaProducer) -> None:
        with contextlib.suppress(KafkaError, OSError, AssertionError, TimeoutError):
            async with asyncio.timeout(SOON_SECONDS):
                await client.stop()
