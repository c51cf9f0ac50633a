"""Builds OTLP requests from plain descriptions: as JSON by hand, and in protobuf with OpenTelemetry's own messages."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import UTC, datetime
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from streams.otlp import Encoding

ENCODINGS: tuple[Encoding, ...] = ("json", "protobuf")
RECEIVED = datetime(2026, 11, 30, 12, tzinfo=UTC)
BEGIN_NS = 1_790_000_000 * 10**9
SECOND = 10**9
TRACE = "5b8aa5a2d2c872e8321cf37308d69df2"


def span_id(number: int) -> str:
    """Name the n-th span of a trace."""
    return f"{0xA1B2_0000_0000_0000 + number:016x}"


def span(number: int, name: str, attributes: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """Describe the n-th span, which takes a second; fields are ``trace``, ``parent`` (a number) and those of OTLP."""
    return {"number": number, "name": name, "attributes": attributes or {}, **fields}


def traces_json(*spans: dict[str, Any], resource: dict[str, Any] | None = None, scope: str = "agent") -> bytes:
    """Write a trace request as OTLP's JSON has it."""
    written = [
        {
            "traceId": each.get("trace", TRACE),
            "spanId": span_id(each["number"]),
            "parentSpanId": span_id(each["parent"]) if "parent" in each else "",
            "name": each["name"],
            "kind": each.get("kind", 1),
            "startTimeUnixNano": str(each.get("start", BEGIN_NS + each["number"] * SECOND)),
            "endTimeUnixNano": str(each.get("end", BEGIN_NS + (each["number"] + 1) * SECOND)),
            "attributes": _pairs(each["attributes"]),
            "status": {"code": each.get("status", 0), "message": each.get("message", "")},
            "events": [{"name": name, "attributes": _pairs(own)} for name, own in each.get("events", ())],
            "droppedAttributesCount": 0,
        }
        for each in spans
    ]
    part = {"scope": {"name": scope}, "spans": written}
    block = {"resource": {"attributes": _pairs(resource or {})}, "scopeSpans": [part]}
    return json.dumps({"resourceSpans": [block]}).encode()


def traces_protobuf(*spans: dict[str, Any], resource: dict[str, Any] | None = None, scope: str = "agent") -> bytes:
    """Write the same request in protobuf."""
    request = ExportTraceServiceRequest()
    block = request.resource_spans.add()
    block.resource.attributes.extend(_messages(resource or {}))
    part = block.scope_spans.add()
    part.scope.name = scope
    for each in spans:
        message = part.spans.add(
            trace_id=bytes.fromhex(each.get("trace", TRACE)),
            span_id=bytes.fromhex(span_id(each["number"])),
            parent_span_id=bytes.fromhex(span_id(each["parent"]) if "parent" in each else ""),
            name=each["name"],
            kind=each.get("kind", 1),
            start_time_unix_nano=each.get("start", BEGIN_NS + each["number"] * SECOND),
            end_time_unix_nano=each.get("end", BEGIN_NS + (each["number"] + 1) * SECOND),
            attributes=_messages(each["attributes"]),
        )
        message.status.code, message.status.message = each.get("status", 0), each.get("message", "")
        for name, own in each.get("events", ()):
            message.events.add(name=name, attributes=_messages(own))
    data: bytes = request.SerializeToString()
    return data


def log(number: int, attributes: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Describe the n-th log record, one a second; fields are ``body``, ``event_name``, ``time``, ``trace``."""
    return {"number": number, "attributes": attributes, **fields}


def logs_json(*records: dict[str, Any], resource: dict[str, Any] | None = None, scope: str = "agent") -> bytes:
    """Write a log request as OTLP's JSON has it."""
    written = [
        {
            "timeUnixNano": str(each.get("time", BEGIN_NS + each["number"] * SECOND)),
            "observedTimeUnixNano": str(BEGIN_NS + each["number"] * SECOND),
            "eventName": each.get("event_name", ""),
            "body": _any(each.get("body")),
            "attributes": _pairs(each["attributes"]),
            "traceId": each.get("trace", ""),
            "spanId": span_id(1) if "trace" in each else "",
            "severityNumber": "SEVERITY_NUMBER_INFO",
        }
        for each in records
    ]
    part = {"scope": {"name": scope}, "logRecords": written}
    block = {"resource": {"attributes": _pairs(resource or {})}, "scopeLogs": [part]}
    return json.dumps({"resourceLogs": [block]}).encode()


def logs_protobuf(*records: dict[str, Any], resource: dict[str, Any] | None = None, scope: str = "agent") -> bytes:
    """Write the same request in protobuf."""
    request = ExportLogsServiceRequest()
    block = request.resource_logs.add()
    block.resource.attributes.extend(_messages(resource or {}))
    part = block.scope_logs.add()
    part.scope.name = scope
    for each in records:
        part.log_records.add(
            time_unix_nano=each.get("time", BEGIN_NS + each["number"] * SECOND),
            observed_time_unix_nano=BEGIN_NS + each["number"] * SECOND,
            event_name=each.get("event_name", ""),
            body=_message(each.get("body")),
            attributes=_messages(each["attributes"]),
            trace_id=bytes.fromhex(each.get("trace", "")),
            span_id=bytes.fromhex(span_id(1) if "trace" in each else ""),
        )
    data: bytes = request.SerializeToString()
    return data


def _pairs(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _any(value)} for key, value in attributes.items()]


def _any(value: Any) -> dict[str, Any]:
    """Write a value as OTLP's JSON has it."""
    if isinstance(value, dict):
        return {"kvlistValue": {"values": _pairs(value)}}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_any(each) for each in value]}}
    if isinstance(value, bytes):
        return {"bytesValue": b64encode(value).decode()}
    if isinstance(value, float):
        return {"doubleValue": value if value - value == 0 else str(value)}
    kinds: dict[type, str] = {bool: "boolValue", int: "intValue", str: "stringValue"}
    name = kinds.get(type(value))
    if name is None:
        return {}
    return {name: str(value) if name == "intValue" else value}


def _messages(attributes: dict[str, Any]) -> list[KeyValue]:
    return [KeyValue(key=key, value=_message(value)) for key, value in attributes.items()]


def _message(value: Any) -> AnyValue:
    message = AnyValue()
    if isinstance(value, dict):
        message.kvlist_value.values.extend(_messages(value))
        message.kvlist_value.SetInParent()
    elif isinstance(value, list):
        message.array_value.values.extend([_message(each) for each in value])
        message.array_value.SetInParent()
    elif value is not None:
        kinds: dict[type, str] = {
            bool: "bool_value", int: "int_value", float: "double_value", str: "string_value", bytes: "bytes_value",
        }  # fmt: skip
        setattr(message, kinds[type(value)], value)
    return message
