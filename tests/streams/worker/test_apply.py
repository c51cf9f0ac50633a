"""Applying records: what comes out is what the detectors say, whatever comes in, and each record is applied once."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detectors import Limits, Step, UnsupportedState, decode_state, step
from schemas import topics
from schemas.decode import decode
from schemas.events import SessionEvent, ToolCall
from schemas.outputs import Alert
from streams.kafka import MAX_DEAD_LETTER_BYTES
from streams.received import MAX_KEPT_BYTES
from streams.worker.judge import Detection
from streams.worker.records import decode_stored
from tests.kit import BEGIN, outcome, tool_call, traffic, without_position
from tests.streams.worker.conftest import SETTINGS, TOOL_CALLS, Bench, records_from_zero

if TYPE_CHECKING:
    from aiokafka.structs import ConsumerRecord

    from detectors import SessionState
    from schemas.events import SessionInput
    from streams.worker.outgoing import Outgoing
    from streams.worker.partition import Snapshot
    from tests.streams.worker.conftest import MakeRecord

CALLS = [tool_call("s", number, arguments={"path": "a"}, result="the same") for number in range(5)]


def outgoing(bench: Bench) -> list[Outgoing]:
    """Commit, and give what was written besides state."""
    taken = cast("Snapshot | None", bench.commit())
    return [] if taken is None else taken.outgoing


def alerts(bench: Bench) -> list[Alert]:
    """Commit, and give the alerts that were written."""
    found = [decode(topics.ALERTS, out.value) for out in outgoing(bench) if out.topic == SETTINGS.alerts]
    return cast("list[Alert]", found)


def test_the_answers_are_the_detectors(bench: Bench, record: MakeRecord) -> None:
    """In batches with commits between, sessions' alerts and states are those of the detectors in one go."""
    events = traffic(sessions=15, episodes=3)
    found: list[Alert] = []
    for begin in range(0, len(events), 33):
        bench.apply(map(record, events[begin : begin + 33]))
        found += alerts(bench)
    wanted = outcome(events)
    of_sessions = {name: alert for name, alert in wanted.alerts.items() if alert.scope == "session"}
    assert {alert.alert_id: without_position(alert) for alert in found} == of_sessions
    assert {name: bench.partition.sessions.get(name.encode()).state for name in wanted.states} == wanted.states


