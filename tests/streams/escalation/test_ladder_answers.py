"""What persons and orchestrators say, and a task's success: what of the ladder is taken back, and what goes on."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from schemas.outputs import Notification
from streams.escalation.state import LadderState
from streams.policy.model import Ladder
from tests.streams.escalation.ladder_kit import (
    Desk,
    a_review,
    an_attempt,
    asked,
    directive,
    short,
    termination,
    told,
)

NO_WAIT = Ladder(cooldown_seconds=0.001)


def stopped(**fields: Any) -> tuple[Desk, str]:
    """Give a ladder on which a termination waits for its answer, and its id."""
    desk = Desk()
    return desk, termination(desk.alert("a", level="terminate", **fields)).termination_id


# Success


@pytest.mark.parametrize("fields", [{"attempt": an_attempt("success")}, {"review": a_review("merged")}])
def test_success_settles_the_task(fields: dict[str, Any]) -> None:
    """Its entry goes, its climb is over, and its budgets are whole again."""
    desk = Desk(NO_WAIT)
    desk.warn("w", scope="task", session_id="s2")
    desk.state.used = {"rotate_strategy": 2}
    desk.state.rotated = ["x"]
    desk.alert("a", level="terminate", session_id="s1")
    assert short(desk.event("s2", **fields)) == ["unlist t1", "recovered over!"]
    assert (desk.state.used, desk.state.rotated, list(desk.state.climbs)) == ({}, [], ["s1"])


@pytest.mark.parametrize(
    "fields",
    [
        {"attempt": an_attempt("success", derived=True)},
        {"attempt": an_attempt("failed")},
        {"review": a_review("approved")},
        {"review": a_review("closed")},
        {"word": "user_message"},
        {},
    ],
)
def test_what_is_no_success_settles_nothing(fields: dict[str, Any]) -> None:
    """Nor does a success that was only read from tool calls."""
    desk, _ = stopped(scope="task")
    before = (desk.state.climbs, desk.state.flapping_ms)
    assert desk.event("s1", **fields) == []
    assert (desk.state.climbs, desk.state.flapping_ms) == before


# Resume, reset, clear


@pytest.mark.parametrize("word", ["resume", "reset"])
def test_to_go_on_takes_back_what_was_asked(word: str) -> None:
    """The session's climb and the task's go, with what waits for an answer; other sessions' stay."""
    desk = Desk(NO_WAIT)
    desk.warn("w1", session_id="s2")
    desk.warn("w2", scope="task")
    desk.alert("a", level="terminate", session_id="s1")
    assert short(desk.word(word)) == ["unlist t1", "resumed over!", "resumed over!"]
    assert list(desk.state.climbs) == ["s2"]
    assert desk.later(hours=1) == []
    assert desk.word(word) == []
    assert asked(desk.alert("w3")) == ["inject_guidance s1"]


def test_to_go_on_gives_the_task_its_budgets_back() -> None:
    """What all sessions used up may be used again."""
    desk = Desk()
    desk.state.used, desk.state.rotated = {"rotate_strategy": 2}, ["x"]
    desk.word("resume")
    assert (desk.state.used, desk.state.rotated) == ({}, [])


def test_to_clear_forgets_the_task() -> None:
    """All climbs are over, each incident once; then the state is as if nothing had happened."""
    desk = Desk()
    desk.event("s2")
    desk.alert("a", level="terminate", scope="task", session_id="s1")
    assert short(desk.word("clear", session_id="s9")) == ["unlist t1", "resumed over!"]
    assert desk.state == LadderState()
    assert desk.due is None


# Answers to a termination


def test_an_obeyed_termination_is_over() -> None:
    """It is not repeated, the incident is over, and what the session still does asks nothing."""
    desk, verdict = stopped()
    assert short(desk.word("obeyed", verdict)) == ["ended over!"]
    assert desk.warn("b") == []
    assert desk.alert("c", level="terminate") == []
    assert desk.word("obeyed", verdict) == []
    assert desk.later(minutes=10) == []


