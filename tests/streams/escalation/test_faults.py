"""Exactly once, whatever happens to the process: killed, frozen, fenced, its position moved."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import time
from collections import Counter
from typing import TYPE_CHECKING

import aiohttp
import pytest
from aiokafka import TopicPartition
from prometheus_client import CollectorRegistry

from schemas import topics
from schemas.encode import encode, record_key
from schemas.outputs import Directive, Termination
from streams.escalation.consumer import CONDITIONS, Escalation, EscalationSettings, PositionMoved
from streams.escalation.ownership import Owner, RecentIds
from streams.escalation.policy import PolicySettings
from streams.kafka import KafkaSettings, producer, running
from streams.kafka_broker import KafkaBroker
from streams.metrics import EscalationMetrics
from streams.pages import Health
from streams.topics import create_topics
from tests.streams.escalation.conftest import Wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from tests.streams.escalation.conftest import MakeAlert, Process

SESSION_SECONDS = 6
"""The shortest session timeout that brokers allow by default."""

ALERTS_A_SECOND = 100


@contextlib.asynccontextmanager
async def load(wire: Wire, alert: MakeAlert) -> AsyncIterator[list[str]]:
    """Write warnings and terminations for many sessions, until the block ends; gives the ids written so far."""
    written: list[str] = []

    async def write() -> None:
        async with running(producer(wire.settings), wire.settings) as client:
            while True:
                number = len(written)
                level = "terminate" if number % 3 == 0 else "warn"
                each = alert(f"a{number}", session_id=f"s{number % 20}", level=level)
                written.append(each.alert_id)
                await client.send(wire.settings.topic(topics.ALERTS), key=record_key(each), value=encode(each))
                await asyncio.sleep(1 / ALERTS_A_SECOND)

    task = asyncio.create_task(write())
    try:
        yield written
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def answered(wire: Wire) -> Counter[str]:
    """Count the outputs by the alert they answer; entries of the list are not counted, they go with a termination."""
    return Counter(
        [each.alert_id for each in await wire.outputs(Directive)]
        + [each.alert_id for each in await wire.outputs(Termination)]
    )


async def all_answered_once(wire: Wire, written: list[str]) -> None:
    """Wait until all alerts are answered, then see that each was answered once."""

    async def all_there() -> bool:
        return len(await answered(wire)) >= len(written)

    await wire.until(all_there, 60)
    await asyncio.sleep(1)
    assert await answered(wire) == Counter(written)


async def test_killed_in_the_middle_and_started_again(
    wire: Wire, alert: MakeAlert, start: Callable[..., Process]
) -> None:
    """SIGKILL at any moment under load, several times: each alert is answered exactly once."""
    chance = random.Random(7)  # noqa: S311 - moments, not secrets
    async with load(wire, alert) as written:
        for _ in range(2):
            process = start("--session-timeout", str(SESSION_SECONDS))
            await process.ready(2)
            await asyncio.sleep(chance.uniform(0.2, 1.0))
            process.send(signal.SIGKILL)
            await process.exit()
    await start("--session-timeout", str(SESSION_SECONDS)).ready(2)
    assert len(written) > ALERTS_A_SECOND
    await all_answered_once(wire, written)


async def test_frozen_beyond_its_session_and_thawed(
    wire: Wire, alert: MakeAlert, start: Callable[..., Process]
) -> None:
    """One of two is stopped beyond the session timeout under load and goes on then: each alert is answered once."""
    flags = ("--session-timeout", str(SESSION_SECONDS))
    frozen, other = start(*flags), start(*flags)
    await frozen.ready(1)
    await other.ready(1)
    async with load(wire, alert) as written:
        await asyncio.sleep(1)
        frozen.send(signal.SIGSTOP)
        before = len(other.lines)
        await other.ready(2, after=before)
        await asyncio.sleep(1)
        frozen.send(signal.SIGCONT)
        await asyncio.sleep(2)
    assert frozen.popen.poll() in {None, 3}, "it goes on as a new member, or ends because it was fenced"
    assert other.popen.poll() is None
    await all_answered_once(wire, written)


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
    assert await process.exit() == 3
    told = [line for line in process.errors if "streams.escalation" in line]
    assert len(told) == 1
    assert "taken over" in told[0]
    assert "Traceback" not in process.log
    assert process.errors[-1] == told[0], "nothing comes after it"
    assert await wire.outputs(Termination) == []
    await start().ready(2)
    assert len(await wire.until_outputs(Termination, 30)) == 30


@pytest.fixture
def escalation(wire: Wire) -> Escalation:
    """Give a consumer in the test's own process."""
    return Escalation(
        wire.settings,
        EscalationSettings(group=f"{wire.settings.prefix}escalation"),
        PolicySettings(control_topic="c"),
        metrics=EscalationMetrics(CollectorRegistry()),
        health=Health(CONDITIONS),
        on_ready=lambda _: None,
    )


