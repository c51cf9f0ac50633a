"""What telemetry brings in, from any bytes to events of the contract: OTLP's traces and logs in both encodings.

Each target keeps the one documented error to itself; what is mapped must be valid at every level of privacy.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime

from schemas.decode import decode
from schemas.encode import encode
from schemas.events import ToolCall
from schemas.topics import TOPICS
from streams.otlp import Encoding, InvalidRequest, Mapped, Memory, decode_logs, decode_traces, map_logs, map_traces
from streams.privacy import Level, reduce

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LEVELS: tuple[Level, ...] = ("digests", "excerpts", "full")

Target = Callable[[bytes], None]

_TOPICS = {topic.record: topic for topic in TOPICS}


def _traces(encoding: Encoding) -> Target:
    def target(data: bytes) -> None:
        with contextlib.suppress(InvalidRequest):
            _send(map_traces(decode_traces(data, encoding), NOW, Memory()))

    return target


def _logs(encoding: Encoding) -> Target:
    def target(data: bytes) -> None:
        with contextlib.suppress(InvalidRequest):
            _send(map_logs(decode_logs(data, encoding), NOW))

    return target


def _send(mapped: Mapped) -> None:
    for event in (observed.event for observed in mapped.events):
        for level in LEVELS:
            sent = reduce(event, level) if isinstance(event, ToolCall) else event
            decode(_TOPICS[type(sent)], encode(sent))


TARGETS: dict[str, Target] = {
    "otlp-traces": _traces("json"),
    "otlp-traces-protobuf": _traces("protobuf"),
    "otlp-logs": _logs("json"),
    "otlp-logs-protobuf": _logs("protobuf"),
}
