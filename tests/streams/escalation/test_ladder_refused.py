"""What follows when an orchestrator answers a directive: the next rung after a refusal, a person where none is left."""

from __future__ import annotations

import pytest

from streams.policy.model import Budgets, Ladder, Rung
from tests.streams.escalation.ladder_kit import Desk, asked, directive, short, termination, told

NO_WAIT = Ladder(cooldown_seconds=0.001)


def test_an_obeyed_directive_changes_nothing() -> None:
    """It is what was asked; whether it helped is seen by the next alert, or by none."""
    desk = Desk()
    step = directive(desk.alert("a"))
    before = desk.state.climbs
    assert desk.word("obeyed", step.directive_id) == []
    assert desk.state.climbs == before


def test_a_refused_directive_leads_to_the_next_rung_at_once() -> None:
    """For the same alert; what was refused is not asked again in this climb."""
    desk = Desk(Ladder(cooldown_seconds=60))
    first = directive(desk.alert("a"))
    second = desk.word("refused", first.directive_id)
    assert short(second) == ["cooldown s1", "cooldown!"]
    assert directive(second).alert_id == "a"
    third = desk.word("refused", directive(second).directive_id)
    assert asked(third) == ["rotate_strategy s1"]
    assert desk.state.climbs["s1"].cooldown_ms == 0
    assert asked(desk.word("refused", directive(third).directive_id)) == ["escalate_human s1"]
    assert desk.state.used == {"rotate_strategy": 1, "escalate_human": 1}
    assert (desk.state.refused, desk.state.climbs["s1"].refused) == (
        ["rotate_strategy"],
        ["inject_guidance", "cooldown"],
    )


@pytest.mark.parametrize("rung", ["inject_guidance", "escalate_human"])
def test_a_refusal_after_which_nothing_is_left_calls_a_person_once(rung: Rung) -> None:
    """The session would run on in silence: who refused it, and why, is told in the incident, which stays open."""
    desk = Desk(Ladder(order=(rung,), warn_most=rung))
    outputs = desk.alert("a")
    step = directive(outputs).directive_id
    word = told(desk.word("refused", step, actor="desk", reason="nobody\u202e is\nthere"))
    assert (word.kind, word.severity, word.resolves, word.answers) == ("refused", "critical", False, step)
    assert (word.incident_id, word.alert_id) == (told(outputs).incident_id, "a")
    assert word.text == (
        f'Session s1 goes on: its orchestrator refused the step "{rung.replace("_", " ")}" (desk: nobody is there), '
        "and no other is left. Nothing more is done about this alert by itself, so see to it by hand."
    )
    assert any(done.endswith(": once, refused") for done in word.report.done)
    assert desk.word("refused", step) == []
    assert desk.alert("b") == []


def test_what_was_refused_of_a_task_is_refused_for_all_its_sessions() -> None:
    """Another session's directive of that rung may be refused still, and a person is called about it, too."""
    desk = Desk(Ladder(order=("rotate_strategy",), warn_most="rotate_strategy"))
    steps = {session: directive(desk.alert(session, session_id=session)).directive_id for session in ("s1", "s2")}
    assert [short(desk.word("refused", step, session_id=session)) for session, step in steps.items()] == [
        ["refused!"],
        ["refused!"],
    ]
    assert desk.state.refused == ["rotate_strategy"]
    assert desk.alert("c", session_id="s3") == []


@pytest.mark.parametrize("word", ["resume", "clear"])
def test_what_was_refused_may_be_asked_again_when_the_ladder_begins_anew(word: str) -> None:
    """For a session as for the task; a session that ended or recovered forgets its own refusals alone."""
    desk = Desk(Ladder(order=("inject_guidance", "rotate_strategy"), warn_most="rotate_strategy"))
    rotation = desk.word("refused", directive(desk.alert("a")).directive_id)
    desk.word("refused", directive(rotation).directive_id)
    assert desk.warn("b") == []
    desk.alert("r", level="recovered")
    again = desk.alert("c")
    assert asked(again) == ["inject_guidance s1"]
    assert short(desk.word("refused", directive(again).directive_id)) == ["refused!"]
    desk.word(word)
    assert asked(desk.alert("d")) == ["inject_guidance s1"]
    assert asked(desk.alert("e")) == ["rotate_strategy s1"]


