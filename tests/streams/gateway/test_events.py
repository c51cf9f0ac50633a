"""Our own events over HTTP: each form that is taken, what is refused of it, and what comes onto the topics."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from cloudevents.core.bindings.http import to_binary_event, to_structured_event
from cloudevents.core.v1.event import CloudEvent

from schemas import topics
from streams.metric_list import listed
from tests.kit import metrics_on
from tests.streams.escalation.conftest import Wire
from tests.streams.gateway.conftest import Client, Opening, published

NDJSON = "application/x-ndjson"
CALLS = "/v1/events/tool-calls"


def call(number: int, session: str = "s1", **fields: Any) -> dict[str, Any]:
    """Build the n-th call of a session as an agent would send it."""
    return {
        "event_id": f"{session}-{number}",
        "session_id": session,
        "occurred_at": f"2026-01-01T00:00:{number:02d}Z",
        "tool": "read",
        "arguments": {"path": f"file{number}.py"},
        **fields,
    }


async def test_each_form(client: Client, wire: Wire) -> None:
    """One event, an array, lines, packed or not: all that was accepted is on the topic, in order, under its key."""
    lines = b"\n".join(json.dumps(call(number)).encode() for number in (3, 4)) + b"\n\n"
    answers = [
        await client.post(CALLS, call(0)),
        await client.post(CALLS, [call(1), call(2)], packed=True),
        await client.post(CALLS, lines, NDJSON),
        await client.post(CALLS, [], "application/json; charset=utf-8"),
    ]
    assert [(each.status, each.json["accepted"]) for each in answers] == [(200, 1), (200, 2), (200, 2), (200, 0)]
    assert [each.event_id for each in await published(wire, topics.TOOL_CALLS)] == [f"s1-{n}" for n in range(5)]
    topic = wire.settings.topic(topics.TOOL_CALLS)
    assert client.measured("traction_gateway_events_total", topic=topic, result="accepted") == 5
    assert client.measured("traction_gateway_requests_total", route="events", code="200") == 4


async def test_each_topic(opening: Opening, wire: Wire) -> None:
    """Each name leads to its topic; reviews are taken when that was asked for, and otherwise not."""
    common = {"event_id": "e", "session_id": "s", "occurred_at": "2026-01-01T00:00:00Z"}
    review = {**common, "pull_request": "o/r#1", "author": "person", "verdict": "approved"}
    sent = {
        topics.FIX_ATTEMPTS: {**common, "attempt_id": "a", "outcome": "failed"},
        topics.SESSIONS: {**common, "kind": "turn"},
        topics.REVIEWS: review,
    }
    async with opening(reviews=True) as client:
        for topic, event in sent.items():
            assert (await client.post(f"/v1/events/{topic.name}", event)).json["accepted"] == 1
            assert len(await published(wire, topic)) == 1
    async with opening() as client:
        refused = await client.post("/v1/events/reviews", review)
        assert (refused.status, "--reviews" in refused.json["error"]) == (404, True)
        assert (await client.post("/v1/events/control", {**common, "action": "resume"})).status == 404
        given = await client.post(
            "/v1/events", _cloud_event(review, "traction.review.v1"), "application/cloudevents+json"
        )
        assert (given.status, given.json["refused"][0]["field"]) == (422, "type")


async def test_bad_among_good(client: Client, wire: Wire) -> None:
    """What is wrong is named by its place, field and remedy, without a word of it; the others are taken."""
    secret = "s3cret-value"  # noqa: S105 - what must not come back
    body = [call(0), {**call(1), "tool": {"a": secret}}, secret, call(2), {key: call(3)[key] for key in ("event_id",)}]
    answer = await client.post(CALLS, body)
    assert (answer.status, answer.json["accepted"]) == (200, 2)
    assert [(each["index"], each["field"]) for each in answer.json["refused"]] == [
        (1, "tool"),
        (2, None),
        (4, "session_id"),
    ]
    assert all("schema is tool-call.v1.json" in each["reason"] for each in answer.json["refused"])
    assert secret not in answer.body.decode()
    assert [each.event_id for each in await published(wire, topics.TOOL_CALLS)] == ["s1-0", "s1-2"]
    assert client.measured("traction_gateway_refused_total", reason="wrong_type") == 2
    lines = b"\n".join([json.dumps(call(5)).encode(), b'{"cut', b"\xff", b"[1]"])
    answer = await client.post(CALLS, lines, NDJSON)
    assert (answer.status, answer.json["accepted"], len(answer.json["refused"])) == (200, 1, 3)


UNREADABLE: list[tuple[Any, str | None, int]] = [
    ([{}, {}], "application/json", 422),
    ({}, "application/json", 422),
    (b"{", "application/json", 400),
    (b"[{}", "application/json", 400),
    (b"[" * 100_000, "application/json", 400),
    (b'{"a":' * 100_000, "application/json", 400),
    (b"", "application/json", 400),
    (b" \n", NDJSON, 400),
    (b"\xff\xfe", "application/json", 400),
    (b"{}", None, 415),
    (b"{}", "text/plain", 415),
    (b"{}", "application/x-www-form-urlencoded", 415),
]


async def test_nothing_to_take(client: Client) -> None:
    """What can be read and is all wrong gets 422, what cannot be read 400, and what is not said to be JSON 415."""
    for body, kind, status in UNREADABLE:
        assert ((await client.post(CALLS, body, kind)).status, body, kind) == (status, body, kind)


async def test_addresses_and_methods(client: Client) -> None:
    """What is not there gets 404, and another method 405 with the one that is taken; pages are where they are."""
    assert (await client.post("/v1/events/unknown", {})).status == 404
    assert (await client.post("/v2", {})).status == 404
    wrong = await client.get(CALLS)
    assert (wrong.status, wrong.headers["allow"]) == (405, "POST")
    assert (await client.post("/v1/sessions/s/verdict", {})).status == 405
    assert (await client.get("/readyz")).json["ok"] is True
    page = (await client.get("/metrics")).body
    assert metrics_on(page.decode()) == {one.name for one in listed("ingest")}
    assert b"traction_ready 1.0" in page
    assert b"traction_healthy 1.0" in page


async def test_cloud_events(client: Client, wire: Wire) -> None:
    """What the CNCF's own package writes for HTTP is taken, in both modes; the type decides whose event it is."""
    data = {"tool": "read", "session_id": "s1", "result": "grün"}
    named = {"type": "traction.tool-call.v1", "source": "/a", "time": None}
    sent = []
    for number, write in enumerate((to_structured_event, to_binary_event)):
        attributes = {**named, "id": f"ü {number}", "subject": "s1", "time": _at(number)}
        sent.append(write(CloudEvent(attributes, data)))
    for message in sent:
        kind = message.headers.pop("content-type", message.headers.pop("Content-Type", None))
        path = "/v1/events" if kind else CALLS
        answer = await client.post(path, _bytes(message.body), kind or "application/json", headers=message.headers)
        assert (answer.status, answer.json["refused"]) == (200, [])
    batch = [
        json.loads(_cloud_event(call(7), "traction.tool-call.v1")),
        json.loads(_cloud_event({**call(8), "kind": "turn"}, "traction.session-event.v1")),
        json.loads(_cloud_event({}, "com.example.unknown")),
        json.loads(_cloud_event({"action": "clear", "session_id": "s1"}, "traction.control.v1")),
        {"no": "cloud event"},
    ]
    answer = await client.post("/v1/events", batch, "application/cloudevents-batch+json")
    assert (answer.status, answer.json["accepted"]) == (200, 2)
    assert [each["index"] for each in answer.json["refused"]] == [2, 3, 4]
    assert [each.event_id for each in await published(wire, topics.TOOL_CALLS)] == ["ü 0", "ü 1", "s1-7"]
    assert [each.event_id for each in await published(wire, topics.SESSIONS)] == ["s1-8"]
    assert (await client.post("/v1/events", call(1))).status == 415
    named_wrong = await client.post(
        CALLS, _cloud_event(call(9), "traction.session-event.v1"), "application/cloudevents+json"
    )
    assert named_wrong.status == 422


