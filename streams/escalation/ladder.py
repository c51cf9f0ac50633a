"""The ladder of responses: what follows from an alert, from what a task reports, and from time that passes.

Pure: the state is changed in place, the time is handed in, and nothing is read or written. The same records give
outputs with the same ids.
"""

from __future__ import annotations

from streams.escalation.answers import on_event
from streams.escalation.climb import on_alert
from streams.escalation.context import Cleared, Context, Output, Tally, label, output_id
from streams.escalation.timers import next_due, on_time

__all__ = [
    "Cleared",
    "Context",
    "Output",
    "Tally",
    "label",
    "next_due",
    "on_alert",
    "on_event",
    "on_time",
    "output_id",
]
