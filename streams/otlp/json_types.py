"""The shapes of OTLP's messages in JSON, as far as they are read.

Spans, log records and resources are left as they came, so that each is judged by itself. Only shapes: to read them is
for `json_form`.
"""

from __future__ import annotations

import msgspec


class JsonValue(msgspec.Struct, rename="camel"):
    """OTLP's message of this name, as far as it is read."""

    string_value: str | None = None
    bool_value: bool | None = None
    int_value: int | str | None = None
    double_value: float | str | None = None
    bytes_value: str | None = None
    array_value: JsonArray | None = None
    kvlist_value: JsonPairs | None = None


class JsonArray(msgspec.Struct):
    """OTLP's message of this name, as far as it is read."""

    values: list[JsonValue] | None = None


class JsonKeyValue(msgspec.Struct):
    """OTLP's message of this name, as far as it is read."""

    key: str = ""
    value: JsonValue | None = None


class JsonPairs(msgspec.Struct):
    """OTLP's message of this name, as far as it is read."""

    values: list[JsonKeyValue] | None = None


class JsonAttributed(msgspec.Struct):
    """OTLP's message of this name, as far as it is read."""

    attributes: list[JsonKeyValue] | None = None


class JsonScope(msgspec.Struct):
    """OTLP's message of this name, as far as it is read."""

    name: str | None = None


class JsonStatus(msgspec.Struct):
    """OTLP's message of this name, as far as it is read."""

    code: int | str | None = None
    message: str | None = None


class JsonEvent(msgspec.Struct):
    """OTLP's message of this name, as far as it is read."""

    name: str | None = None
    attributes: list[JsonKeyValue] | None = None


class JsonSpan(msgspec.Struct, rename="camel"):
    """OTLP's message of this name, as far as it is read."""

    trace_id: str | None = None
    span_id: str | None = None
    parent_span_id: str | None = None
    name: str | None = None
    kind: int | str | None = None
    start_time_unix_nano: int | str | None = None
    end_time_unix_nano: int | str | None = None
    attributes: list[JsonKeyValue] | None = None
    events: list[JsonEvent] | None = None
    status: JsonStatus | None = None


class JsonLogRecord(msgspec.Struct, rename="camel"):
    """OTLP's message of this name, as far as it is read."""

    time_unix_nano: int | str | None = None
    observed_time_unix_nano: int | str | None = None
    event_name: str | None = None
    body: JsonValue | None = None
    attributes: list[JsonKeyValue] | None = None
    trace_id: str | None = None
    span_id: str | None = None


class JsonScopeSpans(msgspec.Struct):
    """OTLP's message of this name, as far as it is read."""

    scope: JsonScope | None = None
    spans: list[msgspec.Raw] | None = None


class JsonResourceSpans(msgspec.Struct, rename="camel"):
    """OTLP's message of this name, as far as it is read."""

    resource: msgspec.Raw = msgspec.Raw(b"{}")
    scope_spans: list[JsonScopeSpans] | None = None


class JsonTracesRequest(msgspec.Struct, rename="camel"):
    """OTLP's message of this name, as far as it is read."""

    resource_spans: list[JsonResourceSpans] | None = None


class JsonScopeLogs(msgspec.Struct, rename="camel"):
    """OTLP's message of this name, as far as it is read."""

    scope: JsonScope | None = None
    log_records: list[msgspec.Raw] | None = None


class JsonResourceLogs(msgspec.Struct, rename="camel"):
    """OTLP's message of this name, as far as it is read."""

    resource: msgspec.Raw = msgspec.Raw(b"{}")
    scope_logs: list[JsonScopeLogs] | None = None


class JsonLogsRequest(msgspec.Struct, rename="camel"):
    """OTLP's message of this name, as far as it is read."""

    resource_logs: list[JsonResourceLogs] | None = None
