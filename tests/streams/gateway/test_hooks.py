"""Hooks, verdicts and answers at the gateway: what goes to the topics, and what agents are told."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from detectors.denial import own_denial
from schemas import topics
from streams.hooks import Observed, read
from streams.kafka import KafkaSettings
from tests.streams.gateway.conftest import Client, Opening, Since, published
from tests.streams.gateway.test_events import CALLS, NDJSON, call
from tests.streams.outputs_kit import directive, put, soon, termination
from tests.waiting import until

HOOK = "/v1/hooks/claude-code"


def payload(session: str, event: str = "PreToolUse", call_id: str = "c1", **fields: Any) -> dict[str, Any]:
    """Build what Claude Code hands to a hook."""
    return {
        "session_id": session,
        "hook_event_name": event,
        "tool_name": "Bash",
        "tool_input": {"command": "make"},
        "tool_use_id": call_id,
        "permission_mode": "default",
        **fields,
    }


async def told(client: Client, session: str, action: str) -> None:
    """Wait until a session is told something."""
    live = client.serving.gateway._live
    await until(lambda: live.verdict(session).action == action)


@pytest.mark.parametrize("query", ["?privacy=digests", ""])
async def test_observed(client: Client, wire: Since, query: str) -> None:
    """A hook's call is on the topic when it is answered, without content unless that is asked for, and no verdict."""
    answer = await client.post(f"{HOOK}{query}", payload("h1"))
    assert (answer.status, answer.json) == (200, {})
    (event,) = await published(wire, topics.TOOL_CALLS)
    assert (event.session_id, event.call_id, event.phase, bool(event.arguments_digest)) == ("h1", "c1", "start", True)
    assert b"make" not in (await wire.records(topics.TOOL_CALLS))[0].value


async def test_the_stricter_level(opening: Opening, wire: Since) -> None:
    """No hook gets more through than the gateway lets on."""
    async with opening(privacy="digests") as client:
        assert (await client.post(f"{HOOK}?privacy=full", payload("h2"))).status == 200
    assert b"make" not in (await wire.records(topics.TOOL_CALLS))[0].value


async def test_stop(client: Client, kafka: KafkaSettings) -> None:
    """A termination is told to hooks that enforce, in their own words, to posts of events, and to who asks."""
    await put(kafka, termination("x-stop", session_id="h3", reason="the same call again", expires_at=soon(minutes=5)))
    await told(client, "h3", "stop")
    observing = await client.post(HOOK, payload("h3"))
    enforcing = await client.post(f"{HOOK}?mode=enforce", payload("h3", call_id="c2"))
    assert (observing.json, enforcing.json.get("continue")) == ({}, False)
    posted = await client.post(CALLS, [call(0, "h3"), call(1, "other")])
    assert {name: verdict["action"] for name, verdict in posted.json["verdicts"].items()} == {"h3": "stop"}
    asked = await client.get("/v1/sessions/h3/verdict")
    assert (asked.json["action"], asked.json["answers"]) == ("stop", "x-stop")
    assert client.measured("traction_gateway_verdicts_total", action="stop", route="hooks") == 1


async def test_a_stop_is_answered(client: Client, kafka: KafkaSettings, wire: Since) -> None:
    """A hook that was given a stop has its session's termination answered as obeyed, once; one that only watches not.

    An agent that goes on all the same is told again, and its calls are denied.
    """
    await put(kafka, termination("x-obey", session_id="o1", expires_at=soon(minutes=5)))
    await told(client, "o1", "stop")
    await client.post(HOOK, payload("o1"))
    await client.post(f"{HOOK}?mode=enforce", payload("o1:agent", agent_id="a"))
    await client.post(f"{HOOK}?mode=enforce", payload("o1", agent_id="a", call_id="c2"))
    await client.post(f"{HOOK}?mode=enforce", payload("o1", "SessionStart"))
    assert await published(wire, topics.CONTROL) == []
    for number in range(3):
        assert (await client.post(f"{HOOK}?mode=enforce", payload("o1", call_id=f"d{number}"))).json[
            "continue"
        ] is False
    await client.post(HOOK, payload("o1", "SessionEnd", reason="exit"))
    (control,) = await published(wire, topics.CONTROL)
    assert (control.event_id, control.action, control.actor) == ("x-obey-1-obeyed", "obeyed", "traction-gateway")
    denied = [each.call_id for each in await published(wire, topics.TOOL_CALLS) if each.status == "denied"]
    assert [each for each in denied if each.startswith("d")] == ["d0", "d1", "d2"]


