"""What escalation adds to the fitness of an agent's configuration: once for each task, however often it is said.

What was counted for a task is in the task's state. The sums are kept by whoever runs the ladder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streams.escalation.context import Tally
from streams.escalation.kept import brief, configuration, kept_name
from streams.escalation.state import MAX_CONFIGS, Tried

if TYPE_CHECKING:
    from collections.abc import Collection

    from detectors.tasks.facts import TaskEvent
    from schemas.common import Agent, Task
    from schemas.outputs import Alert
    from streams.escalation.context import Turn
    from streams.escalation.state import LadderState
    from streams.policy.model import Candidate


def count_event(turn: Turn, event: TaskEvent) -> None:
    """Count what an event tells: attempts, what was spent, and once for the task that it converged.

    Args:
        turn: what is at hand.
        event: the event; without an agent it counts for one without names.
    """
    task = event.task or turn.state.task
    tried, new = _tried(turn.state, configuration(event.agent), _type(task))
    attempt, review = event.attempt, event.review
    converged = (attempt is not None and attempt.outcome == "success") or (
        review is not None and review.verdict == "merged"
    )
    tally = Tally(
        *_about(tried, task, event.agent),
        tasks=int(new),
        attempts=int(attempt is not None and attempt.outcome != "skipped"),
        converged=int(converged and not tried.converged),
        tokens=event.spent.tokens,
        cost=event.spent.cost,
    )
    tried.converged = tried.converged or converged
    _count(turn, tally)


def count_alert(turn: Turn, alert: Alert, *, flapped: bool = False) -> None:
    """Count that a task was alerted about; where it flapped, that too, once.

    Args:
        turn: what is at hand.
        alert: the alert; without an agent it counts for the one that the task was heard of with last.
        flapped: a person was called, or it was abandoned or terminated.
    """
    state = turn.state
    agent, task = alert.agent or state.agent, alert.task or state.task
    tried, new = _tried(state, configuration(agent), _type(task))
    fresh = flapped and not tried.flapped
    if fresh:
        tried.flapped, tried.alert_id = True, brief(alert.alert_id)
    _count(turn, Tally(*_about(tried, task, agent), tasks=int(new), flapped=int(fresh)))


def take_back(turn: Turn, alerts: Collection[str]) -> None:
    """Take back that configurations flapped, where that was counted for one of these alerts.

    Args:
        turn: what is at hand.
        alerts: ids of alerts that were wrong, as they are kept.
    """
    for tried in turn.state.configs:
        if tried.flapped and tried.alert_id in alerts:
            tried.flapped, tried.alert_id = False, ""
            _count(turn, Tally(*_about(tried, None, None), flapped=-1))


def _about(tried: Tried, task: Task | None, agent: Agent | None) -> tuple[str, str, str, str, str, str]:
    """Return what a tally is about: its first six fields."""
    repo, role = kept_name(task.repo if task else None), kept_name(agent.role if agent else None)
    return tried.name, tried.model, tried.config, tried.task_type, repo, role


def _count(turn: Turn, tally: Tally) -> None:
    if tally.tasks or tally.attempts or tally.converged or tally.flapped or tally.tokens or tally.cost:
        turn.context.count(tally)


def _tried(state: LadderState, who: Candidate, task_type: str) -> tuple[Tried, bool]:
    """Return what is known of a configuration on this task, and whether it is new to it."""
    for known in state.configs:
        if (known.name, known.model, known.config, known.task_type) == (who.name, who.model, who.config, task_type):
            return known, False
    tried = Tried(who.name, who.model, who.config, task_type)
    state.configs = [*state.configs[1 - MAX_CONFIGS :], tried]
    return tried, True


def _type(task: Task | None) -> str:
    return kept_name(task.type if task else None)
