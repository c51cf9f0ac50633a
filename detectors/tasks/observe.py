"""One event of one task: take it into the state, let the detectors look, and decide."""

from detectors.limits import Limits
from detectors.tasks.facts import TaskEvent
from detectors.tasks.state import TaskState
from schemas.outputs import Alert


def observe_task(state: TaskState, event: TaskEvent, limits: Limits) -> list[Alert]:
    """Apply one event to the state of its task and return the alerts it brings about."""
    state.task_id = event.task_id
    state.last_ms = max(state.last_ms, event.at_ms)
    return []
