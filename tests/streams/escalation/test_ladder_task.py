"""A task that spins over its sessions: its own climb, and what stops them all."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest

from schemas.common import Agent
from schemas.outputs import Notification, Termination
from streams.escalation.state import MAX_ACTIVE, MAX_CLIMBS
from streams.policy.model import Budgets, Ladder
from tests.streams.escalation.ladder_kit import Desk, an_attempt, asked, directive, short, termination, told

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streams.escalation.context import Output


def test_a_task_climbs_by_itself() -> None:
    """Warnings about the task, from whichever session, climb together, and apart from the sessions' own."""
    desk = Desk(Ladder(cooldown_seconds=0.001))
    assert asked(desk.alert("a", scope="task", session_id="s1")) == ["inject_guidance s1"]
    assert asked(desk.alert("b", scope="task", session_id="s2")) == ["cooldown s2"]
    assert asked(desk.alert("c", scope="session", session_id="s2")) == ["inject_guidance s2"]


def test_a_termination_of_a_task_is_for_all_its_active_sessions() -> None:
    """First it is given up, then every session heard of within the hour is stopped; people are told once."""
    desk = Desk()
    desk.event("s0")
    desk.now += timedelta(milliseconds=1)
    desk.event("s2")
    desk.now += timedelta(hours=1)
    outputs = desk.alert("a", level="terminate", scope="task", session_id="s1", agent=Agent(name="coder"))
    assert short(outputs) == ["abandon s1", "stop s1 #1", "stop s2 #1", "list t1", "terminate!"]
    own, other = (output for output in outputs if isinstance(output, Termination))
    assert own.agent == Agent(name="coder")
    assert other.agent is None
    assert (other.alert_id, other.report.title) == ("a", "identical: 3 times in task t1")
    assert own.termination_id != other.termination_id
    assert told(outputs).answers == own.termination_id


def test_what_is_stopped_already_is_not_stopped_again() -> None:
    """Neither a session that waits for its answer, nor one that has ended."""
    desk = Desk()
    desk.alert("a", level="terminate", session_id="s1")
    desk.warn("b", session_id="s2")
    desk.word("ended", session_id="s2")
    assert asked(desk.alert("c", level="terminate", scope="task", session_id="s3")) == [
        "abandon s3",
        "stop s3 #1",
        "list t1",
    ]


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_stopped_session_is_stopped_again_only_if_it_goes_on(goes_on: bool) -> None:  # noqa: FBT001 -- a case
    """Heard of after its end, it is at work again; else it is left alone, though it was active within the hour."""
    desk = Desk()
    verdict = termination(desk.alert("a", level="terminate", session_id="s1")).termination_id
    desk.word("obeyed", verdict, session_id="s1")
    desk.now += timedelta(minutes=2)
    if goes_on:
        desk.event("s1")
    outputs = desk.alert("b", level="terminate", scope="task", session_id="s2")
    stopped = [output.session_id for output in outputs if isinstance(output, Termination)]
    assert stopped == (["s2", "s1"] if goes_on else ["s2"])


def test_the_session_that_an_alert_comes_from_is_at_work() -> None:
    """Whatever was said of its end before."""
    desk = Desk()
    desk.warn("w")
    desk.word("ended")
    desk.now += timedelta(minutes=2)
    assert asked(desk.alert("b", level="terminate", scope="task")) == ["abandon s1", "stop s1 #1", "list t1"]


def test_once_all_sessions_are_to_be_stopped_the_task_asks_nothing() -> None:
    """Until one is heard of that is not."""
    desk = Desk()
    desk.alert("a", level="terminate", scope="task", session_id="s1")
    assert desk.alert("b", level="terminate", scope="task", session_id="s1") == []
    assert desk.warn("c", scope="task") == []
    assert desk.warn("d", scope="task", level="notice") == []
    assert asked(desk.alert("e", level="terminate", scope="task", session_id="s2")) == ["stop s2 #1", "list t1"]


def test_giving_up_first_has_the_task_s_budget_and_must_be_in_the_order() -> None:
    """It is asked once; without the rung, never; nor is a part left out of what is stopped."""
    only = Desk(Ladder(order=("terminate",)))
    assert asked(only.alert("a", level="terminate", scope="task")) == ["stop s1 #1", "list t1"]
    none = Desk(Ladder(budget=Budgets(abandon=0)))
    assert asked(none.alert("a", level="terminate", scope="task")) == ["stop s1 #1", "list t1"]
    skip = Desk()
    assert directive(skip.alert("a", level="terminate", scope="task", suggested_strategy="skip_subtask")).action == (
        "abandon"
    )


def test_the_incident_is_over_when_the_last_session_has_answered() -> None:
    """The first answer leaves it open; the last one closes it, once."""
    desk = Desk()
    desk.event("s2")
    outputs = desk.alert("a", level="terminate", scope="task", session_id="s1")
    first, second = (output.termination_id for output in outputs if isinstance(output, Termination))
    assert desk.word("obeyed", first, session_id="s1") == []
    over = told(desk.word("obeyed", second, session_id="s2"))
    assert (over.kind, over.resolves, over.incident_id) == ("ended", True, told(outputs).incident_id)
    assert desk.state.climbs[""].incident == ""


