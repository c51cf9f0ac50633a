"""Measures what an event costs as the number of live sessions grows: in memory, and with RocksDB on disk.

    python -m tests.bench.growth
    python -m tests.bench.growth --sessions 1000 100000 --stores memory --detectors none
    python -m tests.bench.growth --sessions 1000000 --live-sessions 1000000      (takes 10 GB of memory)
    python -m tests.bench.growth --json

One partition with what applies to it, as in a worker, in a process of its own for each line; no broker. It begins with
a stored state for each session, applies events in the worker's slices, and does as if they were committed, as often as
a worker commits. Events are of all sessions alike, in an order without any sense, which is the worst for every cache;
or of 5,000 at a time, as where most sessions that live are silent. Go by the multiple of the yardstick, which is
`orjson.loads` of the same records in the same process; both are processor time.
"""

from __future__ import annotations

import gc
import multiprocessing
import random
import shutil
import statistics
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from aiokafka import TopicPartition
from aiokafka.structs import ConsumerRecord
from prometheus_client import CollectorRegistry

from detectors import Limits, SessionState, Step, encode_state, step
from schemas.encode import encode
from schemas.topics import TOOL_CALLS
from streams.policy.policy import Policy
from streams.worker.apply import Applier
from streams.worker.garbage import spare
from streams.worker.judge import DETECTION, Detection
from streams.worker.live import SESSIONS, TASKS, LiveTable
from streams.worker.metrics import WorkerMetrics
from streams.worker.overrides import Overrides
from streams.worker.partition import Partition
from streams.worker.records import SESSION, encode_stored
from streams.worker.settings import SLICE_RECORDS, WorkerSettings
from streams.worker.states import MemoryStates
from streams.worker.stores import open_stores
from tests.bench.program import parser, run, say, show, table
from tests.kit import tool_call

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import NoReturn

    from schemas.events import SessionInput
    from streams.worker.states import States

SIZES = (1_000, 100_000, 1_000_000)
EVENTS = 20_000
COMMIT_EVENTS = 1_000
"""Events between two commits: half a second of a worker that applies 2,000 a second."""

BUSY = 5_000
"""Sessions that send at a time, of those that live."""

BEFORE = 3
"""Calls that each session made before."""

PLACE = "00000000-0000-0000-0000-000000000000"
BEGAN_MS = 1_800_000_000_000


@dataclass(frozen=True, slots=True)
class Case:
    """What one line measures.

    Attributes:
        sessions: how many live.
        detectors: "all", or "none": calls are counted, and nothing else.
        store: "memory" or "rocksdb".
        live: states that are kept decoded; see `WorkerSettings.live_sessions`.
        busy: how many send; all of them in turn without any order where that is as many as live.
        events: how many are measured.
    """

    sessions: int
    detectors: str
    store: str
    live: int
    busy: int
    events: int = EVENTS

    def told(self) -> str:
        """Say in words what is measured."""
        of = f"{self.busy:,}" if self.busy < self.sessions else "all"
        store = "in memory" if self.store == "memory" else "in RocksDB"
        detectors = "all detectors" if self.detectors == "all" else "no detectors"
        return f"{self.events:,} events from {of} of {self.sessions:,} sessions, {detectors}, states {store}"


def count_alone(state: SessionState, event: SessionInput, limits: Limits) -> Step:
    """Count the calls of a session, and find nothing."""
    del event, limits
    state.calls += 1
    return Step([], None)


DETECTIONS = {"all": DETECTION, "none": Detection(step=count_alone)}


def call(number: int) -> Any:
    """Give one of the calls that each session makes, of half a kilobyte, as tool calls are at the median."""
    return tool_call(
        PLACE,
        number,
        event_id=f"{PLACE}:{number}",
        arguments={"command": f"cd /srv/app && python -m pytest -q tests/test_orders_{number}.py -k total"},
        tool="bash",
        result=f"tests/test_orders_{number}.py ..F.\nE   assert total(cart) == {number}.5\nFAILED - 1 failed, 3 passed",
        status="error",
    )


