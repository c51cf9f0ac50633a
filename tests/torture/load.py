"""The load: thousands of sessions, healthy and looping, as a seed has it, with all that producers do wrong.

What a detector makes of it is not known here. Escalation reads alerts and words of a task from two topics, in an order
that nobody can tell afterwards; so tasks that words are said of bring no alerts while these are said, and where
something is judged over a task that stops its sessions, the task has one session.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from aiokafka.errors import KafkaError

from schemas import topics
from schemas.common import Agent, Task
from schemas.encode import encode
from schemas.events import SessionInput
from schemas.testing import START, control, fix_attempt, review, session_event
from streams.kafka import KafkaSettings, producer
from streams.reading import partition_of
from tests.detectors.tasks.attempt_kit import UNLIKE
from tests.kit import TOPIC_OF
from tests.torture.stories import LOOPS, healthy, solved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from aiokafka import AIOKafkaProducer

AT_ONCE = 48
"""Sessions at work at the same time."""

SHARED = frozenset(
    ("identical", "alternation", "error_streak", "same_failure", "same_write", "same_answer", "rereads", "analysis")
)
"""Loops of sessions that share tasks: nothing in them is judged over the task."""

NOISE = {"again": 0.03, "another id": 0.02, "late": 0.02, "junk": 0.015}
"""How often an event is followed by what a producer should not send."""


@dataclass(frozen=True)
class Item:
    """A record to be sent.

    Attributes:
        topic: short name of the topic.
        key: its key.
        value: its value.
        partition: where a producer with another partitioner puts it; None where the key decides.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    partition: int | None = None


@dataclass
class Load:
    """Makes records without an end.

    Attributes:
        seed: gives the choice.
        partitions: of the inputs.
        made: how many sessions of each kind there are.
    """

    seed: int
    partitions: int
    made: dict[str, int] = field(default_factory=dict)

    def items(self, ended: Callable[[], bool]) -> Iterator[Item]:
        """Give records of many sessions, mixed; begins no session any more once it is told to end."""
        self._chance = random.Random(self.seed)  # noqa: S311 - no secret
        self._number, self._loops = 0, list[str]()
        slots = [self._session() for _ in range(AT_ONCE)]
        while slots:
            at = self._chance.randrange(len(slots))
            item = next(slots[at], None)
            if item is not None:
                yield item
            elif ended():
                del slots[at]
            else:
                slots[at] = self._session()

    def _session(self) -> Iterator[Item]:
        number, self._number = self._number, self._number + 1
        kinds = {"healthy": 38, "loop": 40, "mixed": 6, "solved": 3, "stopped": 3, "shared": 5, "split": 5}
        kind = self._chance.choices(list(kinds), list(kinds.values()))[0]
        self.made[kind] = self.made.get(kind, 0) + 1
        session, own = f"s{number}", f"task of s{number}"
        if kind == "mixed":
            return self._plain(session, own, self._mixed(session))
        if kind == "stopped":
            calls = [*healthy(number)][:6]
            return self._plain(session, own, [*calls, control(20, "terminate", actor="maria", reason="enough")])
        if kind == "shared":
            common, place = divmod(self.made[kind] - 1, 4)
            tries = [fix_attempt(n, UNLIKE[n]) for n in (2 * place, 2 * place + 1)]
            return self._noisy(session, f"tries {common}", tries)
        if kind == "solved":
            return self._noisy(session, own, solved(number))
        if kind == "healthy":
            return self._noisy(session, f"work {number // 5}", healthy(number))
        name = self._loop()
        task = f"loops {number // 12}" if name in SHARED and kind == "loop" else own
        return self._noisy(session, task, LOOPS[name](number), split=kind == "split")

    def _loop(self) -> str:
        if not self._loops:
            self._loops = list(LOOPS)
            self._chance.shuffle(self._loops)
        return self._loops.pop()

    def _mixed(self, session: str) -> list[Any]:
        """All five topics: begun, worked, spoken with, reviewed, tried, ended."""
        events: list[Any] = [session_event(0, "started"), *healthy(len(session))]
        others: list[Any] = [
            session_event(3, "turn"),
            session_event(4, "user_message"),
            review(0, "commented", occurred_at=START + timedelta(seconds=5)),
            control(6, "mode", mode="explore"),
            fix_attempt(0, "Cache totals in the service of the cart", outcome="partial"),
        ]
        for event in others:
            events.insert(self._chance.randrange(1, len(events)), event)
        return [*events, session_event(60, "ended")]

    def _plain(self, session: str, task: str, events: Iterable[Any]) -> Iterator[Item]:
        for number, event in enumerate(events):
            yield _item(self._placed(event, session, task, number))

    def _noisy(self, session: str, task: str, events: Iterable[Any], *, split: bool = False) -> Iterator[Item]:
        """Give the records of a session of one topic, and what its producer does wrong."""
        chance = self._chance
        counts = chance.random() < 0.4
        home = partition_of(session.encode(), self.partitions)
        for number, event in enumerate(events):
            placed = self._placed(event, session, task, number)
            if counts:
                placed = msgspec.structs.replace(placed, sequence=number)
            item = _item(placed)
            if split and chance.random() < 0.5:
                item = replace(item, partition=(home + 1) % self.partitions)
            yield item
            for kind, share in NOISE.items():
                if chance.random() < share:
                    yield from self._wrong(kind, placed, item)

    def _wrong(self, kind: str, event: Any, item: Item) -> Iterator[Item]:
        if kind == "again":
            yield item
        elif kind == "another id" and event.sequence is not None:
            yield replace(item, value=encode(msgspec.structs.replace(event, event_id=f"{event.event_id} again")))
        elif kind == "late" and event.sequence is None:
            before = event.occurred_at - timedelta(days=1)
            late = msgspec.structs.replace(event, event_id=f"{event.event_id} late", occurred_at=before)
            yield replace(item, value=encode(late))
        elif kind == "junk":
            value = item.value or b""
            ways = {
                "cut": replace(item, value=value[: len(value) // 2]),
                "bytes": replace(item, value=b"\xff\xfe" + value),
                "list": replace(item, value=b"[1, 2]"),
                "empty": replace(item, value=b""),
                "nothing": replace(item, value=None),
                "no id": replace(item, value=value.replace(b'"event_id"', b'"event"')),
                "other key": replace(item, key=b"somebody else"),
                "no key": replace(item, key=None),
                "future": replace(item, value=value.replace(b'"schema_version":"', b'"schema_version":"9')),
                "no time": replace(item, value=value.replace(b'"occurred_at":"', b'"occurred_at":"x')),
                "deep": replace(item, value=b'{"arguments":' + b"[" * 3_000),
            }
            yield ways[self._chance.choice(list(ways))]

    @staticmethod
    def _placed(event: Any, session: str, task: str, number: int) -> SessionInput:
        whose = sum(task.encode()) % 3
        agent = Agent(name="torture", model=f"m{whose}", role="code")
        fields: dict[str, Any] = {"session_id": session, "event_id": f"{session}:{number}", "agent": agent}
        placed: SessionInput = msgspec.structs.replace(event, task=Task(id=task), **fields)
        return placed


def _item(event: SessionInput) -> Item:
    return Item(TOPIC_OF[type(event)].name, event.session_id.encode(), encode(event))


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
            async with asyncio.timeout(60):
                await client.stop()
