"""Measures what a busy session does to the others: how soon their alerts come while a burst of it is worked off.

    python -m tests.bench.burst
    python -m tests.bench.burst --burst 10000 --rate 800 --seconds 20
    python -m tests.bench.burst --rounds 3 --json

Starts a broker and a worker of its own. Events of many sessions come at an even rate, once alone and once with a burst
of one session half-way; the same alerts are timed in both, those after the burst. Sessions of the busy one's partition
stand behind it, as Kafka keeps their order; those of the others should hardly notice.
"""

from __future__ import annotations

import asyncio
import logging
import math
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from streams.kafka_broker import KafkaBroker
from streams.reading import partition_of
from tests.bench.engines.catalogue import ENGINES
from tests.bench.engines.latency import Paced, percentile, timed
from tests.bench.engines.load import Load
from tests.bench.engines.options import cores
from tests.bench.engines.process import BenchError
from tests.bench.program import parser, run, say, show, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from schemas.events import ToolCall
    from tests.bench.engines.latency import Took

BUSY = "busy"
"""The session of the burst."""

BURST = 10_000
RATE = 600.0
"""Events a second: a third of what a worker can take, so that there is room to work the burst off."""

SECONDS = 30.0
PARTITIONS = 4
ROUNDS = 3


def busy_events(count: int) -> list[ToolCall]:
    """Make calls of one session, each another one."""
    return [
        msgspec.structs.replace(event, session_id=BUSY, event_id=f"{BUSY}:{number}", sequence=number)
        for number, event in enumerate(Load(seed=9, looping=0.0).events(count))
    ]


def split(took: Sequence[Took], first: int, partition: int) -> tuple[list[float], list[float]]:
    """Give the milliseconds of the alerts from an event on: those of other partitions, and those of this one."""
    late = [each for each in took if each.event >= first]
    return (
        [each.milliseconds for each in late if each.partition != partition],
        [each.milliseconds for each in late if each.partition == partition],
    )


async def measure(bootstrap: str, directory: Path, quiet: Paced, loud: Paced) -> dict[str, Any]:
    """Measure once with the burst and once without it.

    Raises:
        BenchError: the worker failed or gave other alerts than the detectors, or there are none to time.
    """
    home, found = partition_of(BUSY.encode(), PARTITIONS), dict[str, Any]()
    for name, paced in (("quiet", quiet), ("burst", loud)):
        say(f"{len(paced.burst):,} events at once")
        took, _ = await timed(
            ENGINES["a"], paced, bootstrap=bootstrap, partitions=PARTITIONS, directory=directory, cores=cores()[0]
        )
        others, beside = split(took, paced.burst.stop, home)
        if not others or not beside:
            raise BenchError("there are no alerts to measure: --rate, or --seconds, is too small")
        found[name] = {
            "alerts": len(others),
            "p50_ms": percentile(others, 50),
            "p99_ms": percentile(others, 99),
            "most_ms": max(others),
            "same_partition_most_ms": max(beside),
        }
    return found


async def measure_all(bootstrap: str, rounds: int, burst: int, rate: float, seconds: float) -> list[dict[str, Any]]:
    """Measure several times."""
    quiet, loud = Paced.make(rate, seconds), Paced.make(rate, seconds, busy_events(burst))
    with tempfile.TemporaryDirectory(prefix="traction-bench-") as directory:
        return [await measure(bootstrap, Path(directory), quiet, loud) for _ in range(rounds)]


def text(found: list[dict[str, Any]]) -> str:
    """Give the figures as a table: medians of the rounds."""
    rows = [
        (
            name,
            found[0][name]["alerts"],
            *(
                f"{statistics.median(each[name][figure] for each in found):,.0f}"
                for figure in ("p50_ms", "p99_ms", "most_ms", "same_partition_most_ms")
            ),
        )
        for name in ("quiet", "burst")
    ]
    head = ("", "alerts", "p50 ms", "p99 ms", "most ms", "most ms in its partition")
    return table(head, rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = parser(__doc__, "burst")
    options.add_argument("--burst", type=int, default=BURST, help=f"events at once (default: {BURST:,})")
    options.add_argument("--rate", type=float, default=RATE, help=f"events a second besides (default: {RATE:.0f})")
    options.add_argument("--seconds", type=float, default=SECONDS, help=f"how long (default: {SECONDS:.0f})")
    options.add_argument("--rounds", type=int, default=ROUNDS, help=f"how often (default: {ROUNDS})")
    asked = options.parse_args(arguments)
    if min(asked.burst, asked.rounds) < 1 or not all(1 <= each < math.inf for each in (asked.rate, asked.seconds)):
        options.error("every number must be 1 or more, and finite")
    logging.disable(logging.ERROR)  # of aiokafka, while the broker makes topics ready
    try:
        with KafkaBroker(heap="512m") as broker:
            found = asyncio.run(measure_all(broker.bootstrap, asked.rounds, asked.burst, asked.rate, asked.seconds))
    except BenchError as problem:
        say(str(problem))
        return 1
    show(found, text, as_json=asked.json)
    return 0


if __name__ == "__main__":
    run(main)
