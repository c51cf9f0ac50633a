"""What probes are told of a worker, with each state brought about in a real one: waiting, hanging, frozen, fenced.

A worker runs with a stall limit of seconds. Where a part of it is to hang, it is started by a launcher which has that
part wait for as long as a file is there; nothing else of it is changed.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from schemas.topics import TOOL_CALLS
from streams.kafka import KafkaSettings, producer, running
from streams.kafka_broker import KafkaBroker
from streams.lag import BROKER
from streams.topics import create_topics
from streams.worker.faults import EXIT_LOST
from streams.worker.settings import WorkerSettings
from streams.worker.watch import ASSIGNED, CONDITIONS, PRODUCERS, RECOVERED
from tests.deploy.monitoring import free_port
from tests.kit import Wire, tool_call
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from tests.kit import WorkerProcess

STALL = 3.0

PROBE_SECONDS = 3.0
"""How long a probe waits for its answer."""

FLAGS = ("--stall-seconds", f"{STALL:g}", "--session-timeout", "30", "--away-timeout", "60")
"""A member that is frozen for a while stays in the group, so that what is seen is its health and no rebalance."""

HANGING = """\
import asyncio, time
from pathlib import Path
from streams.worker import app, engine, transport, watch

app.POLL_RECORDS = 10
folder = Path({folder!r})
fetch, handle, look = transport.FetchThread._fetch, engine.Engine.handle, watch.Watch._look

def meant(name, holds):
    file = folder / name
    return file.exists() and holds >= int(file.read_text())

async def hanging_fetch(self, *arguments):
    while meant("fetch", self.consumer.holds):
        await asyncio.sleep(0.05)
    if meant("slow", 0):
        await asyncio.sleep(0.5)
    return await fetch(self, *arguments)

async def hanging_handle(self, *arguments):
    while meant("lane", 0):
        await asyncio.sleep(0.05)
    await handle(self, *arguments)

def hanging_look(self):
    while meant("loop", 0):
        time.sleep(0.05)
    look(self)

transport.FetchThread._fetch = hanging_fetch
engine.Engine.handle = hanging_handle
watch.Watch._look = hanging_look

from streams.cli import main

main()
"""
"""The command, a part of which hangs while a file of its name is there, and the consumer was held so often as it says.

`slow` has every fetch wait, and each brings ten records at most: a recovery of a few hundred is long."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """Give a broker that a test may freeze."""
    with KafkaBroker(data=tmp_path_factory.mktemp("health") / "broker") as running:
        yield running
        assert running.pid is not None
        os.kill(running.pid, signal.SIGCONT)


@pytest.fixture(scope="module")
def bootstrap(broker: KafkaBroker) -> str:
    """Give its address."""
    return broker.bootstrap


@pytest.fixture
async def wire(bootstrap: str, prefix: str, request: pytest.FixtureRequest) -> Wire:
    """Give topics of the test's own, with two partitions or as many as it says."""
    partitions = getattr(request, "param", 2)
    settings, app_id = KafkaSettings(bootstrap=bootstrap, prefix=prefix), prefix.rstrip(".")
    await create_topics(settings, partitions=partitions, replication=1, app_id=app_id)
    return Wire(settings, app_id, partitions)