def test_an_alert_names_its_event_and_trace(bench: Bench, record: MakeRecord) -> None:
    """Position, key, headers and time of the alert are those of the record that brought it about."""
    trace = ("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    bench.apply([*map(record, CALLS[:2]), record(CALLS[2], headers=(("x", b"1"), trace))])
    (out,) = outgoing(bench)
    alert = cast("Alert", decode(topics.ALERTS, out.value))
    assert alert.evidence.position is not None
    assert (alert.evidence.position.topic, alert.evidence.position.offset) == (TOOL_CALLS.topic, 2)
    assert (out.topic, out.key, out.appended_ms) == (SETTINGS.alerts, b"s", 1_000_002)
    named = dict(out.headers)
    assert (named["traceparent"], named["ce_source"]) == (trace[1], b"/traction/worker/traction")


def test_results_are_counted(bench: Bench, record: MakeRecord) -> None:
    """Each event counts as applied, duplicate, late or dead, by topic."""
    late = tool_call("s", 9, occurred_at=BEGIN - timedelta(days=1))
    bench.apply([record(CALLS[0]), record(CALLS[0]), record(late), record(CALLS[1], value=b"{"), record(CALLS[1])])
    found = {
        result: bench.value("traction_events_total", topic=TOOL_CALLS.topic, result=result)
        for result in ("applied", "duplicate", "late", "dead")
    }
    assert found == {"applied": 2, "duplicate": 1, "late": 1, "dead": 1}


def scores(bench: Bench) -> list[float]:
    """Read how many spin scores were observed, and their sum."""
    return [bench.value("traction_spin_score_count"), bench.value("traction_spin_score_sum")]


def test_each_call_with_a_spin_score_is_observed_once(bench: Bench, record: MakeRecord) -> None:
    """From the call on at which there is a score, with the value that the state has."""
    wanted: list[float] = []
    for call in (tool_call("s", number, result=f"all {number // 2}") for number in range(9)):
        bench.apply([record(call)])
        score = bench.partition.sessions.get(b"s").state.spin.score
        assert (score is None) == (call.event_id in {"s:0", "s:1", "s:2"})
        wanted += [] if score is None else [score]
        assert scores(bench) == pytest.approx([len(wanted), sum(wanted)])


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(CALLS[4], id="duplicate"),
        pytest.param(tool_call("s", 9, occurred_at=BEGIN - timedelta(days=1)), id="late"),
        pytest.param(tool_call("s", 9, phase="start"), id="start of a call"),
        pytest.param(tool_call("s", 9, tool="TodoWrite", arguments={"todos": ["a"]}), id="talk"),
        pytest.param(tool_call("s", 5, arguments={"path": "b"}, batch_id="b1", event_id="again"), id="in a batch"),
        pytest.param(SessionEvent(event_id="t", session_id="s", occurred_at=BEGIN, kind="turn"), id="turn"),
        pytest.param(
            SessionEvent(event_id="u", session_id="s", occurred_at=BEGIN + timedelta(seconds=1), kind="user_message"),
            id="what has calls counted anew",
        ),
        pytest.param(tool_call("s", 9, event_id="poison"), id="dead"),
    ],
)
def test_an_event_without_a_spin_score_of_its_own_is_not_observed(record: MakeRecord, event: SessionInput) -> None:
    """The score of the call before it, which the state still has, is not counted a second time."""
    bench = Bench(Detection(fragile))
    batched = tool_call("s", 5, arguments={"path": "b"}, batch_id="b1")
    bench.apply(map(record, [*CALLS, batched]))
    before = scores(bench)
    bench.apply([record(event)])
    assert bench.partition.sessions.get(b"s").state.spin.score is not None
    assert (scores(bench), before[0]) == (before, 3)


def test_no_spin_score_is_observed_where_it_is_switched_off(record: MakeRecord) -> None:
    """What is not computed is not shown as 0."""
    bench = Bench(limits=Limits(off=("spin_score",)))
    bench.apply(map(record, CALLS))
    assert bench.partition.sessions.get(b"s").state.calls == 5
    assert scores(bench) == [0, 0]


def test_a_dead_letter_wants_a_commit_at_once(bench: Bench, record: MakeRecord) -> None:
    """So does an alert; an ordinary event can wait for the interval."""
    bench.apply([record(CALLS[0])])
    assert not bench.partition.urgent.is_set()
    bench.apply([record(CALLS[1], key=None)])
    assert bench.partition.urgent.is_set()
    bench.commit()
    assert not bench.partition.urgent.is_set()
    bench.apply(map(record, CALLS[1:3]))
    assert bench.partition.urgent.is_set()


def test_misrouted_records_are_applied_and_counted(record: MakeRecord) -> None:
    """A producer with another partitioner loses nothing, and it shows."""
    bench = Bench()
    bench.own(count=1_000_000)
    bench.apply([record(CALLS[0]), record(CALLS[1])])
    assert bench.value("traction_misrouted_events_total", topic=TOOL_CALLS.topic) == 2
    assert bench.partition.sessions.get(b"s").state.calls == 2


def test_an_applied_record_is_not_applied_again(
    bench: Bench, record: MakeRecord, caplog: pytest.LogCaptureFixture
) -> None:
    """The session's own account of offsets catches what must never happen, tells it and counts it."""
    same = record(CALLS[0])
    bench.apply([same, record(CALLS[1]), same])
    assert bench.partition.sessions.get(b"s").state.calls == 2
    assert bench.partition.sessions.get(b"s").state.duplicates == 0
    assert bench.value("traction_applied_twice_total") == 1
    assert "was applied already" in caplog.text


