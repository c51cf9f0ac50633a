"""How long states are kept follows from the records alone: when a sweep looks changes nothing that comes out."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detectors import Limits, Step, limits_from, step
from schemas import topics
from schemas.testing import at, control, session_event
from streams.topics import MS_PER_HOUR
from streams.topics import TASK_EVENTS as TASK_TOPIC
from streams.worker.judge import Detection
from streams.worker.keeping import MS_PER_DAY, SLACK_MS, Keeping, keeping
from streams.worker.records import decode_stored, latest_ms
from tests.kit import attempt, tool_call
from tests.streams.worker.conftest import TELLING, Bench, records_from_zero, task_event

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiokafka.structs import ConsumerRecord

    from detectors import SessionState
    from schemas.events import SessionInput, ToolCall
    from streams.worker.records import Stored
    from tests.streams.worker.conftest import MakeRecord

IDLE_MS = 7 * MS_PER_DAY
ENDED_MS = 24 * MS_PER_HOUR
BEGIN_MS = 1_800_000_000_000


def same(session: str, number: int) -> ToolCall:
    """Build the n-th call of a session: the same each time."""
    return tool_call(session, number, arguments={"path": "src/file.py"}, result="contents of the file")


@pytest.mark.parametrize(
    ("over", "after_ms", "anew"),
    [(False, IDLE_MS, False), (False, IDLE_MS + 1, True), (True, ENDED_MS, False), (True, ENDED_MS + 1, True)],
)
def test_a_record_begins_anew_what_is_too_old(*, over: bool, after_ms: int, anew: bool) -> None:
    """Counted from the newest record to the next: exactly the time is kept, a millisecond more is not."""
    kept = Keeping(IDLE_MS, ENDED_MS)
    assert kept.expired(BEGIN_MS, over=over, next_ms=BEGIN_MS + after_ms) is anew
    for now_ms, gone in ((BEGIN_MS + after_ms, False), (BEGIN_MS + after_ms + SLACK_MS, anew)):
        assert kept.removable(BEGIN_MS, over=over, now_ms=now_ms) is gone


@pytest.mark.parametrize("kept", [Keeping(IDLE_MS, ENDED_MS), Keeping(ENDED_MS, IDLE_MS)])
def test_nothing_expires_within_the_shortest_time(kept: Keeping) -> None:
    """Whichever of the two times it is; a millisecond later something does."""
    for more, wanted in ((0, False), (1, True)):
        next_ms = BEGIN_MS + ENDED_MS + more
        assert any(kept.expired(BEGIN_MS, over=over, next_ms=next_ms) for over in (True, False)) is wanted
        assert (next_ms - BEGIN_MS > kept.shortest_ms) is wanted


def test_a_clock_that_jumps_back_begins_nothing_anew() -> None:
    """What is older than the newest record is no later one; and by an hour a sweep lets clocks differ."""
    kept = Keeping(IDLE_MS, ENDED_MS)
    assert not kept.expired(BEGIN_MS, over=True, next_ms=BEGIN_MS - 2 * IDLE_MS)
    assert not kept.removable(BEGIN_MS, over=True, now_ms=BEGIN_MS + ENDED_MS + SLACK_MS)
    assert kept.removable(BEGIN_MS, over=True, now_ms=BEGIN_MS + ENDED_MS + SLACK_MS + 1)


def test_what_nothing_was_applied_to_does_not_expire() -> None:
    """It has no time to go by."""
    assert not Keeping(1, 1).expired(0, over=False, next_ms=BEGIN_MS)


def test_times_are_those_of_the_limits() -> None:
    """Of sessions and tasks apart; an end shortens the time and never lengthens it."""
    limits = limits_from([("test", {"sessions.idle_days": 2, "sessions.ended_hours": 3, "tasks.retention_days": 4})])
    assert keeping(topics.TOOL_CALLS, limits) == Keeping(2 * MS_PER_DAY, 3 * MS_PER_HOUR)
    assert keeping(TASK_TOPIC, limits) == Keeping(4 * MS_PER_DAY, 4 * MS_PER_DAY)
    assert Keeping(5, 9_000).expired(1, over=True, next_ms=7)


def test_a_session_begins_anew_after_its_time(bench: Bench, record: MakeRecord) -> None:
    """Two equal calls a week ago and one more today are no loop; one millisecond sooner they are three in a row."""
    for name, gap_ms, alerts in (("kept", IDLE_MS, 1), ("gone", IDLE_MS + 1, 0)):
        calls = [same(name, number) for number in range(3)]
        times = (BEGIN_MS, BEGIN_MS + 1, BEGIN_MS + 1 + gap_ms)
        bench.apply(record(call, timestamp=time) for call, time in zip(calls, times, strict=True))
        assert len(bench.commit().outgoing) == alerts
    assert bench.value("traction_sessions_expired_total") == 1
    assert bench.partition.sessions.get(b"gone").state.calls == 1


def test_an_ended_session_goes_on_within_its_time(bench: Bench, record: MakeRecord) -> None:
    """Stragglers belong to it, and each keeps it as long again; after that they are a session of their own."""
    gaps = (1, ENDED_MS, ENDED_MS, ENDED_MS + 1)
    events: list[SessionInput] = [
        tool_call("s", 0),
        session_event(1, "ended", session_id="s"),
        *(tool_call("s", 2 + n) for n in range(3)),
    ]
    times = itertools.accumulate(gaps, initial=BEGIN_MS)
    calls = []
    for event, time in zip(events, times, strict=True):
        bench.apply([record(event, timestamp=time)])
        bench.commit()
        calls.append((bench.partition.sessions.get(b"s").state.calls, bench.partition.sessions.get(b"s").state.ended))
    assert calls == [(1, False), (1, True), (2, True), (3, True), (1, False)]


def test_a_session_that_is_started_again_is_kept_as_one_that_goes_on(bench: Bench, record: MakeRecord) -> None:
    """The end holds until a start follows it."""
    events = [session_event(n, kind, session_id="s") for n, kind in enumerate(("ended", "started"))]
    bench.apply([record(events[0], timestamp=BEGIN_MS), record(events[1], timestamp=BEGIN_MS + 1)])
    bench.apply([record(tool_call("s", 2), timestamp=BEGIN_MS + IDLE_MS)])
    assert bench.value("traction_sessions_expired_total") == 0


def test_what_was_applied_is_forgotten_with_the_state(bench: Bench, record: MakeRecord) -> None:
    """As if a sweep had removed it: the record names the offset of the record that began it anew, and no other."""
    bench.apply([record(session_event(0, "turn", session_id="s"), timestamp=BEGIN_MS)])
    bench.apply([record(tool_call("s", 1), timestamp=BEGIN_MS + IDLE_MS + 1, offset=9)])
    bench.commit()
    assert decode_stored(bench.stored[b"s"]).applied == {topics.TOOL_CALLS.name: (9, BEGIN_MS + IDLE_MS + 1)}


def test_a_record_that_fails_leaves_the_session_begun_anew(record: MakeRecord) -> None:
    """What was too old for it is too old for the next one, whether or not anything was committed in between."""

    def picky(state: SessionState, event: SessionInput, limits: Limits) -> Step:
        if event.event_id.endswith("1"):
            raise RuntimeError
        return step(state, event, limits)

    bench = Bench(Detection(step=picky))
    bench.apply([record(tool_call("s", 0), timestamp=BEGIN_MS)])
    bench.commit()
    bench.apply([record(tool_call("s", 1), timestamp=BEGIN_MS + IDLE_MS + 1)])
    assert removed(bench) == [b"s"]
    bench.apply([record(tool_call("s", 2), timestamp=BEGIN_MS + IDLE_MS + 2)])
    assert bench.partition.sessions.get(b"s").state.calls == 1
    assert bench.value("traction_sessions_expired_total") == 1


def removed(bench: Bench) -> list[bytes]:
    """Commit, and give the sessions of which tombstones are written."""
    return [key for key, value in bench.commit().sessions if value is None]


HOURS = st.sampled_from([0, 1, 12, 24, 25, 26, 100, 168, 169, 170, 400])
WHAT = st.sampled_from(["same", "same", "other", "ended", "started", "resume", "attempt", "task", "task", "solved"])
"""What comes, and how many hours after the one before: around the times that are kept, and what a sweep waits."""


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(st.tuples(WHAT, st.sampled_from("ab"), HOURS), min_size=2, max_size=30),
    sweeps=st.lists(st.tuples(st.integers(0, 30), st.sampled_from([0, 3, 50]), st.booleans()), max_size=12),
)
def test_sweeps_change_nothing_that_comes_out(
    steps: list[tuple[str, str, int]], sweeps: list[tuple[int, int, bool]]
) -> None:
    """Whatever moments they look at, and whatever is in memory then: alerts, what is forwarded, and the last states."""
    records = list(records_of(steps))
    looks = {place: (hours, restart) for place, hours, restart in sweeps}
    plain, swept = Bench(TELLING), Bench(TELLING)
    assert _outcome(plain, records, {}) == _outcome(swept, records, looks)
    # What is left of the unswept ones beyond it is what any further record would begin anew.
    after_ms = records[-1].timestamp + 2 * 400 * MS_PER_HOUR
    for bench in (plain, swept):
        _sweep(bench, after_ms)
        bench.commit()
        assert (bench.stored, bench.stored_tasks) == ({}, {})


def records_of(steps: list[tuple[str, str, int]]) -> Iterable[ConsumerRecord]:
    """Give what comes as records of their inputs, each so many hours after the one before."""
    make = records_from_zero()
    now_ms = BEGIN_MS
    for number, (what, name, hours) in enumerate(steps):
        now_ms += hours * MS_PER_HOUR
        event: Any
        if what == "task":
            event = task_event(number, name, word=None)
        elif what == "solved":
            event = task_event(number, name, word="reset")
        elif what == "attempt":
            event = attempt(name, number, "t")
        elif what == "resume":
            event = control(number, "resume", session_id=name)
        elif what in {"ended", "started"}:
            event = session_event(number, what, session_id=name)
        else:
            event = same(name, number) if what == "same" else tool_call(name, number)
        if what not in {"task", "solved"}:
            event = msgspec.structs.replace(event, occurred_at=at(number))
        yield make(event, timestamp=now_ms)


def _outcome(bench: Bench, records: list[ConsumerRecord], looks: dict[int, tuple[int, bool]]) -> Any:
    """Apply records, with sweeps after some of them, and give what was put out and the state of what is not too old."""
    put: list[Any] = []
    for number, each in enumerate(records):
        bench.apply([each])
        taken = bench.commit()
        put += [(out.topic, out.key, out.value, out.headers) for out in taken.outgoing]
        if number in looks and number + 1 < len(records):
            hours, restart = looks[number]
            if restart:
                bench.own()
            # Never later than the next record: this is what the ends of the inputs tell a sweep.
            _sweep(bench, min(each.timestamp + hours * MS_PER_HOUR, records[number + 1].timestamp))
            bench.commit()
    return put, not_too_old(bench, records[-1].timestamp)


def not_too_old(bench: Bench, now_ms: int) -> dict[bytes, tuple[dict[str, tuple[int, int]], bytes]]:
    """Give what is stored of those that a record of this time would not begin anew."""
    return {
        key: (found.applied, found.state)
        for stored in (bench.stored, bench.stored_tasks)
        for key, value in stored.items()
        if not kept_of(bench, stored).expired(_latest(found := decode_stored(value)), over=found.over, next_ms=now_ms)
    }


def _latest(found: Stored) -> int:
    return latest_ms(found.applied)


def kept_of(bench: Bench, stored: dict[bytes, bytes]) -> Keeping:
    """Give how long the states of one of a bench's tables are kept."""
    return keeping(TASK_TOPIC if stored is bench.stored_tasks else topics.TOOL_CALLS, bench.overrides.policy.common)


def _sweep(bench: Bench, now_ms: float) -> None:
    partition = bench.partition
    for table, stored in ((partition.sessions, bench.stored), (partition.tasks, bench.stored_tasks)):
        partition.expire(table, list(table.stored_keys()), kept_of(bench, stored), now_ms)