@pytest.mark.parametrize("word", ["obeyed", "ended"])
@pytest.mark.parametrize("level", ["notice", "warn", "terminate"])
def test_a_session_that_goes_on_after_its_end_is_answered_anew(word: str, level: str) -> None:
    """What comes within the time for answers was under way; after it, the session goes on, and begins at the bottom."""
    desk = Desk(Ladder(cooldown_seconds=0.001))
    desk.warn("w1")
    desk.now += timedelta(seconds=1)
    desk.warn("w2", "n1")
    verdict = termination(desk.alert("a", level="terminate")).termination_id
    desk.word(word, verdict)
    desk.now += timedelta(seconds=60)
    assert desk.alert("b", level=level) == []
    desk.now += timedelta(milliseconds=1)
    expected = {"terminate": ["stop s1 #1", "list t1"]}.get(level, ["inject_guidance s1"])
    assert asked(desk.alert("c", level=level)) == expected
    assert desk.state.climbs["s1"].stopped_ms == 0


def test_neither_a_muted_alert_nor_a_recovery_shows_that_a_session_goes_on() -> None:
    """They ask nothing, so they change nothing."""
    desk, verdict = stopped()
    desk.word("obeyed", verdict)
    desk.now += timedelta(hours=1)
    desk.alert("b", muted=True)
    desk.alert("c", level="recovered")
    assert desk.state.climbs["s1"].stopped_ms > 0


def test_an_ended_session_is_over_whatever_was_asked() -> None:
    """Also where nothing was: it is no session to be stopped any more."""
    desk, _ = stopped()
    assert short(desk.word("ended")) == ["ended over!"]
    assert "s1" not in desk.state.active
    assert desk.word("ended") == []
    assert desk.word("ended", session_id="s7") == []
    assert list(desk.state.climbs) == ["s1"]


def test_a_refused_termination_calls_a_person() -> None:
    """The incident stays open, nothing is repeated, and further alerts act again."""
    desk, verdict = stopped()
    word = told(desk.word("refused", verdict, actor="pool-3", reason="no such\n\u202eprocess"))
    assert "refused the termination (pool-3: no such process), so stop it by hand." in word.text
    assert (word.kind, word.severity, word.resolves, word.answers) == ("refused", "critical", False, verdict)
    assert word.incident_id == desk.state.climbs["s1"].incident
    assert desk.word("refused", verdict) == []
    assert desk.later(hours=1) == []
    assert asked(desk.alert("b", level="terminate")) == ["stop s1 #1", "list t1"]


@pytest.mark.parametrize("word", ["obeyed", "refused", "false_alarm"])
@pytest.mark.parametrize("answers", ["", "of something else"])
def test_an_answer_to_nothing_known_changes_nothing(word: str, answers: str) -> None:
    """Nor does one that names nothing."""
    desk, _ = stopped()
    before = desk.state.climbs
    assert desk.word(word, answers) == []
    assert desk.state.climbs == before


def test_an_answer_counts_for_the_session_that_gives_it() -> None:
    """Another session cannot answer a termination."""
    desk, verdict = stopped()
    assert desk.word("obeyed", verdict, session_id="s2") == []
    assert desk.state.climbs["s1"].pending is not None


# False alarms


@pytest.mark.parametrize("which", ["alert", "earlier alert", "directive", "termination"])
def test_a_false_alarm_takes_the_climb_back(which: str) -> None:
    """Whichever of its alerts, or what was asked, the person names; the entry goes with it."""
    desk = Desk(NO_WAIT)
    desk.alert("w1")
    step = directive(desk.alert("w2"))
    answers = {"alert": "w2", "earlier alert": "w1", "directive": step.directive_id}.get(which, "")
    if which == "termination":
        answers = termination(desk.alert("a", level="terminate")).termination_id
    expected = ["unlist t1", "false_alarm over!"] if which == "termination" else ["false_alarm over!"]
    assert short(desk.word("false_alarm", answers)) == expected
    assert desk.state.climbs == {}
    assert desk.word("false_alarm", answers) == []


