"""Producers with another partitioner, on a real broker: their sessions are made whole where that is asked for."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from schemas import topics
from schemas.encode import encode, record_key
from streams.kafka import admin, producer, running
from streams.reading import partition_of
from streams.worker.faults import EXIT_LOST
from streams.worker.outgoing import RECORD_BYTES, REKEYED_HEADER
from tests.kit import TOPIC_OF, assert_same, outcome, tool_call, traffic
from tests.topic_config import configure
from tests.waiting import until

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


TAKEN_BYTES = 20_000
"""What a topic takes at once in the test below."""


async def send_astray(wire: Wire, session: str, sizes: Iterable[int]) -> None:
    """Write calls beside the partition of their key, as large as they are reckoned to be when they are written again.

    Compressed, so that a topic takes them that takes less.
    """
    name = wire.settings.topic(topics.TOOL_CALLS)
    async with running(producer(wire.settings, compression_type="gzip"), wire.settings) as client:
        for number, size in enumerate(sizes):
            event = tool_call(session, number)
            key, value = record_key(event), encode(event)
            value += b" " * (size - len(key) - len(value) - RECORD_BYTES)
            astray = (partition_of(key, wire.partitions) + 1) % wire.partitions
            await client.send(name, key=key, value=value, partition=astray)


async def test_what_a_topic_takes_bounds_what_is_written_again(wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """Up to its last byte an event is; one more, and it is judged where it stands: the worker goes on, nothing is lost.

    A worker that runs while the topic is told to take less ends, and the next one knows.
    """
    named_so = ("--rekey", "--instance-id", "one")  # else the group would wait for the one that is gone
    first = start(*named_so)
    await first.ready(4)
    name = wire.settings.topic(topics.TOOL_CALLS)
    async with running(admin(wire.settings), wire.settings) as client:
        await configure(client, {"max.message.bytes": str(TAKEN_BYTES)}, name)
    await send_astray(wire, "large", [3 * TAKEN_BYTES])
    assert await first.exit() == EXIT_LOST, first.log
    await send_astray(wire, "fits", [TAKEN_BYTES, *[2_000] * 39])  # together more than the topic takes
    await send_astray(wire, "over", [TAKEN_BYTES + 1])
    second = start(*named_so)
    await second.ready(4)
    await wire.until_applied()

    copies = [record for record in await wire.inputs(topics.TOOL_CALLS) if REKEYED_HEADER in dict(record.headers)]
    assert [record.key for record in copies] == [b"fits"] * 40
    assert len(copies[0].key) + len(copies[0].value) + RECORD_BYTES == TAKEN_BYTES
    places = {key.decode(): number for number, key in await wire.stored()}
    home = {session: partition_of(session.encode(), wire.partitions) for session in places}
    assert {session for session in places if places[session] == home[session]} == {"fits"}
    calls = {session: state.calls for session, state in (await wire.states()).items()}
    assert calls == {"large": 1, "fits": 40, "over": 1}
