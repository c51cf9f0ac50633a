"""Builds what the ladder puts out: directives, terminations, and entries among the known-flapping tasks.

Each has an id derived from the alert that it answers, and says how to answer it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from schemas.outputs import Acknowledgement, Directive, KnownFlapping, Termination
from streams.escalation.context import Cleared, label, length_ms, output_id
from streams.escalation.incidents import reported
from streams.escalation.kept import brief, configuration, kept_name, kept_reason, told_task
from streams.escalation.state import MAX_TRIED, Pending
from streams.escalation.text import line
from streams.escalation.words import told
from streams.policy.model import Candidate

if TYPE_CHECKING:
    from schemas.outputs import Action, Alert
    from streams.escalation.context import Output, Turn
    from streams.escalation.state import Climb
    from streams.policy.model import Rung

ANSWERS = ("obeyed", "refused", "ended")
"""What an orchestrator may answer to a directive or termination: actions of a control record."""

MOST_REASON = 1_000

Parameters = dict[str, str | int | float | bool]


def directive(turn: Turn, rung: Rung, climb: Climb, alert: Alert) -> Directive:
    """Return the directive of a rung, and remember what it changes beside the rung's count.

    Args:
        turn: what is at hand.
        rung: any but ``terminate``.
        climb: what is climbed; it takes up a cooldown.
        alert: the alert that is answered.
    """
    policy = turn.policy
    action = _action(rung, alert)
    lasting = timedelta(minutes=policy.directive_minutes)
    parameters: Parameters = {}
    to = until = ""
    if rung == "inject_guidance":
        lasting = timedelta(minutes=policy.guidance_minutes)
    elif rung == "cooldown":
        lasting = timedelta(seconds=policy.cooldown_seconds)
        climb.cooldown_ms = turn.now_ms + length_ms(lasting)
        until = _written(turn, lasting)
        parameters = {"seconds": policy.cooldown_seconds, "until": until}
    elif rung == "rotate_strategy":
        parameters, to = _rotation(turn, alert)
    directive_id = output_id(action, alert.alert_id)
    return Directive(
        directive_id=directive_id,
        action=action,
        session_id=alert.session_id,
        task_id=alert.task_id,
        alert_id=alert.alert_id,
        loop_id=alert.loop_id,
        detector=alert.detector,
        text=told(action, alert, seconds=policy.cooldown_seconds, until=until, to=to),
        parameters=parameters,
        repeats=() if alert.level == "notice" else alert.evidence.repeats,
        issued_at=turn.now,
        expires_at=turn.now + lasting,
        acknowledge=_acknowledge(turn, directive_id),
    )


def termination(turn: Turn, climb: Climb, alert: Alert) -> Termination:
    """Return the verdict on an alert's session, whose climb waits for the answer from now on.

    Args:
        turn: what is at hand.
        climb: the session's.
        alert: the alert that is answered.
    """
    termination_id = output_id("termination", alert.alert_id, alert.session_id)
    climb.pending = Pending(
        termination_id=termination_id,
        alert_id=brief(alert.alert_id),
        loop_id=brief(alert.loop_id),
        detector=brief(alert.detector),
        reason=kept_reason(alert.reasoning),
        issued_at=turn.now,
        attempt=1,
        due_ms=turn.now_ms + length_ms(timedelta(seconds=turn.policy.answer_seconds)),
    )
    climb.unstopped = None
    return repeated(turn, climb, climb.pending, alert)


def repeated(turn: Turn, climb: Climb, pending: Pending, alert: Alert) -> Termination:
    """Return a termination that waits for its answer, as it is to be written (again).

    Args:
        turn: what is at hand.
        climb: the session's.
        pending: what it waits for.
        alert: the alert that is answered.
    """
    return Termination(
        termination_id=pending.termination_id,
        session_id=alert.session_id,
        task_id=alert.task_id,
        alert_id=alert.alert_id,
        loop_id=alert.loop_id,
        detector=alert.detector,
        reason=line(alert.reasoning, MOST_REASON),
        attempt=pending.attempt,
        agent=alert.agent,
        task=told_task(alert.task),
        issued_at=pending.issued_at,
        acknowledge=_acknowledge(turn, pending.termination_id),
        report=reported(turn.state, climb, alert),
    )


def flapping(turn: Turn, alert: Alert, termination_id: str) -> KnownFlapping:
    """List the task as one that is not to be retried without a person.

    Args:
        turn: what is at hand; its state remembers the entry.
        alert: the alert that led to it.
        termination_id: the verdict, or the directive to give up.
    """
    lasting = timedelta(days=turn.policy.flapping_days)
    turn.state.flapping_ms = turn.now_ms + length_ms(lasting)
    turn.state.flapping_alert = brief(alert.alert_id)
    return KnownFlapping(
        task_id=alert.task_id,
        session_id=alert.session_id,
        alert_id=alert.alert_id,
        termination_id=termination_id,
        loop_id=alert.loop_id,
        detector=alert.detector,
        pattern=alert.pattern,
        reason=line(alert.reasoning, MOST_REASON),
        task=told_task(alert.task),
        since=turn.now,
        expires_at=turn.now + lasting,
    )


def cleared(turn: Turn) -> list[Output]:
    """Take the task from the list again, if it is there.

    Args:
        turn: what is at hand.
    """
    state = turn.state
    if not state.flapping_ms:
        return []
    state.flapping_ms, state.flapping_alert = 0, ""
    return [Cleared(state.task_id)]


def _action(rung: Rung, alert: Alert) -> Action:
    if rung == "terminate":
        raise ValueError("a termination is no directive")
    return "skip_subtask" if rung == "abandon" and alert.suggested_strategy == "skip_subtask" else rung


def _rotation(turn: Turn, alert: Alert) -> tuple[Parameters, str]:
    """Return the parameters of a rotation and the label of its target, and remember both configurations as tried."""
    state, policy = turn.state, turn.policy
    agent = alert.agent or state.agent
    current = configuration(agent)
    own = label(current.name, current.model, current.config)
    parameters: Parameters = {
        "rotation": state.used.get("rotate_strategy", 0),
        "of": policy.budget.rotate_strategy,
        "from": own,
    }
    filled = tuple(
        Candidate(
            name=each.name or current.name, model=each.model or current.model, config=each.config or current.config
        )
        for each in policy.candidates
    )
    task = alert.task or state.task
    task_type = kept_name(task.type if task else None)
    chosen = turn.context.choose(filled, {*state.rotated, own}, task_type) if filled else None
    if chosen is not None:
        fields = {"to_name": chosen.name, "to_model": chosen.model, "to_config": chosen.config}
        parameters |= {name: value for name, value in fields.items() if value}
    if alert.suggested_strategy:
        parameters["strategy"] = alert.suggested_strategy
    if state.rotated:
        parameters["avoid"] = ",".join(state.rotated)
    to = label(chosen.name, chosen.model, chosen.config) if chosen else ""
    for each in (own, to):
        if each and each not in state.rotated:
            state.rotated = [*state.rotated[1 - MAX_TRIED :], each]
    return parameters, to


def _written(turn: Turn, lasting: timedelta) -> str:
    """Return the end of a length from now on, as RFC 3339 writes it."""
    return (turn.now + lasting).isoformat().replace("+00:00", "Z")


def _acknowledge(turn: Turn, answers: str) -> Acknowledgement:
    return Acknowledgement(topic=turn.context.control_topic, answers=answers, actions=ANSWERS)