def test_only_the_latest_directive_can_be_refused() -> None:
    """The ladder has gone on from an earlier one."""
    desk = Desk(NO_WAIT)
    first = directive(desk.alert("a"))
    desk.alert("b")
    assert desk.word("refused", first.directive_id) == []


def test_a_refusal_climbs_no_higher_than_the_alert_may() -> None:
    """After a warning not above the person, in mode warn never to an end; after a termination without a cap."""
    desk = Desk(Ladder(order=("escalate_human", "abandon", "terminate")))
    assert short(desk.word("refused", directive(desk.alert("a")).directive_id)) == ["refused!"]
    grave = Desk(Ladder(order=("escalate_human", "abandon", "terminate"), on_terminate="escalate_human"))
    step = directive(grave.alert("a", level="terminate"))
    assert asked(grave.word("refused", step.directive_id)) == ["abandon s1", "list t1"]
    warn = Desk(Ladder(order=("escalate_human", "abandon", "terminate"), warn_most="terminate"))
    assert short(warn.word("refused", directive(warn.alert("a", mode="warn")).directive_id)) == ["refused!"]


def test_refused_guidance_of_a_notice_climbs_nothing() -> None:
    """A notice is no reason for more; but guidance is not given again in this climb."""
    desk = Desk()
    step = directive(desk.alert("n", level="notice"))
    assert desk.word("refused", step.directive_id) == []
    assert asked(desk.alert("a")) == ["cooldown s1"]


def test_any_session_can_refuse_what_the_task_was_asked() -> None:
    """A directive about the task was given to one of its sessions, and another one may answer for it."""
    desk = Desk()
    step = directive(desk.alert("a", scope="task", session_id="s1"))
    assert asked(desk.word("refused", step.directive_id, session_id="s2")) == ["cooldown s1"]


def test_a_refusal_that_comes_late_changes_nothing() -> None:
    """Once the session is to be stopped, or has recovered."""
    desk = Desk()
    step = directive(desk.alert("a"))
    desk.alert("b", level="terminate")
    assert desk.word("refused", step.directive_id) == []
    other = Desk()
    step = directive(other.alert("a"))
    other.alert("r", level="recovered")
    assert other.word("refused", step.directive_id) == []


def test_a_refusal_of_what_came_before_a_termination_changes_nothing() -> None:
    """Nor does one that names nothing: the termination can be asked again."""
    desk = Desk()
    step = directive(desk.alert("a"))
    verdict = termination(desk.alert("b", level="terminate"))
    desk.word("refused", verdict.termination_id)
    assert desk.word("refused", step.directive_id) == []
    assert desk.word("refused", "") == []
    desk.policy = Ladder(budget=Budgets(terminate=2))
    assert asked(desk.alert("c", level="terminate")) == ["stop s1 #1", "list t1"]


def test_a_refusal_by_a_session_that_has_ended_changes_nothing() -> None:
    """Nobody is left to be asked for more."""
    desk = Desk()
    step = directive(desk.alert("a"))
    desk.word("ended")
    assert desk.word("refused", step.directive_id) == []


def test_a_refusal_by_a_session_that_is_to_be_stopped_changes_nothing() -> None:
    """The task's termination is for it, too, whatever it was asked before."""
    desk = Desk()
    step = directive(desk.alert("w", session_id="s2"))
    desk.alert("a", level="terminate", scope="task", session_id="s1")
    assert desk.word("refused", step.directive_id, session_id="s2") == []
