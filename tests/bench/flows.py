"""Measures what an event brings about further on: records and bytes of each topic, and what escalation keeps and reads.

    python -m tests.bench.flows
    python -m tests.bench.flows --events 200000 --spinning 0.05
    python -m tests.bench.flows --json recordings/

Folds the load of `make bench`, or recordings, with the detectors and the ladder alone, each event on its own: that is
the most, since a commit writes a state once, however often it changed. Nothing is timed; the figures are the same each
time. Bytes are those of keys, values and headers, before Kafka's own frames and before compression.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from detectors import SessionState, TaskState, encode_state, encode_task, limits_from, observe_task, step
from schemas import topics
from schemas.encode import encode, headers, record_key
from streams.escalation.context import Context
from streams.escalation.ladder import on_alert, on_event
from streams.escalation.outgoing import Outgoing
from streams.escalation.state import LadderState, encode_ladder
from streams.forwarded import Origin, origin_header
from streams.kafka import KafkaSettings
from streams.policy.policy import Policy
from streams.worker.records import SESSION, TASK, encode_stored
from tests.bench.engines.load import LOOPING, Load
from tests.bench.program import parser, run, show
from tests.bench.state_bytes import APPLIED, recorded
from tests.kit import TOPIC_OF

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from detectors import TaskEvent
    from schemas.events import SessionInput
    from schemas.outputs import Alert

EVENTS = 60_000
AT_WORK = 200
"""Sessions at the same time: few enough for most to come to their end."""

SOURCE = "/traction/worker/traction"
PLACE = Origin("agent.tool-calls", 0, 1_000_000, 1_800_000_000_000)
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)

INPUTS = {topic.name for topic in topics.SESSION_INPUTS}
REREAD = ("alerts", "task-events")
"""What escalation reads."""


@dataclass
class Flows:
    """Counts what is written.

    Attributes:
        records: by topic.
        size: bytes, likewise.
        ladders: bytes of each ladder, as it is at last.
    """

    records: Counter[str] = field(default_factory=Counter)
    size: Counter[str] = field(default_factory=Counter)
    ladders: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._limits, self._ladder = limits_from([]), Policy().ladder(None, None)
        self._sessions: defaultdict[str, SessionState] = defaultdict(SessionState)
        self._tasks: defaultdict[str, TaskState] = defaultdict(TaskState)
        self._climbs: defaultdict[str, LadderState] = defaultdict(LadderState)
        self._kept: dict[str, bytes] = {}
        self._outgoing = Outgoing(KafkaSettings(prefix=""), "traction-escalation")
        self._context = Context("control", lambda *_: None, lambda _: None, lambda _: None)
        self._now = BEGAN

    def event(self, event: SessionInput) -> None:
        """Take an event, and what comes of it."""
        self._now += timedelta(milliseconds=1)
        self._add(TOPIC_OF[type(event)].name, record_key(event), encode(event))
        state = self._sessions[event.session_id]
        alerts, told = step(state, event, self._limits)
        self._add("sessions-changelog", record_key(event), encode_stored(SESSION, APPLIED, encode_state(state)))
        for alert in alerts:
            self._alert(alert)
        if told is not None:
            self._told(told)

    def _told(self, told: TaskEvent) -> None:
        key = told.task_id.encode()
        self._add("task-events", key, encode_task(told), [origin_header(PLACE)])
        task = self._tasks[told.task_id]
        alerts = observe_task(task, told, self._limits)
        self._add("tasks-changelog", key, encode_stored(TASK, APPLIED, encode_task(task)))
        for alert in alerts:
            self._alert(alert)
        climbs = self._climbs[told.task_id]
        self._put(told.task_id, on_event(climbs, told, self._now, self._ladder, self._context))

    def _alert(self, alert: Alert) -> None:
        self._add("alerts", record_key(alert), encode(alert), headers(alert, source=SOURCE, traceparent=None))
        climbs = self._climbs[alert.task_id]
        self._put(alert.task_id, on_alert(climbs, alert, self._now, self._ladder, self._context))

    def _put(self, task_id: str, outputs: Iterable[object]) -> None:
        for output in outputs:
            out = self._outgoing.output(output)  # type: ignore[arg-type]  # what the ladder gives
            self._add(out.topic, out.key or b"", out.value or b"", out.headers)
        state = self._climbs[task_id]
        value = encode_ladder(state) if state != LadderState() else b""
        if value != self._kept.get(task_id):
            self._kept[task_id] = value
            self.ladders[task_id] = len(value)
            self._add("ladders", task_id.encode(), value)

    def _add(self, topic: str, key: bytes, value: bytes, head: Iterable[tuple[str, bytes | None]] = ()) -> None:
        self.records[topic] += 1
        self.size[topic] += len(key) + len(value) + sum(len(name) + len(content or b"") for name, content in head)


def measure(events: Iterable[SessionInput]) -> dict[str, float]:
    """Fold events and give the figures: of each topic records in 1,000 events, and bytes to a byte that came in."""
    flows = Flows()
    for event in events:
        flows.event(event)
    count = sum(flows.records[name] for name in INPUTS)
    came = sum(flows.size[name] for name in INPUTS)
    rising = sorted(size for size in flows.ladders.values() if size) or [0]
    found: dict[str, float] = {"events": count, "bytes_of_an_event": round(came / count)}
    for name in sorted(flows.records.keys() - INPUTS):
        found[f"{name}_records_in_1000_events"] = round(1_000 * flows.records[name] / count, 1)
        found[f"{name}_bytes_to_one_that_came"] = round(flows.size[name] / came, 3)
    read = sum(flows.records[name] for name in REREAD)
    written = sum(flows.size.values()) - came
    return found | {
        "all_bytes_written_to_one_that_came": round(written / came, 2),
        "escalation_reads_in_1000_events": round(1_000 * read / count, 1),
        "ladders": len(rising),
        "ladder_median": rising[len(rising) // 2],
        "ladder_p99": rising[min(len(rising) - 1, len(rising) * 99 // 100)],
    }


def text(found: dict[str, float]) -> str:
    """Give the figures line by line."""
    return "\n".join(f"{name:46} {figure:,}" for name, figure in found.items())


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and tell."""
    options = parser(__doc__, "flows")
    options.add_argument("--events", type=int, default=EVENTS, help=f"of the made load (default: {EVENTS:,})")
    # (Faust takes what begins with --loop for its own.)
    options.add_argument("--spinning", type=float, default=LOOPING, help=f"share of sessions that loop ({LOOPING})")
    options.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="recordings, in place of the made load")
    asked = options.parse_args(arguments)
    if asked.events < 1 or not 0 <= asked.spinning <= 1:
        options.error("--events is 1 or more, --spinning 0 to 1")
    played = (
        recorded(asked.paths) if asked.paths else [Load(sessions=AT_WORK, looping=asked.spinning).events(asked.events)]
    )
    if asked.paths and not any(played):
        options.error("there is no session in these paths")
    show(measure(chain.from_iterable(played)), text, as_json=asked.json)
    return 0


if __name__ == "__main__":
    run(main)