async def test_repeated(client: Client, wire: Wire) -> None:
    """A post that is repeated has the same ids again, by which workers count each event once."""
    for _ in range(2):
        assert (await client.post(CALLS, [call(0), call(1)])).status == 200
    assert {each.event_id for each in await published(wire, topics.TOOL_CALLS)} == {"s1-0", "s1-1"}


async def test_privacy_and_trace(opening: Opening, wire: Wire) -> None:
    """A gateway that lets only digests on lets no text on; the request's trace context goes with its events."""
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with opening(privacy="digests") as client:
        assert (await client.post(CALLS, call(0, result="a secret"), headers={"traceparent": trace})).status == 200
    (record,) = await wire.records(topics.TOOL_CALLS)
    assert dict(record.headers)["traceparent"] == trace.encode()
    assert b"secret" not in record.value
    assert b"file0.py" not in record.value
    (event,) = await published(wire, topics.TOOL_CALLS)
    assert event.arguments_digest
    assert event.result_digest


async def test_many_at_once(client: Client, wire: Wire) -> None:
    """Requests side by side are all acknowledged, each event once."""
    posts = (client.post(CALLS, [call(n, f"s{k}") for n in range(20)]) for k in range(30))
    answers = await asyncio.gather(*posts)
    assert {each.status for each in answers} == {200}
    found = [each.event_id for each in await published(wire, topics.TOOL_CALLS)]
    assert (len(found), len(set(found))) == (600, 600)


def _at(number: int) -> Any:
    from datetime import UTC, datetime  # noqa: PLC0415 - of this alone

    return datetime(2026, 1, 1, 0, 0, number, tzinfo=UTC)


def _bytes(body: Any) -> bytes:
    return body if isinstance(body, bytes) else str(body).encode()


def _cloud_event(data: dict[str, Any], kind: str) -> bytes:
    return json.dumps(
        {"specversion": "1.0", "id": data.get("event_id", "e"), "source": "/a", "type": kind, "data": data}
    ).encode()
