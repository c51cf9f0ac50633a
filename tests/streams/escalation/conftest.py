"""Alerts to answer, topics to answer on, and escalation processes to break."""

from __future__ import annotations

import asyncio
import functools
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import pytest
from aiokafka import TopicPartition

from schemas import topics
from schemas.decode import decode
from schemas.encode import encode, headers, record_key
from schemas.outputs import Alert, Directive, Evidence, KnownFlapping, LimitReached, Termination
from streams.kafka import KafkaSettings, consumer, producer, running
from streams.topics import create_topics
from tests.processes import TRACTION, TractionProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from aiokafka import ConsumerRecord

    from schemas.topics import Topic

PARTITIONS = 2

Record = TypeVar("Record", Directive, Termination, KnownFlapping)


class MakeAlert(Protocol):
    """Builds an alert; fields go by name."""

    def __call__(self, alert_id: str = "a1", **fields: Any) -> Alert:
        """Build it."""


@pytest.fixture
def alert() -> MakeAlert:
    """Give a builder of alerts: a warning in mode enforce, unless told otherwise."""

    def make(alert_id: str = "a1", **fields: Any) -> Alert:
        session = fields.pop("session_id", "s1")
        defaults: dict[str, Any] = {
            "level": "warn",
            "mode": "enforce",
            "detector": "identical",
            "loop_id": "l1",
            "task_id": f"task of {session}",
            "seq": 4,
            "occurred_at": datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC),
            "first_seen": datetime(2026, 1, 1, tzinfo=UTC),
            "count": 3.0,
            "limits": (LimitReached(name="identical.warn", value=3, layer="default"),),
            "evidence": Evidence(event_ids=("e1", "e2"), calls=("read(a.py)",)),
            "reasoning": "read(a.py) was called 3 times with the same result",
            "guidance": "Stop reading a.py.",
        }
        return Alert(alert_id=alert_id, session_id=session, **{**defaults, **fields})

    return make


@pytest.fixture
async def kafka(bootstrap: str, prefix: str) -> KafkaSettings:
    """Give a broker with all topics, under a prefix of the test's own."""
    settings = KafkaSettings(bootstrap=bootstrap, prefix=prefix)
    await create_topics(settings, partitions=PARTITIONS, replication=1, app_id=prefix.rstrip("."))
    return settings


class Wire:
    """Writes alerts and reads what became of them, as anybody could."""

    def __init__(self, settings: KafkaSettings) -> None:
        self.settings = settings

    async def send(self, alerts: Sequence[Alert | bytes], *, session: str = "s1") -> None:
        """Write alerts, or bytes in an alert's place, in order, each keyed as it should be."""
        async with running(producer(self.settings), self.settings) as client:
            for alert in alerts:
                if isinstance(alert, bytes):
                    key, value, head = session.encode(), alert, [("traceparent", b"00-1-2-01")]
                else:
                    key, value, head = record_key(alert), encode(alert), headers(alert, source="/test")
                await client.send_and_wait(self.settings.topic(topics.ALERTS), key=key, value=value, headers=head)

    async def records(self, topic: Topic, *, committed_only: bool = True) -> list[ConsumerRecord]:
        """Read all that is on a topic now."""
        level = "read_committed" if committed_only else "read_uncommitted"
        async with running(consumer(self.settings, isolation_level=level), self.settings) as client:
            return await _drain(client, self.settings.topic(topic))

    async def outputs(self, kind: type[Record]) -> list[Record]:
        """Read all outputs of one kind."""
        topic = {
            Directive: topics.DIRECTIVES,
            Termination: topics.TERMINATIONS,
            KnownFlapping: topics.KNOWN_FLAPPING,
        }[kind]
        found = [decode(topic, record.value, record.headers) for record in await self.records(topic)]
        return [record for record in found if isinstance(record, kind)]

    async def until(self, condition: Callable[[], Any], seconds: float = 30.0) -> None:
        """Wait until an awaitable condition holds, or fail."""
        deadline = time.monotonic() + seconds
        while not await condition():
            if time.monotonic() > deadline:
                raise AssertionError("the condition did not come about in time")
            await asyncio.sleep(0.2)

    async def until_outputs(self, kind: type[Record], count: int, seconds: float = 30.0) -> list[Record]:
        """Wait until there are so many outputs of one kind, and give them."""

        async def there() -> bool:
            return len(await self.outputs(kind)) >= count

        await self.until(there, seconds)
        return await self.outputs(kind)


async def _drain(client: Any, topic: str) -> list[ConsumerRecord]:
    await client._client.force_metadata_update()
    partitions = [TopicPartition(topic, number) for number in await _partitions(client, topic)]
    client.assign(partitions)
    await client.seek_to_beginning(*partitions)
    ends = await client.end_offsets(partitions)
    found: list[ConsumerRecord] = []
    while any([await client.position(tp) < ends[tp] for tp in partitions]):
        for records in (await client.getmany(timeout_ms=200)).values():
            found += records
    return found


async def _partitions(client: Any, topic: str) -> list[int]:
    await client.topics()
    return sorted(client.partitions_for_topic(topic) or ())


@pytest.fixture
def wire(kafka: KafkaSettings) -> Wire:
    """Give a way to write alerts and read outputs."""
    return Wire(kafka)


class Process(TractionProcess):
    """An escalation consumer in a process of its own."""

    def __init__(self, settings: KafkaSettings, *flags: str) -> None:
        super().__init__(
            *(TRACTION, "escalate", "--bootstrap", settings.bootstrap, "--prefix", settings.prefix, "--port", "0"),
            *("--group", f"{settings.prefix}escalation", *flags),
        )


@pytest.fixture
def launch() -> Iterator[Callable[..., Process]]:
    """Give a starter of escalation processes on any topics; none outlives the test."""
    started: list[Process] = []

    def begin(settings: KafkaSettings, *flags: str) -> Process:
        process = Process(settings, *flags)
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()


@pytest.fixture
def start(kafka: KafkaSettings, launch: Callable[..., Process]) -> Callable[..., Process]:
    """Give a starter of escalation processes on the test's topics."""
    return functools.partial(launch, kafka)
