"""Where states are kept: on disk and as standby copies, and what a crash, a loss or a full disk leaves of them."""

from __future__ import annotations

import asyncio
import resource
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka.admin import NewTopic

from streams.kafka import admin, producer, running
from streams.worker.faults import EXIT_FAILED
from streams.worker.records import HEARTBEAT_KEY
from tests.bench.recovery import measure, text
from tests.kit import assert_same, outcome, traffic
from tests.topic_config import compact_at_once
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from aiokafka.admin import AIOKafkaAdminClient

    from tests.kit import Wire, WorkerProcess

OLD = 1_000
"""Records per partition that are there before."""

DISK = ("traction_state_disk_free_bytes",)
OWN = ("traction_recovered_records_total", "own")
STANDBY = ("traction_recovered_records_total", "standby")

KILLED = """
import os, signal
from streams.cli import main
from streams.worker.rocks import RocksStates

write, times = RocksStates.write, []

def killed(states, changes, offset):
    times.append(offset)
    if len(changes) > 3 and len(times) > 20:
        os.kill(os.getpid(), signal.SIGKILL)
    write(states, changes, offset)

RocksStates.write = killed
main()
"""
"""A worker that dies when a transaction is committed, and what it wrote is not stored yet."""


def on_disk(path: Path, *flags: str) -> tuple[str, ...]:
    """Give the flags of a worker that keeps its states in a directory."""
    return ("--state-store", "rocksdb", "--state-dir", str(path), "--log-level", "info", *flags)


async def fill(wire: Wire, each: int) -> None:
    """Write so many records to each partition of the sessions' changelog that leave nothing behind."""
    async with running(producer(wire.settings, linger_ms=20), wire.settings) as client:
        for number in range(each * wire.partitions):
            await client.send(wire.changelog, None, key=b"old%d" % number, partition=number % wire.partitions)
        await client.flush()


async def written(wire: Wire) -> int:
    """Count the records of both changelogs."""
    return len(await wire.records(wire.changelog)) + len(await wire.records(wire.tasks_changelog))


@pytest.mark.parametrize("store", ["memory", "rocksdb"])
async def test_a_standby_takes_over(
    wire: Wire, start: Callable[..., WorkerProcess], tmp_path: Path, store: str
) -> None:
    """A worker killed under load has its partitions taken over by the one with copies, which reads only their tails."""
    await fill(wire, OLD)
    flags = ("--standby-replicas", "1", "--commit-interval", "0.05", "--session-timeout", "3", "--state-store", store)
    one, two = (start(*flags, *(("--state-dir", str(tmp_path / name)) if store == "rocksdb" else ())) for name in "ab")
    await asyncio.gather(one.ready(2), two.ready(2))
    events = traffic(sessions=60, episodes=6)
    sending = asyncio.create_task(wire.send(events, rate=800))

    async def copied() -> bool:
        found = await two.metrics()  # it may have owned the other half before it only keeps a copy of it
        return found[STANDBY] > 0 and found[OWN] + found[STANDBY] > 4 * OLD and len(await wire.alert_records()) > 10

    await until(copied)
    found = await two.metrics()
    assert found["traction_stored_state_bytes", "standby", "sessions"] > 0
    assert (found.get(DISK, 0) > 0) == (store == "rocksdb")
    before = found[OWN]
    one.kill()
    there = await written(wire)
    await two.ready(4)
    found = await two.metrics()
    read = found[OWN] - before
    standby, own = (found["traction_stored_state_bytes", copy, "sessions"] for copy in ("standby", "own"))
    assert standby == 0 < own, "what was taken over is no copy any more"
    await sending
    await wire.until_applied()
    await assert_same(wire, outcome(events))
    assert 0 < read < there / 4


