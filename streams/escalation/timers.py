"""What follows from time that passes: an answer that does not come, entries and ladders that expire.

Pure: the time is handed in, and `next_due` says when it matters next.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from streams.escalation.actions import cleared, repeated
from streams.escalation.answers import unstopped
from streams.escalation.context import Turn, length_ms
from streams.escalation.kept import recalled_pending
from streams.escalation.task import settle

if TYPE_CHECKING:
    from datetime import datetime

    from streams.escalation.context import Context, Output
    from streams.escalation.state import Climb, LadderState
    from streams.policy.model import Ladder

IDLE_MS: Final = timedelta(days=7) // timedelta(milliseconds=1)
"""A ladder that nothing was heard of for that long is dropped: as long as alerts are kept."""


def on_time(state: LadderState, now: datetime, policy: Ladder, context: Context) -> list[Output]:
    """Say what follows from time that passed, and remember it.

    Args:
        state: the task's ladder; it is changed in place, and equals a fresh one when nothing of it is to be kept.
        now: when this is decided.
        policy: what holds for the state's agent and task.
        context: see `Context`.
    """
    turn = Turn(state, now, policy, context)
    settle(turn)
    outputs: list[Output] = []
    for key, climb in state.climbs.items():
        if climb.cooldown_ms <= turn.now_ms:
            climb.cooldown_ms = 0
        if climb.pending is not None and climb.pending.due_ms <= turn.now_ms:
            outputs += _overdue(turn, key, climb)
    if state.flapping_ms <= turn.now_ms:
        outputs += cleared(turn)
    expires = _expires(state)
    if expires is not None and expires <= turn.now_ms:
        state.forget()
    return outputs


def next_due(state: LadderState, policy: Ladder) -> int | None:  # noqa: ARG001 -- all times are stored; kept alike
    """Return when `on_time` has something to do next; after a clock was set back, it has so at once.

    Args:
        state: the task's ladder.
        policy: what holds for the state's agent and task.

    Returns:
        Milliseconds since 1970; None when nothing is timed.
    """
    climbs = state.climbs.values()
    times = [climb.cooldown_ms for climb in climbs] + [climb.pending.due_ms for climb in climbs if climb.pending]
    due = [ms for ms in (*times, state.flapping_ms, _expires(state)) if ms]
    return min(due, default=None)


def _overdue(turn: Turn, key: str, climb: Climb) -> list[Output]:
    """Ask once more, as long as the policy says so; then call a person."""
    pending = climb.pending
    if pending is None:
        return []
    if pending.attempt >= turn.policy.answer_attempts:
        return unstopped(turn, "unanswered", key, climb)
    pending.attempt += 1
    pending.due_ms = turn.now_ms + length_ms(timedelta(seconds=turn.policy.answer_seconds))
    return [repeated(turn, climb, pending, recalled_pending(turn.state, key, climb, pending))]


def _expires(state: LadderState) -> int | None:
    """Return when a ladder is to be dropped, in milliseconds since 1970; None while something is waited for."""
    if not state.last_ms or any(climb.pending for climb in state.climbs.values()):
        return None
    return max(state.last_ms + IDLE_MS, state.flapping_ms)
