"""Nothing is passed over and nothing is taken for lost that is not: gaps in offsets, deleted and re-created logs."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING

from aiokafka import TopicPartition
from aiokafka.admin import NewTopic, RecordsToDelete
from faust.transport.drivers import aiokafka as driver

from schemas import topics
from schemas.encode import encode, record_key
from streams.kafka import admin, producer, running
from streams.worker import app
from streams.worker.engine import Bounds, Engine, Fetched
from streams.worker.faults import EXIT_GAP, EXIT_LOST
from tests.kit import WorkerInside, assert_same, outcome, spinning, tool_call, traffic
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pytest

    from schemas.events import SessionInput
    from tests.kit import Wire, WorkerProcess


LOSSY = """
from streams.cli import main
from streams.worker.engine import Engine

handle, lost = Engine.handle, []

async def lossy(engine, fetched, log):
    if len(fetched.records) > 5 and not lost:
        lost.append(fetched)
    else:
        await handle(engine, fetched, log)

Engine.handle = lossy
main()
"""
"""A worker that loses one batch after it was fetched."""


async def send_in_transactions(wire: Wire, events: Sequence[SessionInput], size: int) -> None:
    """Write events in transactions, after each of which another one is aborted that has the same events."""
    client = producer(wire.settings, transactional_id=f"{wire.app_id}-upstream")
    topic = wire.settings.topic(topics.TOOL_CALLS)
    async with running(client, wire.settings):
        for begin in range(0, len(events), size):
            part = events[begin : begin + size]
            for event in part:
                if event is part[0]:
                    await client.begin_transaction()
                await client.send(topic, key=record_key(event), value=encode(event))
            await client.commit_transaction()
            await client.begin_transaction()
            for event in part:
                await client.send(topic, key=record_key(event), value=encode(event))
            await client.flush()
            await client.abort_transaction()


async def test_input_written_in_transactions(wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """Commit markers and aborted records make gaps in the offsets, which are no loss, nor are they after a restart."""
    events = [event for number in range(20) for event in _calls(f"s{number}", 24)]
    worker = start()
    await worker.ready(4)
    await send_in_transactions(wire, events[: len(events) // 2], 7)
    await wire.until_applied()  # up to the end: positions behind the last marker are committed too
    assert await worker.end() == 0
    await send_in_transactions(wire, events[len(events) // 2 :], 7)
    worker = start()
    await worker.ready(4)
    await wire.until_applied()
    await assert_same(wire, outcome(events))
    offsets = sorted((record.partition, record.offset) for record in await wire.inputs(topics.TOOL_CALLS))
    gaps = sum(after[1] - before[1] > 7 for before, after in itertools.pairwise(offsets) if before[0] == after[0])
    assert gaps > 50, "there was nothing to stumble over"
    assert (await worker.metrics())["traction_deleted_unread_records_total",] == 0
    assert worker.popen.poll() is None


def _calls(session: str, count: int) -> list[SessionInput]:
    return [tool_call(session, number, arguments={"path": "a"}, result="the same") for number in range(count)]


async def test_a_lost_batch_ends_the_worker(wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """A worker that fetched a batch and did not apply it ends instead of passing over it; nothing is lost then."""
    events = traffic(sessions=20, episodes=4)
    lossy = start(program=LOSSY)
    await lossy.ready(4)
    await wire.send(events, rate=500)
    assert await lossy.exit() == EXIT_GAP
    assert "was not applied. Ending, so that it is read again" in lossy.log
    await start().ready(4)
    await wire.until_applied()
    await assert_same(wire, outcome(events))


async def test_nothing_is_lost_while_committed_offsets_are_sought(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits at the start is applied, however long Faust takes until it clears the queues of its streams."""
    sought, handled = driver.Consumer.perform_seek, Engine.handle

    async def seek(consumer: driver.Consumer) -> None:
        await sought(consumer)
        await asyncio.sleep(1)  # time for dozens of fetches

    async def handle(engine: Engine, fetched: Fetched, log: Bounds) -> None:
        await asyncio.sleep(0.02)  # fewer are handled
        await handled(engine, fetched, log)

    monkeypatch.setattr(driver.Consumer, "perform_seek", seek)
    monkeypatch.setattr(Engine, "handle", handle)
    monkeypatch.setattr(app, "POLL_RECORDS", 50)
    events = list(spinning("s", 500))
    await wire.send(events)
    async with WorkerInside(wire):
        await wire.until_applied()
    await assert_same(wire, outcome(events))