async def test_a_session_that_ends_is_answered_for(client: Client, kafka: KafkaSettings, wire: Since) -> None:
    """A termination of a session that ends before any hook was told is answered as ended, whatever the mode."""
    await put(kafka, termination("x-end", session_id="o2", expires_at=soon(minutes=5)))
    await told(client, "o2", "stop")
    for _ in range(2):
        assert (await client.post(HOOK, payload("o2", "SessionEnd", reason="exit"))).json == {}
    (control,) = await published(wire, topics.CONTROL)
    assert (control.event_id, control.action) == ("x-end-1-ended", "ended")


async def test_waiting_is_not_denied(client: Client, kafka: KafkaSettings) -> None:
    """A call that waits, as its whole payload tells, is not denied as a repetition though only digests of it go on."""
    for session, command, answer in (("w1", "make", "deny"), ("w2", "sleep 30", None)):
        asked = payload(session, tool_input={"command": command})
        done = {**asked, "hook_event_name": "PostToolUse", "tool_response": {"stdout": "1 failed", "stderr": ""}}
        place = f"{HOOK}?mode=enforce&privacy=digests"
        for body in (asked, done):
            assert (await client.post(place, body)).json == {}
        seen = read("claude-code", json.dumps(asked).encode(), at=datetime.now(UTC), privacy="digests")
        assert isinstance(seen, Observed)
        assert seen.call is not None
        about = (seen.call.digest,)
        await put(kafka, directive(f"d-{session}", session_id=session, repeats=about, expires_at=soon(minutes=5)))
        await told(client, session, "guide")
        assert (
            "hookSpecificOutput" in (await client.post(place, payload(session, "SessionStart", source="resume"))).json
        )
        said = (await client.post(place, asked)).json
        assert said.get("hookSpecificOutput", {}).get("permissionDecision") == answer


async def test_denied(client: Client, kafka: KafkaSettings, wire: Since) -> None:
    """During a cooldown a call is denied until it ends, and that we did so is on the topic: its agent tells no end."""
    ends = soon(minutes=5)
    await put(kafka, directive("d-cool", session_id="h4", action="cooldown", text="Wait.", expires_at=ends))
    await told(client, "h4", "guide")
    answer = await client.post(f"{HOOK}?mode=enforce", payload("h4", call_id="c2"))
    said = answer.json["hookSpecificOutput"]
    reason = said["permissionDecisionReason"]
    assert said["permissionDecision"] == "deny"
    assert all(words in reason for words in ("Wait.", f"until {ends:%Y-%m-%d %H:%M:%S} UTC"))
    found = [event for event in await published(wire, topics.TOOL_CALLS) if event.call_id == "c2"]
    assert [(event.phase, event.status, own_denial(event)) for event in found] == [
        ("start", None, None),
        ("end", "denied", "other"),
    ]


async def test_guidance_once(client: Client, kafka: KafkaSettings, wire: Since) -> None:
    """Guidance is handed to the agent once, and answered as obeyed; posts and questions only show it."""
    await put(kafka, directive("d-guide", session_id="h5", text="Read the log.", expires_at=soon(minutes=5)))
    await told(client, "h5", "guide")
    shown = (await client.get("/v1/sessions/h5/verdict")).json
    assert (shown["action"], shown["text"]) == ("guide", "Read the log.")
    answers = [await client.post(f"{HOOK}?mode=enforce", payload("h5", call_id=f"c{n}")) for n in range(2)]
    assert ["Read the log." in json.dumps(each.json) for each in answers] == [True, False]
    assert [(each.action, each.answers) for each in await published(wire, topics.CONTROL)] == [("obeyed", "d-guide")]
    assert (await client.get("/v1/sessions/h5/verdict")).json["action"] == "go_on"


async def test_answers(client: Client, kafka: KafkaSettings, wire: Since) -> None:
    """An answer is a control record once it was acknowledged; one to nothing, or that cannot be read, is refused."""
    await put(kafka, termination("x-ans", session_id="h6", expires_at=soon(minutes=5)))
    await told(client, "h6", "stop")
    said = {"session_id": "h6", "answers": "x-ans", "action": "ended", "reason": "done"}
    for body, status in (
        (said, 200),
        ({**said, "answers": "other"}, 404),
        ({**said, "session_id": "s"}, 404),
        ({**said, "action": "resume"}, 422),
        ({"session_id": "h6"}, 422),
        (b"{", 400),
    ):
        assert ((await client.post("/v1/answers", body)).status, body) == (status, body)
    (control,) = await published(wire, topics.CONTROL)
    assert (control.action, control.answers, control.reason) == ("ended", "x-ans", "done")