async def test_a_batch_of_an_ownership_that_ended_is_dropped(
    wire: Wire, alert: MakeAlert, escalation: Escalation
) -> None:
    """What was fetched before the partition was lost is not written, even when the partition was won back."""
    await wire.send([alert("t", level="terminate")])
    (record,) = await wire.records(topics.ALERTS)
    async with running(producer(wire.settings, transactional_id="x"), wire.settings) as client:
        tp = TopicPartition(record.topic, record.partition)
        former, present = (Owner(tp, client, RecentIds(10), position=1, ready=True) for _ in range(2))
        escalation._ownerships._owners = {tp: present}
        await escalation._answer(former, [record])
        assert await wire.outputs(Termination) == []
        await escalation._answer(present, [record])
        assert len(await wire.outputs(Termination)) == 1


async def test_a_position_that_moved_by_itself_ends_the_process(
    wire: Wire, alert: MakeAlert, escalation: Escalation
) -> None:
    """When reading suddenly goes on elsewhere, as after the topic was made anew, the process ends instead."""
    await wire.send([alert(f"a{n}") for n in range(5)])
    work = asyncio.create_task(escalation.run(asyncio.Event()))
    await wire.until_outputs(Directive, 5)
    owner = next(each for each in escalation._ownerships.current().values() if each.position)
    client = escalation._ownerships._consumer
    assert client is not None
    client.seek(owner.tp, 0)
    with pytest.raises(PositionMoved):
        await asyncio.wait_for(work, 10)


async def test_the_broker_goes_and_comes_back(
    alert: MakeAlert, launch: Callable[..., Process], tmp_path: Path, prefix: str
) -> None:
    """While the broker is away: alive, not ready, and SIGTERM ends it in time; once it is back, alerts are answered."""
    broker = KafkaBroker(data=tmp_path / "kafka")
    await asyncio.to_thread(broker.start)
    try:
        settings = KafkaSettings(bootstrap=broker.bootstrap, prefix=prefix)
        await create_topics(settings, partitions=2)
        stays, leaves = launch(settings, "--session-timeout", "6"), launch(settings, "--session-timeout", "6")
        urls = [await stays.ready(1), await leaves.ready(1)]
        await asyncio.to_thread(broker.stop)

        async def away() -> bool:
            return [await status(f"{url}/readyz") for url in urls] == [503, 503]

        wire = Wire(settings)
        await wire.until(away)
        assert [await status(f"{url}/healthz") for url in urls] == [200, 200]
        begun = time.monotonic()
        assert await leaves.end() == 0, "\n".join(leaves.errors)
        assert time.monotonic() - begun < 10
        broker = KafkaBroker(data=tmp_path / "kafka", port=broker.port)
        await asyncio.to_thread(broker.start)
        await wire.send([alert(f"a{n}", session_id=f"s{n}") for n in range(10)])
        assert len(await wire.until_outputs(Directive, 10, 60)) == 10
        assert await status(f"{urls[0]}/healthz") == 200
        assert await stays.end() == 0, "\n".join(stays.errors)
    finally:
        await asyncio.to_thread(broker.stop)


async def status(url: str) -> int:
    """Read a page's status."""
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status
