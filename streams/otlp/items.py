"""Spans and log records as they are read from OTLP, whatever the encoding, and what is refused of a request.

Attributes are plain JSON values here: bytes are their base64 text, what no JSON number can hold is None. Nothing is
interpreted: whether a span is a tool call is for `streams.otlp.spans` to say.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

MAX_REQUEST_BYTES: Final = 16 * 1024 * 1024
"""Largest request, unpacked. Exporters send some hundred spans, the collector 8192 (its batch processor's default)."""

MAX_ITEMS: Final = 10_000
"""Most spans or log records that are taken of one request."""

MAX_ATTRIBUTES: Final = 1_024
"""Most attributes of a span, a log record, an event or a resource; SDKs keep 128 (OpenTelemetry SDK specification)."""

MAX_SPAN_EVENTS: Final = 1_024
"""Most events of a span; SDKs keep 128."""

MAX_TEXT_CHARS: Final = 1_000_000
"""Longest text in an attribute, as in the contract."""

MAX_NESTING: Final = 24
"""Deepest nesting of an attribute's value. Protobuf's own limit of 100 messages is reached at about 30."""

RefusalReason = Literal["malformed", "bad_id", "too_deep", "too_long", "too_many_attributes", "too_many_items"]
"""Why a span or log record is refused, as a code."""


class InvalidRequest(ValueError):
    """A request of which nothing can be read.

    Attributes:
        reason: ``too_large``, ``malformed``, or ``unsupported`` where the library for protobuf is missing.
    """

    def __init__(self, reason: Literal["too_large", "malformed", "unsupported"], text: str) -> None:
        super().__init__(text)
        self.reason = reason


class Refused(ValueError):
    """One item cannot be taken.

    Attributes:
        reason: what is wrong, as a code.
        field: which field, in OTLP's names for JSON; empty when it is the item as a whole.
    """

    def __init__(self, reason: RefusalReason, field: str, text: str) -> None:
        super().__init__(f"{field}: {text}" if field else text)
        self.reason: RefusalReason = reason
        self.field = field


class Refusal(msgspec.Struct, frozen=True):
    """What was not taken, and why.

    Attributes:
        position: which item of the request, from 0; for ``too_many_items`` the first that was left out.
        count: how many.
        reason: the code.
        text: field, problem and remedy, without content.
    """

    position: int
    reason: RefusalReason
    text: str
    count: int = 1


class SpanEvent(msgspec.Struct, frozen=True):
    """Something that happened within a span, for example an exception."""

    name: str
    attributes: dict[str, Any]


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """One span.

    Attributes:
        trace_id: 32 hexadecimal digits.
        span_id: 16 hexadecimal digits.
        parent_id: likewise; empty for a root.
        name: its name.
        kind: OTLP's number: 1 internal, 2 server, 3 client, 4 producer, 5 consumer, 0 unknown.
        start_ns: when it began, in nanoseconds since 1970; 0 unknown.
        end_ns: when it ended; 0 unknown.
        status: OTLP's number: 0 unset, 1 ok, 2 error.
        status_text: what the status says besides.
        attributes: its own.
        events: what happened within it.
        resource: attributes of the process that it comes from.
        scope: name of the instrumentation.
    """

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    kind: int
    start_ns: int
    end_ns: int
    status: int
    status_text: str
    attributes: dict[str, Any]
    events: tuple[SpanEvent, ...]
    resource: dict[str, Any]
    scope: str


class LogRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One log record.

    Attributes:
        time_ns: when it happened, in nanoseconds since 1970; 0 unknown.
        observed_ns: when it was collected; 0 unknown.
        event_name: the field of this name, empty in older ones.
        body: the body.
        attributes: its own.
        trace_id: 32 hexadecimal digits, or empty.
        span_id: 16 hexadecimal digits, or empty.
        resource: attributes of the process that it comes from.
        scope: name of the logger.
    """

    time_ns: int
    observed_ns: int
    event_name: str
    body: Any
    attributes: dict[str, Any]
    trace_id: str
    span_id: str
    resource: dict[str, Any]
    scope: str


class Traces(msgspec.Struct, frozen=True):
    """A trace export request: its spans in order, and what was refused."""

    spans: list[Span]
    refused: list[Refusal]


class Logs(msgspec.Struct, frozen=True):
    """A log export request: its records in order, and what was refused."""

    records: list[LogRecord]
    refused: list[Refusal]
