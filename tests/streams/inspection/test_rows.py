"""How sessions and tasks stand follows from ladders, alerts, exceptions and the time, the gravest first."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from schemas.common import Agent, Task
from schemas.events import Control, Override
from streams.escalation.state import Climb, LadderState, Pending
from streams.inspection.facts import Facts
from streams.inspection.rows import session_rows, task_row, task_rows, who
from tests.streams.outputs_kit import alert, known_flapping, now

NOW = now().replace(microsecond=0)
LATER = NOW + timedelta(minutes=5)


def ms(at: datetime) -> int:
    """Give a time as ladders keep it."""
    return round(at.timestamp() * 1_000)


def ladder(**climb: Any) -> LadderState:
    """Make the ladder of t1, on which s1 stands."""
    climb.setdefault("alert", alert())
    return LadderState(task_id="t1", climbs={"s1": Climb(last_ms=ms(NOW), **climb)}, active={"s1": ms(NOW)})


def pending(due: datetime) -> Pending:
    """Make a termination that waits."""
    return Pending("x1", "alert-1", "l1", "identical", "why", NOW, 2, ms(due))


def mute(scope: str = "session:s1", **fields: Any) -> dict[str, Override]:
    """Make an exception that silences."""
    return {scope: Override(scope=scope, set_at=NOW, mute=True, **fields)}


@pytest.mark.parametrize(
    ("climb", "fields", "overrides", "wanted"),
    [
        ({"pending": pending(LATER), "stopped_ms": 1}, {"muted": True}, mute(), "waiting"),
        ({"stopped_ms": 1, "cooldown_ms": ms(LATER)}, {"muted": True}, mute(), "stopped"),
        ({"cooldown_ms": ms(LATER)}, {}, mute(), "muted"),
        ({"cooldown_ms": ms(LATER)}, {}, mute(expires_at=LATER), "muted"),
        ({"cooldown_ms": ms(LATER)}, {}, mute(expires_at=NOW), "cooling_down"),
        ({"unstopped": pending(LATER), "rung": "terminate", "loops": ["l1"]}, {}, {}, "unanswered"),
        ({"unstopped": pending(LATER)}, {"scope": "task"}, mute(), "unanswered"),
        ({"rung": "escalate_human", "loops": ["l1"], "cooldown_ms": ms(LATER)}, {}, {}, "for_person"),
        ({"rung": "escalate_human"}, {}, {}, "warned"),
        ({"rung": "terminate"}, {}, {}, "warned"),
        ({"cooldown_ms": ms(LATER)}, {}, {}, "cooling_down"),
        ({"cooldown_ms": ms(NOW)}, {}, {}, "warned"),
        ({}, {"level": "terminate"}, {}, "warned"),
        ({}, {"level": "notice"}, {}, "noticed"),
        ({}, {"level": "recovered"}, {}, "recovered"),
        ({}, {"mode": "observe"}, {}, "observed"),
        ({}, {"muted": True, "mode": "observe"}, {}, "muted"),
    ],
)
def test_the_state_of_a_session(climb: Any, fields: Any, overrides: Any, wanted: str) -> None:
    """What is being waited for hides what was said; an exception holds until the moment at which it expires."""
    facts = Facts(ladders={"t1": ladder(**climb)}, alerts=[(NOW, alert(**fields))], overrides=overrides)
    (row,) = session_rows(facts, NOW)
    assert row.state == wanted
    assert (row.until is not None) == (
        wanted in {"waiting", "cooling_down"}
        or bool(overrides and row.state == "muted" and overrides["session:s1"].expires_at)
    )
    assert row.attempt == (2 if wanted == "waiting" else None)


@pytest.mark.parametrize(
    ("action", "answers", "climb", "wanted"),
    [
        ("refused", "x1", {"unstopped": pending(LATER)}, "refused"),
        ("refused", "x2", {"unstopped": pending(LATER)}, "unanswered"),
        ("refused", "x1", {"pending": pending(LATER)}, "waiting"),
        ("resume", None, {}, "resumed"),
        ("false_alarm", "alert-1", {}, "false_alarm"),
        ("ended", None, {}, "stopped"),
        ("mode", None, {}, "warned"),
    ],
)
def test_words_tell_what_the_ladder_does_not(action: Any, answers: str | None, climb: Any, wanted: str) -> None:
    """A refusal of this very termination, and what was said since the latest alert; an alert since then counts more."""
    word = Control(event_id="c1", session_id="s1", occurred_at=NOW, action=action, answers=answers)
    facts = Facts({"t1": ladder(**climb)}, alerts=[(NOW, alert())], words={"s1": [(LATER, word)]})
    assert session_rows(facts, LATER)[0].state == wanted
    facts.alerts.append((LATER + timedelta(seconds=1), alert()))
    assert session_rows(facts, LATER)[0].state == (wanted if climb else "warned")


@pytest.mark.parametrize(
    ("action", "answers", "climb", "wanted"),
    [
        ("obeyed", "x1", {"stopped_ms": 1}, "terminate"),
        ("obeyed", "d1", {"stopped_ms": 1}, ""),
        ("ended", "x1", {"stopped_ms": 1}, ""),
        ("obeyed", "x1", {"rung": "cooldown"}, "cooldown"),
        ("obeyed", "x1", {}, ""),
    ],
)
def test_a_session_that_was_stopped_says_what_stopped_it(action: Any, answers: str, climb: Any, wanted: str) -> None:
    """Its ladder begins anew when it obeys, so that the answer to the termination tells; no other answer does."""
    word = Control(event_id="c1", session_id="s1", occurred_at=NOW, action=action, answers=answers)
    facts = Facts({"t1": ladder(**climb)}, words={"s1": [(NOW, word)]}, terminations=frozenset({"x1", "x9"}))
    assert session_rows(facts, LATER)[0].rung == wanted


@pytest.mark.parametrize(
    ("climb", "wanted"),
    [({"rung": "escalate_human", "loops": ["l1"]}, "for_person"), ({"cooldown_ms": ms(LATER)}, "cooling_down")],
)
def test_what_is_asked_for_a_loop_of_the_task(climb: Any, wanted: str) -> None:
    """It concerns the session whose alert it answers, and no other of the task."""
    state = LadderState(task_id="t1", climbs={"": Climb(alert=alert(scope="task"), **climb)})
    facts = Facts({"t1": state}, alerts=[(NOW, alert(scope="task")), (NOW, alert(session_id="s2"))])
    assert {row.session_id: row.state for row in session_rows(facts, NOW)} == {"s1": wanted, "s2": "warned"}


@pytest.mark.parametrize("scope", ["task:t1", "repo:acme/shop", "role:code", "session:other"])
def test_wider_exceptions_silence_too(scope: str) -> None:
    """Those of the task, the repository and the role; another session's does not."""
    found = alert(task=Task(id="t1", repo="acme/shop"), agent=Agent(role="code"))
    (row,) = session_rows(Facts(alerts=[(NOW, found)], overrides=mute(scope)), NOW)
    assert (row.state == "muted") == (scope != "session:other")


