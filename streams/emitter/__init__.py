"""For authors of agents in Python: tells the gateway what agents do, and hears what it makes of it.

    from streams.emitter import Emitter

Needs no Kafka client. Nothing in it raises into the agent or holds it up. It must not decide what an agent does: that
is for whoever obeys the verdict.
"""

from schemas.common import Agent, ErrorInfo, Task, Usage
from schemas.events import Replacement, ReviewFinding
from streams.emitter.asynchronous import AsyncEmitter
from streams.emitter.emitter import Emitter
from streams.emitter.sending import Counts
from streams.emitter.settings import EmitterSettings, from_environment
from streams.verdicts.model import CallKey, Verdict
from streams.verdicts.refusal import not_made

__all__ = [
    "Agent",
    "AsyncEmitter",
    "CallKey",
    "Counts",
    "Emitter",
    "EmitterSettings",
    "ErrorInfo",
    "Replacement",
    "ReviewFinding",
    "Task",
    "Usage",
    "Verdict",
    "from_environment",
    "not_made",
]
