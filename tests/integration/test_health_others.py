"""What probes are told of escalate, bridge and ingest, with each state brought about in real ones.

All three run once, with a stall limit of seconds. Parts of them wait where a test says so, see `hanging`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
import urllib.request
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka.abc import ConsumerRebalanceListener
from prometheus_client.parser import text_string_to_metric_families

from schemas import topics
from streams.kafka import KafkaSettings, consumer, running
from streams.lag import BROKER
from streams.ownership import ASSIGNED, TAKEN
from streams.topics import bridge_group, create_topics
from streams.verdicts.watch import FOLLOWING, VERDICTS
from tests.deploy.monitoring import free_port
from tests.integration.test_health import Probe
from tests.kit import terminal_alert
from tests.processes import TractionProcess
from tests.streams.escalation.conftest import names as names_of
from tests.streams.outputs_kit import make, put, termination
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator
    from pathlib import Path

    from aiokafka import AIOKafkaConsumer

    from streams.kafka_broker import KafkaBroker

STALL = 4.0

PARTITIONS = 2

FLAGS = ("--port", "0", "--stall-seconds", f"{STALL:g}")

SESSION = ("--session-timeout", "30")
"""Who is frozen for a while stays in the group, so that what is seen is its health and no rebalance."""

BEHIND = "traction_verdicts_behind_seconds"


@pytest.fixture(scope="module")
def kafka(broker: KafkaBroker) -> Iterator[KafkaSettings]:
    """Give all topics, and one of a collector's that has a single partition; the broker goes on afterwards."""
    settings = KafkaSettings(bootstrap=broker.bootstrap, prefix=f"h{uuid.uuid4().hex[:12]}.")

    async def prepare() -> None:
        await create_topics(settings, partitions=PARTITIONS, replication=1, **names_of(settings.prefix))
        await make(settings, f"{settings.prefix}spans", 1)

    asyncio.run(prepare())
    yield settings
    assert broker.pid is not None
    os.kill(broker.pid, signal.SIGCONT)


class Asked(Probe):
    """Asks any process, of whose conditions of readiness all count."""

    def lacks(self, *conditions: str) -> Callable[[], Any]:
        """Give a look whether these and no others are not held, while it is alive."""

        async def look() -> bool:
            await self.is_alive()
            return set(await self.ask("readyz") or ()) == set(conditions)

        return look

    async def outlasts(self, *conditions: str) -> None:
        """Expect that it is alive, and lacks these conditions, for longer than the stall limit."""
        look, until_then = self.lacks(*conditions), time.monotonic() + 1.3 * STALL
        while time.monotonic() < until_then:
            assert await look()
            await asyncio.sleep(0.2)

    async def measures(self, name: str) -> float:
        """Give the sum of a metric's values."""
        text = await asyncio.to_thread(lambda: urllib.request.urlopen(f"{self._url}/metrics").read().decode())  # noqa: S310
        families = text_string_to_metric_families(text)
        return sum(sample.value for family in families for sample in family.samples if sample.name == name)


@dataclass(frozen=True)
class Fleet:
    """One process of each kind.

    Attributes:
        processes: escalate with a sink, a bridge from a single partition, and ingest.
        folder: has the files that make something hang.
        sink_port: where the sink delivers.
    """

    processes: tuple[TractionProcess, ...]
    folder: Path
    sink_port: int

    async def probes(self) -> list[Asked]:
        """Give what asks each."""
        return [Asked(await process.ready()) for process in self.processes]

    def send(self, number: int) -> None:
        """Send each a signal."""
        for process in self.processes:
            process.send(number)

    def hang(self, name: str) -> None:
        """Have something hang."""
        (self.folder / name).touch()

    def go_on(self) -> None:
        """Have nothing hang."""
        for name in ("fetch", "take", "slow"):
            (self.folder / name).unlink(missing_ok=True)


