"""Reads OTLP's protobuf with OpenTelemetry's own messages, which the extra `otlp` brings along.

Gives exactly what `json_form` gives of the same request. A request that protobuf itself cannot read is refused whole.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any, Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from streams.otlp.checks import SPAN_CHARS, TRACE_CHARS, checked_text, each, finite, hex_id
from streams.otlp.items import (
    MAX_ATTRIBUTES,
    MAX_NESTING,
    MAX_SPAN_EVENTS,
    InvalidRequest,
    LogRecord,
    Logs,
    Refused,
    Span,
    SpanEvent,
    Traces,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

_MAX_KIND: Final = 5
_MAX_STATUS: Final = 2


def read_traces(body: bytes) -> Traces:
    """Read a trace export request.

    Raises:
        InvalidRequest: it is not one.
    """
    request = _whole(TracesData, body)
    items = (
        (span, block.resource, scope.scope.name)
        for block in request.resource_spans
        for scope in block.scope_spans
        for span in scope.spans
    )
    return Traces(*each(items, _resource, _span))


def read_logs(body: bytes) -> Logs:
    """Read a log export request.

    Raises:
        InvalidRequest: it is not one.
    """
    request = _whole(LogsData, body)
    items = (
        (record, block.resource, scope.scope.name)
        for block in request.resource_logs
        for scope in block.scope_logs
        for record in scope.log_records
    )
    return Logs(*each(items, _resource, _log_record))


def _whole(message: type[Any], body: bytes) -> Any:
    """Read the data message: on the wire the request is the same (opentelemetry-proto, trace.proto and logs.proto)."""
    try:
        return message.FromString(body)
    except DecodeError:
        raise InvalidRequest("malformed", "not an OTLP request in protobuf") from None


def _resource(resource: Any) -> dict[str, Any]:
    return _attributes(resource.attributes, "resource.attributes")


def _span(span: Any, resource: dict[str, Any], scope: str) -> Span:
    if len(span.events) > MAX_SPAN_EVENTS:
        raise Refused("too_many_attributes", "events", f"more than {MAX_SPAN_EVENTS}")
    return Span(
        trace_id=hex_id(span.trace_id.hex(), "traceId", TRACE_CHARS, optional=False),
        span_id=hex_id(span.span_id.hex(), "spanId", SPAN_CHARS, optional=False),
        parent_id=hex_id(span.parent_span_id.hex(), "parentSpanId", SPAN_CHARS),
        name=checked_text(span.name, "name"),
        kind=span.kind if 0 <= span.kind <= _MAX_KIND else 0,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        status=span.status.code if 0 <= span.status.code <= _MAX_STATUS else 0,
        status_text=checked_text(span.status.message, "status.message"),
        attributes=_attributes(span.attributes, "attributes"),
        events=tuple(
            SpanEvent(checked_text(event.name, "events.name"), _attributes(event.attributes, "events.attributes"))
            for event in span.events
        ),
        resource=resource,
        scope=scope,
    )


def _log_record(record: Any, resource: dict[str, Any], scope: str) -> LogRecord:
    return LogRecord(
        time_ns=record.time_unix_nano,
        observed_ns=record.observed_time_unix_nano,
        event_name=checked_text(record.event_name, "eventName"),
        body=_value(record.body, "body", MAX_NESTING),
        attributes=_attributes(record.attributes, "attributes"),
        trace_id=hex_id(record.trace_id.hex(), "traceId", TRACE_CHARS),
        span_id=hex_id(record.span_id.hex(), "spanId", SPAN_CHARS),
        resource=resource,
        scope=scope,
    )


def _attributes(pairs: Any, field: str) -> dict[str, Any]:
    if len(pairs) > MAX_ATTRIBUTES:
        raise Refused("too_many_attributes", field, f"more than {MAX_ATTRIBUTES}")
    return _pairs(pairs, field, MAX_NESTING)


def _pairs(pairs: Iterable[Any], field: str, depth: int) -> dict[str, Any]:
    return {checked_text(pair.key, field): _value(pair.value, field, depth) for pair in pairs}


def _value(value: Any, field: str, depth: int) -> Any:
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return checked_text(value.string_value, field)
    if kind in {"array_value", "kvlist_value"}:
        if depth == 0:
            raise Refused("too_deep", field, f"nested more than {MAX_NESTING} deep; send it as text in JSON")
        if kind == "array_value":
            return [_value(each, field, depth - 1) for each in value.array_value.values]
        return _pairs(value.kvlist_value.values, field, depth - 1)
    if kind == "bytes_value":
        return checked_text(b64encode(value.bytes_value).decode(), field)
    if kind == "double_value":
        return finite(value.double_value, field)
    return getattr(value, kind) if kind in {"bool_value", "int_value"} else None
