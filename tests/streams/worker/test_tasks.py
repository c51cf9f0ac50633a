"""What a session's event means to its task: forwarded, read back, judged by the task's limits, and bounded in harm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from detectors import TaskState, UnsupportedState, decode_task, encode_task, limits_from
from detectors.tasks.facts import Attempt, Round, Spent, TaskEvent
from schemas import topics
from schemas.common import Agent, Task
from schemas.decode import decode
from schemas.events import Override
from schemas.outputs import Alert
from streams.forwarded import ORIGIN_HEADER
from streams.worker.judge import DETECTION, Detection
from streams.worker.outgoing import kind_of
from streams.worker.records import TASK, encode_stored
from tests.kit import BEGIN, tool_call
from tests.streams.worker.conftest import (
    ORIGIN,
    SETTINGS,
    TASK_EVENTS,
    TELLING,
    TOOL_CALLS,
    Bench,
    alert_each,
    spend_each,
    task_event,
)

if TYPE_CHECKING:
    from aiokafka.structs import ConsumerRecord

    from detectors import Limits
    from streams.worker.outgoing import Outgoing
    from tests.streams.worker.conftest import MakeRecord

TRACE = ("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")

EVERY = 2
LIMITS = limits_from([("file", {"too_many_attempts.warn": EVERY})])

ATTEMPT = Attempt("a1", 0, "e1", 0, "failed")
ROUND = Round("e1", 0, 7, "o/r#7", by_person=False, verdict="commented")
KINDS: dict[str, dict[str, Any]] = {
    "attempt": {"attempt": ATTEMPT},
    "derived": {"attempt": Attempt("a1", 0, "e1", 0, "failed", derived=True)},
    "review": {"review": ROUND},
    "word": {"word": "resume"},
    "spent": {},
}


@pytest.fixture
def telling() -> Bench:
    """Give a partition under whose detectors each event concerns a task, and every second one warns."""
    return Bench(TELLING, LIMITS)


def outgoing(bench: Bench) -> list[Outgoing]:
    """Commit, and give what was written besides states."""
    taken = bench.commit()
    return [] if taken is None else cast("list[Outgoing]", taken.outgoing)


def alerts(bench: Bench) -> list[Alert]:
    """Commit, and give the alerts that were written."""
    found = [decode(topics.ALERTS, out.value) for out in outgoing(bench) if out.topic == SETTINGS.alerts]
    return cast("list[Alert]", found)


def calls(bench: Bench, task: str = "t") -> int:
    """Give the calls spent on a task, as its state has it."""
    return bench.partition.tasks.get(task.encode()).state.spent.calls


def test_an_event_is_forwarded_under_its_task(telling: Bench, record: MakeRecord) -> None:
    """Key, value, trace, and where the agent's record stands; it leaves with the session's state and offset."""
    call = tool_call("s", 1, task=Task(id="t"))
    telling.apply([record(call, offset=41, timestamp=5_000, headers=(("x", b"1"), TRACE))])
    taken = telling.commit()
    (out,) = taken.outgoing
    assert (out.topic, out.key, out.appended_ms) == (SETTINGS.task_events, b"t", 5_000)
    assert decode_task(out.value, TaskEvent) == task_event(event_id="s:1", word=None)
    assert dict(out.headers) == {ORIGIN_HEADER: b'["agent.tool-calls",0,41,5000]', TRACE[0]: TRACE[1]}
    assert ([key for key, _ in taken.sessions], taken.applied) == ([b"s"], {TOOL_CALLS: 42})


def test_what_is_forwarded_is_read_back(telling: Bench, record: MakeRecord) -> None:
    """The task's alert names the agent's record, its trace and its time, and is keyed by the task."""
    for number in range(EVERY):
        call = tool_call("s", number, task=Task(id="t"))
        telling.apply([record(call, offset=40 + number, timestamp=5_000 + number, headers=(TRACE,))])
        (out,) = outgoing(telling)
        telling.apply([forwarded(record, out, offset=number)])
    (out,) = outgoing(telling)
    alert = cast("Alert", decode(topics.ALERTS, out.value))
    assert alert.evidence.position is not None
    assert (alert.evidence.position.topic, alert.evidence.position.offset) == (TOOL_CALLS.topic, 41)
    assert (out.topic, out.key, out.appended_ms) == (SETTINGS.alerts, b"t", 5_001)
    assert dict(out.headers)["traceparent"] == TRACE[1]
    assert telling.value("traction_events_total", topic=TASK_EVENTS.topic, result="applied") == EVERY
    assert telling.value("traction_task_events_total", kind="spent") == EVERY
    assert telling.value("traction_alerts_total", level="warn", detector="too_many_attempts") == 1


def forwarded(record: MakeRecord, out: Outgoing, **fields: Any) -> ConsumerRecord:
    """Give what was forwarded as it comes back."""
    return record(task_event(), key=out.key, value=out.value, headers=tuple(out.headers), **fields)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_task_is_judged_by_is_sent_on_at_once(record: MakeRecord, kind: str) -> None:
    """Only what was spent waits for the next commit; each kind is counted apart."""
    told = task_event(**{"word": None} | KINDS[kind])
    assert kind_of(told) == kind
    bench = Bench(Detection(lambda *event: spend_each(*event)._replace(task_event=told)))
    bench.apply([record(tool_call("s", 0))])
    assert bench.partition.urgent.is_set() == (kind != "spent")
    assert bench.value("traction_task_events_total", kind=kind) == 1


def test_most_events_concern_no_task(bench: Bench, record: MakeRecord) -> None:
    """What the detectors say nothing of is not forwarded."""
    bench.apply([record(tool_call("s", 0, phase="start"))])
    assert outgoing(bench) == []


def test_a_task_is_stored_and_removed(telling: Bench, record: MakeRecord) -> None:
    """Its state goes to its own changelog; a tombstone follows when nothing of it needs to be kept."""
    telling.apply(map(record, [task_event(0), task_event(0, "u")]))
    taken = telling.commit()
    assert ({key for key, _ in taken.tasks}, taken.sessions) == ({b"t", b"u"}, [])
    telling.own()
    telling.apply([record(task_event(1, word="reset"))])
    assert telling.commit().tasks == [(b"t", None)]
    assert telling.stored_tasks.keys() == {b"u"}
    assert (calls(telling), calls(telling, "u")) == (0, 1)


def test_an_applied_record_is_not_applied_again(telling: Bench, record: MakeRecord) -> None:
    """The task's own account of offsets holds beside the session's, over restarts too."""
    telling.apply([record(task_event(), offset=5)])
    telling.commit()
    telling.own()
    telling.apply([record(task_event(1), offset=5, timestamp=1)])
    assert (calls(telling), telling.value("traction_applied_twice_total")) == (1, 1)
    telling.apply([record(task_event(1), offset=6)])
    assert calls(telling) == 2


def test_misrouted_records_are_applied_and_counted(telling: Bench, record: MakeRecord) -> None:
    """As those of sessions are."""
    telling.own(count=1_000_000)
    telling.apply([record(task_event())])
    assert telling.value("traction_misrouted_events_total", topic=TASK_EVENTS.topic) == 1
    assert calls(telling) == 1


@pytest.mark.parametrize("scope", ["role:code", "repo:o/r", "task:t", "session:s"])
@pytest.mark.parametrize("said_before", [True, False])
def test_overrides_hold_for_tasks(record: MakeRecord, scope: str, *, said_before: bool) -> None:
    """All scopes, whether the event itself says agent and task or only an earlier one did."""

    def remember(state: TaskState, event: TaskEvent, limits: Limits) -> list[Alert]:
        state.agent, state.task = event.agent or state.agent, event.task or state.task
        return alert_each(state, event, limits)

    bench = Bench(Detection(spend_each, remember))
    bench.overrides.put(Override(scope=scope, set_at=BEGIN, mute=True, limits={"too_many_attempts.warn": EVERY}))
    said: dict[str, Any] = {"agent": Agent(role="code"), "task": Task(id="t", repo="o/r")}
    events = [task_event(0, **said), task_event(1, **({} if said_before else said))]
    bench.apply(map(record, [*events, task_event(0, "other", session_id="x"), task_event(1, "other", session_id="x")]))
    assert [(alert.task_id, alert.muted, alert.count) for alert in alerts(bench)] == [("t", True, EVERY)]


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({"value": None}, "unsupported_version"),
    "no task event": ({"value": b"{}"}, "unsupported_version"),
    "another version": ({"value": b"\x92\x63\x90"}, "unsupported_version"),
    "a state": ({"value": encode_task(TaskState())}, "unsupported_version"),
    "no origin": ({"headers": ()}, "unsupported_version"),
    "a wrong origin": ({"headers": ((ORIGIN_HEADER, b'["a",0]'),)}, "unsupported_version"),
    "no key": ({"key": None}, "key_missing"),
    "another key": ({"key": b"u"}, "key_mismatch"),
    "a name that is no text": ({"headers": (ORIGIN, ("\udc80", b""))}, "not_utf8"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_read_is_set_aside(telling: Bench, record: MakeRecord, name: str) -> None:
    """Also what another release forwarded: it becomes a dead letter, and the task's next event is taken."""
    fields, reason = BAD[name]
    bad = record(task_event(), **fields)
    telling.apply([bad, record(task_event())])
    assert calls(telling) == 1
    (out,) = outgoing(telling)
    assert (out.topic, out.key) == (SETTINGS.dead_letters, bad.key)
    assert out.value == (bad.value or (None if bad.key else b""))
    assert dict(out.headers)["__traction.errors.reason"] == reason.encode()
    assert telling.value("traction_events_total", topic=TASK_EVENTS.topic, result="dead") == 1


