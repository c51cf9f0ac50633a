"""What people are told, and for how long it is one incident: from the first step of a climb until that is over.

A termination of a whole task is one incident of all its sessions, over when the last of them is stopped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from schemas.outputs import Notification
from streams.escalation.context import output_id
from streams.escalation.kept import recalled, recalled_pending, told_task
from streams.escalation.report import report
from streams.escalation.words import sentence, steps

if TYPE_CHECKING:
    from collections.abc import Iterable

    from schemas.outputs import Alert, NotificationKind, Report, Severity
    from streams.escalation.context import Turn
    from streams.escalation.state import Climb, LadderState

_SEVERITY: dict[NotificationKind, Severity] = {
    "rotate_strategy": "warning",
    "force_implementation": "warning",
    "escalate_human": "error",
    "abandon": "error",
    "skip_subtask": "error",
    "terminate": "critical",
    "refused": "critical",
    "unanswered": "critical",
}
"""How much of a hurry there is; of the rest nothing is asked of anyone."""


def incident(turn: Turn, key: str, climb: Climb, cause: str) -> str:
    """Return the incident of a climb, a new one when it has none; of a task that which its sessions still have part in.

    Args:
        turn: what is at hand.
        key: of the climb.
        climb: the climb.
        cause: id of what it begins with.
    """
    joint = "" if key else next((each.joint for each in turn.state.climbs.values() if each.joint), "")
    climb.incident = climb.incident or joint or output_id("incident", turn.state.task_id, key, cause)
    return climb.incident


def reported(state: LadderState, climb: Climb, alert: Alert) -> Report:
    """Word the report on an alert, with what its climb and the task were taken to so far.

    Args:
        state: the task's ladder.
        climb: what was climbed.
        alert: the alert.
    """
    return report(alert, steps({**climb.used, **state.used}, {*climb.refused, *state.refused}))


def notification(
    turn: Turn,
    kind: NotificationKind,
    climb: Climb,
    alert: Alert,
    *cause: str,
    answers: str | None = None,
    resolves: str = "",
    said: str = "",
    step: str = "",
) -> Notification:
    """Return what people are told.

    Args:
        turn: what is at hand.
        kind: what happened.
        climb: gives the incident, and what was done before.
        alert: what it is about.
        cause: ids of what brought it about.
        answers: the directive or termination that it is about.
        resolves: the incident that is over by it.
        said: what is known beside, see `sentence`.
        step: likewise.
    """
    return Notification(
        notification_id=output_id("notification", kind, *cause),
        kind=kind,
        severity=_SEVERITY.get(kind, "info"),
        incident_id=resolves or climb.incident,
        resolves=bool(resolves),
        sinks=turn.policy.notify,
        session_id=alert.session_id,
        task_id=turn.state.task_id,
        alert_id=alert.alert_id,
        loop_id=alert.loop_id,
        detector=alert.detector,
        answers=answers,
        agent=alert.agent,
        task=told_task(alert.task or turn.state.task),
        issued_at=turn.now,
        text=sentence(kind, alert, said, step),
        report=reported(turn.state, climb, alert),
    )


def over(
    turn: Turn, kind: NotificationKind, gone: Iterable[tuple[str, Climb]], fallback: Alert, *cause: str
) -> list[Notification]:
    """Tell people, once for each incident, that climbs are over, unless another one of it is still to be stopped.

    Args:
        turn: what is at hand; climbs that are gone for good are taken out of its state before.
        kind: why they are over.
        gone: the climbs, by key; their incidents are emptied.
        fallback: what it is about, for a climb that knows of no alert.
        cause: ids of what brought it about.
    """
    outputs: list[Notification] = []
    told: set[str] = set()
    for key, climb in gone:
        for name in _given_up(kind, climb):
            others = [other for other in turn.state.climbs.values() if name in {other.incident, other.joint}]
            if name in told or any(other.pending or other.unstopped for other in others if other is not climb):
                continue
            told.add(name)
            for other in others:
                _leave(other, name)
            about = _about(turn.state, key, climb) or fallback
            outputs.append(notification(turn, kind, climb, about, *cause, name, resolves=name))
    return outputs


def _given_up(kind: NotificationKind, climb: Climb) -> list[str]:
    """Take a climb out of its incidents, and return them; that its own loop is over does not stop it for the task."""
    names = [name for name in dict.fromkeys((climb.incident, climb.joint)) if name]
    if kind == "recovered":
        names = [name for name in names if name != climb.joint]
    for name in names:
        _leave(climb, name)
    return names


def _leave(climb: Climb, name: str) -> None:
    if climb.incident == name:
        climb.incident = ""
    if climb.joint == name:
        climb.joint = ""


def _about(state: LadderState, key: str, climb: Climb) -> Alert | None:
    if climb.pending is not None:
        return recalled_pending(state, key, climb, climb.pending)
    return recalled(state, key, climb)
