"""What is counted as saved: once for each loop that ended since something was done about it, never for what goes on."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.common import Agent, Task
from schemas.outputs import Termination
from streams.escalation.savings import Saved
from streams.policy.model import Ladder
from tests.streams.escalation.ladder_kit import Desk, an_attempt, termination

SPENT: dict[str, Any] = {"tokens_wasted": 7_000, "cost_wasted": 0.25}
STOPPED = Saved("termination", 7_000, "measured", 0.25)


@pytest.mark.parametrize("word", ["obeyed", "ended"])
def test_a_session_that_was_stopped(word: str) -> None:
    """What its loop had spent is saved once it is stopped, and not again when that is said twice."""
    desk = Desk()
    asked = termination(desk.alert("a", level="terminate", **SPENT))
    assert desk.saved == []
    for _ in range(2):
        desk.word(word, asked.termination_id)
    assert desk.saved == [STOPPED]


@pytest.mark.parametrize("word", ["refused", "false_alarm", "resume"])
def test_a_session_that_goes_on(word: str) -> None:
    """Nothing is saved by what was asked and not done, or taken back."""
    desk = Desk()
    asked = termination(desk.alert("a", level="terminate", **SPENT))
    desk.word(word, asked.termination_id)
    assert desk.saved == []


def test_a_session_that_ends_by_itself() -> None:
    """Nor where nobody had asked it to."""
    desk = Desk()
    desk.warn("a", **SPENT)
    desk.word("ended")
    assert desk.saved == []


def test_one_that_refused_and_was_stopped_after_all() -> None:
    """However late the answer comes."""
    desk = Desk()
    asked = termination(desk.alert("a", level="terminate", **SPENT))
    desk.word("refused", asked.termination_id)
    desk.word("obeyed", asked.termination_id)
    assert desk.saved == [STOPPED]


def test_a_loop_that_recovered_after_a_directive() -> None:
    """What it had spent when it was answered last, estimated where no usage was sent; once, though it is said twice."""
    desk = Desk()
    desk.warn("a", tokens_wasted=4_000, wasted_estimated=True)
    for name in ("r1", "r2"):
        desk.alert(name, level="recovered")
    assert desk.saved == [Saved("directive", 4_000, "estimated", None)]


def test_a_loop_that_recovered_by_itself() -> None:
    """Nothing was asked in mode observe, and of a loop that came back without an answer the first time is over."""
    desk = Desk()
    desk.warn("a", mode="observe", **SPENT)
    desk.alert("r", level="recovered")
    assert desk.saved == []
    desk.policy = Ladder(order=("escalate_human",), warn_most="escalate_human")
    desk.warn("b", **SPENT)
    desk.alert("r2", level="recovered")
    assert len(desk.saved) == 1
    desk.warn("c", **SPENT)  # its budget is spent
    desk.alert("r3", level="recovered")
    assert len(desk.saved) == 1


def test_a_recovery_while_a_termination_waits() -> None:
    """It counts when the session is stopped, and not twice."""
    desk = Desk()
    asked = termination(desk.alert("a", level="terminate", **SPENT))
    desk.alert("r", level="recovered")
    desk.word("obeyed", asked.termination_id)
    assert desk.saved == [STOPPED]


def test_what_a_task_spins_is_saved_once() -> None:
    """However many of its sessions are stopped for it: with the one that the alert came of."""
    desk = Desk()
    for session in ("s1", "s2", "s3"):
        desk.event(session, attempt=an_attempt("failed"))
    stops = [out for out in desk.alert("a", scope="task", level="terminate", **SPENT) if isinstance(out, Termination)]
    asked = {out.session_id: out.termination_id for out in stops}
    assert asked.keys() == {"s1", "s2", "s3"}
    for session in ("s2", "s3"):
        desk.word("obeyed", asked[session], session)
    assert desk.saved == []
    desk.word("obeyed", asked["s1"], "s1")
    assert desk.saved == [STOPPED]


@pytest.mark.parametrize("spins", [True, False])
def test_a_session_that_a_person_stops(spins: bool) -> None:  # noqa: FBT001 - a case
    """What its open loop had spent is saved; without one nothing is."""
    desk = Desk()
    if spins:
        desk.warn("a", **SPENT)
    asked = termination(desk.word("terminate"))
    desk.word("obeyed", asked.termination_id)
    assert desk.saved == ([STOPPED] if spins else [])


def test_tasks_are_counted_by_repository_role_and_type() -> None:
    """Once for each configuration that tried one, with what is known of it, and once that it flapped."""
    desk = Desk(Ladder(order=("escalate_human",), warn_most="escalate_human"))
    who: dict[str, Any] = {"agent": Agent(role="code", model="m"), "task": Task(type="bugfix", repo="acme/shop")}
    for _ in range(2):
        desk.event(attempt=an_attempt("failed"), **who)
    desk.warn("a", "b", **who)
    desk.event(attempt=an_attempt("failed"))
    counted = [(each.repo, each.role, each.task_type, each.tasks, each.flapped) for each in desk.tallies]
    assert [row for row in counted if row[3] or row[4]] == [
        ("acme/shop", "code", "bugfix", 1, 0),
        ("acme/shop", "code", "bugfix", 0, 1),
        ("acme/shop", "", "bugfix", 1, 0),
    ]
