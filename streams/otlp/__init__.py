"""Reads OpenTelemetry's traces and logs, and says which of them are tool calls of which session.

`decode_traces` and `decode_logs` read a request, `map_traces` and `map_logs` make events of the contract of it. Pure:
no network, no clock; what is to be remembered between requests is in a `Memory` that the caller keeps.
"""

from streams.otlp.decode import Encoding, decode_logs, decode_traces
from streams.otlp.items import InvalidRequest, LogRecord, Logs, Refusal, Span, Traces
from streams.otlp.logs import map_logs
from streams.otlp.mapped import Mapped, Observed
from streams.otlp.memory import Memory
from streams.otlp.spans import map_traces

__all__ = [
    "Encoding",
    "InvalidRequest",
    "LogRecord",
    "Logs",
    "Mapped",
    "Memory",
    "Observed",
    "Refusal",
    "Span",
    "Traces",
    "decode_logs",
    "decode_traces",
    "map_logs",
    "map_traces",
]
