"""What is counted for a configuration: once for each task, whatever is said how often."""

from __future__ import annotations

from typing import Any

import pytest

from detectors.tasks.facts import Spent
from schemas.common import Agent, Task
from streams.escalation.ladder import Tally
from streams.escalation.state import MAX_CONFIGS
from streams.policy.model import Ladder, Rung
from tests.streams.escalation.ladder_kit import Desk, a_review, an_attempt

WHO: dict[str, Any] = {"agent": Agent(name="coder", model="m", config="c"), "task": Task(type="bugfix")}


def total(desk: Desk, name: str) -> float:
    """Add up what was counted under one name."""
    return sum(float(getattr(tally, name)) for tally in desk.tallies)


def test_a_task_and_its_attempts_are_counted_under_the_configuration() -> None:
    """The task once, each attempt that was one, and what was spent."""
    desk = Desk()
    for outcome in ("failed", "partial", "skipped", "success"):
        desk.event(attempt=an_attempt(outcome), spent=Spent(tokens=10, cost=0.5), **WHO)
    assert {(tally.name, tally.model, tally.config, tally.task_type) for tally in desk.tallies} == {
        ("coder", "m", "c", "bugfix")
    }
    counted = [total(desk, name) for name in ("tasks", "attempts", "converged", "flapped", "tokens", "cost")]
    assert counted == [1, 3, 1, 0, 40, 2.0]


@pytest.mark.parametrize("fields", [{"attempt": an_attempt("success", derived=True)}, {"review": a_review("merged")}])
def test_convergence_counts_once(fields: dict[str, Any]) -> None:
    """Whether it was sent or read from tool calls, or the change was merged."""
    desk = Desk()
    desk.event(**fields)
    desk.event(**fields)
    assert total(desk, "converged") == 1


@pytest.mark.parametrize("rung", ["escalate_human", "abandon", "terminate"])
def test_what_needs_a_person_counts_as_flapped_once(rung: Rung) -> None:
    """However many such steps a task comes to."""
    desk = Desk(Ladder(order=(rung, "escalate_human"), warn_most="escalate_human"))
    desk.alert("a", **WHO)
    assert [total(desk, "flapped"), total(desk, "tasks")] == [1, 1]
    desk.alert("b", session_id="s2", **WHO)
    assert total(desk, "flapped") == 1


@pytest.mark.parametrize("rung", ["escalate_human", "abandon", "terminate"])
def test_a_false_alarm_takes_back_that_a_task_flapped(rung: Rung) -> None:
    """Of the configuration that was counted for one of the climb's alerts; should it flap again, it counts again."""
    desk = Desk(Ladder(order=(rung,), warn_most=rung))
    desk.alert("a", **WHO)
    desk.word("false_alarm", "a")
    assert desk.tallies[-1] == Tally("coder", "m", "c", "bugfix", flapped=-1)
    desk.word("false_alarm", "a")
    assert total(desk, "flapped") == 0
    desk.state.used = {}
    desk.alert("b", **WHO)
    assert total(desk, "flapped") == 1


def test_a_false_alarm_leaves_what_flapped_for_another_alert() -> None:
    """One session's alert was wrong, another's was not, and neither was what a person has settled since."""
    desk = Desk(Ladder(order=("terminate",), warn_most="terminate"))
    desk.alert("a", **WHO)
    desk.alert("b", session_id="s2", agent=Agent(name="other"))
    desk.word("false_alarm", "b", session_id="s2")
    assert [(tried.name, tried.flapped) for tried in desk.state.configs if tried.name] == [
        ("coder", True),
        ("other", False),
    ]
    desk.word("resume")
    desk.word("false_alarm", "a")
    assert total(desk, "flapped") == 1


def test_milder_steps_do_not_count_as_flapped() -> None:
    """The task is counted as one that was alerted about."""
    desk = Desk()
    desk.alert("a", **WHO)
    assert desk.tallies == [Tally("coder", "m", "c", "bugfix", tasks=1)]


def test_each_configuration_of_a_task_is_counted() -> None:
    """A rotation makes it another one's task, too."""
    desk = Desk()
    for model in ("x", "y", "x"):
        desk.event(agent=Agent(model=model))
    assert desk.tallies == [Tally("", "x", "", "", tasks=1), Tally("", "y", "", "", tasks=1)]


def test_an_event_without_an_agent_counts_for_nobody() -> None:
    """Not for whoever was at work before."""
    desk = Desk()
    desk.event(**WHO)
    desk.event(attempt=an_attempt("failed"))
    assert desk.tallies[-1] == Tally("", "", "", "bugfix", tasks=1, attempts=1)


def test_an_alert_without_an_agent_counts_for_the_latest() -> None:
    """Alerts of detectors that do not know who acted are still about somebody."""
    desk = Desk(Ladder(order=("escalate_human",)))
    desk.event(**WHO)
    desk.alert("a")
    assert desk.tallies[-1] == Tally("coder", "m", "c", "bugfix", flapped=1)


@pytest.mark.parametrize("fields", [{"muted": True}, {"mode": "observe"}, {"level": "recovered"}])
def test_what_asks_nothing_counts_nothing(fields: dict[str, Any]) -> None:
    """Nor does an event that brings nothing new."""
    desk = Desk()
    desk.alert("a", **fields)
    assert desk.tallies == []


def test_configurations_of_a_task_are_bounded() -> None:
    """One beyond the bound makes the oldest one new again; at the bound none is."""
    desk = Desk()
    for number in range(MAX_CONFIGS):
        desk.event(agent=Agent(name=f"n{number}"))
    desk.event(agent=Agent(name="n0"))
    assert total(desk, "tasks") == MAX_CONFIGS
    desk.event(agent=Agent(name="one more"))
    desk.event(agent=Agent(name="n0"))
    assert total(desk, "tasks") == MAX_CONFIGS + 2
    assert len(desk.state.configs) == MAX_CONFIGS
