"""Answers posts of our own events: what of a request was taken, what was refused and why, and what it means to whom.

Reads by `items`, sends by `sender`; decides nothing about sessions.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeVar

from schemas import topics
from streams.gateway.items import TAKEN, Items, Reading, RefusedItem, form_of, read_items
from streams.gateway.refused import Refused
from streams.received import traceparent

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web

    from schemas.events import SessionInput
    from schemas.topics import Topic
    from streams.gateway.metrics import GatewayMetrics
    from streams.gateway.sender import Sender
    from streams.gateway.settings import GatewaySettings
    from streams.kafka import KafkaSettings

INLINE_BYTES: Final = 2**17
"""Up to so many bytes a body is read on the event loop, which takes a millisecond or two; longer ones are read in a
thread, since hooks wait for their answers meanwhile."""

T = TypeVar("T")


async def aside(size: int, work: Callable[[], T]) -> T:
    """Do work on so many bytes where it holds up nobody."""
    return work() if size <= INLINE_BYTES else await asyncio.to_thread(work)


@dataclass(frozen=True, slots=True)
class Posted:
    """What became of a request's events.

    Attributes:
        accepted: how many the brokers have acknowledged.
        refused: the others.
        events: those that were.
    """

    accepted: int
    refused: list[RefusedItem]
    events: list[SessionInput]

    @property
    def sessions(self) -> list[str]:
        """Whose events were acknowledged, each once."""
        return list(dict.fromkeys(event.session_id for event in self.events))


class Publisher:
    """Sends what was read, and counts what became of it.

    Args:
        kafka: gives the topics' names.
        sender: sends.
        metrics: takes the counts.
    """

    def __init__(self, kafka: KafkaSettings, sender: Sender, metrics: GatewayMetrics) -> None:
        self._kafka = kafka
        self._sender = sender
        self._metrics = metrics

    async def publish(self, items: Items) -> Posted:
        """Send what was taken of a request; what brokers never take is refused as well.

        Raises:
            Refused: not all was acknowledged.
        """
        events: list[SessionInput] = []
        for each, problem in await self._sender.send(items.taken):
            if problem is None:
                events.append(each.event)
                self._metrics.events.labels(self._kafka.topic(each.topic), "accepted").inc()
            else:
                items.refuse(each.index, problem, each.topic)
        for topic, reason in items.reasons:
            self._metrics.refused.labels(reason).inc()
            if topic is not None:
                self._metrics.events.labels(self._kafka.topic(topic), "refused").inc()
        return Posted(len(events), items.refused, events)


class Events:
    """The routes `/v1/events` and `/v1/events/{name}`.

    Args:
        settings: what is taken.
        publisher: sends.
    """

    def __init__(self, settings: GatewaySettings, publisher: Publisher) -> None:
        self._publisher = publisher
        self._level = settings.privacy
        taken = [topic for topic in TAKEN if settings.reviews or topic is not topics.REVIEWS]
        self._topics = {topic.name: topic for topic in taken}

    def topic(self, name: str) -> Topic:
        """Give the topic that an address names.

        Raises:
            Refused: none that is taken here.
        """
        if name in self._topics:
            return self._topics[name]
        why = "there is no such topic"
        if name == topics.REVIEWS.name:
            why = "reviews are not taken here, since agents could approve themselves: traction ingest --reviews does"
        elif name == topics.CONTROL.name:
            why = "what people and orchestrators decide is not taken here; agents answer verdicts at /v1/answers"
        raise Refused(HTTPStatus.NOT_FOUND, f"{why}; taken are {', '.join(self._topics)}")

    async def post(self, request: web.BaseRequest, body: bytes, media_type: str, topic: Topic | None) -> Posted:
        """Take the events of a request.

        Args:
            request: the request.
            body: its body, unpacked.
            media_type: its content type.
            topic: whose events they are; None where each says it itself.

        Raises:
            Refused: nothing can be read, or not all was acknowledged.
        """
        form = form_of(media_type, request.headers, named=topic is not None)
        trace = traceparent([("traceparent", request.headers.get("traceparent", "").encode("utf-8", "replace"))])
        reading = Reading(topic, frozenset(self._topics), self._level, trace)
        items = await aside(len(body), lambda: read_items(body, form, request.headers, reading))
        return await self._publisher.publish(items)