def test_a_false_alarm_about_a_task_takes_back_all_that_it_asked() -> None:
    """Other sessions that wait because of that alert are let go, too, and what they were asked by themselves stays."""
    desk = Desk()
    desk.event("s2")
    desk.warn("w3", session_id="s3")
    desk.alert("a", level="terminate", scope="task", session_id="s1")
    assert short(desk.word("false_alarm", "a", session_id="s1")) == ["unlist t1", "false_alarm over!"]
    assert [(key, climb.pending) for key, climb in desk.state.climbs.items()] == [("s3", None)]
    assert desk.later(hours=1) == []


def test_an_entry_of_another_alert_stays() -> None:
    """The task is listed because of one session; that another's alert was wrong does not change that."""
    desk, _ = stopped(session_id="s1")
    desk.warn("w", session_id="s2")
    assert short(desk.word("false_alarm", "w", session_id="s2")) == ["false_alarm over!"]
    assert desk.state.flapping_alert == "a"


# A person's termination


def test_a_person_can_stop_a_session_that_nothing_was_said_of() -> None:
    """The verdict names a person as its detector, the task is listed, and people are told."""
    desk = Desk()
    outputs = desk.word("terminate", event_id="e1")
    assert short(outputs) == ["stop s1 #1", "list t1", "terminate!"]
    verdict = termination(outputs)
    assert (verdict.detector, verdict.loop_id, verdict.alert_id) == ("person", "", "e1")
    assert "person" in verdict.reason
    assert "alerts wrong" not in " ".join(verdict.report.commands)
    assert short(desk.later(minutes=1)) == ["stop s1 #2"]


def test_a_person_s_termination_says_what_was_known() -> None:
    """The report is that of the climb's latest alert."""
    desk = Desk()
    desk.alert("a")
    verdict = termination(desk.word("terminate"))
    assert verdict.report.tried == ("read(a.py)",)
    assert verdict.report.title == "stopped on a person's word: session s1"


def test_a_person_s_termination_comes_once() -> None:
    """It is not asked while another one waits, nor again by a record that is there twice."""
    desk, _ = stopped()
    assert desk.word("terminate") == []
    other = Desk()
    verdict = termination(other.word("terminate", event_id="e1"))
    other.word("obeyed", verdict.termination_id)
    assert other.word("terminate", event_id="e1") == []
    assert asked(other.word("terminate", event_id="e2")) == ["stop s1 #1", "list t1"]


def test_going_on_after_a_person_s_termination_closes_it() -> None:
    """Also where no alert was there to speak of."""
    desk = Desk()
    incident = told(desk.word("terminate")).incident_id
    desk.later(minutes=1)
    desk.later(minutes=1)
    assert short(desk.later(minutes=1)) == ["unanswered!"]
    outputs = desk.word("resume")
    assert short(outputs) == ["unlist t1", "resumed over!"]
    assert told(outputs).incident_id == incident


def test_notifications_of_one_word_have_different_ids() -> None:
    """Two incidents that one word closes are two things to be told."""
    desk = Desk()
    desk.warn("w1")
    desk.warn("w2", scope="task")
    ids = [output.notification_id for output in desk.word("resume") if isinstance(output, Notification)]
    assert len(set(ids)) == 2


def test_what_is_heard_of_a_session_makes_it_active() -> None:
    """By events as by alerts."""
    desk = Desk()
    desk.event("s2")
    desk.now += timedelta(minutes=1)
    desk.alert("a")
    assert list(desk.state.active) == ["s2", "s1"]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({}, "a person asked for it"),
        ({"actor": "ada"}, "ada asked for it"),
        ({"actor": "ada", "reason": "wrong\u202e branch\nagain"}, "ada asked for it: wrong branch again"),
    ],
)
def test_a_termination_by_a_person_says_who_asked_and_why(said, reason):
    """What a person gave as reason reaches whoever is to obey, as one clean line."""
    assert termination(Desk().word("terminate", **said)).reason == reason
