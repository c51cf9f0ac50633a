"""Where a follower's events go: to the brokers, or to the gateway. Each answers when they are acknowledged.

What is not acknowledged is not noted as sent; the follower sends it again, under the same identifiers. Stores nothing.
"""

from __future__ import annotations

import asyncio
import itertools
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from prometheus_client import CollectorRegistry

from schemas.topics import SESSIONS, TOOL_CALLS
from streams.emitter.gateway import GatewayClient
from streams.gateway.items import TOPIC_OF, Sendable
from streams.gateway.metrics import GatewayMetrics
from streams.gateway.refused import Refused
from streams.gateway.sender import BROKER, Sender
from streams.health import Health
from streams.topics import check_topics

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from schemas.events import SessionInput
    from streams.emitter.settings import EmitterSettings
    from streams.kafka import KafkaSettings

SOURCE: Final = "/traction/follow"
"""Who publishes, in the CloudEvents attribute `source`."""

ACK_SECONDS: Final = 30.0
"""How long the brokers may take; longer than it takes to elect a leader."""

_NDJSON: Final = "application/x-ndjson"


class Outgoing(NamedTuple):
    """An event on its way: from which file, as it is sent, and its JSON."""

    source: str
    event: SessionInput
    data: bytes


class Away(Exception):
    """Events are not taken now; the same are to be sent again later. The message says why."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


class Sink(Protocol):
    """Takes events."""

    async def send(self, batch: Sequence[Outgoing]) -> list[tuple[str, str]]:
        """Have events acknowledged, in their order.

        Returns:
            Identifiers of those that are never taken, with the reason.

        Raises:
            Away: they are not taken now, or not all of them.
        """


class KafkaSink:
    """Sends to the brokers.

    Args:
        sender: the client, running.
    """

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    async def send(self, batch: Sequence[Outgoing]) -> list[tuple[str, str]]:
        """Have events acknowledged by all in-sync replicas; see `Sink`."""
        try:
            outcomes = await self._sender.send(
                [
                    Sendable(number, each.event, TOPIC_OF[type(each.event)], each.data)
                    for number, each in enumerate(batch)
                ]
            )
        except Refused as problem:
            raise Away(problem.text) from problem
        return [(each.event.event_id, str(refused)) for each, refused in outcomes if refused is not None]


@asynccontextmanager
async def kafka_sink(settings: KafkaSettings, ack_seconds: float = ACK_SECONDS) -> AsyncIterator[KafkaSink]:
    """Connect to the brokers.

    Raises:
        KafkaUnavailable: they cannot be reached.
        TopicsError: a topic is missing.
    """
    await check_topics(settings, topics=(TOOL_CALLS, SESSIONS))
    metrics = GatewayMetrics(CollectorRegistry(), settings)
    async with Sender(settings, ack_seconds, metrics, Health((BROKER,)), source=SOURCE) as sender:
        yield KafkaSink(sender)


class GatewaySink:
    """Sends to a gateway.

    Args:
        settings: where it is.
    """

    def __init__(self, settings: EmitterSettings) -> None:
        self._client = GatewayClient(settings)

    async def send(self, batch: Sequence[Outgoing]) -> list[tuple[str, str]]:
        """Post events, one request for each run of one topic; see `Sink`."""
        refused: list[tuple[str, str]] = []
        for topic, run in itertools.groupby(batch, key=lambda each: TOPIC_OF[type(each.event)].name):
            refused += await asyncio.to_thread(self._post, topic, list(run))
        return refused

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _post(self, topic: str, run: list[Outgoing]) -> list[tuple[str, str]]:
        body = b"\n".join(each.data for each in run)
        answer = self._client.post(f"/v1/events/{topic}", body, media_type=_NDJSON)
        if answer.what == "away":
            raise Away(f"the gateway does not take events: {answer.reason}", answer.wait)
        if len(run) == 1:
            never = answer.what == "refused" or bool(answer.refused)
            return [(run[0].event.event_id, answer.reason)] if never else []
        if answer.what == "refused" or answer.refused:  # one by one, to tell which; those that were taken count once
            return [each for one in run for each in self._post(topic, [one])]
        return []
