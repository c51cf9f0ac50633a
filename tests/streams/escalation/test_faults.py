"""What ends the process, and what it waits out: fenced, its position moved, its brokers away."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import aiohttp
import pytest
from aiokafka.admin import RecordsToDelete

from schemas import topics
from schemas.outputs import Directive, Termination
from streams.escalation import consumer
from streams.escalation.unit import Unit
from streams.kafka import KafkaSettings, admin, producer, running
from streams.kafka_broker import KafkaBroker
from streams.topics import create_topics
from streams.transaction import PositionMoved
from tests.streams.escalation.conftest import SESSION_SECONDS, Inside, Wire, names
from tests.waiting import SOON_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.streams.escalation.conftest import MakeAlert, Process


async def test_a_process_that_was_taken_over_ends_with_3(
    wire: Wire, alert: MakeAlert, start: Callable[..., Process]
) -> None:
    """Once somebody else has the partition's transactional id, nothing is written, and the exit code says why."""
    process = start("--session-timeout", str(SESSION_SECONDS))
    await process.ready(2)
    for partition in range(2):
        successor = producer(wire.settings, transactional_id=f"{wire.settings.prefix}escalation-{partition}")
        async with running(successor, wire.settings):
            pass
    await wire.send([alert(f"t{number}", session_id=f"s{number}", level="terminate") for number in range(30)])
    assert await process.exit() == 3, process.log
    told = [line for line in process.errors if "streams.escalation" in line]
    assert len(told) == 1
    assert "taken over" in told[0]
    assert "Traceback" not in process.log
    assert process.errors[-1] == told[0], "nothing comes after it"
    assert await wire.outputs(Termination) == []
    await inside_again(wire)


async def inside_again(wire: Wire) -> None:
    """See that another process answers what the one that was taken over did not."""
    async with Inside(wire):
        assert len(await wire.until_outputs(Termination, 30)) == 30


async def test_a_batch_of_an_ownership_that_ended_is_dropped(
    wire: Wire, alert: MakeAlert, inside: Callable[..., Inside]
) -> None:
    """What was fetched before the partition was lost is not written, even when the partition was won back."""
    end = alert("t", level="terminate")
    async with inside() as running:
        await wire.send([end])
        await wire.until_outputs(Termination, 1)
        ownerships = running.escalation._ownerships
        (unit,) = [each for each in ownerships.current().values() if each.alerts.done]
        client = ownerships.clients()[0]
        (record,) = await wire.records(topics.ALERTS)
        again = dataclasses.replace(record, value=record.value.replace(b'"t"', b'"u"').replace(b'"s1"', b'"s9"'))
        feeds = dataclasses.replace(unit.alerts), dataclasses.replace(unit.events)
        former = Unit(unit.number, *feeds, producer=unit.producer, owned=False)
        former.alerts.queue = deque([again])
        await running.escalation._act(former, client, datetime.now(UTC))
        assert len(await wire.outputs(Termination)) == 1
        unit.alerts.queue.append(again)
        await running.escalation._act(unit, client, datetime.now(UTC))
        assert len(await wire.outputs(Termination)) == 2


async def test_a_position_that_moved_by_itself_ends_the_process(
    wire: Wire, alert: MakeAlert, inside: Callable[..., Inside]
) -> None:
    """When reading suddenly goes on elsewhere, as after the topic was made anew, the process ends instead."""
    await wire.send([alert(f"a{n}", session_id=f"s{n}", task_id="t") for n in range(2)])
    running = await inside().__aenter__()
    await wire.until_outputs(Directive, 2)
    ownerships = running.escalation._ownerships
    feed = next(unit.alerts for unit in ownerships.current().values() if unit.alerts.position)
    ownerships.clients()[0].seek(feed.tp, 0)
    with pytest.raises(PositionMoved):
        async with asyncio.timeout(SOON_SECONDS):
            await running.work


