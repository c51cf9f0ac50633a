"""What the engines stand on: topics of their own on the broker, the load published to them, what they wrote read back.

Brokers stamp all of it with their own clock, and compact nothing while it is measured. No engine is known here.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aiokafka import TopicPartition
from aiokafka.admin import NewTopic

from schemas.encode import encode, record_key
from schemas.topics import ALERTS
from streams.forwarded import Origin
from streams.kafka import KafkaSettings, admin, consumer, producer, running
from streams.topics import SESSIONS_TABLE, TASKS_TABLE, changelog_name, create_topics
from streams.worker.records import HEARTBEAT_KEY
from tests.bench.engines.job import INPUT
from tests.topic_config import configure

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

    from aiokafka import AIOKafkaProducer
    from aiokafka.structs import ConsumerRecord

    from schemas.events import ToolCall

CHANGELOG = {
    "message.timestamp.type": "LogAppendTime",  # tells when the last state was written
    "cleanup.policy": "compact",
    "min.compaction.lag.ms": "3600000",  # what was written is counted afterwards
}
PACED_TOGETHER = 10
"""Events between two looks at the clock."""

PUBLISHED_AT_ONCE = 2_000
"""Events handed to the producer before the brokers' answers are waited for."""


@dataclass
class Folded:
    """What was read back of some topics.

    Attributes:
        records: how many.
        size: bytes of their keys and values.
        last_ms: when the last of them was appended, ms since 1970; 0 for none.
        values: the last value by key; keys whose value was removed are not among them.
    """

    records: int = 0
    size: int = 0
    last_ms: int = 0
    values: dict[bytes, bytes] = field(default_factory=dict)

    def add(self, record: ConsumerRecord) -> None:
        """Add a record, in the order of its partition; not the mark that a worker sets when it takes one over."""
        if record.key == HEARTBEAT_KEY:
            return
        self.records += 1
        self.size += len(record.key or b"") + len(record.value or b"")
        self.last_ms = max(self.last_ms, record.timestamp)
        if record.value is None:
            self.values.pop(record.key, None)
        else:
            self.values[record.key] = record.value


@dataclass(frozen=True)
class Ground:
    """Topics under one prefix, with a load on them.

    Attributes:
        kafka: the broker and the prefix.
        partitions: of the input.
        places: where each event of the load stands.
    """

    kafka: KafkaSettings
    partitions: int
    places: list[Origin] = field(default_factory=list)

    @property
    def input(self) -> str:
        """Name of the topic of events."""
        return self.kafka.topic(INPUT)

    @property
    def alerts(self) -> str:
        """Name of the topic of alerts."""
        return self.kafka.topic(ALERTS)

    async def prepare(self, app_id: str, changelogs: Iterable[str] = ()) -> None:
        """Create the topics that an engine needs.

        Args:
            app_id: what the names of the worker's own begin with.
            changelogs: further changelogs of the engine.
        """
        await create_topics(self.kafka, partitions=self.partitions, replication=1, app_id=app_id)
        async with running(admin(self.kafka), self.kafka) as client:
            new = [NewTopic(name, self.partitions, 1, topic_configs=CHANGELOG) for name in changelogs]
            if new:
                await client.create_topics(new)
            own = [changelog_name(app_id, table) for table in (SESSIONS_TABLE, TASKS_TABLE)]
            await configure(client, CHANGELOG, *own)

    async def clear(self, *beginnings: str) -> None:
        """Delete all topics whose names begin so."""
        async with running(admin(self.kafka), self.kafka) as client:
            names = [name for name in await client.list_topics() if name.startswith(beginnings)]
            await client.delete_topics(names)

    async def publish(
        self,
        events: Iterable[ToolCall],
        *,
        rate: float = 0.0,
        hold: Callable[[], Awaitable[None]] | None = None,
        tell: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Publish events in their order.

        Args:
            events: the events.
            rate: so many a second at most; 0 for as fast as possible.
            hold: is waited for before any of them can be read.
            tell: is told now and then how many there are.
        """
        options: dict[str, Any] = {} if hold is None else {"transactional_id": f"{self.kafka.prefix}load"}
        made = producer(self.kafka, linger_ms=0 if rate else 20, max_batch_size=2**18, **options)
        async with running(made, self.kafka) as client:
            if hold is None:
                await self._send(client, events, rate, tell)
            else:
                async with client.transaction():
                    await self._send(client, events, rate, tell)
                    await hold()

    async def _send(
        self, client: AIOKafkaProducer, events: Iterable[ToolCall], rate: float, tell: Callable[[int], None]
    ) -> None:
        began, waiting = time.monotonic(), list["asyncio.Future[Any]"]()
        for number, event in enumerate(events):
            if rate and number % PACED_TOGETHER == 0:
                await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
            waiting.append(await client.send(self.input, key=record_key(event), value=encode(event)))
            if len(waiting) >= PUBLISHED_AT_ONCE and not rate:
                await self._note(waiting)
                tell(len(self.places))
        await self._note(waiting)

    async def _note(self, waiting: list[asyncio.Future[Any]]) -> None:
        for future in waiting:
            found = await future
            self.places.append(Origin(found.topic, found.partition, found.offset, found.timestamp))
        waiting.clear()

    async def ends(self, *names: str) -> dict[TopicPartition, int]:
        """Give the position after the last record of all partitions of some topics."""
        async with running(consumer(self.kafka), self.kafka) as client:
            return dict(await client.end_offsets([tp for name in names for tp in self._partitions(name)]))

    async def records(self, starts: dict[TopicPartition, int]) -> AsyncIterator[ConsumerRecord]:
        """Read all committed records from some positions on, up to the end as it is now."""
        client = consumer(self.kafka, max_partition_fetch_bytes=2**22)
        client.assign(list(starts))
        async with running(client, self.kafka):
            for tp, start in starts.items():
                client.seek(tp, start)
            ends = await client.end_offsets(list(starts))
            while any([await client.position(tp) < ends[tp] for tp in starts]):
                for batch in (await client.getmany(timeout_ms=100)).values():
                    for record in batch:
                        yield record

    async def folded(self, *names: str) -> Folded:
        """Read some topics from the beginning, and fold them together."""
        found = Folded()
        async for record in self.records({tp: 0 for name in names for tp in self._partitions(name)}):
            found.add(record)
        return found

    def _partitions(self, name: str) -> list[TopicPartition]:
        return [TopicPartition(name, number) for number in range(self.partitions)]