def test_a_session_without_alerts_at_hand_is_known_by_its_ladder() -> None:
    """Its latest alert is the ladder's; one that only its task speaks of is left out."""
    state = ladder(rung="cooldown")
    state.active["s2"] = ms(NOW)
    state.agent, state.task = Agent(name="claude-code", role="code"), Task(repo="acme/shop")
    (row,) = session_rows(Facts(ladders={"t1": state}), NOW)
    assert (row.session_id, row.task_id, row.detector, row.rung) == ("s1", "t1", "identical", "cooldown")
    assert row.last_alert is not None
    assert (row.alerts, row.agent) == (0, "claude-code code")
    assert session_rows(Facts(ladders={"t1": state}, overrides=mute("repo:acme/shop")), NOW)[0].state == "muted"


def test_old_ones_are_left_out_unless_something_is_waited_for() -> None:
    """By the time of the latest alert; the newest comes first."""
    times = [NOW - timedelta(hours=hours) for hours in (3, 1, 2)]
    alerts = [(at, alert(session_id=f"s{n}", task_id=f"t{n}")) for n, at in enumerate(times)]
    facts = Facts(alerts=alerts)
    assert [row.session_id for row in session_rows(facts, NOW, times[2])] == ["s1", "s2"]
    facts.ladders["t0"] = LadderState(climbs={"s0": Climb(pending=pending(LATER))})
    assert [row.session_id for row in session_rows(facts, NOW, times[2])] == ["s1", "s2", "s0"]


def test_the_state_of_a_task() -> None:
    """An entry that holds, else what is being done; those that flap come first, quiet ones are left out."""
    facts = Facts(
        ladders={
            "t1": ladder(rung="cooldown", used={"cooldown": 1, "inject_guidance": 1}),
            "t2": LadderState(used={"rotate_strategy": 2}, rotated=["a", "b"], active={"s5": 1}),
            "t3": LadderState(climbs={"": Climb(rung="abandon", used={"abandon": 1})}, used={"abandon": 1}),
        },
        flapping={
            "t3": known_flapping("t3", session_id="s9", expires_at=LATER),
            "t4": known_flapping("t4", expires_at=NOW),
        },
    )
    t3, t1 = task_rows(facts, NOW)
    assert (t3.task_id, t3.state, t3.until, t3.sessions) == ("t3", "known_flapping", LATER, ("s9",))
    assert (t1.task_id, t1.state, t1.until, t1.rung) == ("t1", "climbing", None, "cooldown")
    assert t1.used == {"cooldown": 1, "inject_guidance": 1}
    t2 = task_row(facts, "t2", NOW)
    assert (t2.state, t2.tried, t2.used, t2.sessions) == ("quiet", ("a", "b"), {"rotate_strategy": 2}, ("s5",))
    assert task_row(facts, "t4", NOW).state == "quiet"


def test_who_acts() -> None:
    """What an agent says of itself, its id only where it has no name."""
    assert who(None) == ""
    assert who(Agent(id="r7", role="code")) == "r7 code"
    assert who(Agent(id="r7", name="claude-code", model="opus")) == "claude-code opus"


def test_nobody_waits_for_a_person_where_the_orchestrator_refused_to() -> None:
    """The session goes on, as its orchestrator said."""
    state = ladder(rung="escalate_human", loops=["l1"])
    facts = Facts({"t1": state}, alerts=[(NOW, alert())])
    assert session_rows(facts, NOW)[0].state == "for_person"
    state.refused = ["escalate_human"]
    assert session_rows(facts, NOW)[0].state == "warned"
