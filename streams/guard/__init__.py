"""The detectors inside an agent's own process: no Kafka, no gateway, no network.

    from streams.guard import Guard

For one agent on one machine. What the fleet's side has beside it (tasks over several sessions, overrides, people who
answer) needs the worker. Nothing is enforced here: the caller obeys, or not.
"""

from detectors import InvalidLimits, Limits
from streams.guard.guard import Guard
from streams.verdicts.model import CallKey, Verdict
from streams.verdicts.refusal import not_made

__all__ = ["CallKey", "Guard", "InvalidLimits", "Limits", "Verdict", "not_made"]
