"""Measures what the spin score adds to the detection of one event, beside a yardstick timed in the same run.

    python -m tests.bench.spin_score
    python -m tests.bench.spin_score --rounds 3 --json recordings/

Plays recordings (those of the demo unless others are named) by the rules alone and with the score in turn; of each
event the shortest time of all rounds counts. The yardstick is `orjson.loads` of the same event as a record. Go by the
multiple of it, since microseconds differ from machine to machine.
"""

from __future__ import annotations

import gc
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from detectors import SessionState, encode_state, limits_from, observe
from schemas.encode import encode
from schemas.events import ToolCall
from streams.importers import Session, read_path
from tests.bench.program import parser, run, show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detectors import Limits
    from schemas.events import SessionInput

DEMO = Path(__file__).resolve().parents[2] / "streams" / "demo" / "sessions"
RULES = limits_from([("bench", {"off": ["spin_score"]})])
BOTH = limits_from([])


def sessions(paths: Sequence[Path]) -> list[list[SessionInput]]:
    """Read the events of all sessions."""
    return [list(found.events) for path in paths for found in read_path(path) if isinstance(found, Session)]


def detect(played: Sequence[Sequence[SessionInput]], limits: Limits) -> tuple[list[int], list[int]]:
    """Play all sessions: nanoseconds of each tool call, and the bytes of each session's state in the end."""
    times: list[int] = []
    sizes: list[int] = []
    for events in played:
        state = SessionState()
        for event in events:
            started = time.perf_counter_ns()
            observe(state, event, limits)
            taken = time.perf_counter_ns() - started
            if isinstance(event, ToolCall):
                times.append(taken)
        sizes.append(len(encode_state(state)))
    return times, sizes


def read(records: Sequence[bytes]) -> list[int]:
    """Decode all records: nanoseconds of each."""
    times = []
    for record in records:
        started = time.perf_counter_ns()
        orjson.loads(record)
        times.append(time.perf_counter_ns() - started)
    return times


def measure(played: Sequence[Sequence[SessionInput]], rounds: int) -> dict[str, float]:
    """Give the medians over all events, in microseconds, and what the score adds to the state, in bytes."""
    records = [encode(event) for events in played for event in events if isinstance(event, ToolCall)]
    rules: list[list[int]] = []
    both: list[list[int]] = []
    yard: list[list[int]] = []
    sizes: tuple[list[int], list[int]] = ([], [])
    gc.disable()
    for number in range(rounds):
        for times, limits, of in ((rules, RULES, 0), (both, BOTH, 1)):
            taken, size = detect(played, limits)
            times.append(taken)
            if not number:
                sizes[of].extend(size)
        yard.append(read(records))
    fastest = [[min(each) for each in zip(*times, strict=True)] for times in (rules, both, yard)]
    added = [more - less for less, more in zip(fastest[0], fastest[1], strict=True)]
    medians = [statistics.median(times) / 1_000 for times in (*fastest, added)]
    grown = [more - less for less, more in zip(*sizes, strict=True)]
    return {
        "calls": len(records),
        "rules_us": medians[0],
        "both_us": medians[1],
        "yardstick_us": medians[2],
        "added_us": medians[3],
        "added_over_yardstick": medians[3] / medians[2],
        "added_over_rules": medians[3] / medians[0],
        "state_added_bytes_median": statistics.median(grown),
        "state_added_bytes_most": max(grown),
    }


def text(found: dict[str, float]) -> str:
    """Give the figures line by line."""
    return "\n".join(f"{name:26} {figure:,.2f}" for name, figure in found.items())


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and tell."""
    options = parser(__doc__, "spin_score")
    options.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="recordings (default: those of the demo)")
    options.add_argument("--rounds", type=int, default=7, metavar="N", help="times that all is played (default: 7)")
    asked = options.parse_args(arguments)
    if asked.rounds < 1:
        options.error("--rounds is 1 at least")
    played = sessions(asked.paths or [DEMO])
    if not any(played):
        options.error("there is no session in these paths")
    show(measure(played, asked.rounds), text, as_json=asked.json)
    return 0


if __name__ == "__main__":
    run(main)
