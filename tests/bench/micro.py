"""Measures what each step of an event costs, beside a yardstick timed in the same run: orjson.loads of the same record.

    python -m tests.bench.micro
    python -m tests.bench.micro --events 20000 --rounds 5
    python -m tests.bench.micro --check            (exits with 1 when a step costs more than its bound)
    python -m tests.bench.micro --json

Plays a made-up load with the sizes of recorded sessions. Of each event the shortest processor time of all rounds
counts, less what looking at the clock takes. Go by the multiples, since microseconds differ from machine to machine;
the check does so too, and looks up to five times before it says that a step is too slow.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from detectors import SessionState, TaskState, decode_state, encode_state, limits_from, observe_task, step
from detectors.call import read_call
from detectors.facts import Mark
from schemas.decode import decode
from schemas.encode import encode
from schemas.topics import TOOL_CALLS
from streams.worker.records import SESSION, decode_stored, encode_stored
from tests.bench.engines.load import Load
from tests.bench.program import parser, run, say, show, table
from tests.kit import trying

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from schemas.events import ToolCall

EVENTS = 6_000
SESSIONS = 200
"""At work at the same time: enough calls of each that states have the size of a session that goes on."""

TASKS, ATTEMPTS = 20, 18
"""Tasks, and attempts at each of them; in the middle of the second ten no check passes."""

ROUNDS = 3
TRIES = 5

RULES = limits_from([("bench", {"off": ["spin_score"]})])
BOTH = limits_from([])
APPLIED = {TOOL_CALLS.name: (1_000_000, 1_800_000_000_000)}
YARDSTICK = "orjson.loads"


class Bound(NamedTuple):
    """Most multiples of the yardstick, of the medians and of the means, and why."""

    median: float
    mean: float
    reason: str


BOUNDS = {
    "decode": Bound(2.7, 2.5, "reads and checks the same JSON, with ids and times, in one pass"),
    "read_call": Bound(37, 39, "masks and digests the arguments and the result; most of it regular expressions"),
    "step, rules": Bound(48, 51, "that, and the rules"),
    "step, spin score": Bound(51, 54, "that, and a dozen features"),
    "encode_state": Bound(5, 5, "up to 5 kB of MessagePack"),
    "record": Bound(3.4, 2.6, "LZ4 of that, once a commit"),
    "recall": Bound(7.6, 6.2, "a state that was not in memory, from its record"),
    "step, attempt": Bound(86, 83, "takes the diff apart and brings the approach to its stems; of a short record"),
    "observe_task": Bound(190, 160, "compares with what was tried before; few events come so far"),
}
"""1.4 times what was measured when they were set. A step that became quicker for good gets a lower one."""


@dataclass(slots=True)
class Times:
    """Nanoseconds of each step, event by event, the shortest of all rounds; and of the yardstick for each of them."""

    steps: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    yardsticks: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def least(self, other: Times) -> Times:
        """Give the shorter of both."""
        found = Times()
        for mine, theirs, into in (
            (self.steps, other.steps, found.steps),
            (self.yardsticks, other.yardsticks, found.yardsticks),
        ):
            for name, times in theirs.items():
                into[name] = list(map(min, times, mine[name])) if name in mine else times
        return found


def clock_ns() -> int:
    """Measure what looking at the clock takes, in nanoseconds."""
    looks = []
    for _ in range(2_000):
        begun = time.thread_time_ns()
        looks.append(time.thread_time_ns() - begun)
    return round(statistics.median(looks))


def recall(record: bytes) -> SessionState:
    """Read a session's state from its record on the changelog."""
    return decode_state(decode_stored(record).state)


