"""Which rung of the ladder is next, and what holds a climb back: what is asked of the state, and never changed.

The order, the budgets and the caps are the policy's.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from streams.escalation.context import length_ms
from streams.escalation.state import Climb
from streams.policy.model import BY_TASK, ENDING

if TYPE_CHECKING:
    from schemas.outputs import Alert
    from streams.escalation.context import Turn
    from streams.escalation.state import LadderState
    from streams.policy.model import Ladder, Rung

LOOKING: Final = frozenset({"analysis", "rereads", "fruitless_search", "revisits", "category", "same_answer"})
"""Detectors of what looks and never acts: only there does it help to force an implementation."""

ACTIVE_MS: Final = timedelta(minutes=60) // timedelta(milliseconds=1)
"""A session that was not heard of for longer is taken to be over."""

_UNKNOWN: Final = Climb()
"""Of a session of which nothing but its name is known; never changed."""


def ends(alert: Alert) -> bool:
    """Tell whether an alert asks for termination, and may."""
    return alert.level == "terminate" and alert.mode == "enforce"


def next_rung(turn: Turn, climb: Climb, alert: Alert) -> Rung | None:
    """Return the first rung from where the climb stands that has budget left and applies; None when there is none.

    Args:
        turn: what is at hand.
        climb: what is climbed.
        alert: the alert that is answered.
    """
    policy, order = turn.policy, turn.policy.order
    start = order.index(climb.at) if climb.at in order else 0
    if ends(alert):
        last = len(order)
        start = max(start, order.index(policy.on_terminate) if policy.on_terminate in order else last - 1)
    else:
        last = _cap(policy) + 1
    for rung in order[start:last]:
        if rung in ENDING and alert.mode != "enforce":
            continue
        if rung == "force_implementation" and alert.detector not in LOOKING:
            continue
        if has_budget(turn, climb, rung):
            return rung
    return None


def counts(state: LadderState, climb: Climb, rung: Rung) -> dict[str, int]:
    """Return where a rung is counted: of the task, or of one climb."""
    return state.used if rung in BY_TASK else climb.used


def refusals(state: LadderState, climb: Climb, rung: Rung) -> list[str]:
    """Return where it is remembered that a rung was refused: of the task, or of one climb."""
    return state.refused if rung in BY_TASK else climb.refused


def has_budget(turn: Turn, climb: Climb, rung: Rung) -> bool:
    """Tell whether a rung may be taken once more; what was refused would be refused again."""
    most: int = getattr(turn.policy.budget, rung)
    used = counts(turn.state, climb, rung).get(rung, 0)
    return rung not in refusals(turn.state, climb, rung) and used < most


def is_stopped(turn: Turn, climb: Climb) -> bool:
    """Tell whether a session is to be stopped already, or was so lately that what comes of it now was under way.

    Args:
        turn: what is at hand.
        climb: the session's.
    """
    lately = turn.now_ms - length_ms(timedelta(seconds=turn.policy.answer_seconds))
    return climb.pending is not None or (climb.stopped_ms > 0 and climb.stopped_ms >= lately)


def is_held(turn: Turn, key: str, session_id: str) -> bool:
    """Tell whether nothing more is to be asked, since all that an alert is about is to be stopped already.

    Args:
        turn: what is at hand.
        key: of the climb.
        session_id: the alert's session.
    """
    return not to_stop(turn, key, session_id)


def to_stop(turn: Turn, key: str, session_id: str) -> list[str]:
    """Return the sessions that a termination is for: the alert's own, for a task the other active ones, too.

    Args:
        turn: what is at hand.
        key: of the climb.
        session_id: the alert's session.
    """
    state = turn.state
    own = state.climbs.get(session_id)
    sessions = [session_id] if own is None or not is_stopped(turn, own) else []
    if key:
        return sessions
    for name, heard_ms in state.active.items():
        climb = state.climbs.get(name, _UNKNOWN)
        gone = is_stopped(turn, climb) or heard_ms <= climb.stopped_ms or turn.now_ms - heard_ms > ACTIVE_MS
        if name != session_id and not gone:
            sessions.append(name)
    return sessions


def _cap(policy: Ladder) -> int:
    """Return the index of the highest rung for a warning, -1 for none."""
    if policy.warn_most in policy.order:
        return policy.order.index(policy.warn_most)
    ending = (index for index, rung in enumerate(policy.order) if rung in ENDING)
    return next(ending, len(policy.order)) - 1