async def test_input_deleted_before_it_was_read(wire: Wire) -> None:
    """Records that retention took before a worker came are told as lost, and it goes on behind them."""
    name = wire.settings.topic(topics.TOOL_CALLS)
    async with WorkerInside(wire) as first:
        await wire.send(_calls("s", 2))
        await wire.until_applied()
        number = next(
            number for number, partition in first.worker.ownerships.current.items() if len(partition.sessions)
        )
    await wire.send(tool_call("s", number) for number in range(10, 20))
    async with running(admin(wire.settings), wire.settings) as client:
        await client.delete_records({TopicPartition(name, number): RecordsToDelete(before_offset=9)})
    async with WorkerInside(wire) as second:
        await wire.until_applied()
        await wire.send([tool_call("s", 20)])
        await wire.until_applied()
        assert second.value("traction_deleted_unread_records_total") == 7
    assert (await wire.states())["s"].calls == 2 + 3 + 1


async def test_a_topic_made_anew(
    wire: Wire, start: Callable[..., WorkerProcess], caplog: pytest.LogCaptureFixture
) -> None:
    """When an input is deleted under a worker, that ends; when it was created again its events count, told once."""
    name = wire.settings.topic(topics.TOOL_CALLS)
    first = start()
    await first.ready(4)
    await wire.send(tool_call("s", number) for number in range(20))
    await wire.until_applied()
    async with running(admin(wire.settings), wire.settings) as client:
        await client.delete_topics([name])
        assert await first.exit() == EXIT_LOST
        assert "was a topic deleted" in first.log
        await until(lambda: _created(client, name, wire.partitions))
    async with WorkerInside(wire) as second:
        await wire.send(tool_call("s", number) for number in range(20, 25))
        await wire.until_applied()
        assert second.value("traction_applied_twice_total") == 0
        assert second.value("traction_source_resets_total") == 1
    assert (await wire.states())["s"].calls == 25
    assert sum("made anew" in record.message for record in caplog.records) == 1


async def test_a_topic_made_anew_for_other_sessions(wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """It is told also when no session that was there before goes on: brokers forget what was committed of it."""
    name = wire.settings.topic(topics.TOOL_CALLS)
    first = start()
    await first.ready(4)
    await wire.send(tool_call(f"old{number}", 0) for number in range(20))
    await wire.until_applied()
    async with running(admin(wire.settings), wire.settings) as client:
        await client.delete_topics([name])
        assert await first.exit() == EXIT_LOST
        await until(lambda: _created(client, name, wire.partitions))
    second = start()
    await second.ready(4)
    await wire.send(tool_call(f"new{number}", 0) for number in range(20))
    await wire.until_applied()
    used = {record.partition for record in await wire.inputs(topics.TOOL_CALLS)}
    assert (await second.metrics())["traction_source_resets_total",] == len(used)
    assert await second.end() == 0
    third = start()
    await third.ready(4)
    await wire.send(tool_call(f"new{number}", 1) for number in range(20))
    await wire.until_applied()
    assert (await third.metrics())["traction_source_resets_total",] == 0
    assert len(await wire.states()) == 40


async def _created(client: object, name: str, partitions: int) -> bool:
    topic = NewTopic(name, partitions, 1, topic_configs={"message.timestamp.type": "LogAppendTime"})
    response = await client.create_topics([topic])  # type: ignore[attr-defined]
    return not response.topic_errors[0][1]
