"""What the official OpenTelemetry SDK and its exporters write is what is read."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry._logs import LogRecord as SdkRecord
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Status, StatusCode

from streams.otlp import Memory, decode_logs, decode_traces, map_logs, map_traces
from tests.streams.otlp.otlp_kit import RECEIVED

RESOURCE = Resource.create({"service.name": "sdk-agent"})


def test_spans_of_the_sdk_are_the_calls_that_were_made():
    """An agent instrumented with the SDK is read as it is, failure and nesting included."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(resource=RESOURCE)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test-agent")
    with tracer.start_as_current_span("invoke_agent", attributes={"gen_ai.conversation.id": "c1"}):
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "fetch",
            "gen_ai.tool.call.id": "call_1",
            "gen_ai.tool.call.arguments": '{"url": "http://localhost"}',
        }
        with tracer.start_as_current_span("execute_tool fetch", attributes=attributes) as span:
            span.record_exception(ConnectionError("refused"))
            span.set_status(Status(StatusCode.ERROR, "refused"))
    message = encode_spans(exporter.get_finished_spans())
    mapped = map_traces(decode_traces(message.SerializeToString(), "protobuf"), RECEIVED, Memory())
    (observed,) = mapped.events
    event: Any = observed.event
    assert (event.session_id, event.tool, event.call_id) == ("c1", "fetch", "call_1")
    assert (event.arguments, event.status) == ({"url": "http://localhost"}, "error")
    assert (event.error.type, event.error.message, event.agent.name) == ("ConnectionError", "refused", "sdk-agent")
    assert event.occurred_at < RECEIVED or event.duration_ms >= 0
    context = span.get_span_context()
    assert observed.traceparent == f"00-{context.trace_id:032x}-{context.span_id:016x}-01"
    assert map_traces(decode_traces(in_json(message), "json"), RECEIVED, Memory()) == mapped


def test_log_records_of_the_sdk_are_the_calls_that_were_made():
    """A process that sends an agent's events through the SDK is read as it is."""
    exporter = InMemoryLogRecordExporter()
    provider = LoggerProvider(resource=RESOURCE)
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    own: Any = {"conversation.id": "c2", "tool_name": "shell", "call_id": "call_2", "arguments": "{}", "success": True}
    provider.get_logger("codex").emit(SdkRecord(event_name="codex.tool_result", body="text", attributes=own))
    message = encode_logs(exporter.get_finished_logs())
    mapped = map_logs(decode_logs(message.SerializeToString(), "protobuf"), RECEIVED)
    (observed,) = mapped.events
    event: Any = observed.event
    assert (event.session_id, event.tool, event.call_id, event.status) == ("c2", "shell", "call_2", "ok")
    assert map_logs(decode_logs(in_json(message), "json"), RECEIVED) == mapped


def in_json(message: Any) -> bytes:
    """Write a message as OTLP's JSON has it: protobuf's own, but for the ids in hexadecimal and numbers for enums."""
    return json.dumps(_with_hex(MessageToDict(message, use_integers_for_enums=True))).encode()


def _with_hex(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_hex(each) for each in value]
    if not isinstance(value, dict):
        return value
    ids = {"traceId", "spanId", "parentSpanId"}
    return {key: b64decode(each).hex() if key in ids else _with_hex(each) for key, each in value.items()}