def test_a_session_with_an_incident_of_its_own_has_part_in_the_task_s_too() -> None:
    """Its answer closes both, else the page about a task whose sessions are all stopped would stay open."""
    desk = Desk()
    own = told(desk.alert("w", session_id="s1")).incident_id
    task = desk.alert("a", level="terminate", scope="task", session_id="s1")
    assert closed(desk.word("obeyed", stops(task)["s1"])) == [own, told(task).incident_id]
    assert desk.state.climbs[""].incident == ""


@pytest.mark.parametrize("goes_on", ["refused", "unanswered"])
@pytest.mark.parametrize("end", ["obeyed", "ended", "resume", "false_alarm", "clear"])
def test_the_incident_stays_open_while_a_session_goes_on_all_the_same(goes_on: str, end: str) -> None:
    """The others' answers do not say that nothing is left to be done; what becomes of that session does."""
    desk = Desk(Ladder(answer_attempts=1))
    desk.event("s2")
    task = desk.alert("a", level="terminate", scope="task", session_id="s1")
    if goes_on == "refused":
        desk.word("refused", stops(task)["s2"], session_id="s2")
    else:
        desk.word("obeyed", stops(task)["s1"], session_id="s1")
        assert told(desk.later(minutes=1)).kind == "unanswered"
    assert closed(desk.word("ended", session_id="s1")) == []
    answers = {"obeyed": stops(task)["s2"], "false_alarm": "a"}.get(end, "")
    assert closed(desk.word(end, answers, session_id="s2")) == [told(task).incident_id]
    assert not any(climb.joint or climb.unstopped for climb in desk.state.climbs.values())


def test_a_loop_of_its_own_that_is_over_does_not_stop_a_session_for_the_task() -> None:
    """Its own incident is closed, that of the task waits for its answer."""
    desk = Desk()
    own = told(desk.alert("w", session_id="s1")).incident_id
    task = desk.alert("a", level="terminate", scope="task", session_id="s1")
    assert closed(desk.alert("r", level="recovered", session_id="s1")) == [own]
    assert closed(desk.word("ended", session_id="s1")) == [told(task).incident_id]


def test_a_task_s_incident_goes_on_while_a_session_has_part_in_it() -> None:
    """What is begun about the task then is the same incident, so that it is closed once and no other stays open."""
    desk = Desk()
    task = desk.alert("a", level="terminate", scope="task", session_id="s1")
    desk.word("refused", stops(task)["s1"])
    assert closed(desk.event("s1", attempt=an_attempt("success"))) == []
    again = desk.alert("b", level="terminate", scope="task", session_id="s1")
    assert told(again).incident_id == told(task).incident_id
    assert closed(desk.word("obeyed", stops(again)["s1"])) == [told(task).incident_id]


def stops(outputs: Iterable[Output]) -> dict[str, str]:
    """Give the ids of terminations, by session."""
    return {output.session_id: output.termination_id for output in outputs if isinstance(output, Termination)}


def closed(outputs: Iterable[Output]) -> list[str]:
    """Give the incidents that are over."""
    return [output.incident_id for output in outputs if isinstance(output, Notification) and output.resolves]


def test_a_repeated_termination_of_another_session_says_what_the_first_one_said() -> None:
    """Its report is on the task's alert, of which the session's own climb knows nothing."""
    desk = Desk()
    desk.event("s2")
    first = [output for output in desk.alert("a", level="terminate", scope="task") if isinstance(output, Termination)]
    again = [output for output in desk.later(minutes=1) if isinstance(output, Termination)]
    assert [msgspec.structs.replace(output, attempt=1) for output in again] == first


def test_who_waits_for_an_answer_makes_no_room() -> None:
    """The climb quiet longest goes, but not while somebody has to answer for it, nor the task's own."""
    desk = Desk(Ladder(answer_seconds=604_800))
    desk.warn("t", scope="task", session_id="s0")
    desk.alert("a", level="terminate", session_id="s1")
    for number in range(2, MAX_CLIMBS):
        desk.now += timedelta(seconds=1)
        desk.warn(f"w{number}", session_id=f"s{number}")
    assert len(desk.state.climbs) == MAX_CLIMBS
    desk.warn("z", session_id="z")
    assert set(desk.state.climbs) == {"", "s1", *(f"s{number}" for number in range(3, MAX_CLIMBS)), "z"}


def test_as_many_sessions_are_stopped_as_are_remembered() -> None:
    """All of the latest ones wait for their answers beside the task's climb."""
    desk = Desk(reload=False)
    for number in range(MAX_ACTIVE + 5):
        desk.warn(f"w{number}", session_id=f"s{number}")
        desk.now += timedelta(seconds=1)
    outputs = desk.alert("a", level="terminate", scope="task", session_id="s-last")
    stopped = [output.session_id for output in outputs if isinstance(output, Termination)]
    assert stopped == ["s-last", *(f"s{number}" for number in range(6, MAX_ACTIVE + 5))]
    waiting = [key for key, climb in desk.state.climbs.items() if climb.pending]
    assert sorted(waiting) == sorted(stopped)
    assert "" in desk.state.climbs
