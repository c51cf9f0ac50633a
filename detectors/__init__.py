"""Pure detection: what one session's events mean, with no clock, no I/O and no globals.

The same code answers in the worker, in a replay and inside somebody's own process: feed events to `observe` in the
order of their partition and take the alerts it returns. Nothing here may import from the streaming side.
"""

from detectors.layers import InvalidLimits, limits_from
from detectors.limits import Limits
from detectors.session import observe
from detectors.state import SessionState, UnsupportedState, decode_state, encode_state

__all__ = [
    "InvalidLimits",
    "Limits",
    "SessionState",
    "UnsupportedState",
    "decode_state",
    "encode_state",
    "limits_from",
    "observe",
]
