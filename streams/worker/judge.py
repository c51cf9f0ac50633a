"""Reads the records of an input and lets the detectors look: one class for sessions' records, one for tasks'.

They change the state that they are given and nothing else; what is to be written is told, not written. What they raise
is handled by whoever applies.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar, cast

import detectors
from detectors.loops import dismissed
from schemas.decode import check_key, decode
from schemas.events import Control
from streams.forwarded import read_forwarded
from streams.policy.policy import is_observed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aiokafka.structs import ConsumerRecord

    from detectors import Limits, SessionState, Step, TaskEvent, TaskState
    from schemas.events import ControlAction, SessionInput
    from schemas.outputs import Alert
    from schemas.topics import Topic
    from streams.forwarded import Origin
    from streams.worker.overrides import Overrides

S_contra = TypeVar("S_contra", contravariant=True)
E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class Detection:
    """The detectors.

    Attributes:
        step: takes one event of a session.
        observe_task: takes one event of a task.
    """

    step: Callable[[SessionState, SessionInput, Limits], Step] = detectors.step
    observe_task: Callable[[TaskState, TaskEvent, Limits], list[Alert]] = detectors.observe_task


DETECTION = Detection()
"""The detectors as they are."""


class Judged(NamedTuple):
    """What came of an event, as most: nothing.

    ``result`` is one of the metrics' EVENT_RESULTS, ``score`` the spin score of a call that has one of its own.
    ``action`` is what a person or orchestrator decided, ``silenced`` the detectors of loops that they marked as wrong.
    """

    alerts: Sequence[Alert] = ()
    muted: bool = False
    result: str = "applied"
    task_event: TaskEvent | None = None
    score: float | None = None
    action: ControlAction | None = None
    silenced: tuple[str, ...] = ()


NOTHING = Judged()
"""The one of most events."""


class Judge(Protocol, Generic[S_contra, E]):
    """How the records of an input are read and judged."""

    def read(self, topic: Topic, record: ConsumerRecord) -> tuple[E, Origin | None]:
        """Read a record, and say where the agent's own record stands, if it is another one.

        Raises:
            InvalidEvent: it cannot be read, or has another key.
        """

    def judge(self, state: S_contra, event: E) -> Judged:
        """Apply an event to the state."""


class SessionJudge:
    """Judges what sessions send.

    Args:
        overrides: says by which limits.
        detection: the detectors.
    """

    def __init__(self, overrides: Overrides, detection: Detection) -> None:
        self._overrides = overrides
        self._step = detection.step

    def read(self, topic: Topic, record: ConsumerRecord) -> tuple[SessionInput, None]:
        """See `Judge`."""
        event = cast("SessionInput", decode(topic, record.value, record.headers))
        check_key(topic, event, record.key)
        return event, None

    def judge(self, state: SessionState, event: SessionInput) -> Judged:
        """See `Judge`. What the event does not say of agent and task is taken from what the session said before."""
        limits, muted = self._overrides.same_for_all, False
        agent = event.agent or state.agent
        if limits is None or is_observed(agent):
            task = event.task or state.task
            limits, muted = self._overrides.resolve(
                agent,
                task,
                session_id=event.session_id,
                task_id=(task.id if task else None) or event.session_id,
                at=event.occurred_at,
            )
        duplicates, late, calls = state.duplicates, state.late, state.calls
        if isinstance(event, Control) and event.action == "forget":
            return Judged(task_event=self._step(state, event, limits).task_event, action="forget")
        action = event.action if isinstance(event, Control) else None
        before = dismissed(state.loops) if action == "false_alarm" else {}
        alerts, task_event = self._step(state, event, limits)
        result = "late" if state.late != late else "duplicate" if state.duplicates != duplicates else "applied"
        score = state.latest_score if state.calls != calls else None
        if score is None and action is None and task_event is None and not alerts and result == "applied":
            return NOTHING
        return Judged(
            alerts,
            muted,
            result,
            task_event,
            score=score,
            action=action if result == "applied" else None,
            silenced=_silenced(state, before) if action == "false_alarm" else (),
        )


class TaskJudge:
    """Judges what sessions' events mean to their task.

    Args:
        overrides: says by which limits.
        detection: the detectors.
    """

    def __init__(self, overrides: Overrides, detection: Detection) -> None:
        self._overrides = overrides
        self._observe = detection.observe_task

    def read(self, topic: Topic, record: ConsumerRecord) -> tuple[TaskEvent, Origin]:
        """See `Judge`."""
        del topic
        return read_forwarded(record)

    def judge(self, state: TaskState, event: TaskEvent) -> Judged:
        """See `Judge`. Agent and task are the session's whose event it is, else those known before."""
        limits, muted = self._overrides.resolve(
            event.agent or state.agent,
            event.task or state.task,
            session_id=event.session_id,
            task_id=event.task_id,
            at=datetime.fromtimestamp(event.at_ms / 1_000, UTC),
        )
        before = dismissed(state.loops) if event.word == "false_alarm" else {}
        alerts = self._observe(state, event, limits)
        return Judged(alerts, muted, silenced=_silenced(state, before) if event.word == "false_alarm" else ())


def _silenced(state: SessionState | TaskState, before: dict[int, str]) -> tuple[str, ...]:
    """Give the detectors of the loops that were not marked as wrong before."""
    return tuple(name for loop, name in dismissed(state.loops).items() if loop not in before)
