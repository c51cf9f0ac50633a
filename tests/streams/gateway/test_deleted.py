"""What retention takes of a collector's topic before it was read: told once, whatever happens in between."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aiokafka import TopicPartition
from aiokafka.admin import RecordsToDelete
from prometheus_client import CollectorRegistry

from streams.gateway import bridge as module
from streams.gateway.bridge import Bridge, BridgeSettings
from streams.gateway.metrics import BridgeMetrics
from streams.health import Health
from streams.kafka import KafkaSettings, admin, consumer, producer, running
from streams.ownership import CONDITIONS
from streams.topics import create_topics
from tests.streams.gateway.test_otlp import tool
from tests.streams.otlp.otlp_kit import traces_protobuf
from tests.streams.outputs_kit import make
from tests.waiting import until

if TYPE_CHECKING:
    import pytest

DELETED = "traction_deleted_unread_records_total"


class Collected:
    """A collector's topic of one partition, and bridges from it in this process."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self.kafka = kafka
        self.tp = TopicPartition(f"{kafka.prefix}spans", 0)
        self.settings = BridgeSettings(group=f"{kafka.prefix}bridge", spans_topic=self.tp.topic, logs_topic=None)

    async def put(self, count: int) -> None:
        """Write records, each with one span."""
        async with running(producer(self.kafka), self.kafka) as client:
            for number in range(count):
                await client.send_and_wait(self.tp.topic, traces_protobuf(tool(number)), partition=0)

    async def committed(self) -> int | None:
        """Give what the bridge reads next."""
        async with running(consumer(self.kafka, group_id=self.settings.group), self.kafka) as client:
            client.assign([self.tp])
            found: int | None = await client.committed(self.tp)
            return found

    async def bridge(self, until_at: int) -> float | None:
        """Run one until it stands there, and give how many records it told to be deleted unread."""
        registry, stop = CollectorRegistry(), asyncio.Event()
        metrics = BridgeMetrics(registry, self.kafka, self.settings.topics)
        made = Bridge(self.kafka, self.settings, metrics=metrics, health=Health(CONDITIONS), on_ready=lambda _: None)
        work = asyncio.create_task(made.run(stop))

        async def there() -> bool:
            return work.done() or await self.committed() == until_at

        await until(there)
        stop.set()
        await asyncio.wait({work})
        if isinstance(work.exception(), ConnectionError):
            assert await self.committed() != until_at
        else:
            work.result()
        return registry.get_sample_value(DELETED)


async def test_what_was_deleted_is_counted_once(bootstrap: str, prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts with the commit that passes over it, though nothing is left to read: not before it, and not again."""
    kafka = KafkaSettings(bootstrap=bootstrap, prefix=prefix)
    await create_topics(kafka, partitions=1, replication=1)
    collected = Collected(kafka)
    await make(kafka, collected.tp.topic, 1)

    await collected.put(1)
    assert await collected.bridge(1) == 0
    await collected.put(3)
    async with running(admin(kafka), kafka) as client:
        await client.delete_records({collected.tp: RecordsToDelete(before_offset=4)})

    async def fail(*_: object, **__: object) -> None:
        raise ConnectionError

    with monkeypatch.context() as broken:
        broken.setattr(module, "write", fail)
        assert await collected.bridge(4) == 0
    assert await collected.bridge(4) == 3
    await collected.put(1)
    assert await collected.bridge(5) == 0