async def test_sessions_by_any_name(client: Client, kafka: KafkaSettings) -> None:
    """A session is asked for by its whole id, whatever is in it; one too long is none."""
    name = "grün/a b:ü?#%"
    await put(kafka, termination("x-name", session_id=name, expires_at=soon(minutes=5)))
    await told(client, name, "stop")
    from urllib.parse import quote  # noqa: PLC0415 - of this alone

    assert (await client.get(f"/v1/sessions/{quote(name, safe='')}/verdict")).json["answers"] == "x-name"
    for length, status in ((256, 200), (257, 404)):
        longest = quote("ü" * length, safe="")
        assert (await client.get(f"/v1/sessions/{longest}/verdict")).status == status


async def test_spooled(client: Client, wire: Since) -> None:
    """What was kept is taken line by line; sent again, or after it was answered late, it has the same ids."""
    at = datetime(2026, 1, 1, tzinfo=UTC).isoformat()
    known = {"agent": "claude-code", "mode": "enforce", "privacy": "full", "at": at}
    lines = [
        {**known, "payload": payload("h7", "UserPromptSubmit", prompt="go")},
        {**known, "payload": payload("h7")},
        {**known, "agent": "nobody", "payload": {}},
        {**known, "payload": {"hook_event_name": "PreToolUse"}},
    ]
    body = b"\n".join(json.dumps(line).encode() for line in lines) + b"\nno json\n"
    for _ in range(2):
        answer = await client.post("/v1/hooks", body, NDJSON)
        assert (answer.status, answer.json["accepted"], answer.json["verdicts"]) == (200, 2, {})
        assert [each["index"] for each in answer.json["refused"]] == [2, 3, 4]
    live = await client.post(f"{HOOK}?at=2026-01-01T00:00:00Z", payload("h7", "UserPromptSubmit", prompt="go"))
    assert live.status == 200
    events = await published(wire, topics.TOOL_CALLS) + await published(wire, topics.SESSIONS)
    assert (len(events), len({each.event_id for each in events})) == (5, 2)


@pytest.mark.parametrize(("asked", "sent"), [({}, False), ({"privacy": "full"}, True)])
async def test_what_is_kept_is_sent_as_it_says(client: Client, wire: Since, asked: dict[str, str], sent: bool) -> None:  # noqa: FBT001
    """A kept payload that says nothing of privacy goes on without its content, as one that comes at once."""
    line = {"agent": "claude-code", "at": "2026-01-01T00:00:00Z", **asked, "payload": payload("h9")}
    assert (await client.post("/v1/hooks", line, NDJSON)).json["accepted"] == 1
    (record,) = await wire.records(topics.TOOL_CALLS)
    assert (b"make" in record.value) is sent


async def test_a_payload_that_is_hardly_json_is_read_the_same_at_once_and_later(client: Client, wire: Since) -> None:
    """Half of a surrogate pair, or a byte that is no UTF-8, loses no call, the gateway being there or away."""
    at = "2026-01-01T00:00:00Z"
    head = f'{{"agent":"claude-code","mode":"observe","privacy":"full","at":"{at}","payload":'.encode()
    whole = json.dumps(payload("h8", tool_use_id="t8", tool_input={"command": "ls \ud800"})).encode()
    mended = (whole, whole.replace(b"\\ud800", b"\xff"), whole.replace(b"\\ud800", b"\x01"))
    assert len(set(mended)) == len(mended)
    for body in mended:
        assert (await client.post(f"{HOOK}?privacy=full&at={at}", body)).status == 200
        kept = await client.post("/v1/hooks", head + body + b"}\n", NDJSON)
        assert (kept.status, kept.json["accepted"]) == (200, 1)
    events = await published(wire, topics.TOOL_CALLS)
    assert len(events) == 2 * len(mended)
    assert all(now == then for now, then in zip(events[::2], events[1::2], strict=True))
    cut = whole[:-9]
    assert (await client.post(HOOK, cut)).status == 400
    kept = await client.post("/v1/hooks", head + cut + b"}\n", NDJSON)
    assert "no JSON" in kept.json["refused"][0]["reason"]


async def test_refused(client: Client) -> None:
    """Hooks that are not known, payloads of which nothing can be made, and wrong words of the address are refused."""
    for path, body, kind, status in (
        ("/v1/hooks/nobody", {}, "application/json", 404),
        (HOOK, b"no json", "application/json", 400),
        (HOOK, {"session_id": "s"}, "application/json", 200),
        (HOOK, {"no": "session"}, "application/json", 422),
        (f"{HOOK}?mode=force", payload("h"), "application/json", 400),
        (f"{HOOK}?privacy=none", payload("h"), "application/json", 400),
        (f"{HOOK}?at=yesterday", payload("h"), "application/json", 400),
        (HOOK, payload("h"), "text/plain", 415),
        ("/v1/hooks", payload("h"), "application/json", 415),
        ("/v1/answers", payload("h"), NDJSON, 415),
    ):
        assert ((await client.post(path, body, kind)).status, path, body) == (status, path, body)
