"""Runs the detectors over recorded sessions in this process, without Kafka, and keeps account of what came of it.

The same code as in the worker sees the same events in the same order, so that the alerts are the same. Reads no file
and prints nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from detectors import Limits, SessionState, TaskState, observe_task, step
from schemas.events import ToolCall

if TYPE_CHECKING:
    from schemas.outputs import Alert, Mode
    from streams.importers import Session

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
        mode: what the limits let be done about them.
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


def play(session: Session, limits: Limits) -> Played:
    """Run the detectors over one session, and over what it tells of its task.

    Other sessions of the task have no part in it: each is judged as if it were the first.

    Args:
        session: the session.
        limits: the limits that apply to it.
    """
    state, tasks = SessionState(), defaultdict[str, TaskState](TaskState)
    played = Played(session, [], limits.mode)
    for event in session.events:
        alerts, told = step(state, event, limits)
        played.alerts.extend(alerts)
        if told is not None:
            found = observe_task(tasks[told.task_id], told, limits)
            played.alerts.extend(found)
            played.calls.update((alert.alert_id, max(0, state.calls - 1)) for alert in found)
    return played


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
        mode: what the limits let be done about the alerts.
        sessions: how many were played.
        calls: tool calls in them.
        verdicts: sessions by the highest level reached; None for quiet ones.
        alerts: alerts by detector and level.
    """

    mode: Mode = "enforce"
    sessions: int = 0
    calls: int = 0
    verdicts: Counter[Verdict | None] = field(default_factory=Counter)
    alerts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, played: Played) -> None:
        """Count a session in."""
        self.sessions += 1
        self.calls += played.session.calls
        self.verdicts[played.verdict] += 1
        self.alerts.update((alert.detector, alert.level) for alert in played.alerts)

    def reached(self, level: Verdict) -> int:
        """Tell how many sessions reached a level or a higher one."""
        return sum(self.verdicts[verdict] for verdict in reaching(level))
