"""Producers with another partitioner, on a real broker: their sessions are made whole where that is asked for."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from schemas import topics
from schemas.encode import encode, record_key
from streams.kafka import producer, running
from streams.reading import partition_of
from streams.worker.outgoing import REKEYED_HEADER
from tests.kit import TOPIC_OF, assert_same, outcome, traffic, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from schemas.events import SessionInput
    from tests.kit import Wire, WorkerProcess


async def send_by_crc32(wire: Wire, events: Iterable[SessionInput]) -> int:
    """Write events where librdkafka's default partitioner puts their keys; gives how many are astray."""
    astray = 0
    async with running(producer(wire.settings, linger_ms=5), wire.settings) as client:
        futures = []
        for event in events:
            key = record_key(event)
            number = zlib.crc32(key) % wire.partitions
            astray += number != partition_of(key, wire.partitions)
            topic = wire.settings.topic(TOPIC_OF[type(event)])
            futures.append(await client.send(topic, key=key, value=encode(event), partition=number))
        for future in futures:
            await future
    return astray


async def test_a_killed_worker_loses_and_doubles_no_event(wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """Killed amid writing events again, workers make of them all what the detectors do of events keyed rightly."""
    events = traffic(sessions=40, episodes=3)
    half = len(events) // 2
    astray = await send_by_crc32(wire, events[:half])
    first = start("--rekey")
    await first.ready(4)
    calls = sum(TOPIC_OF[type(event)] is topics.TOOL_CALLS for event in events[:half])

    async def some() -> bool:
        return len(await wire.inputs(topics.TOOL_CALLS)) > calls

    await until(some)
    first.kill()
    astray += await send_by_crc32(wire, events[half:])
    second = start("--rekey")
    await second.ready(4)
    await wire.until_applied()
    await assert_same(wire, outcome(events))

    copies = [
        record
        for topic in topics.SESSION_INPUTS
        for record in await wire.inputs(topic)
        if REKEYED_HEADER in dict(record.headers)
    ]
    assert len(copies) == astray > 0
    assert all(record.partition == partition_of(record.key, wire.partitions) for record in copies)
    metrics = await second.metrics()
    assert metrics["traction_applied_twice_total",] == 0
    counted = sum(value for name, value in metrics.items() if name[0] == "traction_misrouted_events_total")
    again = sum(value for name, value in metrics.items() if name[:2] == ("traction_events_total", "rekeyed"))
    assert counted == again > 0
