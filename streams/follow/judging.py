"""Runs the detectors over what a follower reads, in its own process: for a look, without brokers.

The same code as in the worker sees the same events in the same order. Bounded: of many sessions, those that were silent
longest are judged anew when they go on. Sends nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, TypeVar

from detectors import SessionState, TaskState, observe_task, step
from streams.importers import Session
from streams.replay import row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streams.follow.sinks import Outgoing
    from streams.policy.policy import Policy

MOST_STATES: Final = 2_000
"""Sessions, and tasks, that are remembered; a state has 16 kB at most."""

T = TypeVar("T")


class Judging:
    """A sink that judges.

    Args:
        policy: says by which limits.
        tell: is given each alert, as `traction replay --json` has it.
        most: sessions, and tasks, that are remembered.
    """

    def __init__(self, policy: Policy, tell: Callable[[dict[str, Any]], None], most: int = MOST_STATES) -> None:
        self._policy = policy
        self._tell = tell
        self._most = most
        self._sessions: OrderedDict[str, SessionState] = OrderedDict()
        self._tasks: OrderedDict[str, TaskState] = OrderedDict()

    async def send(self, batch: Sequence[Outgoing]) -> list[tuple[str, str]]:
        """Judge events; all are taken."""
        for source, event, _ in batch:
            state = self._of(self._sessions, event.session_id, SessionState)
            limits = self._policy.limits(event.agent or state.agent, event.task or state.task)
            alerts, told = step(state, event, limits)
            if told is not None:
                task = self._of(self._tasks, told.task_id, TaskState)
                of_task = self._policy.limits(told.agent or task.agent, told.task or task.task)
                alerts = [*alerts, *observe_task(task, told, of_task)]
            for alert in alerts:
                self._tell(row(Session(source, event.session_id, []), alert))
        return []

    def _of(self, kept: OrderedDict[str, T], name: str, make: Callable[[], T]) -> T:
        found = kept.pop(name, None) or make()
        kept[name] = found
        if len(kept) > self._most:
            kept.popitem(last=False)
        return found