def stored(detectors: str) -> bytes:
    """Give the changelog value of a session before its next call."""
    state = SessionState()
    for number in range(BEFORE):
        (step if detectors == "all" else count_alone)(state, call(number), Limits())
    return encode_stored(SESSION, {TOOL_CALLS.name: (0, BEGAN_MS)}, encode_state(state))


def name_of(number: int) -> bytes:
    """Give the id of a session."""
    return f"00000000-0000-0000-0000-{number:012d}".encode()


def order(case: Case, seed: int = 1) -> Iterator[int]:
    """Tell whose event comes next."""
    chosen = random.Random(seed)  # noqa: S311 - no secret
    of = range(case.sessions) if case.busy >= case.sessions else chosen.sample(range(case.sessions), case.busy)
    while True:
        yield of[chosen.randrange(len(of))]


def records(case: Case, topic: str) -> list[ConsumerRecord]:
    """Make the records."""
    made, templates, of = [], [encode(call(BEFORE + each)) for each in range(40)], order(case)
    counts: dict[int, int] = {}
    for offset in range(1, case.events + 1):
        number = next(of)
        nth = counts[number] = counts.get(number, -1) + 1
        key = name_of(number)
        value = templates[nth % len(templates)].replace(PLACE.encode(), key)
        made.append(
            ConsumerRecord(
                topic=topic,
                partition=0,
                offset=offset,
                timestamp=BEGAN_MS + offset,
                timestamp_type=1,
                key=key,
                value=value,
                checksum=None,
                serialized_key_size=len(key),
                serialized_value_size=len(value),
                headers=(),
            )
        )
    return made


class Pauses:
    """Notes how long the garbage collector stopped the process: to be given to `gc.callbacks`."""

    def __init__(self) -> None:
        self.total = self.longest = self._began = 0.0

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        """Take note of a beginning or an end."""
        del info
        now = time.thread_time()
        if phase == "start":
            self._began = now
            return
        self.total += now - self._began
        self.longest = max(self.longest, now - self._began)


