"""Measures how fast a worker reads its state back, beside aiokafka alone reading the same topic in the same run.

    python -m tests.bench.recovery [SESSIONS] [--partitions N] [--json]

Starts a broker of its own, writes one state per session to the sessions' changelog, and starts workers on it: with the
states in memory, on disk in an empty directory, and on disk with what the one before left there. Go by the multiple of
the yardstick, since records a second differ from machine to machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from detectors import SessionState, encode_state, step
from detectors.limits import Limits
from streams.kafka import KafkaSettings, consumer, producer, running
from streams.kafka_broker import KafkaBroker
from streams.reading import partition_of
from streams.topics import create_topics
from streams.worker.records import SESSION, encode_stored
from tests.kit import Wire, WorkerProcess, spinning

if TYPE_CHECKING:
    from collections.abc import Sequence

APP_ID = "bench"
DURATION = ("traction_recovery_duration_seconds",)
READ = ("traction_recovered_records_total", "own")
EPISODES = 4


def a_state() -> bytes:
    """Give the changelog value of a session that did some dozen calls."""
    state = SessionState()
    for event in spinning("s", EPISODES):
        step(state, event, Limits())
    return encode_stored(SESSION, {"tool-calls": (1_000_000, 1_700_000_000_000)}, encode_state(state))


async def write(wire: Wire, sessions: int) -> int:
    """Write the states, and give the size of each in bytes."""
    value = a_state()
    async with running(producer(wire.settings, linger_ms=20, max_batch_size=2**18), wire.settings) as client:
        for number in range(sessions):
            key = f"session-{number}".encode()
            await client.send(wire.changelog, key=key, value=value, partition=partition_of(key, wire.partitions))
        await client.flush()
    return len(value)


async def yardstick(wire: Wire) -> float:
    """Read the topic by aiokafka alone, and give the seconds that it took."""
    client = consumer(wire.settings, isolation_level="read_committed", max_partition_fetch_bytes=4 * 2**20)
    client.subscribe([wire.changelog])
    async with running(client, wire.settings):
        tps = list(client.assignment())
        ends = await client.end_offsets(tps)
        began = time.perf_counter()
        while any([await client.position(tp) < ends[tp] for tp in tps]):
            await client.getmany(timeout_ms=200, max_records=2_000)
        return time.perf_counter() - began


async def recovery(wire: Wire, *flags: str) -> dict[str, float]:
    """Start a worker, and give how long it read and how much."""
    worker = WorkerProcess(wire, *flags)
    try:
        await worker.ready(wire.partitions, seconds=600)
        metrics = await worker.metrics()
        await worker.end()
    finally:
        worker.kill()
    return {"seconds": metrics[DURATION], "records": metrics[READ]}


async def measure(wire: Wire, sessions: int, directory: Path) -> dict[str, Any]:
    """Write the states to topics on which nothing is yet, and read them in all ways."""
    size = await write(wire, sessions)
    alone = {"seconds": await yardstick(wire), "records": sessions}
    disk = ("--state-store", "rocksdb", "--state-dir", str(directory))
    return {
        "sessions": sessions,
        "partitions": wire.partitions,
        "bytes": size,
        "ways": {
            "aiokafka alone": alone,
            "memory": await recovery(wire),
            "rocksdb, empty directory": await recovery(wire, *disk),
            "rocksdb, its own directory": await recovery(wire, *disk),
        },
    }


async def run(bootstrap: str, sessions: int, partitions: int, directory: Path) -> dict[str, Any]:
    """Measure on topics that are made for it."""
    settings = KafkaSettings(bootstrap=bootstrap)
    await create_topics(settings, partitions=partitions, replication=1, app_id=APP_ID)
    return await measure(Wire(settings, APP_ID, partitions), sessions, directory)


def table(found: dict[str, Any]) -> str:
    """Give the figures as a table."""
    yard = found["ways"]["aiokafka alone"]["seconds"]
    lines = [f"{found['sessions']:,} states of {found['bytes']} bytes in {found['partitions']} partitions", ""]
    lines.append(f"{'':28}{'records':>10}{'seconds':>10}{'records/s':>12}{'times aiokafka':>16}")
    for name, way in found["ways"].items():
        seconds, records = way["seconds"], int(way["records"])
        lines.append(f"{name:28}{records:>10,}{seconds:>10.2f}{records / seconds:>12,.0f}{seconds / yard:>16.1f}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sessions", nargs="?", type=int, default=200_000)
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    logging.disable(logging.ERROR)  # of aiokafka, while the broker makes the topics ready
    directory = Path(tempfile.mkdtemp())
    try:
        with KafkaBroker() as broker:
            found = asyncio.run(run(broker.bootstrap, asked.sessions, asked.partitions, directory))
    finally:
        shutil.rmtree(directory)
    sys.stdout.write(json.dumps(found) + "\n" if asked.json else table(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
