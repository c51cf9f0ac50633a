"""Hands events to the brokers and waits until all in-sync replicas have them; says soon when they do not.

What was handed over and is not acknowledged in time may still arrive: it is counted until then, and whoever posted it
posts it again, which the worker recognises. A client that gave up is replaced. Nothing is stored here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING, Any

from aiokafka.errors import KafkaError, MessageSizeTooLargeError, ProducerClosed

from schemas.encode import encode, headers, record_key
from schemas.invalid import InvalidEvent
from schemas.topics import CONTROL
from streams.gateway.items import Sendable
from streams.gateway.refused import away
from streams.kafka import KafkaUnavailable, in_words, producer, start_client, stop_client

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence
    from typing import NoReturn, Self

    from aiokafka import AIOKafkaProducer

    from schemas.events import Control
    from streams.gateway.metrics import GatewayMetrics
    from streams.health import Health
    from streams.kafka import KafkaSettings

logger = logging.getLogger(__name__)

SOURCE = "/traction/gateway"
"""Who publishes, in the CloudEvents attribute `source`, where it is the gateway."""

BROKER = "broker"
"""Name of the condition of readiness."""

RENEW_SECONDS = 1.0
"""Between two tries to make the client anew, and how long the old one may take to end."""

LOOK_SECONDS = 5.0
"""Between two looks whether brokers answer, while nothing is sent."""


class Sender:
    """The Kafka client of one gateway, or of one follower of transcripts; `async with` starts and ends it.

    Args:
        kafka: where and how to connect.
        ack_seconds: how long the brokers may take to acknowledge.
        metrics: takes what is measured.
        health: takes the condition `BROKER`.
        source: who publishes, in the CloudEvents attribute `source`.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        ack_seconds: float,
        metrics: GatewayMetrics,
        health: Health,
        *,
        source: str = SOURCE,
    ) -> None:
        self._kafka = kafka
        self._source = source
        self._ack_seconds = ack_seconds
        self._metrics = metrics
        self._health = health
        self._client: AIOKafkaProducer | None = None
        self._open: dict[asyncio.Future[Any], tuple[float, AIOKafkaProducer]] = {}  # since when; the oldest first
        self._heard = time.monotonic()
        self._work: set[asyncio.Task[None]] = set()
        self.bytes = 0
        """Of events that were handed over and not acknowledged."""

    async def __aenter__(self) -> Self:
        """Connect.

        Raises:
            KafkaUnavailable: the brokers cannot be reached.
        """
        self._client = await self._connect()
        self._health.hold(BROKER)
        self._begin(self._look())
        return self

    async def __aexit__(self, *problem: object) -> None:
        """End; what is not acknowledged was promised to nobody."""
        work = list(self._work)
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        client, self._client = self._client, None
        if client is not None:
            await self._retire(client)

    async def send(self, sendables: Sequence[Sendable]) -> list[tuple[Sendable, InvalidEvent | None]]:
        """Have events acknowledged.

        Returns:
            Each with None, or why the brokers will never take it.

        Raises:
            Refused: not all were acknowledged in time; some may have been.
        """
        if not sendables:
            return []
        begun = time.monotonic()
        client = self._client
        if client is None or self._away(begun):
            self._metrics.unacknowledged.inc()
            raise away("the brokers do not answer; send the same again later")
        sent: list[asyncio.Future[Any]] = []
        try:
            async with asyncio.timeout(self._ack_seconds):
                for each in sendables:
                    sent.append(await self._hand_over(client, each))  # noqa: PERF401 - those before a failure are open
                await asyncio.wait(sent)
        except TimeoutError:
            self._unacknowledged("the brokers did not acknowledge in time")
        except KafkaError as problem:
            self._failed(client, problem)
        outcomes = [(each, self._outcome(client, future)) for each, future in zip(sendables, sent, strict=True)]
        self._metrics.publish_seconds.observe(time.monotonic() - begun)
        return outcomes

    async def say(self, control: Control) -> None:
        """Have what is said on the topic of control acknowledged.

        Raises:
            Refused: it was not in time; it may have been taken.
        """
        await self.send([Sendable(0, control, CONTROL, encode(control), None)])

    async def _hand_over(self, client: AIOKafkaProducer, each: Sendable) -> asyncio.Future[Any]:
        size = len(each.value)
        self.bytes += size
        try:
            future: asyncio.Future[Any] = await client.send(
                self._kafka.topic(each.topic),
                each.value,
                key=record_key(each.event),
                headers=headers(each.event, source=self._source, traceparent=each.traceparent),
            )
        except BaseException:
            self.bytes -= size
            raise
        self._open[future] = time.monotonic(), client

        def settled(done: asyncio.Future[Any]) -> None:
            self.bytes -= size
            del self._open[done]
            if not done.cancelled() and done.exception() is None:
                self._hear()

        future.add_done_callback(settled)
        return future

    def _outcome(self, client: AIOKafkaProducer, future: asyncio.Future[Any]) -> InvalidEvent | None:
        problem = future.exception()
        if problem is None:
            return None
        if isinstance(problem, MessageSizeTooLargeError):
            self._replace(client)
            remedy = "cut the result and say so in result_length and result_digest"
            return InvalidEvent("too_large", "larger than the brokers take", remedy)
        return self._failed(client, problem)

    def _failed(self, client: AIOKafkaProducer, problem: BaseException) -> NoReturn:
        """Say that brokers did not take events."""
        logger.warning("events were not taken: %s", in_words(self._kafka, problem))
        self._replace(client)
        self._unacknowledged("the brokers did not take the events")

    def _replace(self, client: AIOKafkaProducer) -> None:
        """Make a client anew after something failed for good.

        With aiokafka 0.14 that leaves a gap in the numbers that brokers expect, so that they would refuse all that
        comes after it.
        """
        if client is self._client:
            self._client = None
            self._metrics.producer_renewals.inc()
            self._begin(self._retire(client))
            self._begin(self._renew())

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    def _unacknowledged(self, text: str) -> NoReturn:
        self._metrics.unacknowledged.inc()
        if self._away(time.monotonic()):
            self._health.fail(BROKER, "does not acknowledge")
        raise away(f"{text}; send the same again later, what arrived counts once")

    def _away(self, now: float) -> bool:
        """Tell whether brokers are away: something waits for longer than it may, and nothing else was acknowledged."""
        oldest, _ = next(iter(self._open.values()), (now, None))
        return now - oldest > self._ack_seconds and now - self._heard > self._ack_seconds

    def _hear(self) -> None:
        self._heard = time.monotonic()
        self._health.hold(BROKER)

    async def _connect(self) -> AIOKafkaProducer:
        client = producer(self._kafka)
        try:
            await start_client(client, self._kafka)
        except BaseException:
            await stop_client(client)
            raise
        return client

    async def _renew(self) -> None:
        while self._client is None:
            try:
                self._client = await self._connect()
            except (KafkaUnavailable, KafkaError, OSError, ValueError) as problem:
                self._health.fail(BROKER, "does not answer")
                logger.warning("%s; trying on", in_words(self._kafka, problem))
                await asyncio.sleep(RENEW_SECONDS)
        self._hear()

    async def _retire(self, client: AIOKafkaProducer) -> None:
        """End a client, whether brokers answer or not, and give up what it had not delivered."""
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RENEW_SECONDS):
                    await stop_client(client)
                    return
            await client.client.close()  # what it waits for fails
            await client._sender.close()  # noqa: SLF001 - `stop` does it only after all is delivered
        except KafkaError as problem:
            logger.debug("a client ended with %s", problem)
        finally:
            for future in [each for each, (_, its) in self._open.items() if its is client]:
                future.set_exception(ProducerClosed())

    async def _look(self) -> None:
        """Keep the condition `BROKER` also while nothing is sent."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            client = self._client
            if client is None or self._open:
                continue
            try:
                async with asyncio.timeout(self._ack_seconds):
                    await client.client.fetch_all_metadata()
            except (KafkaError, OSError, TimeoutError) as problem:
                self._health.fail(BROKER, f"does not answer: {type(problem).__name__}")
            else:
                self._health.hold(BROKER)