@pytest.mark.parametrize("before", [0, 1, 2])
def test_an_event_that_a_detector_fails_on(record: MakeRecord, before: int) -> None:
    """It goes to the dead letters and leaves the task as it was, committed or not."""

    def fragile(state: TaskState, event: TaskEvent, limits: Limits) -> list[Alert]:
        found = alert_each(state, event, limits)
        if event.event_id == "poison":
            raise KeyError(event.event_id)
        return found

    bench = Bench(Detection(spend_each, fragile), LIMITS)
    bench.apply(record(task_event(number)) for number in range(before))
    if before == 1:
        bench.commit()
    bench.apply([record(task_event(9, event_id="poison"))])
    bench.apply(record(task_event(number)) for number in range(before, 3))
    assert calls(bench) == 3
    assert bench.value("traction_dead_letters_total", reason="detector_error") == 1


def test_a_state_of_another_release_stops_the_worker(telling: Bench, record: MakeRecord) -> None:
    """No event may be set aside for it, nor may the task be begun anew: its loops would be forgotten."""
    telling.stored_tasks[b"t"] = encode_stored(TASK, {}, b"\x92\x63\x90")
    with pytest.raises(UnsupportedState):
        telling.apply([record(task_event())])


def test_memory_is_bounded_for_both_together(record: MakeRecord) -> None:
    """Sessions and tasks share the room; tasks have half of it at most, and what they leave is the sessions'."""
    bench = Bench(TELLING)
    bench.apply(record(tool_call(f"s{number}", 0)) for number in range(10))
    for most, tasks in ((12, 3), (7, 3), (4, 2), (1, 0), (0, 0)):
        bench.apply(record(task_event(most, f"t{number}")) for number in range(3))
        bench.apply(record(tool_call(f"s{number}", most)) for number in range(10))
        bench.commit()
        bench.partition.trim(most)
        assert (len(bench.partition.tasks), len(bench.partition.sessions)) == (tasks, min(10, most - tasks))


def test_the_real_detectors_are_asked(record: MakeRecord) -> None:
    """Unless a test gives others, events are judged by the detectors of this release."""
    bench = Bench(DETECTION)
    bench.apply([record(task_event(spent=Spent(calls=3)))])
    assert bench.partition.tasks.get(b"t").state.task_id == "t"