class Round:
    """One pass over the load.

    Args:
        events: the load.
        values: its records.
    """

    def __init__(self, events: Sequence[ToolCall], values: Sequence[bytes]) -> None:
        self.times = Times()
        self._load = list(zip(events, values, strict=True))
        self._clock = clock_ns()

    def _time(self, name: str, yardstick: int, function: Callable[..., Any], *arguments: Any) -> Any:
        begun = time.thread_time_ns()
        found = function(*arguments)
        spent = time.thread_time_ns() - begun - self._clock
        self.times.steps[name].append(max(spent, 1))
        self.times.yardsticks[name].append(yardstick)
        return found

    def play(self) -> Times:
        """Time every step for every event."""
        self._play_calls()
        self._play_attempts()
        return self.times

    def _yardstick(self, value: bytes) -> int:
        begun = time.thread_time_ns()
        orjson.loads(value)
        return max(time.thread_time_ns() - begun - self._clock, 1)

    def _play_calls(self) -> None:
        sessions: dict[str, tuple[SessionState, SessionState]] = defaultdict(lambda: (SessionState(), SessionState()))
        for event, value in self._load:
            yard = self._yardstick(value)
            scored, ruled = sessions[event.session_id]
            self._time("decode", yard, decode, TOOL_CALLS, value)
            self._time("read_call", yard, read_call, event, Mark(calls=1), BOTH)
            self._time("step, rules", yard, step, ruled, event, RULES)
            self._time("step, spin score", yard, step, scored, event, BOTH)
            state = self._time("encode_state", yard, encode_state, scored)
            record = self._time("record", yard, encode_stored, SESSION, APPLIED, state)
            self._time("recall", yard, recall, record)

    def _play_attempts(self) -> None:
        for name in range(TASKS):
            session, task = SessionState(), TaskState()
            for event in trying(f"session-{name}", ATTEMPTS):
                yard = self._yardstick(encode(event))
                told = self._time("step, attempt", yard, step, session, event, BOTH).task_event
                self._time("observe_task", yard, observe_task, task, told, BOTH)


def measure(events: Iterable[ToolCall], rounds: int, before: Times | None = None) -> Times:
    """Play the load so many times, and give the shortest times, those of before included."""
    played = list(events)
    values = [encode(event) for event in played]
    found = before or Times()
    gc.collect()
    gc.disable()
    try:
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}: {len(played):,} events")
            found = found.least(Round(played, values).play())
    finally:
        gc.enable()
    return found


def figures(times: Times) -> dict[str, dict[str, float]]:
    """Give for each step its microseconds and multiples of the yardstick, of the medians and of the means."""
    found = {}
    for name, spent in times.steps.items():
        yard = times.yardsticks[name]
        median, mean, yard_median, yard_mean = (
            gather(of) for of in (spent, yard) for gather in (statistics.median, statistics.fmean)
        )  # fmt: skip
        found[name] = {
            "events": len(spent),
            "median_us": median / 1e3,
            "mean_us": mean / 1e3,
            "yardstick_median_us": yard_median / 1e3,
            "yardstick_mean_us": yard_mean / 1e3,
            "median": median / yard_median,
            "mean": mean / yard_mean,
        }
    return found


def too_slow(found: dict[str, dict[str, float]]) -> dict[str, str]:
    """Say of each step that costs more than its bound by how much."""
    return {
        name: f"{name} costs {found[name][kind]:.1f} yardsticks at the {kind}; its bound is {most:.1f} ({bound.reason})"
        for name, bound in BOUNDS.items()
        for kind, most in (("median", bound.median), ("mean", bound.mean))
        if found[name][kind] > most
    }


def text(found: dict[str, dict[str, float]]) -> str:
    """Give the figures as a table."""
    yard = found["decode"]
    rows = [
        (YARDSTICK, yard["events"], *(f"{yard[f'yardstick_{kind}_us']:.1f}" for kind in ("median", "mean")), *"11--")
    ]
    rows += [
        (
            name,
            each["events"],
            f"{each['median_us']:.1f}",
            f"{each['mean_us']:.1f}",
            f"{each['median']:.1f}",
            f"{each['mean']:.1f}",
            f"{BOUNDS[name].median:g}",
            f"{BOUNDS[name].mean:g}",
        )
        for name, each in found.items()
    ]
    head = ("step", "events", "median us", "mean us", "yardsticks: median", "mean", "bounds: median", "mean")
    return table(head, rows)


def checked(events: int, rounds: int, tries: int = TRIES) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """Measure until every step keeps to its bound, at most so many times, and give figures and what is too slow."""
    times, slow, load = Times(), dict[str, str](), list(Load(sessions=SESSIONS).events(events))
    for _ in range(tries):
        times = measure(load, rounds, times)
        slow = too_slow(figures(times))
        if not slow:
            break
    return figures(times), slow


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = parser(__doc__, "micro")
    options.add_argument("--events", type=int, default=EVENTS, metavar="N", help=f"of the load (default: {EVENTS:,})")
    options.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help=f"of each try (default: {ROUNDS})")
    options.add_argument("--check", action="store_true", help="exit with 1 when a step costs more than its bound")
    asked = options.parse_args(arguments)
    if min(asked.events, asked.rounds) < 1:
        options.error("every number must be 1 or more")
    found, slow = checked(asked.events, asked.rounds, TRIES if asked.check else 1)
    show(found, text, as_json=asked.json)
    if asked.check and slow:
        say("\n".join(slow.values()))
        return 1
    return 0


if __name__ == "__main__":
    run(main)
