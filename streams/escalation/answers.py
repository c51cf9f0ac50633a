"""What follows from what a task reports: its success, and the words of persons and orchestrators.

Pure, like the rest of the ladder. What an answer does not concern, it does not change; a word that comes twice does
nothing the second time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from streams.escalation.actions import cleared, flapping, termination
from streams.escalation.climb import ascend
from streams.escalation.context import Turn, output_id
from streams.escalation.counting import count_event, take_back
from streams.escalation.incidents import incident, notification, over
from streams.escalation.kept import brief, recalled, recalled_pending, unfounded
from streams.escalation.report import PERSON
from streams.escalation.rungs import is_held, refusals
from streams.escalation.savings import saved_by_stopping
from streams.escalation.state import MAX_SEEN, Climb
from streams.escalation.task import heard, opened, settle
from streams.escalation.text import line
from streams.escalation.words import times
from streams.policy.model import RUNGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from detectors.tasks.facts import TaskEvent
    from schemas.outputs import Alert, NotificationKind
    from streams.escalation.context import Context, Output
    from streams.escalation.state import LadderState
    from streams.policy.model import Ladder

_MOST_WHY = 200


def on_event(state: LadderState, event: TaskEvent, now: datetime, policy: Ladder, context: Context) -> list[Output]:
    """Say what follows from an event of a task, and remember it.

    Args:
        state: the task's ladder, a fresh one at first; it is changed in place.
        event: the event.
        now: when this is decided.
        policy: what holds for the event's agent and task.
        context: see `Context`.
    """
    turn = Turn(state, now, policy, context)
    settle(turn)
    if event.word == "forget":
        return _forget(turn, event)
    heard(turn, event.task_id, event.session_id, event.agent, event.task)
    count_event(turn, event)
    attempt, review = event.attempt, event.review
    if attempt is not None and attempt.outcome == "success" and not attempt.derived:
        return _settled(turn, event, [""], "recovered")
    if review is not None and review.verdict == "merged":
        return _settled(turn, event, [""], "recovered")
    follow = _WORDS.get(event.word or "user_message")
    return follow(turn, event) if follow else []


def _resumed(turn: Turn, event: TaskEvent) -> list[Output]:
    """Let the session go on as if nothing had been done about it."""
    return _settled(turn, event, [event.session_id, ""], "resumed")


def _clear(turn: Turn, event: TaskEvent) -> list[Output]:
    """Let the task be tried again as if nothing were known of it."""
    outputs = _settled(turn, event, list(turn.state.climbs), "resumed")
    turn.state.forget()
    return outputs


def _forget(turn: Turn, event: TaskEvent) -> list[Output]:
    """Drop what is known of the session, of its own task everything; what was asked of it is over.

    What the task climbed for because of this session goes too, and its entry among the known-flapping ones where no
    other session is known to have led to it.
    """
    state, session = turn.state, event.session_id
    if event.task_id == session:
        return _clear(turn, event)
    of_task = state.climbs.get("")
    joint = of_task is not None and of_task.alert is not None and of_task.alert.session_id == session
    state.active.pop(session, None)
    gone = _taken_out(turn, [session, *([""] if joint else [])])
    if not (state.climbs or state.active):
        outputs = [*cleared(turn), *over(turn, "resumed", gone, _spoken(turn, event), session, event.event_id)]
        state.forget()
        return outputs
    others = {name for climb in state.climbs.values() for name in _alerts(climb)}
    outputs = [*(cleared(turn) if gone and state.flapping_alert not in others else [])]
    return [*outputs, *over(turn, "resumed", gone, _spoken(turn, event), session, event.event_id)]


def _settled(turn: Turn, event: TaskEvent, keys: Iterable[str], kind: NotificationKind) -> list[Output]:
    """Take back what was asked: climbs go, and what the task was taken to is forgotten."""
    state = turn.state
    gone = _taken_out(turn, keys)
    outputs = over(turn, kind, gone, _spoken(turn, event), event.session_id, event.event_id)
    state.used, state.refused, state.rotated = {}, [], []
    return [*cleared(turn), *outputs]


def _taken_out(turn: Turn, keys: Iterable[str]) -> list[tuple[str, Climb]]:
    climbs = turn.state.climbs
    return [(key, climbs.pop(key)) for key in keys if key in climbs]


def _ended(turn: Turn, event: TaskEvent) -> list[Output]:
    """The session is over: nothing is asked of it any more."""
    turn.state.active.pop(event.session_id, None)
    climb = turn.state.climbs.get(event.session_id)
    if climb is None:
        return []
    return _over(turn, event, climb)


def _obeyed(turn: Turn, event: TaskEvent) -> list[Output]:
    """The session was stopped, if that is what was asked, however late; an obeyed directive changes nothing."""
    climb = turn.state.climbs.get(event.session_id)
    asked = {each.termination_id for each in (climb.pending, climb.unstopped) if each} if climb else set()
    return _over(turn, event, climb) if climb and event.answers in asked else []


def _refused(turn: Turn, event: TaskEvent) -> list[Output]:
    """Call a person when a session goes on that was to be stopped; go on with the next rung after any other."""
    climb = _awaiting(turn, event)
    return unstopped(turn, "refused", event.session_id, climb, _said(event)) if climb else _not_taken(turn, event)


def _awaiting(turn: Turn, event: TaskEvent) -> Climb | None:
    """Return the session's climb when the termination that it waits for is answered."""
    climb = turn.state.climbs.get(event.session_id)
    asked = climb is not None and climb.pending is not None and climb.pending.termination_id == event.answers
    return climb if asked else None


