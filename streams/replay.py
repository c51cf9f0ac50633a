"""Runs the detectors over recorded sessions in this process, without Kafka, and keeps account of what came of it.

The same code as in the worker sees the same events in the same order, under the limits that the policy has for them, so
that the alerts are the same. Reads no file and prints nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from detectors import SessionState, TaskState, observe_task, step
from schemas.common import Agent, Task
from schemas.events import ToolCall
from streams.policy.conditions import Facts

if TYPE_CHECKING:
    from schemas.outputs import Alert, Mode
    from streams.importers import Session
    from streams.policy.policy import Policy

Verdict = Literal["terminate", "warn", "notice"]

_VERDICTS: tuple[Verdict, ...] = ("terminate", "warn", "notice")


def reaching(level: Verdict) -> tuple[Verdict, ...]:
    """Give the levels that reach a level: itself and those above it."""
    return _VERDICTS[: _VERDICTS.index(level) + 1]


@dataclass(frozen=True, slots=True)
class Played:
    """A session and what the detectors said of it.

    Attributes:
        session: the session.
        alerts: in the order in which they came.
        mode: what the limits let be done about them, those of its last event.
        calls: for each alert of a task, by its id, the call after which it came.
    """

    session: Session
    alerts: list[Alert]
    mode: Mode = "enforce"
    calls: dict[str, int] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict | None:
        """The highest level that was reached; None when the session is quiet."""
        levels = {alert.level for alert in self.alerts}
        return next((verdict for verdict in _VERDICTS if verdict in levels), None)

    def call_of(self, alert: Alert) -> int:
        """Tell the position, from 0, of the call at which an alert came."""
        return self.calls.get(alert.alert_id, alert.seq)

    def positions(self) -> dict[str, int]:
        """Give the position, from 0, of every call among the session's calls, by event id."""
        calls = (event for event in self.session.events if isinstance(event, ToolCall))
        return {call.event_id: position for position, call in enumerate(calls)}


def play(session: Session, policy: Policy) -> Played:
    """Run the detectors over one session, and over what it tells of its task.

    Other sessions of the task have no part in it: each is judged as if it were the first.

    Args:
        session: the session.
        policy: says by which limits it is judged.
    """
    state, tasks = SessionState(), defaultdict[str, TaskState](TaskState)
    alerts: list[Alert] = []
    calls: dict[str, int] = {}
    limits = policy.common
    for event in session.events:
        limits = policy.limits(event.agent or state.agent, event.task or state.task)
        found, told = step(state, event, limits)
        alerts += found
        if told is not None:
            task = tasks[told.task_id]
            of_task = observe_task(task, told, policy.limits(told.agent or task.agent, told.task or task.task))
            alerts += of_task
            calls.update((alert.alert_id, max(0, state.calls - 1)) for alert in of_task)
    return Played(session, alerts, limits.mode, calls)


def assume(session: Session, facts: Facts) -> Session:
    """Have a session say of its agent and task what its recording does not say.

    Args:
        session: the session.
        facts: what is taken for true where it says nothing.
    """
    agent: Agent | None = None
    task: Task | None = None
    events = []
    for event in session.events:  # what an event does not say was said before, or by nobody
        agent, task = event.agent or agent, event.task or task
        events.append(msgspec.structs.replace(event, agent=_with_role(agent, facts), task=_with_task(task, facts)))
    return replace(session, events=events)


def _with_role(agent: Agent | None, facts: Facts) -> Agent | None:
    if facts.role is None:
        return agent
    agent = agent or Agent()
    return msgspec.structs.replace(agent, role=agent.role or facts.role)


def _with_task(task: Task | None, facts: Facts) -> Task | None:
    if facts == Facts(role=facts.role):
        return task
    task = task or Task()
    return msgspec.structs.replace(
        task, repo=task.repo or facts.repo, type=task.type or facts.task_type, paths=task.paths or facts.paths
    )


def row(session: Session, alert: Alert) -> dict[str, Any]:
    """Give an alert as one flat object, for programs.

    Args:
        session: the session it came from.
        alert: the alert.
    """
    return {
        "source": session.source,
        "session_id": alert.session_id,
        "scope": alert.scope,
        "seq": alert.seq,
        "level": alert.level,
        "detector": alert.detector,
        "loop_id": alert.loop_id,
        "count": int(alert.count) if float(alert.count).is_integer() else alert.count,
        "spin_score": alert.spin_score,
        "reasoning": alert.reasoning,
        "alert_id": alert.alert_id,
    }


@dataclass(slots=True)
class Totals:
    """What came of all sessions.

    Attributes:
        mode: what the limits for everything let be done about the alerts.
        sessions: how many were played.
        calls: tool calls in them.
        verdicts: sessions by the highest level reached; None for quiet ones.
        outcomes: the same by what their own limits let be done, too.
        alerts: alerts by detector and level.
    """

    mode: Mode = "enforce"
    sessions: int = 0
    calls: int = 0
    verdicts: Counter[Verdict | None] = field(default_factory=Counter)
    outcomes: Counter[tuple[Verdict | None, Mode]] = field(default_factory=Counter)
    alerts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, played: Played) -> None:
        """Count a session in."""
        self.sessions += 1
        self.calls += played.session.calls
        self.verdicts[played.verdict] += 1
        self.outcomes[played.verdict, played.mode] += 1
        self.alerts.update((alert.detector, alert.level) for alert in played.alerts)

    def reached(self, level: Verdict) -> int:
        """Tell how many sessions reached a level or a higher one."""
        return sum(self.verdicts[verdict] for verdict in reaching(level))
