"""Measures what each partition that a worker owns costs: connections, memory, and processor time, idle and a commit.

    python -m tests.bench.partitions
    python -m tests.bench.partitions 8 64 --seconds 10
    python -m tests.bench.partitions --json

Starts a broker of its own, and for each count of partitions topics and one worker that owns them all. First nothing is
sent; then each partition is sent one small event a second, so that it commits about once a second. The processor time
of a commit includes reading that event and fetching it; no detector has anything to do with it.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import os
import re
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiokafka.errors import KafkaError

from schemas.events import SessionEvent
from schemas.topics import OVERRIDES
from streams.kafka import KafkaSettings
from streams.kafka_broker import KafkaBroker
from streams.reading import partition_of
from streams.topics import create_topics
from tests.bench.program import parser, run, say, show, table
from tests.kit import BEGIN, Wire, WorkerProcess

if TYPE_CHECKING:
    from collections.abc import Sequence

COUNTS = (8, 64, 256)
SECONDS = 20.0
SETTLE_SECONDS = 5.0
"""After the ready line: what a start does on the side is over."""

TICKS = os.sysconf("SC_CLK_TCK")
TAKEN_OVER = re.compile(r"partitions taken over in ([\d.]+) s")
COMMITS = ("traction_commit_duration_seconds_count",)


def cpu_seconds(pid: int) -> float:
    """Give the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_bytes(pid: int) -> int:
    """Give the memory that a process has."""
    return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def connections(pid: int) -> int:
    """Count the TCP connections of a process."""
    open_now = {
        line.split()[9]
        for family in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{family}").read_text("ascii").splitlines()[1:]
        if line.split()[3] == "01"  # established
    }
    links = [str(each.readlink()) for each in Path(f"/proc/{pid}/fd").iterdir() if each.is_symlink()]
    return sum(link.startswith("socket:[") and link[8:-1] in open_now for link in links)


def sessions(partitions: int) -> list[str]:
    """Give a session for each partition."""
    found: dict[int, str] = {}
    for number in itertools.count():
        name = f"session-{number}"
        found.setdefault(partition_of(name.encode(), partitions), name)
        if len(found) == partitions:
            break
    return list(found.values())


def turns(names: Sequence[str], number: int) -> list[SessionEvent]:
    """Give the n-th event of each session."""
    at = BEGIN + timedelta(seconds=number)
    return [SessionEvent(event_id=f"{name}:{number}", session_id=name, occurred_at=at, kind="turn") for name in names]


async def send(wire: Wire, rounds: int) -> None:
    """Send each partition one event a second."""
    names = sessions(wire.partitions)
    for number in range(rounds):
        next_at = time.monotonic() + 1
        await wire.send(turns(names, number))
        await asyncio.sleep(max(0.0, next_at - time.monotonic()))


async def until_led(wire: Wire) -> None:
    """Wait until the broker leads all partitions: thousands of new ones take it a minute."""
    while True:
        try:
            await wire.inputs(OVERRIDES)
            await wire.lag()
        except KafkaError:
            await asyncio.sleep(1)
        else:
            return


async def measure(bootstrap: str, count: int, seconds: float) -> dict[str, Any]:
    """Measure one count of partitions."""
    settings = KafkaSettings(bootstrap=bootstrap, prefix=f"p{count}.")
    app_id = f"bench-{count}"
    await create_topics(settings, partitions=count, replication=1, app_id=app_id)
    wire = Wire(settings, app_id, count)
    say(f"{count} partitions: the broker makes them ready")
    await until_led(wire)
    worker = WorkerProcess(wire, "--session-timeout", "30", "--away-timeout", "120", "--log-level", "info")
    try:
        await worker.ready(count, seconds=300)
        await asyncio.sleep(SETTLE_SECONDS)
        pid = worker.popen.pid
        say(f"{count} partitions: idle for {seconds:.0f} s")
        spent, began = cpu_seconds(pid), time.monotonic()
        await asyncio.sleep(seconds)
        idle = (cpu_seconds(pid) - spent) / (time.monotonic() - began)
        memory, open_now = resident_bytes(pid), connections(pid)
        say(f"{count} partitions: one event a second to each for {seconds:.0f} s")
        before, spent, began = await worker.metrics(), cpu_seconds(pid), time.monotonic()
        await send(wire, round(seconds))
        await wire.until_applied(120)
        busy, lasted = cpu_seconds(pid) - spent, time.monotonic() - began
        commits = (await worker.metrics())[COMMITS] - before[COMMITS]
        code = await worker.end(seconds=60)
    finally:
        worker.kill()
    return {
        "partitions": count,
        "taken_over_seconds": max(map(float, TAKEN_OVER.findall(worker.log))),
        "connections": open_now,
        "memory_mb": memory / 2**20,
        "idle_cores": idle,
        "commits": commits,
        "ms_per_commit": (busy - idle * lasted) / commits * 1e3,
        "exit": code,
    }


async def measure_all(bootstrap: str, counts: Sequence[int], seconds: float) -> list[dict[str, Any]]:
    """Measure one count of partitions after the other."""
    return [await measure(bootstrap, count, seconds) for count in counts]


def text(found: list[dict[str, Any]]) -> str:
    """Give the figures as a table, with what each partition adds to the first line."""
    first, rows = found[0], []
    for each in found:
        more = each["partitions"] - first["partitions"]
        added = [(each[name] - first[name]) / more if more else None for name in ("memory_mb", "idle_cores")]
        rows.append(
            (
                each["partitions"],
                f"{each['taken_over_seconds']:.1f}",
                each["connections"],
                f"{each['memory_mb']:.0f}",
                f"{each['idle_cores']:.1%}",
                f"{each['commits']:.0f}",
                f"{each['ms_per_commit']:.1f}",
                "-" if added[0] is None else f"{added[0]:.2f}",
                "-" if added[1] is None else f"{added[1]:.2%}",
            )
        )
    head = (
        "partitions", "s to take over", "connections", "MB", "of a core, idle", "commits", "ms each",
        "MB more each", "of a core more each",
    )  # fmt: skip
    return table(head, rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = parser(__doc__, "partitions")
    options.add_argument("counts", nargs="*", type=int, metavar="N", help=f"partitions (default: {COUNTS})")
    options.add_argument("--seconds", type=float, default=SECONDS, help=f"of each phase (default: {SECONDS:.0f})")
    asked = options.parse_args(arguments)
    counts = sorted(asked.counts or COUNTS)
    if counts[0] < 1 or not 1 <= asked.seconds < math.inf:
        options.error("every number must be 1 or more, and --seconds finite")
    logging.disable(logging.ERROR)  # of aiokafka, while the broker makes the topics ready
    with KafkaBroker() as broker:
        found = asyncio.run(measure_all(broker.bootstrap, counts, asked.seconds))
    show(found, text, as_json=asked.json)
    return 0


if __name__ == "__main__":
    run(main)
