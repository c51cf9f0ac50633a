"""What follows from an alert: the next rung that has budget left, done; or nothing.

Pure: the state is changed in place, the time is handed in. It must not judge whether the alert is right: that is the
detectors' decision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from streams.escalation.actions import directive, flapping, termination
from streams.escalation.context import Output, Turn
from streams.escalation.counting import count_alert
from streams.escalation.incidents import incident, notification, over
from streams.escalation.kept import brief, kept_alert
from streams.escalation.rungs import counts, ends, has_budget, is_held, is_stopped, next_rung, to_stop
from streams.escalation.savings import saved_by_recovery
from streams.escalation.state import MAX_LOOPS, MAX_SEEN, Climb
from streams.escalation.task import heard, opened, settle

if TYPE_CHECKING:
    from datetime import datetime

    from schemas.outputs import Alert, Directive
    from streams.escalation.context import Context
    from streams.escalation.state import LadderState
    from streams.policy.model import Ladder, Rung

_FLAPS = frozenset({"escalate_human", "abandon", "terminate"})
"""Rungs that speak against the agent's configuration."""


def on_alert(state: LadderState, alert: Alert, now: datetime, policy: Ladder, context: Context) -> list[Output]:
    """Say what follows from an alert, and remember it.

    Args:
        state: the task's ladder, a fresh one at first; it is changed in place.
        alert: the alert; a repeated one leads to nothing.
        now: when this is decided.
        policy: what holds for the alert's agent and task.
        context: see `Context`.
    """
    turn = Turn(state, now, policy, context)
    settle(turn)
    name = brief(alert.alert_id)
    if name in state.seen:
        return []
    state.seen = [*state.seen[1 - MAX_SEEN :], name]
    heard(turn, alert.task_id, alert.session_id, alert.agent, alert.task)
    key = "" if alert.scope == "task" else alert.session_id
    if alert.level == "recovered":
        return _recovered(turn, key, alert)
    return [] if alert.muted or alert.mode == "observe" else _answer(turn, key, alert)


def _answer(turn: Turn, key: str, alert: Alert) -> list[Output]:
    """Answer an alert that asks for something."""
    count_alert(turn, alert)
    climb = turn.state.climbs.get(key)
    if climb is not None:
        climb.last_ms = turn.now_ms
    own = turn.state.climbs.get(alert.session_id)
    if own is not None and not is_stopped(turn, own):
        own.stopped_ms = 0  # it goes on, or began anew
    if is_held(turn, key, alert.session_id):
        return []
    if alert.level == "notice":
        return _notice(turn, key, alert)
    climb = opened(turn, key)
    _note(climb, alert, loop=True)
    if climb.cooldown_ms > turn.now_ms and not ends(alert):
        return []
    return ascend(turn, key, climb, alert)


def ascend(turn: Turn, key: str, climb: Climb, alert: Alert) -> list[Output]:
    """Take the next rung, if there is one.

    Args:
        turn: what is at hand.
        key: of the climb.
        climb: the climb, which the state has.
        alert: the alert that is answered.
    """
    rung = next_rung(turn, climb, alert)
    if rung is None:
        return []
    climb.at = climb.rung = rung
    climb.alert = kept_alert(alert, key)
    incident(turn, key, climb, alert.alert_id)
    if rung in _FLAPS:
        count_alert(turn, alert, flapped=True)
    if rung == "terminate":
        return _terminate(turn, key, climb, alert)
    step = _directive(turn, rung, climb, alert)
    climb.directive_id = step.directive_id
    outputs: list[Output] = [step]
    if step.action == "abandon":
        outputs.append(flapping(turn, alert, step.directive_id))
    told = notification(turn, step.action, climb, alert, alert.alert_id, answers=step.directive_id)
    return [*outputs, told]


def _recovered(turn: Turn, key: str, alert: Alert) -> list[Output]:
    """Close a loop; with the last one the climb begins anew, but for what is asked of an orchestrator already."""
    climb = turn.state.climbs.get(key)
    loop = brief(alert.loop_id)
    if climb is None or loop not in climb.loops:
        return []
    climb.last_ms = turn.now_ms
    saved = saved_by_recovery(climb, loop)
    if saved is not None:
        turn.context.save(saved)
    climb.loops = [each for each in climb.loops if each != loop]
    if climb.loops:
        return []
    ids = {"alert_id": alert.alert_id, "loop_id": alert.loop_id, "detector": alert.detector}
    told = over(turn, "recovered", [(key, climb)], alert, alert.alert_id)
    climb.restart()
    return [msgspec.structs.replace(each, session_id=alert.session_id, **ids) for each in told]


def _notice(turn: Turn, key: str, alert: Alert) -> list[Output]:
    """Give guidance on a notice, as long as nothing graver was said; it is no step of the climb."""
    policy = turn.policy
    climb = turn.state.climbs.get(key) or Climb()
    early = climb.at in {"", "inject_guidance"} and climb.cooldown_ms <= turn.now_ms
    if "inject_guidance" not in policy.order or not early or climb.notices >= policy.notices:
        return []
    climb = opened(turn, key)
    climb.notices += 1
    _note(climb, alert)
    climb.alert, climb.rung = kept_alert(alert, key), "inject_guidance"
    step = directive(turn, "inject_guidance", climb, alert)
    climb.directive_id = step.directive_id
    return [step]


def _directive(turn: Turn, rung: Rung, climb: Climb, alert: Alert) -> Directive:
    count = counts(turn.state, climb, rung)
    count[rung] = count.get(rung, 0) + 1
    return directive(turn, rung, climb, alert)


def _terminate(turn: Turn, key: str, climb: Climb, alert: Alert) -> list[Output]:
    """Stop the session, or all that are at work on the task, and list the task."""
    outputs: list[Output] = []
    climb.used["terminate"] = climb.used.get("terminate", 0) + 1
    climb.directive_id = ""
    if not key and "abandon" in turn.policy.order and has_budget(turn, climb, "abandon"):
        whole = msgspec.structs.replace(alert, suggested_strategy=None)  # nothing can be left out of what is stopped
        outputs.append(_directive(turn, "abandon", climb, whole))
    verdicts = []
    for session in to_stop(turn, key, alert.session_id):
        own = session == alert.session_id
        about = alert if own else msgspec.structs.replace(alert, session_id=session, agent=None)
        stopped = opened(turn, session)
        if not key:
            stopped.joint = climb.incident
            stopped.incident = stopped.incident or climb.incident
        verdicts.append(termination(turn, stopped, about))
    first = verdicts[0].termination_id
    outputs += [*verdicts, flapping(turn, alert, first)]
    return [*outputs, notification(turn, "terminate", climb, alert, alert.alert_id, answers=first)]


def _note(climb: Climb, alert: Alert, *, loop: bool = False) -> None:
    """Remember which alert a climb was for, and the loop that it goes on for."""
    climb.alerts = [*climb.alerts[1 - MAX_LOOPS :], brief(alert.alert_id)]
    name = brief(alert.loop_id)
    if loop and name not in climb.loops:
        climb.loops = [*climb.loops[1 - MAX_LOOPS :], name]
