"""Measures how fast a worker reads its state back, beside aiokafka alone reading the same topic in the same run.

    python -m tests.bench.recovery
    python -m tests.bench.recovery 1000000 --calls 2      (a million small states)
    python -m tests.bench.recovery 50000 --partitions 64 --json

Starts a broker of its own, writes one state per session to the sessions' changelog, and starts workers on it: with the
states in memory, on disk in an empty directory, and on disk with what the one before left there. Go by the multiple of
the yardstick, since records a second differ from machine to machine; and where the machine does other things meanwhile,
by processor time, of which that of the workers includes their start: the last one reads next to nothing.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import shutil
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
from tests.bench.partitions import cpu_seconds
from tests.bench.program import parser, run, say, show, table
from tests.kit import Wire, WorkerProcess, spinning

if TYPE_CHECKING:
    from collections.abc import Sequence

APP_ID = "bench"
DURATION = ("traction_recovery_duration_seconds",)
READ = ("traction_recovered_records_total", "own")
CALLS = 32
TELL_EVERY = 100_000


def a_state(calls: int) -> bytes:
    """Give the changelog value of a session that did so many calls."""
    state = SessionState()
    for event in itertools.islice(spinning("s", calls), calls):
        step(state, event, Limits())
    return encode_stored(SESSION, {"tool-calls": (1_000_000, 1_700_000_000_000)}, encode_state(state))


async def write(wire: Wire, sessions: int, calls: int) -> int:
    """Write the states, and give the size of each in bytes."""
    value = a_state(calls)
    async with running(producer(wire.settings, linger_ms=20, max_batch_size=2**18), wire.settings) as client:
        for number in range(sessions):
            if number % TELL_EVERY == 0:
                say(f"{number:,} of {sessions:,} states written")
            key = f"session-{number}".encode()
            await client.send(wire.changelog, key=key, value=value, partition=partition_of(key, wire.partitions))
        await client.flush()
    return len(value)


async def yardstick(wire: Wire) -> dict[str, float]:
    """Read the topic by aiokafka alone, and give how long that took."""
    say("aiokafka reads alone")
    client = consumer(wire.settings, isolation_level="read_committed", max_partition_fetch_bytes=4 * 2**20)
    client.subscribe([wire.changelog])
    async with running(client, wire.settings):
        tps = list(client.assignment())
        ends = await client.end_offsets(tps)
        began, spent = time.perf_counter(), time.process_time()
        while any([await client.position(tp) < ends[tp] for tp in tps]):
            await client.getmany(timeout_ms=200, max_records=2_000)
        return {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - spent}


async def recovery(wire: Wire, *flags: str) -> dict[str, float]:
    """Start a worker, and give how long it read and how much."""
    say(f"a worker reads back {' '.join(flags)}")
    worker = WorkerProcess(wire, *flags)
    try:
        await worker.ready(wire.partitions, seconds=1_200)
        spent = cpu_seconds(worker.popen.pid)
        metrics = await worker.metrics()
        await worker.end(seconds=60)
    finally:
        worker.kill()
    return {"seconds": metrics[DURATION], "cpu_seconds": spent, "records": metrics[READ]}


async def measure(wire: Wire, sessions: int, calls: int, directory: Path) -> dict[str, Any]:
    """Write the states to topics on which nothing is yet, and read them in all ways."""
    size = await write(wire, sessions, calls)
    alone = await yardstick(wire) | {"records": sessions}
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


async def measure_on(bootstrap: str, sessions: int, *, calls: int, partitions: int, directory: Path) -> dict[str, Any]:
    """Measure on topics that are made for it."""
    settings = KafkaSettings(bootstrap=bootstrap)
    await create_topics(settings, partitions=partitions, replication=1, app_id=APP_ID)
    return await measure(Wire(settings, APP_ID, partitions), sessions, calls, directory)


def text(found: dict[str, Any]) -> str:
    """Give the figures as a table."""
    yard = found["ways"]["aiokafka alone"]["seconds"]
    rows = [
        (
            name,
            f"{way['records']:,.0f}",
            f"{way['seconds']:.2f}",
            f"{way['records'] / way['seconds']:,.0f}",
            f"{way['seconds'] / yard:.1f}",
            f"{way['cpu_seconds']:.1f}",
        )
        for name, way in found["ways"].items()
    ]
    head = ("", "records", "seconds", "records/s", "times aiokafka", "CPU seconds")
    states = f"{found['sessions']:,} states of {found['bytes']} bytes in {found['partitions']} partitions"
    return f"{states}\n\n{table(head, rows)}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = parser(__doc__, "recovery")
    options.add_argument("sessions", nargs="?", type=int, default=200_000, help="(default: 200,000)")
    options.add_argument("--calls", type=int, default=CALLS, metavar="N", help=f"of each session (default: {CALLS})")
    options.add_argument("--partitions", type=int, default=8, metavar="N", help="of the changelog (default: 8)")
    asked = options.parse_args(arguments)
    if min(asked.sessions, asked.calls, asked.partitions) < 1:
        options.error("every number must be 1 or more")
    logging.disable(logging.ERROR)  # of aiokafka, while the broker makes the topics ready
    directory = Path(tempfile.mkdtemp())
    try:
        with KafkaBroker() as broker:
            found = asyncio.run(
                measure_on(
                    broker.bootstrap, asked.sessions, calls=asked.calls, partitions=asked.partitions,
                    directory=directory,
                )
            )  # fmt: skip
    finally:
        shutil.rmtree(directory)
    show(found, text, as_json=asked.json)
    return 0


if __name__ == "__main__":
    run(main)
