"""Pure detection: what the events of one session, and of one task, mean, with no clock, no I/O and no globals.

The same code answers in the worker, in a replay and inside somebody's own process: feed events to `observe` in the
order of their partition and take the alerts it returns. Who follows tasks as well uses `step`, and feeds what it gives
for the task to `observe_task`. Nothing here may import from the streaming side.
"""

from detectors.layers import InvalidLimits, limits_from
from detectors.limits import Limits
from detectors.session import Step, observe, step
from detectors.state import SessionState, decode_state, encode_state
from detectors.tasks.facts import TaskEvent
from detectors.tasks.observe import observe_task
from detectors.tasks.state import TaskState, decode_task, encode_task
from detectors.versions import UnsupportedState

__all__ = [
    "InvalidLimits",
    "Limits",
    "SessionState",
    "Step",
    "TaskEvent",
    "TaskState",
    "UnsupportedState",
    "decode_state",
    "decode_task",
    "encode_state",
    "encode_task",
    "limits_from",
    "observe",
    "observe_task",
    "step",
]
