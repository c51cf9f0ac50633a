"""Reads OTLP's JSON: lowerCamelCase names, ids in hexadecimal, 64-bit integers as text, enums as numbers or names.

Each span and log record is read by itself, so that a bad one does not take the others along. Unknown fields are passed
by, as OTLP demands. Says nothing about what a span means.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

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
from streams.otlp.json_types import (
    JsonAttributed,
    JsonKeyValue,
    JsonLogRecord,
    JsonLogsRequest,
    JsonSpan,
    JsonStatus,
    JsonTracesRequest,
    JsonValue,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

_DIGITS: Final = re.compile(r"-?[0-9]{1,20}")
_PATH: Final = re.compile(r"- at `\$\.([\w.\[\]]+)`$")
_MAX_NANOS: Final = 2**64 - 1
_KINDS: Final = {
    f"SPAN_KIND_{name}": number
    for number, name in enumerate(("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"))
}
_STATUSES: Final = {f"STATUS_CODE_{name}": number for number, name in enumerate(("UNSET", "OK", "ERROR"))}


_Read = TypeVar("_Read")

_TRACES: Final = msgspec.json.Decoder(JsonTracesRequest)
_LOGS: Final = msgspec.json.Decoder(JsonLogsRequest)
_RESOURCE: Final = msgspec.json.Decoder(JsonAttributed | None)
_SPAN: Final = msgspec.json.Decoder(JsonSpan)
_LOG_RECORD: Final = msgspec.json.Decoder(JsonLogRecord)


def read_traces(body: bytes) -> Traces:
    """Read a trace export request.

    Raises:
        InvalidRequest: it is not one as a whole.
    """
    request = _whole(_TRACES, body, "resourceSpans")
    items = (
        (raw, block.resource, (scope.scope and scope.scope.name) or "")
        for block in request.resource_spans or ()
        for scope in block.scope_spans or ()
        for raw in scope.spans or ()
    )
    return Traces(*each(items, _resource, _span))


def read_logs(body: bytes) -> Logs:
    """Read a log export request.

    Raises:
        InvalidRequest: it is not one as a whole.
    """
    request = _whole(_LOGS, body, "resourceLogs")
    items = (
        (raw, block.resource, (scope.scope and scope.scope.name) or "")
        for block in request.resource_logs or ()
        for scope in block.scope_logs or ()
        for raw in scope.log_records or ()
    )
    return Logs(*each(items, _resource, _log_record))


def _whole(decoder: msgspec.json.Decoder[_Read], body: bytes, field: str) -> _Read:
    try:
        if not body.isascii():
            body.decode()
        return decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        raise InvalidRequest("malformed", f"not an OTLP request in JSON; send UTF-8 with {field}") from None


def _resource(raw: msgspec.Raw) -> dict[str, Any]:
    found = _item(_RESOURCE, raw)
    return _attributes(found.attributes if found else None, "resource.attributes")


def _item(decoder: msgspec.json.Decoder[_Read], raw: msgspec.Raw) -> _Read:
    try:
        return decoder.decode(raw)
    except (msgspec.MsgspecError, RecursionError) as problem:
        field = _PATH.search(str(problem))  # only of what is typed, so that it quotes no name of an attribute
        raise Refused("malformed", field[1] if field else "", "not what OTLP's JSON demands") from None


def _span(raw: msgspec.Raw, resource: dict[str, Any], scope: str) -> Span:
    span = _item(_SPAN, raw)
    events = span.events or ()
    if len(events) > MAX_SPAN_EVENTS:
        raise Refused("too_many_attributes", "events", f"more than {MAX_SPAN_EVENTS}")
    status = span.status or JsonStatus()
    return Span(
        trace_id=hex_id(span.trace_id, "traceId", TRACE_CHARS, optional=False),
        span_id=hex_id(span.span_id, "spanId", SPAN_CHARS, optional=False),
        parent_id=hex_id(span.parent_span_id, "parentSpanId", SPAN_CHARS),
        name=checked_text(span.name, "name"),
        kind=_enum(span.kind, _KINDS),
        start_ns=_nanos(span.start_time_unix_nano, "startTimeUnixNano"),
        end_ns=_nanos(span.end_time_unix_nano, "endTimeUnixNano"),
        status=_enum(status.code, _STATUSES),
        status_text=checked_text(status.message, "status.message"),
        attributes=_attributes(span.attributes, "attributes"),
        events=tuple(
            SpanEvent(checked_text(event.name, "events.name"), _attributes(event.attributes, "events.attributes"))
            for event in events
        ),
        resource=resource,
        scope=scope,
    )


def _log_record(raw: msgspec.Raw, resource: dict[str, Any], scope: str) -> LogRecord:
    record = _item(_LOG_RECORD, raw)
    return LogRecord(
        time_ns=_nanos(record.time_unix_nano, "timeUnixNano"),
        observed_ns=_nanos(record.observed_time_unix_nano, "observedTimeUnixNano"),
        event_name=checked_text(record.event_name, "eventName"),
        body=None if record.body is None else _value(record.body, "body", MAX_NESTING),
        attributes=_attributes(record.attributes, "attributes"),
        trace_id=hex_id(record.trace_id, "traceId", TRACE_CHARS),
        span_id=hex_id(record.span_id, "spanId", SPAN_CHARS),
        resource=resource,
        scope=scope,
    )


def _enum(value: int | str | None, names: dict[str, int]) -> int:
    """Give an enum's number; one that is not known is 0, as protobuf takes it."""
    number = names.get(value, 0) if isinstance(value, str) else value or 0
    return number if 0 <= number < len(names) else 0


def _number(value: int | str, field: str, least: int, most: int) -> int:
    if isinstance(value, str):
        if not _DIGITS.fullmatch(value):
            raise Refused("malformed", field, "not an integer")
        value = int(value)
    if not least <= value <= most:
        raise Refused("malformed", field, "not an integer of 64 bits")
    return value


def _nanos(value: int | str | None, field: str) -> int:
    return 0 if value is None or value == "" else _number(value, field, 0, _MAX_NANOS)


def _attributes(pairs: list[JsonKeyValue] | None, field: str) -> dict[str, Any]:
    if not pairs:
        return {}
    if len(pairs) > MAX_ATTRIBUTES:
        raise Refused("too_many_attributes", field, f"more than {MAX_ATTRIBUTES}")
    return _pairs(pairs, field, MAX_NESTING)


def _pairs(pairs: Iterable[JsonKeyValue], field: str, depth: int) -> dict[str, Any]:
    return {
        checked_text(pair.key, field): None if pair.value is None else _value(pair.value, field, depth)
        for pair in pairs
    }


def _value(value: JsonValue, field: str, depth: int) -> Any:
    """Give the plain value: the first that is set of those that OTLP lets be set once."""
    if value.string_value is not None:
        return checked_text(value.string_value, field)
    if value.bool_value is not None:
        return value.bool_value
    if value.int_value is not None:
        return _number(value.int_value, field, -(2**63), 2**63 - 1)
    if value.array_value is None and value.kvlist_value is None:
        return _rare(value, field)
    if depth == 0:
        raise Refused("too_deep", field, f"nested more than {MAX_NESTING} deep; send it as text in JSON")
    if value.array_value is not None:
        return [_value(each, field, depth - 1) for each in value.array_value.values or ()]
    return _pairs((value.kvlist_value and value.kvlist_value.values) or (), field, depth - 1)


def _rare(value: JsonValue, field: str) -> float | str | None:
    if value.double_value is not None:
        return finite(value.double_value, field)
    return None if value.bytes_value is None else checked_text(value.bytes_value, field)
