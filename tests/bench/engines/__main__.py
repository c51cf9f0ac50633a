"""Compares four engines that do the same job: Traction's worker, a bare loop, a Faust agent and Quix Streams.

    python -m tests.bench.engines [--rounds N] [--events N] [--engines abcd] [--workers 2] [--json]

Starts a broker of its own, publishes one load to it, and runs each engine over it in a process of its own, in turn,
several times. What each gave is compared with what the detectors alone make of the load; it ends with 1 where an engine
gave anything else. Go by the ratios, which are taken within a round: the figures themselves differ from machine to
machine.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import logging
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from streams.kafka_broker import BrokerError, KafkaBroker
from tests.bench.engines.catalogue import ENGINES
from tests.bench.engines.figures import summary, table
from tests.bench.engines.job import pin
from tests.bench.engines.load import Load
from tests.bench.engines.process import BenchError
from tests.bench.engines.rounds import DETECTION, EMPTY, Asked, Rounds

if TYPE_CHECKING:
    from collections.abc import Sequence

EXAMPLES = """\
examples:
  python -m tests.bench.engines                                   everything, some minutes
  python -m tests.bench.engines --engines ab --empty --rounds 5   the cost of the worker itself
  python -m tests.bench.engines --workers 2 --engines a           what a second core brings
exit codes: 0 measured; 1 an engine failed or gave other alerts or states; 2 wrong options; 130 interrupted
"""


def read(arguments: Sequence[str] | None) -> tuple[Asked, bool]:
    """Read the command line: what to compare, and whether machines read the answer."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.engines",
        description=(__doc__ or "").partition("\n")[0],
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known = "".join(ENGINES)
    parser.add_argument("--rounds", type=int, default=3, help="how often each runs (default: 3)")
    parser.add_argument("--events", type=int, default=100_000, help="of the load (default: 100,000)")
    parser.add_argument("--short", type=int, default=20_000, help="the first so many, for c and d (default: 20,000)")
    parser.add_argument("--sessions", type=int, default=5_000, help="sessions at work at once (default: 5,000)")
    parser.add_argument("--looping", type=float, default=0.01, help="share of them that loop (default: 0.01)")
    parser.add_argument("--seed", type=int, default=1, help="of the load (default: 1)")
    parser.add_argument("--partitions", type=int, default=4, help="of the input (default: 4)")
    parser.add_argument("--engines", default=known, help=f"which (default: {known})")
    parser.add_argument("--detection", action="store_true", help="with all detectors only")
    parser.add_argument("--empty", action="store_true", help="with a detector that only counts only")
    parser.add_argument("--workers", type=int, default=0, help="also so many workers of Traction, on a core each")
    parser.add_argument(
        "--latency",
        type=float,
        default=20.0,
        metavar="SECONDS",
        help="how long events come at half of Traction's rate, to time alerts; 0 leaves that out (default: 20)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    asked = parser.parse_args(arguments)
    if not asked.engines or set(asked.engines) - set(known):
        parser.error(f"--engines: some of {known}")
    if asked.workers > 1 and ("a" not in asked.engines or asked.partitions % asked.workers):
        parser.error("--workers: engine a must be among the engines, and the workers must share --partitions evenly")
    if min(asked.rounds, asked.events, asked.short, asked.sessions, asked.partitions) < 1:
        parser.error("--rounds, --events, --short, --sessions and --partitions are 1 at least")
    if "d" in asked.engines and importlib.util.find_spec("quixstreams") is None:
        parser.error("--engines: Quix Streams is not installed: `make bench` sees to it; or leave d out")
    modes = tuple(mode for mode, on in ((DETECTION, asked.detection), (EMPTY, asked.empty)) if on)
    return (
        Asked(
            engines="".join(letter for letter in known if letter in asked.engines),
            modes=modes or (DETECTION, EMPTY),
            rounds=asked.rounds,
            events=asked.events,
            short=asked.short,
            load=Load(asked.seed, asked.sessions, asked.looping),
            partitions=asked.partitions,
            workers=asked.workers,
            latency_seconds=asked.latency,
            cores=cores(),
        ),
        asked.json,
    )


def cores() -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Give the core of the engine, and those of the broker and this process; none where they cannot be chosen."""
    have = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return ((have[-1],), tuple(have[:-1])) if len(have) > 1 else ((), ())


class Teller:
    """Tells on standard error what goes on; on a terminal in one line, which is written anew."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._last = ""

    def __call__(self, what: str) -> None:
        """Tell something; elsewhere than on a terminal, nothing that is only the count of the line before."""
        shown = what.partition(": ")[0] if not self._terminal else ""
        if self._terminal:
            sys.stderr.write(f"\r\033[K{what}")
        elif shown != self._last or "events/s" in what:
            sys.stderr.write(f"{what}\n")
        self._last = shown
        sys.stderr.flush()

    def end(self) -> None:
        """End the line."""
        if self._terminal:
            sys.stderr.write("\r\033[K")


def interrupt(*_: object) -> None:
    """Have a signal end it as Ctrl-C does, so that nothing is left."""
    raise KeyboardInterrupt


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare and print."""
    asked, as_json = read(arguments)
    logging.disable(logging.ERROR)  # of aiokafka, while the broker makes topics ready
    signal.signal(signal.SIGTERM, interrupt)
    tell = Teller()
    pin(asked.cores[1])
    try:
        with tempfile.TemporaryDirectory(prefix="traction-bench-") as directory, KafkaBroker(heap="512m") as broker:
            results = asyncio.run(Rounds(asked, broker.bootstrap, Path(directory), tell).run())
    except (BenchError, BrokerError) as problem:
        tell.end()
        sys.stderr.write(f"{problem}\n")
        return 1
    except KeyboardInterrupt:
        tell.end()
        sys.stderr.write("interrupted\n")
        return 130
    tell.end()
    found = summary(asked, results)
    sys.stdout.write(json.dumps(found, indent=2) + "\n" if as_json else table(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