def test_offsets_that_begin_again_with_newer_times(
    bench: Bench, record: MakeRecord, caplog: pytest.LogCaptureFixture
) -> None:
    """A topic made anew is recognised by its times, told once, and its records are applied."""
    bench.apply(record(call, offset=100 + number) for number, call in enumerate(CALLS[:2]))
    bench.commit()
    bench.own()
    bench.apply(record(call, offset=number, timestamp=2_000_000) for number, call in enumerate(CALLS[2:4]))
    assert bench.partition.sessions.get(b"s").state.calls == 4
    assert bench.value("traction_applied_twice_total") == 0
    assert bench.value("traction_source_resets_total") == 1
    assert caplog.text.count("made anew") == 1


def test_offsets_of_topics_are_apart(bench: Bench, record: MakeRecord) -> None:
    """Each input has offsets of its own: the same offset on another topic is another event."""
    turn = SessionEvent(event_id="t", session_id="s", occurred_at=BEGIN, kind="turn")
    bench.apply([record(CALLS[0], offset=5), record(turn, offset=5)])
    assert bench.value("traction_applied_twice_total") == 0
    assert bench.partition.sessions.get(b"s").applied.keys() == {"tool-calls", "sessions"}


TELLTALE = "what the event said"


class Broken(RuntimeError):
    """What a detector with a fault raises."""


def fragile(state: SessionState, event: SessionInput, limits: Limits) -> Step:
    """Detect, but fail on some events after the state was changed."""
    found = step(state, event, limits)
    if event.event_id == "poison":
        raise Broken(TELLTALE)
    if event.event_id == "unwritable":
        state.mode = "\udc00"  # cannot be encoded
    return found


@pytest.mark.parametrize("kind", ["poison", "unwritable"])
@pytest.mark.parametrize("before", [0, 1, 2])
def test_an_event_that_cannot_be_applied(
    record: MakeRecord, caplog: pytest.LogCaptureFixture, kind: str, before: int
) -> None:
    """It goes to the dead letters and leaves the state as it was, committed or not; the loop around it goes on."""
    bench = Bench(Detection(fragile))
    bench.apply(map(record, CALLS[:before]))
    if before == 1:
        bench.commit()
    bench.apply([record(tool_call("s", 99, event_id=kind))])
    bench.apply(map(record, CALLS[before:3]))
    written = outgoing(bench)
    assert [out.topic for out in written] == [SETTINGS.dead_letters, SETTINGS.alerts]
    assert bench.partition.sessions.get(b"s").state == outcome(CALLS[:3]).states["s"]
    named = {name: value for name, value in written[0].headers if name.startswith("__traction.errors.")}
    assert (named["__traction.errors.stage"], named["__traction.errors.reason"]) == (b"detect", b"detector_error")
    assert "a detector failed" in caplog.text
    assert TELLTALE not in caplog.text
    assert not any(TELLTALE.encode() in (value or b"") for value in named.values())


def test_a_state_that_cannot_be_encoded_is_found_with_the_commit(record: MakeRecord) -> None:
    """Events are kept until then; the one at fault is a dead letter of the same commit, and the others are applied."""
    bench = Bench(Detection(fragile))
    bench.apply(map(record, CALLS[:1]))
    bench.commit()
    bench.apply(record(call) for call in (CALLS[1], tool_call("s", 99, event_id="unwritable"), tool_call("s", 3)))
    assert bench.value("traction_dead_letters_total", reason="detector_error") == 0
    taken = cast("Snapshot", bench.commit())
    assert [out.topic for out in taken.outgoing] == [SETTINGS.dead_letters]
    ((key, value),) = taken.sessions
    assert (key, taken.applied) == (b"s", {TOOL_CALLS: 4})
    stored = decode_stored(value or b"")
    assert decode_state(stored.state) == outcome([*CALLS[:2], tool_call("s", 3)]).states["s"]
    assert stored.applied == {"tool-calls": (3, 1_000_003)}