@pytest.fixture(scope="module")
def fleet(kafka: KafkaSettings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Start all three by the launcher."""
    folder, port = tmp_path_factory.mktemp("hanging"), free_port()
    policy = folder / "policy.toml"
    policy.write_text(
        f'[sinks.hook]\ntype = "webhook"\nurl = "http://127.0.0.1:{port}"\nformat = "alertmanager"\n'
        "timeout_seconds = 1\n"
    )
    named = names_of(kafka.prefix)
    commands = (
        ("escalate", *SESSION, "--app-id", named["app_id"], "--group", named["group"], "--policy", str(policy)),
        ("bridge", *SESSION, "--app-id", named["app_id"], "--no-logs", "--spans-topic", f"{kafka.prefix}spans"),
        ("ingest", "--without-token", "--ack-timeout", "1"),
    )
    where = "--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix
    launcher = sys.executable, "-m", "tests.integration.hanging", str(folder)
    processes = tuple(TractionProcess(*launcher, *words, *FLAGS, *where) for words in commands)
    yield Fleet(processes, folder, port)
    for process in processes:
        process.kill()


@pytest.fixture
async def probes(fleet: Fleet) -> AsyncIterator[list[Asked]]:
    """Give what asks escalate, bridge and ingest, all of them well; nothing hangs any more afterwards."""
    fleet.go_on()
    found = await fleet.probes()
    await every(found, lambda probe: probe.well)
    yield found
    fleet.go_on()


async def every(probes: Iterable[Asked], look: Callable[[Asked], Callable[[], Any]]) -> None:
    """Wait until a look holds for each."""
    await asyncio.gather(*(until(look(probe), 60) for probe in probes))


async def test_brokers_that_are_away(broker: KafkaBroker, probes: list[Asked]) -> None:
    """However long they are, each is alive and not ready, and says why; ready again when they are back."""
    escalate, bridge, ingest = probes
    assert broker.pid is not None
    os.kill(broker.pid, signal.SIGSTOP)
    missing = {escalate: (BROKER,), bridge: (BROKER,), ingest: (BROKER, VERDICTS)}
    await every(probes, lambda probe: probe.lacks(*missing[probe]))
    await asyncio.gather(*(probe.outlasts(*missing[probe]) for probe in probes))
    assert await ingest.measures(BEHIND) > STALL / 2
    os.kill(broker.pid, signal.SIGCONT)
    await every(probes, lambda probe: probe.well)
    assert await ingest.measures(BEHIND) < STALL / 2


async def test_processes_that_were_frozen(fleet: Fleet, probes: list[Asked]) -> None:
    """Who was frozen for longer than the limit answers nothing, and is alive as soon as it goes on."""
    fleet.send(signal.SIGSTOP)
    begun = time.monotonic()
    while time.monotonic() < begun + STALL:
        assert [await probe.ask("healthz") for probe in probes] == [None] * 3
    fleet.send(signal.SIGCONT)
    for _ in range(3):
        await asyncio.gather(*(probe.is_alive() for probe in probes))
    await every(probes, lambda probe: probe.well)


async def test_loops_that_hang(fleet: Fleet, kafka: KafkaSettings, probes: list[Asked]) -> None:
    """A loop that waits for ever makes its process one to be restarted, with work waiting or not, and unready."""
    escalate, bridge, ingest = probes
    fleet.hang("fetch")
    names = {escalate: ("answering", "following counts of fitness"), bridge: ("reading",), ingest: (FOLLOWING,)}
    await every(probes, lambda probe: probe.hangs(*names[probe]))
    await put(kafka, termination())
    waiting = [f"{kafka.topic(topics.TERMINATIONS)}-{number}" for number in range(PARTITIONS)]

    async def unread() -> bool:
        return bool((await ingest.ask("readyz") or {}).keys() & {*waiting})

    await until(unread)
    assert await ingest.measures(BEHIND) > STALL / 2
    fleet.go_on()
    await every(probes, lambda probe: probe.well)
    assert await ingest.measures(BEHIND) < STALL / 2


async def test_a_sink_that_is_stuck(fleet: Fleet, kafka: KafkaSettings, probes: list[Asked]) -> None:
    """A receiver that never answers holds up its sink alone: escalation is alive and ready, however long it tries."""
    escalate = probes[0]
    tries = 0

    async def never(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        nonlocal tries
        tries += 1
        await reader.read()

    async def tried() -> bool:
        return tries > 0

    server = await asyncio.start_server(never, "127.0.0.1", fleet.sink_port)
    async with server:
        await put(kafka, terminal_alert("stuck"))
        await until(tried)
        await escalate.outlasts()
        assert await escalate.measures("traction_sink_queue_age_seconds") > STALL
    assert tries > 1


async def test_partitions_come_and_go(fleet: Fleet, kafka: KafkaSettings, probes: list[Asked]) -> None:
    """Ready without partitions, not while the group decides, alive while taking is slow, and dead when that hangs."""
    bridge, group, spans = probes[1], bridge_group(names_of(kafka.prefix)["app_id"]), f"{kafka.prefix}spans"
    taking = f"taking {spans}-0"

    def member(number: int) -> AIOKafkaConsumer:
        """Make one that is given the only partition, since it is the first by its name."""
        return consumer(kafka, group_id=group, client_id=str(number), rebalance_timeout_ms=60_000)

    async with running(member(0), kafka) as first:
        listener = Waiting()
        first.subscribe([spans], listener=listener)
        await listener.assigned.wait()
        assert first.assignment()
        await fleet.processes[1].ready(after=1)
        await until(bridge.well)
        assert "none (other processes have them)" in fleet.processes[1].lines[-1]
        await bridge.outlasts()

        # Whoever joins has all others join anew, and the group waits for the first one.
        listener.may_go.clear()
        async with running(member(1), kafka) as second:
            second.subscribe([spans])
            try:
                await until(bridge.lacks(ASSIGNED, TAKEN))
                await bridge.outlasts(ASSIGNED, TAKEN)
            finally:
                listener.may_go.set()
            await until(bridge.well)
        fleet.hang("take")
    await until(bridge.hangs(taking))
    assert TAKEN in (await bridge.ask("readyz") or {})
    fleet.go_on()
    await until(bridge.well)

    async with running(member(0), kafka) as first:
        listener = Waiting()
        first.subscribe([spans], listener=listener)
        await listener.assigned.wait()
        await until(bridge.well)
        fleet.hang("slow")
    await until(bridge.lacks(TAKEN))
    begun = time.monotonic()
    while not await bridge.well():
        await bridge.is_alive()
    assert time.monotonic() - begun > STALL, "it was not slow"


class Waiting(ConsumerRebalanceListener):  # type: ignore[misc]  # published without types
    """Has a member of a group keep the others waiting, where it is told to."""

    def __init__(self) -> None:
        self.assigned = asyncio.Event()
        self.may_go = asyncio.Event()
        self.may_go.set()

    async def on_partitions_revoked(self, revoked: object) -> None:
        """Wait."""
        del revoked
        await self.may_go.wait()

    def on_partitions_assigned(self, assigned: object) -> None:
        """Take note."""
        del assigned
        self.assigned.set()
