"""What is noted of a task whatever is heard of it: the clock, who works on it, and room for another climb.

A clock may be set; what was noted by the old one never holds anything up for longer than its own length.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from streams.escalation.context import length_ms
from streams.escalation.kept import kept_agent, kept_task
from streams.escalation.state import MAX_ACTIVE, MAX_CLIMBS, Climb

if TYPE_CHECKING:
    from schemas.common import Agent, Task
    from streams.escalation.context import Turn
    from streams.escalation.state import LadderState


def settle(turn: Turn) -> None:
    """Bring stored times that lie further ahead than they can back to what they can be: the clock was set back.

    Args:
        turn: what is at hand.
    """
    state, policy, now = turn.state, turn.policy, turn.now_ms
    cooldown = now + length_ms(timedelta(seconds=policy.cooldown_seconds))
    answer = now + length_ms(timedelta(seconds=policy.answer_seconds))
    for climb in state.climbs.values():
        climb.last_ms = min(climb.last_ms, now)
        climb.stopped_ms = min(climb.stopped_ms, now)
        climb.cooldown_ms = min(climb.cooldown_ms, cooldown)
        if climb.pending is not None:
            climb.pending.due_ms = min(climb.pending.due_ms, answer)
    state.flapping_ms = min(state.flapping_ms, now + length_ms(timedelta(days=policy.flapping_days)))
    state.last_ms = min(state.last_ms, now)
    for session, ms in state.active.items():
        state.active[session] = min(ms, now)


def heard(turn: Turn, task_id: str, session_id: str, agent: Agent | None, task: Task | None) -> None:
    """Note that something was heard of a session of the task.

    Args:
        turn: what is at hand.
        task_id: the task.
        session_id: the session.
        agent: who acted; None leaves what is known.
        task: what it is about, likewise.
    """
    state = turn.state
    state.task_id = task_id
    state.last_ms = turn.now_ms
    state.active[session_id] = turn.now_ms
    while len(state.active) > MAX_ACTIVE:
        del state.active[min(state.active, key=state.active.__getitem__)]
    if agent is not None:
        state.agent = kept_agent(agent)
    if task is not None:
        state.task = kept_task(task)


def opened(turn: Turn, key: str) -> Climb:
    """Return a climb, made when it is not there.

    Args:
        turn: what is at hand.
        key: the session; empty for the task itself.
    """
    state = turn.state
    climb = state.climbs.get(key)
    if climb is None:
        while len(state.climbs) >= MAX_CLIMBS:
            del state.climbs[_least(state)]
        climb = state.climbs[key] = Climb(last_ms=turn.now_ms)
    return climb


def _least(state: LadderState) -> str:
    """Return which climb makes room: the one quiet longest, one that waits for an answer only if all do."""
    sessions = [(climb.pending is not None, climb.last_ms, key) for key, climb in state.climbs.items() if key]
    return min(sessions, key=lambda each: each[:2])[2]
