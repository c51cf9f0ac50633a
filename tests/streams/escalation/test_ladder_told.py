"""What a step consists of: the directive and how to answer it, what people are told, and what they read."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from schemas.common import Agent, Task
from schemas.encode import encode
from schemas.outputs import Evidence
from streams.escalation.ladder import Cleared
from streams.policy.model import Candidate, Ladder, Rung
from tests.streams.escalation.ladder_kit import NOW, Desk, directive, told

NO_WAIT = Ladder(cooldown_seconds=0.001)


# What a directive says


@pytest.mark.parametrize(
    ("rung", "minutes"), [("inject_guidance", 15), ("rotate_strategy", 60), ("escalate_human", 60)]
)
def test_a_directive_expires_and_says_how_to_answer(rung: Rung, minutes: int) -> None:
    """It has a text, the time after which it is too late, and what the answer is to name."""
    step = directive(Desk(Ladder(order=(rung,), warn_most=rung)).alert("a"))
    assert step.action == rung
    assert step.text
    assert step.expires_at - step.issued_at == timedelta(minutes=minutes)
    assert step.acknowledge.topic == "agent.control"
    assert step.acknowledge.answers == step.directive_id
    assert step.acknowledge.actions == ("obeyed", "refused", "ended")


@pytest.mark.parametrize(("level", "repeats"), [("warn", ("0f",)), ("notice", ())])
def test_a_directive_names_the_repeated_call_of_a_warning(level: Any, repeats: tuple[str, ...]) -> None:
    """What may be refused is what the alert is certain of; a notice is not grave enough for that."""
    step = directive(Desk().alert("a", level=level, evidence=Evidence(repeats=("0f",))))
    assert step.repeats == repeats


def test_a_rotation_says_from_what_and_to_what() -> None:
    """It counts, names the configuration so far, the chosen one, and what was tried before; gaps are filled."""
    desk = Desk(Ladder(order=("rotate_strategy",), warn_most="rotate_strategy", candidates=(Candidate(model="opus"),)))
    desk.chosen = Candidate(name="coder", model="opus")
    who = {"agent": Agent(name="coder", model="small"), "task": Task(type="bugfix")}
    first = directive(desk.alert("a", suggested_strategy="different_files", **who))
    assert first.parameters == {
        "rotation": 1,
        "of": 2,
        "from": "coder/small",
        "to_name": "coder",
        "to_model": "opus",
        "strategy": "different_files",
    }
    assert desk.asked == [((Candidate(name="coder", model="opus"),), frozenset({"coder/small"}), "bugfix")]
    desk.chosen = None
    second = directive(desk.alert("b", **who))
    assert second.parameters == {"rotation": 2, "of": 2, "from": "coder/small", "avoid": "coder/small,coder/opus"}
    assert desk.asked[1][1] == {"coder/small", "coder/opus"}
    assert desk.state.rotated == ["coder/small", "coder/opus"]


def test_a_rotation_without_candidates_is_one_of_the_approach() -> None:
    """Nobody is asked to choose from nothing, and who is not known is said to be unknown."""
    desk = Desk(Ladder(order=("rotate_strategy",), warn_most="rotate_strategy"))
    assert directive(desk.alert("a")).parameters == {"rotation": 1, "of": 2, "from": "unknown"}
    assert desk.asked == []


# What people are told


@pytest.mark.parametrize(
    ("rung", "severity"),
    [
        ("inject_guidance", "info"),
        ("cooldown", "info"),
        ("rotate_strategy", "warning"),
        ("force_implementation", "warning"),
        ("escalate_human", "error"),
        ("abandon", "error"),
        ("terminate", "critical"),
    ],
)
def test_every_step_is_told_with_its_hurry(rung: Rung, severity: str) -> None:
    """One notification a step, for the sinks that the policy names."""
    desk = Desk(Ladder(order=(rung,), warn_most=rung, notify=("pager",)))
    word = told(desk.alert("a", detector="analysis"))
    assert (word.kind, word.severity, word.sinks, word.resolves) == (rung, severity, ("pager",), False)
    assert (word.session_id, word.task_id, word.alert_id, word.issued_at) == ("s1", "t1", "a", NOW)


def test_one_climb_is_one_incident() -> None:
    """All that is told of a climb has its incident; another session's has another."""
    desk = Desk(NO_WAIT)
    first, second = told(desk.alert("a")), told(desk.alert("b"))
    assert first.incident_id == second.incident_id
    assert first.notification_id != second.notification_id
    assert told(desk.alert("c", session_id="s2")).incident_id != first.incident_id


def test_the_report_says_what_was_done_before() -> None:
    """Steps of the climb and of the task, with their number."""
    desk = Desk(NO_WAIT)
    for alert_id in "abc":
        desk.alert(alert_id)
        desk.now += timedelta(seconds=1)
    report = told(desk.alert("z")).report
    assert report.done == ("guidance for the agent: once", "pause: once", "another configuration or approach: 2 times")
    assert "- another configuration or approach: 2 times" in report.markdown.splitlines()


def test_what_was_refused_is_not_told_as_done() -> None:
    """Each rung as often as it was asked, and whether that was refused; guidance of a notice was no step."""
    desk = Desk(NO_WAIT)
    desk.word("refused", directive(desk.alert("n", level="notice")).directive_id)
    step = desk.alert("a")
    rotation = directive(desk.word("refused", directive(step).directive_id))
    assert rotation.action == "rotate_strategy"
    last = desk.word("refused", directive(desk.alert("b")).directive_id)
    assert told(last).report.done == (
        "guidance for the agent: refused",
        "pause: once, refused",
        "another configuration or approach: 2 times, at last refused",
        "person called: once",
    )


def test_what_is_put_out_has_room_on_a_broker() -> None:
    """A task may name a thousand paths, and a termination be for many sessions: each record stays small."""
    desk = Desk()
    desk.event("s2")
    task = Task(id="t1", paths=("x" * 1_000,) * 1_000)
    outputs = desk.alert("a", level="terminate", scope="task", task=task)
    assert len(outputs) == 5
    for output in outputs:
        assert not isinstance(output, Cleared)
        assert len(encode(output)) < 10_000