async def test_a_crash_between_commit_and_store(
    wire: Wire, start: Callable[..., WorkerProcess], tmp_path: Path
) -> None:
    """What was committed and not stored is read from the changelog, from where the store stands; nothing else is."""
    flags = on_disk(tmp_path, "--commit-interval", "0.05")
    events = traffic(sessions=60, episodes=4)
    dies = start(*flags, program=KILLED)
    await dies.ready(4)
    await wire.send(events[: len(events) // 2], rate=600)
    assert await dies.exit() == -9
    there = await written(wire)
    worker = start(*flags)
    await worker.ready(4)
    read = (await worker.metrics())[OWN]
    await wire.send(events[len(events) // 2 :])
    await wire.until_applied()
    await assert_same(wire, outcome(events))
    assert 8 < read < there / 2  # more than the heartbeats


async def test_a_lost_directory_and_trailing_tombstones(
    wire: Wire, start: Callable[..., WorkerProcess], tmp_path: Path
) -> None:
    """With the directory gone all is read back, also of a changelog whose last records compaction took away."""
    events = traffic(sessions=20, episodes=6)
    first, tenth, half = (len(events) * part // 48 for part in (20, 39, 44))  # a task ends with its tenth attempt of 12
    worker = start(*on_disk(tmp_path, "--commit-interval", "0.05"))
    await worker.ready(4)
    for part in (events[:first], events[first:tenth], events[tenth:half]):  # written, removed, written again
        await wire.send(part)
        await wire.until_applied()
    assert await worker.end() == 0
    removed = [record for record in await wire.records(wire.tasks_changelog) if record.value is None]
    assert removed
    shutil.rmtree(tmp_path)
    async with running(admin(wire.settings), wire.settings) as client:
        await compact_at_once(client, wire)
    worker = start(*on_disk(tmp_path))
    await worker.ready(4)
    await until(lambda: _compacted(wire, len(removed)))
    assert await worker.end() == 0
    worker = start(*on_disk(tmp_path))
    await worker.ready(4)
    await wire.send(events[half:])
    await wire.until_applied()
    await assert_same(wire, outcome(events))


async def _compacted(wire: Wire, removed: int) -> bool:
    records = await wire.records(wire.tasks_changelog)
    return sum(record.value is None for record in records) < removed


async def test_a_changelog_made_anew(wire: Wire, start: Callable[..., WorkerProcess], tmp_path: Path) -> None:
    """What was stored of a changelog that was deleted is thrown away: the states are those of the topic as it is."""
    events = traffic(sessions=40, episodes=2)
    worker = start(*on_disk(tmp_path))
    await worker.ready(4)
    await wire.send(events)
    await wire.until_applied()
    assert await worker.end() == 0
    changelogs = [wire.changelog, wire.tasks_changelog]
    async with running(admin(wire.settings), wire.settings) as client:
        await client.delete_topics(changelogs)
        await until(lambda: _gone(client, changelogs))
        await client.create_topics(
            [NewTopic(name, 4, 1, topic_configs={"cleanup.policy": "compact"}) for name in changelogs]
        )
    for number in range(4):  # so that it ends later than the old one
        for _ in range(2):
            await wire.put(wire.changelog, b"heartbeat", key=HEARTBEAT_KEY, partition=number)
    worker = start(*on_disk(tmp_path))
    await worker.ready(4)
    again = traffic(sessions=40, episodes=2, prefix="again")
    await wire.send(again)
    await wire.until_applied()
    assert await worker.end() == 0
    assert "the topic was deleted and made anew" in worker.log
    assert (await wire.states()).keys() == outcome(again).states.keys()


async def _gone(client: AIOKafkaAdminClient, names: list[str]) -> bool:
    return not set(await client.list_topics()) & set(names)


async def test_a_full_disk(wire: Wire, start: Callable[..., WorkerProcess], tmp_path: Path) -> None:
    """A worker whose disk is full ends with exit code 1 and says so; with room again nothing is lost or doubled."""
    events = traffic(sessions=60, episodes=4)
    third = len(events) // 3
    flags = on_disk(tmp_path, "--commit-interval", "0.05")
    worker = start(*flags)
    await worker.ready(4)
    await wire.send(events[:third])
    await wire.until_applied()
    resource.prlimit(worker.popen.pid, resource.RLIMIT_FSIZE, (_largest_log(tmp_path) + 2_000, resource.RLIM_INFINITY))
    await wire.send(events[third : 2 * third])
    assert await worker.exit() == EXIT_FAILED
    assert f"the state directory {tmp_path}" in worker.log
    assert "is the disk full?" in worker.log
    assert "Traceback" not in worker.log
    worker = start(*flags)
    await worker.ready(4)
    await wire.send(events[2 * third :])
    await wire.until_applied()
    await assert_same(wire, outcome(events))


def _largest_log(path: Path) -> int:
    return max(each.stat().st_size for each in path.glob("*/*-*/*.log"))


async def test_a_record_of_a_newer_release(wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """A worker that meets a state of a newer release ends with exit code 1 before it applies anything, and says why."""
    events: list[Any] = traffic(sessions=10, episodes=1)
    await wire.send(events)
    newer = await wire.put(wire.changelog, b"\x96\x7f\x00\x01\x90\x80\x90", key=b"s1", partition=1)
    worker = start()
    assert await worker.exit() == EXIT_FAILED
    assert f"{wire.changelog}-1 at offset {newer.offset}" in worker.log
    assert "format 127" in worker.log
    assert "newer" in worker.log
    assert await wire.alert_records() == []


async def test_a_directory_in_use(start: Callable[..., WorkerProcess], tmp_path: Path) -> None:
    """A second worker with the same directory ends with exit code 1, and says that each needs its own."""
    await start(*on_disk(tmp_path)).ready(4)
    second = start(*on_disk(tmp_path))
    assert await second.exit() == EXIT_FAILED
    assert "does another worker use it?" in second.log
    assert "Traceback" not in second.log


async def test_the_benchmark_of_recovery(wire: Wire, tmp_path: Path) -> None:
    """It reads in all ways what it wrote, and with its own directory a worker reads the heartbeats only."""
    found = await measure(wire, 500, 4, tmp_path)
    read = [way["records"] for way in found["ways"].values()]
    assert read[0] == 500
    assert read[1] >= 500
    assert read[2] >= 500
    assert 0 < read[3] < 50
    assert "times aiokafka" in text(found)
