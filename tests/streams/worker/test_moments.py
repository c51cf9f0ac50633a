"""At what moments states are written, dropped from memory or read back changes nothing that comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from detectors import Limits, Step, decode_state, decode_task, limits_from, step
from detectors.tasks.state import TaskState
from schemas.testing import at, control, session_event
from streams.topics import MS_PER_HOUR
from streams.worker.judge import Detection
from streams.worker.records import SESSION, decode_stored
from tests.kit import attempt, tool_call
from tests.streams.worker.conftest import Bench, alert_each, records_from_zero, task_event

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiokafka.structs import ConsumerRecord

    from detectors import SessionState, TaskEvent
    from schemas.events import SessionInput
    from schemas.outputs import Alert

BEGIN_MS = 1_800_000_000_000
LIMITS = limits_from([("test", {"too_many_attempts.warn": 3})])


def fail_some(state: SessionState, event: SessionInput, limits: Limits) -> Step:
    """Detect, but fail on some events after the state was changed, at once or when it is encoded."""
    found = step(state, event, limits)
    if event.event_id.startswith("poison"):
        raise RuntimeError
    if event.event_id.startswith("unwritable"):
        state.mode = "\udc00"
    return found


def fail_some_of_tasks(state: TaskState, event: TaskEvent, limits: Limits) -> list[Alert]:
    """Do likewise."""
    found = alert_each(state, event, limits)
    if event.event_id.startswith("poison"):
        raise RuntimeError
    if event.event_id.startswith("unwritable"):
        state.steps = 2**70
    return found


DETECTION = Detection(fail_some, fail_some_of_tasks)
OF_SESSIONS = ["same", "same", "same", "other", "large", "ended", "turn", "resume", "attempt", "no JSON"]
FAILING = ["poison", "unwritable", "spent poison", "spent unwritable"]
WHAT = st.sampled_from([*OF_SESSIONS, "spent", "spent", *FAILING])
HOURS = st.sampled_from([0, 0, 0, 0, 0, 1, 25, 169, -1, -25, -169])
"""Between a record and the next: around the times that states are kept. The brokers' clocks may jump back."""

MOMENTS = st.sampled_from(["", "", "", "commit", "trim", "move", "crash"])
MOVES = st.lists(st.tuples(WHAT, st.sampled_from("ab"), HOURS, MOMENTS), min_size=2, max_size=25)


@settings(max_examples=60, deadline=None)
@given(MOVES)
@example([("same", "a", 0, ""), ("same", "a", -25, ""), ("same", "a", 169, "commit"), ("same", "a", 0, "")])
@example([("unwritable", "a", 0, ""), ("same", "a", 169, "")])
def test_moments_change_nothing_that_comes_out(moves: list[tuple[str, str, int, str]]) -> None:
    """Events apply as if each were committed alone and its state read back: alerts, dead letters, states, offsets."""
    records = list(records_of(moves))
    assert outcome(records, [moment for *_, moment in moves]) == outcome(records, ["move"] * len(records))


def outcome(records: list[ConsumerRecord], moments: list[str]) -> Any:
    """Apply records, each with what happens after it, and give all that was committed."""
    bench, put = Bench(DETECTION, LIMITS), list[Any]()
    uncommitted: list[ConsumerRecord] = []

    def commit() -> None:
        taken = bench.commit()
        put.extend((out.topic, out.key, out.value, out.headers) for out in (taken.outgoing if taken else ()))
        uncommitted.clear()

    for record, moment in zip(records, moments, strict=True):
        bench.apply([record])
        uncommitted.append(record)
        if moment == "crash":
            bench.own()
            bench.apply(uncommitted)
        elif moment == "trim":
            bench.partition.trim(0)
        elif moment:
            commit()
        if moment == "move":
            bench.own()
    commit()
    # One set aside for what only its encoding shows comes later than others; those of one session keep their order.
    return sorted(put, key=lambda each: (each[0], each[1] or b"", *map(str, each[2:]))), states(bench)


def states(bench: Bench) -> dict[bytes, Any]:
    """Give what is stored."""
    found = {}
    for key, value in (*bench.stored.items(), *((b"task " + key, value) for key, value in bench.stored_tasks.items())):
        stored = decode_stored(value)
        state: Any = decode_state(stored.state) if stored.kind == SESSION else decode_task(stored.state, TaskState)
        found[key] = stored.over, stored.applied, state
    return found


def records_of(moves: list[tuple[str, str, int, str]]) -> Iterator[ConsumerRecord]:
    """Give what comes as records of their inputs."""
    make, now_ms = records_from_zero(), BEGIN_MS
    for number, (what, name, hours, _) in enumerate(moves):
        now_ms += hours * MS_PER_HOUR + 1
        kind = what.split()[-1]
        named = {"event_id": f"{kind}-{number}"} if kind in {"poison", "unwritable"} else {}
        event: Any
        if what.startswith("spent"):
            yield make(task_event(number, name, word=None, **named), timestamp=now_ms)
            continue
        if what == "attempt":
            event = attempt(name, number, "t")
        elif what == "resume":
            event = control(number, "resume", session_id=name)
        elif what in {"ended", "turn"}:
            event = session_event(number, what, session_id=name)
        elif what == "same":
            event = tool_call(name, number, arguments={"path": "src/file.py"}, result="contents of the file")
        else:
            event = tool_call(name, number, result="long " * 2_000 if what == "large" else "short", **named)
        event = msgspec.structs.replace(event, occurred_at=at(number))
        yield make(event, timestamp=now_ms, **({"value": b"{"} if what == "no JSON" else {}))
