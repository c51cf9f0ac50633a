"""What time brings: answers that do not come, what expires, and clocks that are set."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from schemas.outputs import KnownFlapping
from streams.escalation.state import LadderState
from streams.policy.model import Ladder
from tests.streams.escalation.ladder_kit import NOW, Desk, asked, short, termination, told


def test_a_termination_is_repeated_until_its_attempts_are_used_up() -> None:
    """A millisecond early nothing happens; then it comes again with its id, and at last a person is called."""
    desk = Desk(Ladder(answer_seconds=60, answer_attempts=3))
    first = termination(desk.alert("a", level="terminate"))
    assert desk.due == NOW + timedelta(seconds=60)
    assert desk.later(seconds=59, milliseconds=999) == []
    second = termination(desk.later(milliseconds=1))
    assert (second.termination_id, second.attempt, second.issued_at) == (first.termination_id, 2, first.issued_at)
    assert msgspec.structs.replace(second, attempt=1) == first
    assert short(desk.later(seconds=60)) == ["stop s1 #3"]
    assert desk.later(seconds=59) == []
    word = told(desk.later(seconds=1))
    assert (word.kind, word.severity, word.resolves, word.answers) == (
        *("unanswered", "critical", False),
        first.termination_id,
    )
    assert desk.later(minutes=10) == []
    assert asked(desk.alert("b", level="terminate")) == ["stop s1 #1", "list t1"]


@pytest.mark.parametrize("word", ["refused", "unanswered"])
def test_a_late_answer_that_it_was_stopped_counts(word: str) -> None:
    """An orchestrator that was away for long, or thought better of it, has stopped the session: the page is closed."""
    desk = Desk(Ladder(answer_attempts=1))
    verdict = termination(desk.alert("a", level="terminate")).termination_id
    called = told(desk.word("refused", verdict) if word == "refused" else desk.later(seconds=60))
    assert (called.kind, called.resolves) == (word, False)
    desk.later(days=1)
    over = told(desk.word("obeyed", verdict))
    assert (over.kind, over.resolves, over.incident_id) == ("ended", True, called.incident_id)
    assert desk.warn("b") == [], "what was under way"
    assert desk.word("obeyed", verdict) == []


def test_only_the_latest_termination_is_answered() -> None:
    """One that was asked anew is not answered by an answer to the former."""
    desk = Desk(Ladder(answer_attempts=1))
    former = termination(desk.alert("a", level="terminate")).termination_id
    desk.later(seconds=60)
    latest = termination(desk.alert("b", level="terminate")).termination_id
    assert desk.word("obeyed", former) == []
    assert short(desk.word("obeyed", latest)) == ["ended over!"]


def test_one_attempt_calls_a_person_without_a_repetition() -> None:
    """As the policy says."""
    desk = Desk(Ladder(answer_attempts=1))
    desk.alert("a", level="terminate")
    assert short(desk.later(seconds=60)) == ["unanswered!"]


def test_a_pause_ends() -> None:
    """Nothing is told of it: the climb goes on with the next alert."""
    desk = Desk(Ladder(order=("cooldown",), warn_most="cooldown", cooldown_seconds=300))
    desk.warn("a")
    assert desk.due == NOW + timedelta(seconds=300)
    assert desk.later(seconds=300) == []
    assert desk.state.climbs["s1"].cooldown_ms == 0


def test_an_entry_expires_when_it_says_so() -> None:
    """The task may be tried again without a person; an empty record takes the entry out."""
    desk = Desk(Ladder(order=("abandon",), warn_most="abandon", flapping_days=2))
    entry = next(output for output in desk.alert("a") if isinstance(output, KnownFlapping))
    assert entry.expires_at == desk.due == NOW + timedelta(days=2)
    assert desk.later(days=2, milliseconds=-1) == []
    assert short(desk.later(milliseconds=1)) == ["unlist t1"]
    assert desk.later(seconds=1) == []


def test_a_ladder_of_which_nothing_is_heard_is_dropped() -> None:
    """After a week, and nobody is told: the state then equals a fresh one."""
    desk = Desk()
    desk.warn("a")
    desk.later(seconds=1)
    assert desk.due == NOW + timedelta(days=7)
    desk.now = NOW + timedelta(days=7, milliseconds=-1)
    assert desk.look() == []
    assert desk.state != LadderState()
    assert desk.later(milliseconds=1) == []
    assert desk.state == LadderState()
    assert desk.due is None


def test_a_ladder_is_kept_as_long_as_its_entry() -> None:
    """Else nobody would take the entry out."""
    desk = Desk(Ladder(order=("abandon",), warn_most="abandon", flapping_days=30))
    desk.alert("a")
    assert desk.later(days=29) == []
    assert short(desk.later(days=1)) == ["unlist t1"]
    assert desk.state == LadderState()


def test_a_ladder_is_kept_while_an_answer_is_waited_for() -> None:
    """However long the policy waits."""
    desk = Desk(Ladder(answer_seconds=604_800, answer_attempts=2, flapping_days=1))
    desk.alert("a", level="terminate")
    assert short(desk.later(days=1)) == ["unlist t1"]
    assert short(desk.later(days=6)) == ["stop s1 #2"]
    assert short(desk.later(days=7)) == ["unanswered!"]
    assert desk.state == LadderState()


@pytest.mark.parametrize("back", [timedelta(hours=1), timedelta(days=400)])
def test_a_clock_set_back_delays_by_no_more_than_the_length(back: timedelta) -> None:
    """Everything that was timed is due, at the latest, its own length after the clock was set."""
    desk = Desk(Ladder(answer_seconds=60, cooldown_seconds=300, flapping_days=1))
    desk.alert("w0", session_id="s2")
    desk.alert("w1", session_id="s2")
    desk.alert("a", level="terminate")
    desk.now = NOW - back
    assert desk.look() == []
    assert desk.state.last_ms <= desk.state.flapping_ms <= int((desk.now + timedelta(days=1)).timestamp() * 1_000)
    assert short(desk.later(seconds=60)) == ["stop s1 #2"]
    desk.later(seconds=240)
    assert desk.state.climbs["s2"].cooldown_ms == 0
    assert "unlist t1" in short(desk.later(days=1))


def test_a_clock_set_back_keeps_no_session_active() -> None:
    """A session last heard of at a time that is now to come counts as heard of now, not later."""
    desk = Desk()
    desk.event("s2")
    desk.now = NOW - timedelta(hours=5)
    desk.look()
    desk.now += timedelta(hours=2)
    assert asked(desk.alert("a", level="terminate", scope="task")) == ["abandon s1", "stop s1 #1", "list t1"]


def test_a_clock_set_back_does_not_silence_a_stopped_session() -> None:
    """It is answered again after the time for answers, by the new clock."""
    desk = Desk()
    desk.word("obeyed", termination(desk.alert("a", level="terminate")).termination_id)
    desk.now = NOW - timedelta(hours=5)
    assert desk.warn("b") == []
    desk.now += timedelta(seconds=61)
    assert desk.warn("c") == ["inject_guidance s1", "inject_guidance!"]


def test_a_clock_set_forward_ends_things_early() -> None:
    """And nothing worse: one turn repeats a termination once, not as often as it would have been."""
    desk = Desk()
    desk.alert("a", level="terminate")
    assert short(desk.later(hours=5)) == ["stop s1 #2"]


def test_shorter_times_of_a_new_policy_hold_for_what_waits() -> None:
    """What lies further ahead than it can is brought back."""
    desk = Desk(Ladder(answer_seconds=3_600))
    desk.alert("a", level="terminate")
    desk.policy = Ladder(answer_seconds=10)
    assert desk.look() == []
    assert short(desk.later(seconds=10)) == ["stop s1 #2"]


def test_a_fresh_ladder_is_not_timed() -> None:
    """There is nothing to wait for."""
    desk = Desk()
    assert desk.due is None
    assert desk.look() == []
    assert desk.state == LadderState()