def test_what_is_counted_when_records_are_applied_again(record: MakeRecord) -> None:
    """An alert that is only found without the event at fault; what was counted the first time is not once more."""
    bench, counted = Bench(Detection(fragile)), ("traction_alerts_total", {"level": "warn", "detector": "identical"})
    bench.own(count=1_000_000)
    anew = SessionEvent(event_id="unwritable", session_id="s", occurred_at=CALLS[1].occurred_at, kind="user_message")
    bench.apply([*map(record, CALLS[:2]), record(anew), record(CALLS[2])])
    before = scores(bench)
    assert bench.value(counted[0], **counted[1]) == 0
    assert len(alerts(bench)) == bench.value(counted[0], **counted[1]) == 1
    bench.apply(map(record, [CALLS[3], tool_call("s", 99, event_id="poison")]))
    assert bench.value("traction_misrouted_events_total", topic=TOOL_CALLS.topic) == 4
    assert (before[0], scores(bench)[0]) == (0, 1)


EVENTS = st.tuples(st.sampled_from(["same", "other", "poison", "unwritable"]), st.sampled_from("ab"))


@given(st.lists(st.one_of(EVENTS, st.just(("commit", ""))), max_size=40))
def test_what_fails_leaves_no_trace_whenever_commits_come(moves: list[tuple[str, str]]) -> None:
    """However many events are uncommitted: alerts, states and dead letters are those of the events that do not fail."""
    bench, make, good, bad, found = Bench(Detection(fragile)), records_from_zero(), list[ToolCall](), 0, list[Alert]()
    for number, (what, session) in enumerate(moves):
        if what == "commit":
            found += alerts(bench)
            continue
        same = {"arguments": {"path": "a"}, "result": "the same"} if what == "same" else {}
        name = {"event_id": what} if what in {"poison", "unwritable"} else {}
        call = tool_call(session, number, **same, **name)
        bad += bool(name)
        good += [] if name else [call]
        bench.apply([make(call)])
    found += alerts(bench)
    wanted = outcome(good)
    assert {alert.alert_id: without_position(alert) for alert in found} == wanted.alerts
    states = {key.decode(): decode_state(decode_stored(value).state) for key, value in bench.stored.items()}
    assert states == wanted.states
    assert bench.value("traction_dead_letters_total", reason="detector_error") == bad


def test_what_is_wrong_with_the_state_is_no_event_s_fault(record: MakeRecord) -> None:
    """A state of another release stops the worker: no event of that session may be set aside for it."""

    def newer(state: SessionState, event: SessionInput, limits: Limits) -> Step:
        raise UnsupportedState(f"{state} {event} {limits}")

    bench = Bench(Detection(newer))
    with pytest.raises(UnsupportedState):
        bench.apply([record(CALLS[0])])


@pytest.fixture
def huge(record: MakeRecord) -> ConsumerRecord:
    """Give a record longer than the topic of dead letters takes, as a compressed one can be, with many headers."""
    headers = tuple((f"h{number}", b"x" * 1000) for number in range(600))
    return record(CALLS[0], value=bytes(MAX_DEAD_LETTER_BYTES), headers=headers)


def test_a_dead_letter_fits_its_topic(bench: Bench, huge: ConsumerRecord) -> None:
    """What is longer than a dead letter may be is cut, so that it cannot stop the partition either."""
    bench.apply([huge])
    (out,) = outgoing(bench)
    assert out.value is not None
    assert len(out.value) == MAX_KEPT_BYTES
    size = len(out.value) + sum(len(name) + len(value or b"") for name, value in out.headers)
    assert size < MAX_DEAD_LETTER_BYTES
