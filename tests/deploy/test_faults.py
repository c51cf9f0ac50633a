"""What breaks at night is found by its alert and mended by its runbook, with real processes, as who is paged would do.

Rules are those of deploy/prometheus with shorter times, so that names and expressions are the real ones. What the
sections of the runbook say under "Do" is done here by hand; their commands are taken from the page.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from schemas import topics
from streams.worker.faults import EXIT_FAILED
from tests.cluster import Cluster
from tests.deploy.monitoring import Alertmanager, Prometheus, Webhook, patient, tool
from tests.deploy.walked import Fleet
from tests.kit import spinning, tool_call

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator
    from pathlib import Path

    from tests.proxy import Proxy

pytestmark = [
    pytest.mark.tools,
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0, reason="a disk of its own, to fill, only root can mount"),
]

POISON = 30
"""More dead letters than the alert on them wants."""

DISK_MEGABYTES = 24
"""Room for the state of the few sessions here and RocksDB's own logs, several times."""


@dataclass(frozen=True, slots=True)
class Field:
    """What is broken, and what tells of it.

    Attributes:
        cluster: one broker.
        proxy: what the worker of the fleet `hung` goes through.
        disk: where the worker of the fleet `full` keeps its state.
        fleets: by name.
        webhook: who is paged.
    """

    cluster: Cluster
    proxy: Proxy
    disk: Path
    fleets: dict[str, Fleet]
    webhook: Webhook


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Mount a small disk in memory."""
    path = tmp_path_factory.mktemp("disk")
    subprocess.run([tool("mount"), "-t", "tmpfs", "-o", f"size={DISK_MEGABYTES}m", "tmpfs", path], check=True)
    yield path
    subprocess.run([tool("umount"), "--lazy", path], check=True)


@pytest.fixture(scope="module")
def field(disk: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    """Run a broker, three fleets of one worker, Prometheus and Alertmanager, until all workers are at work."""
    folder = tmp_path_factory.mktemp("field")
    with contextlib.ExitStack() as stack:
        webhook = stack.enter_context(Webhook())
        cluster = stack.enter_context(Cluster(1, proxied=True))
        proxy = cluster.nodes[1].proxy
        assert proxy is not None
        fleets = {
            "frozen": Fleet("frozen", cluster.bootstrap, folder, session_timeout=6),
            "hung": Fleet("hung", cluster.proxied_bootstrap, folder),
            "full": Fleet("full", cluster.bootstrap, folder, state_store="rocksdb", state_dir=str(disk)),
        }
        asyncio.run(_topics(fleets.values()))
        for fleet in fleets.values():
            stack.callback(fleet.kill)
            fleet.start()
        manager = stack.enter_context(Alertmanager(folder, webhook.url))
        addresses = {fleet.address: name for name, fleet in fleets.items()}
        prometheus = stack.enter_context(
            Prometheus(
                folder,
                {"traction-worker": list(addresses)},
                fleets=addresses,
                alertmanager=f"127.0.0.1:{manager.port}",
            )
        )
        patient(lambda: len(prometheus.query("traction_ready == 1")) == len(fleets), "all were scraped")
        yield Field(cluster, proxy, disk, fleets, webhook)


async def _topics(fleets: Iterable[Fleet]) -> None:
    await asyncio.gather(*(fleet.topics() for fleet in fleets))


async def frozen(field: Field) -> None:
    """A worker that is stopped by SIGSTOP pages as absent, not as down; started again, it is over."""
    fleet = field.fleets["frozen"]
    assert fleet.worker is not None
    fleet.worker.send(signal.SIGSTOP)
    path, alert = await fleet.told(field.webhook, "TractionAbsent")
    assert path == "/pages"
    assert "does not answer" in await fleet.look(alert)

    fleet.kill()
    await fleet.start().ready(1)
    await fleet.told(field.webhook, "TractionAbsent", "resolved")
    assert not field.webhook.of("TractionDown", fleet="frozen")


async def poison(field: Field) -> None:
    """Events that nobody can read page, the commands name the reason, and without more of them it is over."""
    fleet = field.fleets["frozen"]
    for _ in range(POISON):
        await fleet.wire.raw(topics.TOOL_CALLS, b"{")
    path, alert = await fleet.told(field.webhook, "TractionDeadLetters")
    assert path == "/pages"
    assert "not_json" in await fleet.look(alert)
    await fleet.told(field.webhook, "TractionDeadLetters", "resolved")


async def poison_then_frozen(field: Field) -> None:
    """Both on one fleet, one after the other: a frozen worker would count no dead letters."""
    await poison(field)
    await frozen(field)


async def hung(field: Field) -> None:
    """A worker whose connections carry nothing any more pages as hanging; /healthz names the partition."""
    fleet = field.fleets["hung"]
    old = fleet.worker
    assert old is not None
    assert field.proxy.strand()
    for number in range(3):
        await fleet.wire.send(spinning(f"waits-{number}", 1))
    path, alert = await fleet.told(field.webhook, "TractionHanging")
    assert path == "/pages"
    assert "stuck at" in await fleet.look(alert)

    await old.end()
    await fleet.start().ready(1)
    await fleet.wire.until_applied()
    await fleet.told(field.webhook, "TractionHanging", "resolved")


async def full(field: Field) -> None:
    """A worker whose disk is full ends, and ends at each start; the page is there all the same, until there is room."""
    fleet = field.fleets["full"]
    old, filler = fleet.worker, field.disk / "filler"
    assert old is not None
    await fleet.wire.send(spinning("before", 1))
    await fleet.wire.until_applied()
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as stream:
        while stream.write(bytes(4096)):
            pass
    await fleet.wire.send(spinning("after", 40))
    assert await old.exit() == EXIT_FAILED
    assert "is the disk full?" in old.errors[-1]
    again = fleet.start()
    assert await again.exit() == EXIT_FAILED
    path, alert = await fleet.told(field.webhook, "TractionStateDiskFull")
    assert path == "/pages"
    assert "state_dir" in await fleet.look(alert)

    filler.unlink()
    await fleet.start().ready(1)
    await fleet.wire.until_applied()
    await fleet.told(field.webhook, "TractionStateDiskFull", "resolved")


async def _apply(field: Field, name: str) -> None:
    """Send a few calls that nobody has to be told of to all fleets, and see them applied."""
    fleets = field.fleets.values()
    await asyncio.gather(*(each.wire.send(tool_call(name, number) for number in range(3)) for each in fleets))
    await asyncio.gather(*(each.wire.until_applied() for each in fleets))


async def test_faults_of_one_process(field: Field) -> None:
    """A frozen and a hung worker, a full disk and poison each arrive as their alert, and end by their runbook."""
    walks: tuple[Callable[[Field], Awaitable[None]], ...] = (poison_then_frozen, hung, full)
    failed = [each for each in await asyncio.gather(*(walk(field) for walk in walks), return_exceptions=True) if each]
    if failed:
        raise BaseExceptionGroup("walks", failed)


async def test_brokers_that_are_away(field: Field) -> None:
    """All that follows from brokers that are away, and from their return, is one page for a fleet."""
    await _apply(field, "before")  # a worker that never committed seems not to for decades
    began = datetime.now(UTC)
    field.cluster.kill(1)
    fleets = field.fleets.values()
    path, alert = (await asyncio.gather(*(each.told(field.webhook, "TractionBrokersAway") for each in fleets)))[0]
    assert path == "/pages"
    assert "topics check: exit 1" in await field.fleets["frozen"].look(alert)

    await asyncio.to_thread(field.cluster.start, 1)
    await _apply(field, "back")
    await asyncio.gather(*(each.told(field.webhook, "TractionBrokersAway", "resolved") for each in fleets))
    new = [each for _, each in field.webhook.told if datetime.fromisoformat(each["startsAt"]) > began]
    assert {each["labels"]["alertname"] for each in new} == {"TractionBrokersAway"}
