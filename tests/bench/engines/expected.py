"""What must come out of a load: the detectors applied in this process, event by event, with no engine around them.

Engines are compared with this whole: each alert once and byte for byte, and every state that is stored at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from detectors import Limits, SessionState, TaskState, encode_state, encode_task, observe_task, step
from schemas.encode import encode
from tests.bench.engines.job import count, placed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from schemas.events import ToolCall
    from schemas.outputs import Alert
    from streams.forwarded import Origin


@dataclass(frozen=True, slots=True)
class Expected:
    """What must come out.

    Attributes:
        events: how many events there are.
        told: how many of them mean something to a task.
        alerts: each with the number of the event that brought it about.
        sessions: stored states by session.
        tasks: likewise by task, of those that have any.
    """

    events: int
    told: int
    alerts: tuple[tuple[int, Alert], ...]
    sessions: dict[bytes, bytes]
    tasks: dict[bytes, bytes]

    def values(self, places: Sequence[Origin]) -> dict[str, bytes]:
        """Give the alerts as they must be on their topic, by their ids.

        Args:
            places: where each event stands.
        """
        return {alert.alert_id: encode(placed(alert, places[number])) for number, alert in self.alerts}


@dataclass(slots=True)
class _Run:
    empty: bool
    events: int = 0
    told: int = 0
    alerts: list[tuple[int, Alert]] = field(default_factory=list)
    sessions: dict[bytes, SessionState] = field(default_factory=dict)
    tasks: dict[bytes, TaskState] = field(default_factory=dict)

    def apply(self, event: ToolCall, limits: Limits) -> None:
        state = self.sessions.setdefault(event.session_id.encode(), SessionState())
        found, told = (count if self.empty else step)(state, event, limits)
        if told is not None:
            self.told += 1
            found += observe_task(self.tasks.setdefault(told.task_id.encode(), TaskState()), told, limits)
        self.alerts += [(self.events, alert) for alert in found]
        self.events += 1

    def so_far(self) -> Expected:
        return Expected(
            self.events,
            self.told,
            tuple(self.alerts),
            {key: encode_state(state) for key, state in self.sessions.items()},
            {key: encode_task(task) for key, task in self.tasks.items() if not task.empty},
        )


def expected(
    events: Iterable[ToolCall], counts: Iterable[int], *, empty: bool, tell: Callable[[int], None] = lambda _: None
) -> dict[int, Expected]:
    """Apply events, and give what must come out of the first so many of them, for each of some numbers.

    Args:
        events: the events; at least as many as the largest number.
        counts: the numbers.
        empty: whether events are only counted.
        tell: is told every thousand events how many were applied.
    """
    run, limits, found, left = _Run(empty), Limits(), dict[int, Expected](), iter(events)
    for each in sorted(set(counts)):
        for event in islice(left, each - run.events):
            run.apply(event, limits)
            if run.events % 1_000 == 0:
                tell(run.events)
        found[each] = run.so_far()
    return found
