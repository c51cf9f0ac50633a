"""Brokers that go away: a worker waits for them for a while, ends when told to, and nothing is lost or doubled."""

from __future__ import annotations

import asyncio
import os
import signal
import time
import urllib.request
import uuid
from typing import TYPE_CHECKING

import pytest

from streams.kafka import KafkaSettings
from streams.kafka_broker import KafkaBroker
from streams.topics import create_topics
from streams.worker.faults import EXIT_LOST
from tests.kit import Wire, assert_same, outcome, traffic
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.kit import WorkerProcess

READ = ("traction_batch_records_sum",)
"""Records of batches that were begun: what counts events rises with the commit, which is not to come here."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaBroker]:
    """Give a broker of the test's own, which it may stop, start and freeze."""
    with KafkaBroker(data=tmp_path / "broker") as running:
        yield running
        if running.pid is not None:
            os.kill(running.pid, signal.SIGCONT)


@pytest.fixture
async def wire(broker: KafkaBroker) -> Wire:
    """Give topics on that broker."""
    name = f"t{uuid.uuid4().hex[:12]}"
    settings = KafkaSettings(bootstrap=broker.bootstrap, prefix=f"{name}.")
    await create_topics(settings, partitions=2, replication=1, app_id=name)
    return Wire(settings, name, 2)


async def test_a_broker_that_restarts(wire: Wire, broker: KafkaBroker, start: Callable[..., WorkerProcess]) -> None:
    """Workers live through it, count as alive all the time, and go on, or end in peace when told to."""
    events = traffic(sessions=20, episodes=6)
    half = len(events) // 2
    worker = start()
    url = await worker.ready(2)
    await wire.send(events[:half])
    await asyncio.to_thread(broker.stop)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with await asyncio.to_thread(urllib.request.urlopen, f"{url}/healthz") as page:
            assert page.status == 200
        await asyncio.sleep(0.5)
    await asyncio.to_thread(broker.start)
    await wire.send(events[half:])
    await wire.until_applied()
    await assert_same(wire, outcome(events))
    assert worker.popen.poll() is None
    await asyncio.to_thread(broker.stop)

    async def noticed() -> bool:
        return (await worker.metrics())["traction_brokers_reachable",] == 0

    await until(noticed)
    assert await worker.end(seconds=20) == 0
    assert "Traceback" not in worker.log


async def test_brokers_away_for_too_long(wire: Wire, broker: KafkaBroker, start: Callable[..., WorkerProcess]) -> None:
    """A commit that cannot be done ends the worker after --away-timeout, SIGTERM ends it sooner; all is read again."""
    assert broker.pid is not None
    events = [event for event in traffic(sessions=20, episodes=2) if event.session_id == "s14"]  # turns only: no hurry
    for number, flags in enumerate((("--away-timeout", "3"), ())):
        worker = start("--commit-interval", "3", "--session-timeout", "2", *flags)
        await worker.ready(2)
        part = events[8 * number : 8 * number + 8]
        await wire.send(part)

        async def applied(worker: WorkerProcess = worker, count: int = len(part) * (number + 1)) -> bool:
            return (await worker.metrics())[READ] >= count

        await until(applied, 4)
        os.kill(broker.pid, signal.SIGSTOP)
        began = time.monotonic()
        if flags:
            assert await worker.exit(30) == EXIT_LOST
            assert "Are the brokers reachable" in worker.log
        else:
            assert await worker.end(seconds=20) == 0
            assert time.monotonic() - began < 10
            assert "the brokers do not answer; leaving without them" in worker.log
        os.kill(broker.pid, signal.SIGCONT)
    await start().ready(2)
    await wire.until_applied()
    await assert_same(wire, outcome(events))