class Probe:
    """Asks a worker for its pages of health, as what restarts it and what routes to it would.

    Args:
        url: where its pages are.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    async def ask(self, page: str) -> dict[str, str] | None:
        """Give what is wrong, by what was looked at; nothing where all is well, and None without an answer in time."""
        return await asyncio.to_thread(self._ask, page)

    def _ask(self, page: str) -> dict[str, str] | None:
        try:
            with urllib.request.urlopen(f"{self._url}/{page}", timeout=PROBE_SECONDS) as answer:  # noqa: S310
                told, status = json.load(answer), answer.status
        except urllib.error.HTTPError as problem:
            told, status = json.load(problem), problem.code
        except OSError:
            return None
        wrong = {name: state for name, state in told["checks"].items() if state != "ok"}
        assert (status, told["ok"]) == ((503, False) if wrong else (200, True))
        return wrong

    async def answers(self) -> bool:
        """Look whether its pages are there."""
        return await self.ask("healthz") is not None

    async def silent(self) -> bool:
        """Look whether they are not, or not in time."""
        return await self.ask("healthz") is None

    async def is_alive(self) -> None:
        """Expect it to be alive."""
        assert await self.ask("healthz") == {}

    def hangs(self, *names: str) -> Callable[[], Awaitable[bool]]:
        """Give a look whether these are among what hangs, and whether it is unready for all that too."""

        async def look() -> bool:
            stuck = await self.ask("healthz")
            return stuck is not None and set(names) <= stuck.keys() <= (await self._unready()).keys()

        return look

    def lacks(self, *conditions: str) -> Callable[[], Awaitable[bool]]:
        """Give a look whether these are the conditions of readiness that do not hold, all others do; it is alive."""

        async def look() -> bool:
            await self.is_alive()
            return set(await self._unready()) & set(CONDITIONS) == set(conditions)

        return look

    async def well(self) -> bool:
        """Look whether it is alive and ready."""
        return await self.ask("healthz") == {} and await self._unready() == {}

    async def _unready(self) -> dict[str, str]:
        wrong = await self.ask("readyz")
        assert wrong is not None
        return wrong

    async def outlasts(self, *conditions: str) -> None:
        """Expect that it is alive, and lacks these conditions, for longer than the stall limit."""
        until_then = time.monotonic() + 1.3 * STALL
        while time.monotonic() < until_then:
            await self.is_alive()
            assert set(conditions) <= (await self._unready()).keys()  # a busy broker may take long to answer, too
            await asyncio.sleep(0.2)


def calls(count: int, text: str) -> list[Any]:
    """Give a call each of so many sessions, which lie in all partitions."""
    return [tool_call(f"{text}{number}", 1) for number in range(count)]


async def test_a_rebalance(wire: Wire, start: Callable[..., WorkerProcess], tmp_path: Path) -> None:
    """Who waits for the group is alive, who was frozen is alive again; who hangs after it is not, wherever it hangs."""
    first = start(*FLAGS, program=HANGING.format(folder=str(tmp_path)))
    probe = Probe(await first.ready(wire.partitions))
    await until(probe.well)
    await wire.send(calls(40, "a"))
    await wire.until_applied()

    # The group waits for the first one, which is frozen while work waits for it, for longer than the limit.
    first.send(signal.SIGSTOP)
    await wire.send(calls(40, "b"))
    port = free_port()
    second = start(*FLAGS, "--port", str(port))
    other = Probe(f"http://127.0.0.1:{port}")
    await until(other.answers)
    await until(other.lacks(ASSIGNED, RECOVERED, PRODUCERS))
    await until(probe.silent)
    await other.outlasts(ASSIGNED, RECOVERED, PRODUCERS)

    # It goes on, and its fetches hang from the rebalance on.
    (tmp_path / "fetch").write_text("3")
    first.send(signal.SIGCONT)
    await probe.is_alive()
    await second.ready(1)
    await until(other.well)
    await until(probe.hangs("reading state back"))
    await other.is_alive()
    assert f"{wire.settings.topic(TOOL_CALLS)}-" not in first.log, "what waited while it was frozen made it no hung one"
    (tmp_path / "fetch").unlink()
    await first.ready(1)
    await until(probe.well)

    # Then what applies the events hangs, then fetching while nothing waits, then the event loop.
    (tmp_path / "lane").write_text("0")
    await wire.send(calls(40, "c"))
    inputs = [f"{wire.settings.topic(TOOL_CALLS)}-{number}" for number in first.partitions]
    await until(probe.hangs(*inputs))
    (tmp_path / "lane").unlink()
    await until(probe.well)
    await wire.until_applied()
    (tmp_path / "fetch").write_text("0")
    await until(probe.hangs("fetching"))
    (tmp_path / "fetch").unlink()
    await until(probe.well)
    (tmp_path / "loop").write_text("0")
    await until(probe.silent)
    await other.is_alive()
    for name in ("reading state back", *inputs, "fetching"):
        assert f"ERROR streams.lag: {name}: stuck at" in first.log
    assert "Aiokafka has not sent fetch request" not in first.log
    assert "Traceback" not in first.log + second.log


@pytest.mark.parametrize("wire", [1], indirect=True)
async def test_a_long_recovery(wire: Wire, start: Callable[..., WorkerProcess], tmp_path: Path) -> None:
    """Who stands by is ready; who reads state back for longer than the stall limit is alive, and ready after that."""
    workers = [start(*FLAGS, program=HANGING.format(folder=str(tmp_path))) for _ in range(2)]
    probes = {worker: Probe(await worker.ready()) for worker in workers}

    async def shared() -> bool:
        return sorted(len(worker.partitions) for worker in workers) == [0, 1]

    await until(shared)
    for probe in probes.values():
        await until(probe.well)
    await wire.send(calls(200, "s"))
    await wire.until_applied()
    owner, spare = sorted(workers, key=lambda worker: -len(worker.partitions))
    (tmp_path / "slow").write_text("0")
    assert await owner.end() == 0
    await until(probes[spare].lacks(RECOVERED))
    await probes[spare].outlasts(RECOVERED)
    (tmp_path / "slow").unlink()
    await until(probes[spare].well)
    assert spare.partitions == {0}
    assert " ERROR " not in spare.log


async def test_brokers_that_are_away(broker: KafkaBroker, wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """It is alive however long they are, and not ready until they are back; once another fences it, it ends with 3."""
    assert broker.pid is not None
    worker = start(*FLAGS, "--commit-interval", "2")
    probe = Probe(await worker.ready(wire.partitions))
    await until(probe.well)
    await wire.send(calls(40, "a"))

    async def begun() -> bool:
        return (await worker.metrics())["traction_batch_records_sum",] > 0

    await until(begun, 4)
    os.kill(broker.pid, signal.SIGSTOP)
    await until(probe.lacks(PRODUCERS, BROKER))
    await probe.outlasts(PRODUCERS, BROKER)
    os.kill(broker.pid, signal.SIGCONT)
    await until(probe.well)
    await wire.until_applied()

    names = WorkerSettings(kafka=wire.settings, app_id=wire.app_id)
    async with running(producer(wire.settings, transactional_id=names.transactional_id(0)), wire.settings):
        await wire.send(calls(40, "b"))
        assert await worker.exit() == EXIT_LOST
    assert "fenced: another worker owns partition 0 now" in worker.log
    await until(probe.silent)
