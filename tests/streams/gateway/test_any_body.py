"""Whatever is sent, the gateway answers what is wrong with it, and never that it failed itself."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streams.kafka import KafkaSettings
from tests.processes import TRACTION, TractionProcess
from tests.streams.gateway.test_hooks import payload
from tests.streams.gateway.test_otlp import PROTOBUF, tool
from tests.streams.otlp.otlp_kit import traces_json, traces_protobuf

ANSWERS = {200, 400, 404, 405, 413, 415, 422}

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
)
EVENT: dict[str, Any] = {
    "event_id": "e", "session_id": "s", "occurred_at": "2026-01-01T00:00:00Z", "tool": "t", "kind": "turn",
    "attempt_id": "a", "outcome": "failed", "arguments": {"a": 1}, "result": "r", "error": {"message": "m"},
}  # fmt: skip
CLOUD_EVENT = {"specversion": "1.0", "id": "i", "source": "/s", "type": "traction.tool-call.v1", "data": EVENT}
SPOOLED = {"agent": "claude-code", "at": "2026-01-01T00:00:00Z", "payload": payload("s")}
ANSWER = {"session_id": "s", "answers": "x", "action": "ended"}
KINDS = [
    "application/json", "application/x-ndjson", "application/cloudevents+json", "application/cloudevents-batch+json",
    PROTOBUF, "text/plain",
]  # fmt: skip
PATHS = [
    "/v1/events/tool-calls", "/v1/events/fix-attempts", "/v1/events/sessions", "/v1/events/reviews", "/v1/events",
    "/v1/traces", "/v1/logs", "/v1/hooks/claude-code", "/v1/hooks/codex", "/v1/hooks/gemini-cli",
    "/v1/hooks/openhands", "/v1/hooks", "/v1/answers",
]  # fmt: skip


@st.composite
def changed(draw: st.DrawFn, value: dict[str, Any]) -> bytes:
    """Give an object with a few of its fields, or of those within, replaced by anything."""
    changes = draw(st.dictionaries(st.sampled_from(sorted(value)), VALUES, max_size=2))
    name = draw(st.sampled_from(sorted(value)))
    if isinstance(value[name], dict) and value[name]:
        changes[name] = {**value[name], draw(st.sampled_from(sorted(value[name]))): draw(VALUES)}
    made = {**value, **changes}
    return json.dumps(draw(st.sampled_from([made, [made, value]]))).encode()


@st.composite
def damaged(draw: st.DrawFn, body: bytes) -> bytes:
    """Give bytes of which a few are others, or missing."""
    at, count = draw(st.integers(0, len(body))), draw(st.integers(0, 4))
    return body[:at] + draw(st.binary(max_size=4)) + body[at + count :]


BODIES = st.one_of(
    st.binary(max_size=60),
    VALUES.map(lambda value: json.dumps(value).encode()),
    changed(EVENT),
    changed(CLOUD_EVENT),
    changed(SPOOLED),
    changed(payload("s")),
    changed(ANSWER),
    changed(json.loads(traces_json(tool(1)))),
    damaged(traces_json(tool(1), tool(2))),
    damaged(traces_protobuf(tool(1), tool(2))),
    damaged(json.dumps(EVENT).encode()),
)


@pytest.fixture(scope="module")
def gateway(kafka: KafkaSettings) -> Iterator[http.client.HTTPConnection]:
    """Give a connection to a gateway that runs beside the test."""
    process = TractionProcess(
        *(TRACTION, "ingest", "--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix, "--port", "0", "--reviews")
    )
    try:
        url = asyncio.run(process.ready())
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
        yield connection
        connection.close()
    finally:
        process.kill()


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.sampled_from(PATHS),
    kind=st.sampled_from(KINDS),
    body=BODIES,
    packed=st.sampled_from([False, False, False, True]),
    query=st.sampled_from(["", "?mode=enforce", "?privacy=digests&mode=enforce", "?privacy=excerpts"]),
    headers=st.dictionaries(
        st.sampled_from(["ce-specversion", "ce-id", "ce-source", "ce-type", "ce-subject", "ce-time", "traceparent"]),
        st.text(max_size=6).map(quote) | st.sampled_from(["1.0", "traction.tool-call.v1", '"']),
        max_size=7,
    ),
)
def test_any_body(
    gateway: http.client.HTTPConnection,
    *,
    path: str,
    kind: str,
    body: bytes,
    packed: bool,
    query: str,
    headers: dict[str, str],
) -> None:
    """No body, of whatever form and with whatever headers, is answered with 500 or with nothing."""
    sent = {**headers, "Content-Type": kind, **({"Content-Encoding": "gzip"} if packed else {})}
    gateway.request("POST", path + query, gzip.compress(body) if packed else body, sent)
    answer = gateway.getresponse()
    told = answer.read()
    assert answer.status in ANSWERS, told
