"""OpenTelemetry's exporters at the gateway: what is taken, what is counted, and how they are answered."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from schemas import topics
from streams.gateway import items
from streams.gateway.otlp import MOST_TOLD
from tests.streams.gateway.conftest import Client, Opening, Since, published
from tests.streams.otlp.otlp_kit import TRACE, log, logs_json, logs_protobuf, span, traces_json, traces_protobuf

PROTOBUF = "application/x-protobuf"
JSON = "application/json"


def tool(number: int, session: str | None = "s1", **fields: Any) -> dict[str, Any]:
    """Describe the span of a tool call."""
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "read", **fields}
    if session is not None:
        attributes["gen_ai.conversation.id"] = session
    return span(number, "execute_tool read", attributes)


def codex(number: int) -> dict[str, Any]:
    """Describe a log record of Codex about a tool call."""
    return log(
        number,
        {"event.name": "codex.tool_result", "conversation.id": "s2", "tool_name": "shell", "call_id": f"c{number}"},
    )


def status_text(body: bytes) -> str:
    """Read the text of a google.rpc.Status, which is its field 2, as that of a partial success is."""
    return str(ExportTracePartialSuccess.FromString(body).error_message)


async def test_both_encodings(client: Client, wire: Since) -> None:
    """Tool calls become events with their trace context, in either encoding, packed too, each answered in its own."""
    arguments = {"gen_ai.tool.call.arguments": '{"path": "a"}'}
    for number, (body, kind, packed) in enumerate(
        ((traces_json(tool(1, **arguments)), JSON, False), (traces_protobuf(tool(2, **arguments)), PROTOBUF, True))
    ):
        answer = await client.post("/v1/traces", body, kind, packed=packed)
        assert (answer.status, answer.headers["content-type"], answer.body) == (200, kind, (b"{}", b"")[number])
    assert (await client.post("/v1/logs", logs_json(codex(1)))).body == b"{}"
    assert (await client.post("/v1/logs", logs_protobuf(codex(2)), PROTOBUF)).body == b""
    found = await published(wire, topics.TOOL_CALLS)
    assert sorted((each.session_id, each.tool) for each in found) == [("s1", "read")] * 2 + [("s2", "shell")] * 2
    assert {str(each.arguments) for each in found if each.session_id == "s1"} == {"{'path': 'a'}"}
    traces = [dict(record.headers).get("traceparent", b"") for record in await wire.records(topics.TOOL_CALLS)]
    assert sum(TRACE.encode() in each for each in traces) >= 2


async def test_repeated(client: Client, wire: Since) -> None:
    """An export that is repeated gives the same event ids."""
    for _ in range(2):
        assert (await client.post("/v1/traces", traces_json(tool(1), tool(2)))).status == 200
    assert len({each.event_id for each in await published(wire, topics.TOOL_CALLS)}) == 2


async def test_partial_success(client: Client) -> None:
    """What cannot be read is rejected by number and reason, as OTLP says, and the rest is taken."""
    bad = {**tool(1), "trace": "no hex"}
    answer = await client.post("/v1/traces", traces_json(bad, tool(2)))
    partial = answer.json["partialSuccess"]
    assert (answer.status, partial["rejectedSpans"], "traceId" in partial["errorMessage"]) == (200, "1", True)
    assert partial["errorMessage"].startswith("span 0: traceId: ")
    deep: Any = "x"
    for _ in range(30):
        deep = [deep]
    for path, body, response in (
        ("/v1/traces", traces_protobuf(span(1, "execute_tool a", {"a": deep}), tool(2)), ExportTraceServiceResponse()),
        ("/v1/logs", logs_protobuf(log(1, {"a": deep}), codex(2)), ExportLogsServiceResponse()),
    ):
        answer = await client.post(path, body, PROTOBUF)
        response.ParseFromString(answer.body)
        success = response.partial_success
        rejected = getattr(success, "rejected_spans", None) or getattr(success, "rejected_log_records", None)
        named = success.error_message.startswith(("span 0: attributes: ", "log record 0: attributes: "))
        assert (answer.status, rejected, named) == (200, 1, True)
    assert client.measured("traction_otlp_refused_total", signal="traces", reason="bad_id") == 1
    assert client.measured("traction_otlp_refused_total", signal="logs", reason="too_deep") == 1


async def test_each_rejection_names_its_place(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The place in the request, the field and the span are named of some, and how many more there are; no content."""
    good = json.loads(traces_json(tool(0), *({**tool(n), "trace": "no hex"} for n in range(1, MOST_TOLD + 3))))
    good["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["name"] = {"secret": 1}
    partial = (await client.post("/v1/traces", good)).json["partialSuccess"]
    told = partial["errorMessage"].split("; ")
    assert (partial["rejectedSpans"], told[0]) == (str(MOST_TOLD + 3), "span 0: name: not what OTLP's JSON demands")
    assert told[1].startswith("span 1: traceId: ")
    assert (told[-1], "secret" in partial["errorMessage"]) == ("and 3 more", False)
    monkeypatch.setattr(items, "MAX_VALUE_BYTES", 100)
    partial = (await client.post("/v1/traces", traces_json(tool(7)))).json["partialSuccess"]
    assert re.match(r"span [0-9a-f]{16}: more than \d+ bytes", partial["errorMessage"])


@pytest.mark.parametrize("kept", [False, True])
async def test_a_call_that_a_hook_told_without_its_id_counts_once(
    client: Client,
    wire: Since,
    kept: bool,  # noqa: FBT001 - a case
) -> None:
    """Where hooks tell calls without ids, telemetry of their session gives no call again; other sessions' does."""
    hook = {
        "session_id": "g1",
        "hook_event_name": "AfterTool",
        "timestamp": "2026-01-01T00:00:00Z",
        "tool_name": "read_file",
        "tool_input": {"path": "a"},
        "tool_response": {"llmContent": "text"},
    }
    if kept:
        line = {"agent": "gemini-cli", "at": "2026-01-01T00:00:01Z", "payload": hook}
        await client.post("/v1/hooks", line, "application/x-ndjson")
    else:
        await client.post("/v1/hooks/gemini-cli", hook)
    record = {"event.name": "gemini_cli.tool_call", "function_name": "read_file", "function_args": '{"path": "a"}'}
    response = {"event.name": "gemini_cli.api_response", "session.id": "g1", "input_token_count": 7}
    told = [log(1, {**record, "session.id": "g1"}), log(2, {**record, "session.id": "g2"}), log(3, response)]
    before = client.measured("traction_otlp_lacking_total", signal="logs", what="result")
    assert (await client.post("/v1/logs", logs_json(*told))).status == 200
    assert (await client.post("/v1/traces", traces_json(tool(1, "g1"), tool(2, "g2")))).status == 200
    calls = await published(wire, topics.TOOL_CALLS)
    assert sorted(each.session_id for each in calls) == ["g1", "g2", "g2"]
    assert [each.usage.input_tokens for each in await published(wire, topics.SESSIONS)] == [7]
    for signal in ("logs", "traces"):
        assert client.measured("traction_otlp_passed_total", signal=signal, reason="same_call") == 1
    assert client.measured("traction_otlp_lacking_total", signal="logs", what="result") == (before or 0) + 1


async def test_what_is_lacking(client: Client, wire: Since) -> None:
    """Spans without a session or arguments, and those of other kinds, are counted by reason; none seem equal calls."""
    await client.post("/v1/traces", traces_json(tool(1, None), tool(2, None), span(3, "chat"), span(4, "GET /")))
    await client.post("/v1/logs", logs_json(log(1, {"event.name": "something.else"})))
    measured = client.measured
    assert measured("traction_otlp_lacking_total", signal="traces", what="session_id") == 2
    assert measured("traction_otlp_lacking_total", signal="traces", what="arguments") == 2
    assert measured("traction_otlp_passed_total", signal="traces", reason="not_a_tool_call") == 2
    assert measured("traction_otlp_passed_total", signal="logs", reason="not_a_tool_call") == 1
    found = await published(wire, topics.TOOL_CALLS)
    assert len(found) == 2
    assert all(each.arguments_digest is None and not isinstance(each.arguments, str) for each in found)


async def test_refused_whole(client: Client, opening: Opening) -> None:
    """A request that cannot be read is refused with a Status in its own encoding, and so is one without the token."""
    for path in ("/v1/traces", "/v1/logs"):
        answer = await client.post(path, b"\xff\xff", PROTOBUF)
        assert (answer.status, bool(status_text(answer.body))) == (400, True)
        answer = await client.post(path, b"{", JSON)
        assert (answer.status, bool(answer.json["message"])) == (400, True)
        assert (await client.post(path, b"{}", "text/plain")).status == 415
        assert (await client.post(path, {})).body == b"{}"
    async with opening(tokens=("t" * 64,)) as guarded:
        answer = await guarded.post("/v1/traces", traces_protobuf(tool(1)), PROTOBUF)
        assert (answer.status, bool(status_text(answer.body))) == (401, True)
