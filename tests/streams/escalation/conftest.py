"""Alerts to answer, topics to answer on, and escalation processes to break."""

from __future__ import annotations

import asyncio
import functools
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import pytest
from aiokafka import TopicPartition
from prometheus_client import CollectorRegistry

from detectors import TaskEvent, encode_task
from schemas import topics
from schemas.decode import decode
from schemas.encode import encode, headers, record_key
from schemas.outputs import Alert, Directive, Evidence, KnownFlapping, LimitReached, Notification, Termination
from streams.escalation.consumer import Escalation, EscalationSettings, utc_now
from streams.escalation.metrics import EscalationMetrics
from streams.escalation.state import decode_ladder
from streams.forwarded import Origin, origin_header
from streams.health import Health
from streams.kafka import KafkaSettings, consumer, producer, running
from streams.ownership import CONDITIONS
from streams.policy.policy import Policy
from streams.topics import create_topics, ladders_name, task_events_name
from tests.processes import TRACTION, TractionProcess
from tests.waiting import SOON_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from aiokafka import ConsumerRecord

    from schemas.topics import Topic
    from streams.escalation.state import LadderState

PARTITIONS = 2

SESSION_SECONDS = 6
"""The shortest session timeout that brokers allow by default."""

Record = TypeVar("Record", Directive, Termination, KnownFlapping, Notification)


def names(prefix: str) -> dict[str, Any]:
    """Give the processes' names on topics with a prefix: the workers' application id, the escalation's group."""
    return {"app_id": prefix.rstrip("."), "group": f"{prefix}escalation"}


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
    await create_topics(settings, partitions=PARTITIONS, replication=1, **names(prefix))
    return settings


class Wire:
    """Writes alerts and answers and reads what became of them, as anybody could."""

    def __init__(self, settings: KafkaSettings) -> None:
        self.settings = settings
        self.app_id, self.group = names(settings.prefix).values()

    async def send(self, records: Sequence[Alert | TaskEvent | bytes], *, task: str = "task of s1") -> None:
        """Write alerts, forwarded events, or bytes in an alert's place, in order, each keyed as it should be."""
        async with running(producer(self.settings), self.settings) as client:
            for each in records:
                topic = self.settings.topic(topics.ALERTS)
                head: list[tuple[str, bytes]] = [("traceparent", b"00-1-2-01")]
                key, value = task.encode(), each
                if isinstance(each, Alert):
                    key, value, head = record_key(each), encode(each), headers(each, source="/test")
                elif isinstance(each, TaskEvent):
                    topic = task_events_name(self.app_id)
                    key, value = each.task_id.encode(), encode_task(each)
                    head = [origin_header(Origin("calls", 0, 0, each.at_ms))]
                await client.send_and_wait(topic, key=key, value=value, headers=head)

    async def records(self, topic: Topic | str) -> list[ConsumerRecord]:
        """Read all that is on a topic now and committed."""
        name = topic if isinstance(topic, str) else self.settings.topic(topic)
        async with running(consumer(self.settings, fetch_max_wait_ms=50), self.settings) as client:
            return await _drain(client, name)

    async def ladders(self) -> dict[str, LadderState]:
        """Read the ladders as they are kept now, by task."""
        found = {record.key.decode(): record.value for record in await self.records(ladders_name(self.group))}
        return {task: decode_ladder(value) for task, value in found.items() if value is not None}

    async def outputs(self, kind: type[Record]) -> list[Record]:
        """Read all outputs of one kind."""
        topic = {
            Directive: topics.DIRECTIVES,
            Termination: topics.TERMINATIONS,
            KnownFlapping: topics.KNOWN_FLAPPING,
            Notification: topics.NOTIFICATIONS,
        }[kind]
        found = [decode(topic, each.value, each.headers) for each in await self.records(topic) if each.value]
        return [record for record in found if isinstance(record, kind)]

    async def until_outputs(self, kind: type[Record], count: int, seconds: float = SOON_SECONDS) -> list[Record]:
        """Wait until there are so many outputs of one kind, and give them."""

        async def there() -> bool:
            return len(await self.outputs(kind)) >= count

        await until(there, seconds)
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


class Inside:
    """An escalation consumer in the test's own process, with a clock of the test's.

    Args:
        wire: where its topics are.
        policy: what it goes by.
        clock: gives the time.
    """

    def __init__(self, wire: Wire, policy: Policy | None = None, clock: Callable[[], datetime] = utc_now) -> None:
        self.registry = CollectorRegistry()
        self._ready = asyncio.Event()
        self._stop = asyncio.Event()
        self.escalation = Escalation(
            wire.settings,
            EscalationSettings(group=wire.group, app_id=wire.app_id, session_timeout_ms=SESSION_SECONDS * 1000),
            policy or Policy(),
            metrics=EscalationMetrics(self.registry),
            health=Health(CONDITIONS),
            on_ready=lambda _: self._ready.set(),
            clock=clock,
        )

    async def __aenter__(self) -> Self:
        self.work = asyncio.create_task(self.escalation.run(self._stop))
        ready = asyncio.create_task(self._ready.wait())
        await asyncio.wait({self.work, ready}, timeout=30, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if self.work.done():
            await self.work
        assert self._ready.is_set()
        return self

    async def __aexit__(self, *of_failure: object) -> None:
        self._stop.set()
        async with asyncio.timeout(SOON_SECONDS):
            await asyncio.wait({self.work})
        if of_failure[0] is None:
            await self.work

    def measured(self, name: str, **labels: str) -> float | None:
        """Give a metric's value."""
        return self.registry.get_sample_value(name, labels)


@pytest.fixture
def inside(wire: Wire) -> Callable[..., Inside]:
    """Give a maker of consumers in the test's own process; `async with` runs one."""
    return functools.partial(Inside, wire)


@pytest.fixture
def wire(kafka: KafkaSettings) -> Wire:
    """Give a way to write alerts and read outputs."""
    return Wire(kafka)


class Process(TractionProcess):
    """An escalation consumer in a process of its own."""

    def __init__(self, settings: KafkaSettings, *flags: str) -> None:
        super().__init__(
            *(TRACTION, "escalate", "--bootstrap", settings.bootstrap, "--prefix", settings.prefix, "--port", "0"),
            *("--group", names(settings.prefix)["group"], "--app-id", names(settings.prefix)["app_id"], *flags),
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