def resident() -> int:
    """Give the bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * 4_096


def fail(message: str) -> NoReturn:
    """Give up."""
    raise SystemExit(message)


def fill(case: Case, states: States) -> int:
    """Store a state for each session, each in bytes of its own, and give how many bytes that is."""
    value = stored(case.detectors)
    for begin in range(0, case.sessions, COMMIT_EVENTS):
        end = min(begin + COMMIT_EVENTS, case.sessions)
        states.write([(name_of(number), bytes(bytearray(value))) for number in range(begin, end)], begin)
    return len(value)


def measure(case: Case) -> dict[str, Any]:
    """Measure one case; in a process that did nothing else before."""
    directory = Path(tempfile.mkdtemp())
    settings = WorkerSettings(state_dir=directory, state_store="rocksdb" if case.store == "rocksdb" else "memory")
    states = open_stores(settings, fail).open("sessions", 0)
    try:
        return _measure(case, settings, states)
    finally:
        states.close()
        shutil.rmtree(directory)


def _measure(case: Case, settings: WorkerSettings, states: States) -> dict[str, Any]:
    name = settings.kafka.topic(TOOL_CALLS)
    made = records(case, name)
    empty = resident()
    size = fill(case, states)
    filled = resident()
    sessions = LiveTable(SESSIONS, 0, 1, lambda: states)
    metrics = WorkerMetrics(CollectorRegistry(), topics=settings.inputs)
    applier = Applier(settings, Overrides(Policy()), metrics, DETECTIONS[case.detectors])
    partition = Partition(
        0,
        sessions=sessions,
        tasks=LiveTable(TASKS, 0, 1, MemoryStates),
        positions={TopicPartition(each, 0): 0 for each in settings.inputs},
        redo=applier.redo,
    )
    spare()
    for number in range(min(case.sessions, case.live)):  # as a worker that has run for a while
        sessions.get(name_of(number))
    decoded = resident()
    pauses = Pauses()
    gc.callbacks.append(pauses)
    times = []
    for begin in range(0, len(made), COMMIT_EVENTS):
        part = made[begin : begin + COMMIT_EVENTS]
        started = time.thread_time()
        for first in range(0, len(part), SLICE_RECORDS):
            piece = part[first : first + SLICE_RECORDS]
            applier.apply(partition, TOOL_CALLS, piece)
            partition.advance(TopicPartition(name, 0), piece[-1].offset + 1, len(piece), piece[-1].timestamp)
        taken = partition.snapshot()
        if taken is not None:
            partition.settle(taken, sessions=part[-1].offset)
        partition.trim(case.live)
        times.append((time.thread_time() - started) / len(part))
    gc.callbacks.remove(pauses)
    yardsticks = []
    for record in made:
        started = time.thread_time()
        orjson.loads(record.value)
        yardsticks.append(time.thread_time() - started)
    yardstick, found = statistics.median(yardsticks), statistics.median(times)
    live = min(case.sessions, case.live)
    return {
        "sessions": case.sessions,
        "detectors": case.detectors,
        "store": case.store,
        "live_sessions": case.live,
        "busy": min(case.busy, case.sessions),
        "us": found * 1e6,
        "mean_us": statistics.mean(times) * 1e6,
        "multiple": found / yardstick,
        "gc_us": pauses.total / len(made) * 1e6,
        "longest_gc_ms": pauses.longest * 1e3,
        "stored_bytes": size,
        "memory_per_stored": (filled - empty) / case.sessions,
        "memory_per_decoded": (decoded - filled) / live,
    }


def cases(
    sizes: Sequence[int], detectors: Sequence[str], stores: Sequence[str], live: int, events: int = EVENTS
) -> list[Case]:
    """Give what is measured: for each, all sessions alike and then few at a time."""
    return [
        Case(size, name, store, live, busy, events)
        for name in detectors
        for store in stores
        for everyone in (True, False)
        for size in sizes
        if (busy := size if everyone else BUSY) <= size
    ]


def text(found: list[dict[str, Any]]) -> str:
    """Give the figures as a table, the first of each kind being what the others are compared with."""
    rows, first = [], dict[tuple[Any, ...], float]()
    for each in found:
        everyone = each["busy"] == each["sessions"]
        kind = each["detectors"], each["store"]
        base = first.setdefault(kind, each["multiple"])
        rows.append(
            (
                f"{each['detectors']} on {each['store']}",
                f"{each['sessions']:,}",
                "all" if everyone else f"{each['busy']:,}",
                f"{each['us']:.0f}",
                f"{each['multiple']:.1f}",
                f"{each['multiple'] / base:.2f}",
                f"{each['gc_us']:.1f}",
                f"{each['longest_gc_ms']:.0f}",
                f"{each['stored_bytes']:,}",
                f"{each['memory_per_stored']:,.0f}",
                f"{each['memory_per_decoded']:,.0f}",
            )
        )
    head = (
        "detectors", "sessions", "of them send", "us/event", "yardsticks", "to the first", "gc us/event",
        "longest gc ms", "stored B", "memory B, stored", "and decoded",
    )  # fmt: skip
    return table(head, rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = parser(__doc__, "growth")
    options.add_argument("--sessions", type=int, nargs="+", default=list(SIZES), metavar="N", help="that live")
    options.add_argument("--detectors", nargs="+", choices=sorted(DETECTIONS), default=sorted(DETECTIONS))
    options.add_argument("--stores", nargs="+", choices=("memory", "rocksdb"), default=["memory", "rocksdb"])
    options.add_argument(
        "--live-sessions", type=int, default=WorkerSettings().live_sessions, metavar="N", help="states kept decoded"
    )
    options.add_argument("--events", type=int, default=EVENTS, metavar="N", help=f"measured (default: {EVENTS:,})")
    asked = options.parse_args(arguments)
    if min(*asked.sessions, asked.live_sessions, asked.events) < 1:
        options.error("every number must be 1 or more")
    found = []
    wanted = cases(asked.sessions, asked.detectors, asked.stores, asked.live_sessions, asked.events)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as pool:
        for number, case in enumerate(wanted, 1):
            say(f"{number} of {len(wanted)}: {case.told()}")
            found.append(pool.submit(measure, case).result())
    show(found, text, as_json=asked.json)
    return 0


if __name__ == "__main__":
    run(main)