async def test_what_retention_deletes_under_a_running_process(
    wire: Wire, alert: MakeAlert, inside: Callable[..., Inside], caplog: pytest.LogCaptureFixture
) -> None:
    """Alerts deleted before they were read are logged and counted as lost, and the one that is left is answered."""
    async with inside() as running_one:
        await wire.send([alert("a0", task_id="t")])
        await wire.until_outputs(Directive, 1)
        ownerships = running_one.escalation._ownerships
        feed = next(unit.alerts for unit in ownerships.current().values() if unit.alerts.done)
        client, _ = ownerships.clients()
        client.pause(feed.tp)
        await wire.send([alert(f"a{n}", session_id=f"s{n}", task_id="t") for n in (1, 2, 3)])
        async with running(admin(wire.settings), wire.settings) as administrator:
            await administrator.delete_records({feed.tp: RecordsToDelete(before_offset=3)})
        assert running_one.measured("traction_deleted_unread_records_total") == 0
        client.resume(feed.tp)
        directives = await wire.until_outputs(Directive, 2)
        assert running_one.measured("traction_deleted_unread_records_total") == 2
    assert [each.alert_id for each in directives] == ["a0", "a3"]
    assert f"{feed.tp.topic}-{feed.tp.partition}: records 1 to 2 were deleted by the topic's retention" in caplog.text


async def test_what_was_deleted_is_counted_once(
    wire: Wire, alert: MakeAlert, inside: Callable[..., Inside], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alerts deleted before a process came count with the commit that passes over them, though none is left to read."""
    name = "traction_deleted_unread_records_total"
    async with inside() as first:
        await wire.send([alert("a0", task_id="t")])
        await wire.until_outputs(Directive, 1)
        units = first.escalation._ownerships.current().values()
        tp = next(unit.alerts.tp for unit in units if unit.alerts.done)
    await wire.send([alert(f"a{n}", session_id=f"s{n}", task_id="t") for n in (1, 2, 3)])
    async with running(admin(wire.settings), wire.settings) as administrator:
        await administrator.delete_records({tp: RecordsToDelete(before_offset=4)})

    async def fail(*_: object, **__: object) -> None:
        raise ConnectionError

    async def crash(one: Inside) -> None:
        async with one:
            await one.work

    crashed = inside()
    with monkeypatch.context() as broken:
        broken.setattr(consumer, "write", fail)
        with pytest.raises(ConnectionError):
            await crash(crashed)
    assert crashed.measured(name) == 0
    async with inside() as second:

        async def counted() -> bool:
            return second.measured(name) == 3

        await until(counted)
    async with inside() as third:
        await wire.send([alert("a4", session_id="s4", task_id="t")])
        assert {each.alert_id for each in await wire.until_outputs(Directive, 2)} == {"a0", "a4"}
        assert third.measured(name) == 0


async def test_the_broker_goes_and_comes_back(
    alert: MakeAlert, launch: Callable[..., Process], tmp_path: Path, prefix: str
) -> None:
    """While the broker is away: alive, not ready, and SIGTERM ends it in time; once it is back, alerts are answered."""
    broker = KafkaBroker(data=tmp_path / "kafka")
    await asyncio.to_thread(broker.start)
    try:
        settings = KafkaSettings(bootstrap=broker.bootstrap, prefix=prefix)
        await create_topics(settings, partitions=2, replication=1, **names(prefix))
        stays, leaves = (launch(settings, "--session-timeout", "2") for _ in range(2))
        url = await stays.ready(1)
        await leaves.ready(1)
        await asyncio.to_thread(broker.stop)
        leaving = asyncio.create_task(leaves.end())

        async def away() -> bool:
            return await status(f"{url}/readyz") == 503

        wire = Wire(settings)
        await until(away)
        assert await status(f"{url}/healthz") == 200
        assert await leaving == 0, "\n".join(leaves.errors)
        broker = KafkaBroker(data=tmp_path / "kafka", port=broker.port)
        await asyncio.to_thread(broker.start)
        await wire.send([alert(f"a{n}", session_id=f"s{n}") for n in range(10)])
        assert len(await wire.until_outputs(Directive, 10, 60)) == 10
        assert await status(f"{url}/healthz") == 200
        assert await stays.end() == 0, "\n".join(stays.errors)
    finally:
        await asyncio.to_thread(broker.stop)


async def status(url: str) -> int:
    """Read a page's status."""
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status
