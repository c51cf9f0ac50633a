"""Publishes recorded sessions to Kafka as the agents would have: each event on its topic, keyed by its session.

As fast as the broker takes them, or at a multiple of the recorded speed. Runs no detector and creates no topic.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from schemas.encode import encode, headers, record_key
from schemas.topics import SESSION_INPUTS, Topic
from streams.kafka import KafkaSettings, producer, running
from streams.topics import check_topics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aiokafka import AIOKafkaProducer

    from schemas.events import SessionInput
    from streams.importers import Session

SOURCE = "/traction/replay"
"""Who publishes, in the CloudEvents attribute `source`."""

BATCH_BYTES = 2**18
LINGER_MS = 5

_TOPICS: dict[type, Topic] = {topic.record: topic for topic in SESSION_INPUTS if topic.record is not None}


@dataclass(slots=True)
class Published:
    """What was published.

    Attributes:
        sessions: how many.
        events: records by topic, acknowledged by all in-sync replicas.
        refused: identifiers of events that the brokers did not take, with the reason.
    """

    sessions: int = 0
    events: Counter[str] = field(default_factory=Counter)
    refused: list[tuple[str, str]] = field(default_factory=list)

    @property
    def total(self) -> int:
        """How many records there are."""
        return self.events.total()


async def publish(
    settings: KafkaSettings,
    sessions: Iterable[Session],
    *,
    speed: float | None = None,
    tell: Callable[[Published], None] = lambda _: None,
) -> Published:
    """Publish sessions.

    Args:
        settings: where and how to connect.
        sessions: the sessions; without `speed` one after the other, as they come.
        speed: how many times faster than recorded; all sessions then begin at the same moment, and their events are
            interleaved by the time since each one's beginning. None: as fast as the brokers take them.
        tell: is called after each event with what has been published so far.

    Raises:
        KafkaUnavailable: the brokers cannot be reached.
        TopicsError: a topic is missing.
    """
    await check_topics(settings, topics=SESSION_INPUTS)
    client = producer(settings, acks="all", max_batch_size=BATCH_BYTES, linger_ms=LINGER_MS)
    async with running(client, settings):
        sender = Sender(settings, client, tell)
        if speed is None:
            for session in sessions:
                for event in session.events:
                    await sender.send(event)
                sender.published.sessions += 1
        else:
            await _paced(sender, list(sessions), speed)
        await sender.settle()
    return sender.published


async def _paced(sender: Sender, sessions: list[Session], speed: float) -> None:
    """Send every event when its time has come."""
    due = [
        ((event.occurred_at - session.events[0].occurred_at).total_seconds() / speed, order, event)
        for session in sessions
        for order, event in enumerate(session.events)
    ]
    due.sort(key=lambda item: item[:2])
    clock = asyncio.get_running_loop().time
    start = clock()
    for seconds, _, event in due:
        wait = start + seconds - clock()
        if wait > 0:
            await asyncio.sleep(wait)
        await sender.send(event)
    sender.published.sessions = len(sessions)


class Sender:
    """Sends events and keeps account of what became of them."""

    def __init__(self, settings: KafkaSettings, client: AIOKafkaProducer, tell: Callable[[Published], None]) -> None:
        self.published = Published()
        self._settings = settings
        self._client = client
        self._tell = tell
        self._open: set[asyncio.Future[object]] = set()

    async def send(self, event: SessionInput) -> None:
        """Hand an event to the producer; it waits here when the brokers are slower."""
        topic = self._settings.topic(_TOPICS[type(event)])
        try:
            future = await self._client.send(
                topic, encode(event), key=record_key(event), headers=headers(event, source=SOURCE)
            )
        except MessageSizeTooLargeError as problem:
            self.published.refused.append((event.event_id, str(problem)))
            return

        def settled(done: asyncio.Future[object]) -> None:
            self._open.discard(done)
            problem = None if done.cancelled() else done.exception()
            if isinstance(problem, KafkaError):
                self.published.refused.append((event.event_id, str(problem)))
            elif not done.cancelled():
                self.published.events[topic] += 1

        self._open.add(future)
        future.add_done_callback(settled)
        self._tell(self.published)

    async def settle(self) -> None:
        """Wait until the brokers have answered for every event."""
        await self._client.flush()
        if self._open:
            await asyncio.wait(self._open)
        await asyncio.sleep(0)  # the last callbacks
