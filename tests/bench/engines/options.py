"""The options of the comparison: read and checked before anything starts, with what is to be known of some choices.

Nothing is measured in here.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
from typing import TYPE_CHECKING, NamedTuple

from tests.bench.engines.catalogue import ENGINES
from tests.bench.engines.latency import FEWEST_EVENTS
from tests.bench.engines.load import LOOPING, Load
from tests.bench.engines.rounds import DETECTION, EMPTY, Asked

if TYPE_CHECKING:
    from collections.abc import Sequence

EXAMPLES = """\
examples:
  python -m tests.bench.engines                                   everything, some minutes
  python -m tests.bench.engines --engines ab --empty --rounds 5   the cost of the worker itself
  python -m tests.bench.engines --workers 2 --engines a           what a second core brings
exit codes: 0 measured; 1 an engine failed or gave other alerts or states, or the figures cannot be written; 2 wrong
options; 130 interrupted; 141 nobody reads the figures. Figures of what was measured before a failure are printed.
"""

LATENCY_SECONDS = 20.0

ENOUGH_EVENTS = 20_000
"""Of fewer, what an engine had fetched before it applied the first is too large a share."""


class Read(NamedTuple):
    """What the command line says.

    Attributes:
        asked: what to compare.
        as_json: whether machines read the answer.
        notes: what people should know of what they chose.
    """

    asked: Asked
    as_json: bool
    notes: list[str]


def read(arguments: Sequence[str] | None, doc: str | None) -> Read:
    """Read the command line.

    Args:
        arguments: the options; those of the process when None.
        doc: what the program does, in its first line.

    Raises:
        SystemExit: with 2, when they are wrong.
    """
    parser = _parser(doc)
    chosen = parser.parse_args(arguments)
    _check(parser, chosen)
    modes = tuple(mode for mode, on in ((DETECTION, chosen.detection), (EMPTY, chosen.empty)) if on)
    asked = Asked(
        engines="".join(letter for letter in ENGINES if letter in chosen.engines),
        modes=modes or (DETECTION, EMPTY),
        rounds=chosen.rounds,
        events=chosen.events,
        short=chosen.short,
        load=Load(chosen.seed, chosen.sessions, chosen.looping),
        partitions=chosen.partitions,
        workers=chosen.workers,
        latency_seconds=LATENCY_SECONDS if chosen.latency is None else chosen.latency,
        cores=cores(),
    )
    return Read(asked, chosen.json, list(_notes(asked, latency_wanted=bool(chosen.latency))))


def cores() -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Give the core of the engine, and those of the broker and this process; none where they cannot be chosen."""
    have = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return ((have[-1],), tuple(have[:-1])) if len(have) > 1 else ((), ())


def available() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _parser(doc: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.engines",
        description=(doc or "").partition("\n")[0],
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known = "".join(ENGINES)
    parser.add_argument("--rounds", type=int, default=3, help="how often each runs (default: 3)")
    parser.add_argument("--events", type=int, default=60_000, help="of the load (default: 60,000)")
    parser.add_argument("--short", type=int, default=60_000, help="the first so many, for c and d (default: 60,000)")
    parser.add_argument("--sessions", type=int, default=5_000, help="sessions at work at once (default: 5,000)")
    parser.add_argument(
        "--looping", type=float, default=LOOPING, help=f"share of them that loop, 0 to 1 (default: {LOOPING})"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the load (default: 1)")
    parser.add_argument("--partitions", type=int, default=4, help="of the input (default: 4)")
    parser.add_argument("--engines", default=known, help=f"which (default: {known})")
    parser.add_argument("--detection", action="store_true", help="with all detectors only")
    parser.add_argument("--empty", action="store_true", help="with a detector that only counts only")
    parser.add_argument(
        "--workers", type=int, default=1, help="also so many workers of Traction, on a core each (default: only one)"
    )
    parser.add_argument(
        "--latency",
        type=float,
        metavar="SECONDS",
        help="how long events come at half of Traction's rate, to time alerts, with all detectors; 0 leaves that out, "
        f"and {FEWEST_EVENTS:,} events come at least (default: {LATENCY_SECONDS:.0f})",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _check(parser: argparse.ArgumentParser, chosen: argparse.Namespace) -> None:
    known = "".join(ENGINES)
    if not chosen.engines or set(chosen.engines) - set(known):
        parser.error(f"--engines: some of {known}")
    if min(chosen.rounds, chosen.events, chosen.short, chosen.sessions, chosen.partitions, chosen.workers) < 1:
        parser.error("--rounds, --events, --short, --sessions, --partitions and --workers are 1 at least")
    if not 0 <= chosen.looping <= 1:
        parser.error("--looping: a share from 0 (none) to 1 (all sessions)")
    if chosen.latency is not None and not 0 <= chosen.latency < math.inf:
        parser.error("--latency: seconds, or 0 to leave it out")
    if chosen.workers > 1:
        _check_workers(parser, chosen)
    if "d" in chosen.engines and importlib.util.find_spec("quixstreams") is None:
        parser.error("--engines: Quix Streams is not installed: `make bench` sees to it; or leave d out")


def _check_workers(parser: argparse.ArgumentParser, chosen: argparse.Namespace) -> None:
    if "a" not in chosen.engines or chosen.partitions % chosen.workers:
        parser.error("--workers: engine a must be among the engines, and the workers must share --partitions evenly")
    if chosen.workers > available():
        parser.error(f"--workers: each needs a core of its own, and this process may use {available()}")


def _notes(asked: Asked, *, latency_wanted: bool) -> list[str]:
    notes = []
    if latency_wanted and not asked.times_alerts:
        lacking = (
            "engine a, whose rate sets the pace" if "a" not in asked.engines else "all detectors, not --empty only"
        )
        notes.append(f"--latency is left out: it needs {lacking}")
    slow = any(ENGINES[letter].slow for letter in asked.engines)
    fewest = min(asked.events, asked.short) if slow else asked.events
    if fewest < ENOUGH_EVENTS:
        notes.append(
            f"{'--events' if fewest == asked.events else '--short'} is below {ENOUGH_EVENTS:,}: so small a run "
            "flatters engines that had fetched much before they applied their first event, when their time begins"
        )
    if asked.workers > 1 and asked.workers == available():
        shares = "worker 0 shares its core" if asked.workers == 2 else "all workers but the last share their cores"
        notes.append(f"--workers {asked.workers}, on as many cores: {shares} with the broker")
    return notes