def _over(turn: Turn, event: TaskEvent, climb: Climb) -> list[Output]:
    """Note that a session was stopped, for now: should it go on after all, it is answered from the bottom."""
    saved = saved_by_stopping(turn.state, event.session_id, climb)
    if saved is not None:
        turn.context.save(saved)
    outputs = over(turn, "ended", [(event.session_id, climb)], _spoken(turn, event), event.session_id, event.event_id)
    climb.pending, climb.unstopped, climb.stopped_ms = None, None, turn.now_ms
    climb.restart()
    return [*outputs]


def unstopped(turn: Turn, kind: NotificationKind, key: str, climb: Climb, said: str = "") -> list[Output]:
    """Give up waiting for an answer to a termination, and call a person.

    Args:
        turn: what is at hand.
        kind: refused, or unanswered.
        key: the session.
        climb: its climb; one without anything pending leads to nothing.
        said: by whom it was refused, and why; empty: how often it was asked is told.
    """
    pending = climb.pending
    if pending is None:
        return []
    climb.pending, climb.unstopped = None, pending
    climb.incident = climb.incident or climb.joint
    incident(turn, key, climb, pending.alert_id)
    alert = recalled_pending(turn.state, key, climb, pending)
    cause = (pending.termination_id, str(pending.attempt))
    said = said or f"asked {times(pending.attempt)}"
    return [notification(turn, kind, climb, alert, *cause, answers=pending.termination_id, said=said)]


def _not_taken(turn: Turn, event: TaskEvent) -> list[Output]:
    """Go on to the next rung at once, since what was refused would be refused again; without one call a person."""
    state = turn.state
    for key in (event.session_id, ""):
        climb = state.climbs.get(key)
        if climb is None or climb.directive_id != event.answers or not event.answers:
            continue
        alert = recalled(state, key, climb)
        rung = next((each for each in RUNGS if each == climb.rung), None)
        if alert is None or rung is None or is_held(turn, key, alert.session_id):
            return []
        refused = refusals(state, climb, rung)
        if rung not in refused:
            refused.append(rung)
        if rung == "cooldown":
            climb.cooldown_ms = 0
        return [] if alert.level == "notice" else ascend(turn, key, climb, alert) or _at_end(turn, key, climb, event)
    return []


def _at_end(turn: Turn, key: str, climb: Climb, event: TaskEvent) -> list[Output]:
    """Call a person, once, since a directive was refused and nothing else is left to be asked."""
    state = turn.state
    known, alert = output_id("refused", event.answers), recalled(state, key, climb)
    if known in state.seen or alert is None:
        return []
    state.seen = [*state.seen[1 - MAX_SEEN :], known]
    incident(turn, key, climb, alert.alert_id)
    said = _said(event)
    told = notification(turn, "refused", climb, alert, event.answers, answers=event.answers, said=said, step=climb.rung)
    return [told]


def _said(event: TaskEvent) -> str:
    """Return what an orchestrator said when it refused: who, and why, as far as that was said."""
    parts = (line(event.actor, _MOST_WHY), line(event.reason, _MOST_WHY))
    return ": ".join(part for part in parts if part)


def _false_alarm(turn: Turn, event: TaskEvent) -> list[Output]:
    """A person says that an alert was wrong: what was asked because of it, and of its climb, is taken back."""
    state = turn.state
    wrong = [
        key for key in (event.session_id, "") if key in state.climbs and _concerns(state.climbs[key], event.answers)
    ]
    gone = _taken_out(turn, wrong)
    ids = {name for _, climb in gone for name in _alerts(climb)}
    for key, climb in list(state.climbs.items()):
        asked = climb.pending or climb.unstopped
        if asked is not None and asked.alert_id in ids:
            climb.pending = climb.unstopped = None
            if climb == Climb(last_ms=climb.last_ms, incident=climb.incident, joint=climb.joint):
                gone += _taken_out(turn, [key])
    take_back(turn, ids)
    outputs = over(turn, "false_alarm", gone, _spoken(turn, event), event.session_id, event.event_id)
    return [*(cleared(turn) if state.flapping_alert in ids else []), *outputs]


def _alerts(climb: Climb) -> set[str]:
    """Return the ids of the alerts that a climb was for, as far as they are known."""
    return {
        *climb.alerts,
        *([climb.alert.alert_id] if climb.alert else []),
        *(each.alert_id for each in (climb.pending, climb.unstopped) if each),
    }


def _concerns(climb: Climb, answers: str) -> bool:
    """Tell whether an answer is to something that was asked in a climb, or to an alert that it was for."""
    if not answers:
        return False
    asked = {each.termination_id for each in (climb.pending, climb.unstopped) if each}
    latest = climb.alert.alert_id if climb.alert else ""
    return answers in {climb.directive_id, *asked} or brief(answers) in {latest, *climb.alerts}


def _terminate(turn: Turn, event: TaskEvent) -> list[Output]:
    """A person wants the session stopped, whatever it does."""
    state, session = turn.state, event.session_id
    verdict = output_id("termination", event.event_id, session)
    climb = state.climbs.get(session)
    if verdict in state.seen or (climb is not None and climb.pending is not None):
        return []
    state.seen = [*state.seen[1 - MAX_SEEN :], verdict]
    known = recalled(state, session, climb) if climb is not None else None
    alert = _spoken(turn, event, known)
    climb = opened(turn, session)
    incident(turn, session, climb, event.event_id)
    stop = termination(turn, climb, alert)
    told = notification(turn, "terminate", climb, alert, session, event.event_id, answers=stop.termination_id)
    return [stop, flapping(turn, alert, stop.termination_id), told]


def _spoken(turn: Turn, event: TaskEvent, known: Alert | None = None) -> Alert:
    """Return what stands for an alert where a person decided, with what was known before."""
    base = known or unfounded(turn.state, event.session_id, turn.now)
    return msgspec.structs.replace(
        base,
        alert_id=event.event_id,
        loop_id="",
        detector=PERSON,
        scope="session",
        reasoning=_why(event),
        agent=event.agent or base.agent,
        task=event.task or base.task,
    )


def _why(event: TaskEvent) -> str:
    """Return who asked for it, and why, as far as that was said."""
    who = line(event.actor, _MOST_WHY) or "a person"
    why = line(event.reason, _MOST_WHY)
    return f"{who} asked for it: {why}" if why else f"{who} asked for it"


_WORDS: dict[str, Callable[[Turn, TaskEvent], list[Output]]] = {
    "resume": _resumed,
    "reset": _resumed,
    "clear": _clear,
    "ended": _ended,
    "obeyed": _obeyed,
    "refused": _refused,
    "false_alarm": _false_alarm,
    "terminate": _terminate,
}
"""What follows from what persons and orchestrators say; a user's message changes nothing."""
