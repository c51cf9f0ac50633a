"""Log events of Claude Code, Codex and Gemini CLI become calls, turns and messages; other records are passed by."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import UNSET

from detectors import Limits, SessionState, observe
from schemas.common import Agent, ErrorInfo, Usage
from schemas.decode import decode
from schemas.encode import encode
from schemas.events import SessionEvent, ToolCall
from schemas.topics import TOPICS
from streams.identity import record_id
from streams.otlp import Mapped, Memory, decode_logs, decode_traces, map_logs, map_traces
from streams.otlp.memory import MAX_HOOKED
from tests.streams.otlp.otlp_kit import (
    BEGIN_NS,
    ENCODINGS,
    RECEIVED,
    SECOND,
    TRACE,
    log,
    logs_json,
    logs_protobuf,
    span,
    span_id,
    traces_json,
)

TOPIC_OF = {topic.record: topic for topic in TOPICS}
INPUT = {"command": "make test", "description": "Run the tests"}
CLAUDE = {
    "event.name": "tool_result",
    "session.id": "11111111-2222",
    "event.sequence": 7,
    "tool_name": "Bash",
    "tool_use_id": "toolu_01ABCDEFGHIJKLMNOPQRSTUV",
    "success": "true",
    "duration_ms": "1250",
    "tool_input": json.dumps(INPUT),
    "tool_result_size_bytes": 120,
}
CODEX = {
    "event.name": "codex.tool_result",
    "conversation.id": "0199-c",
    "tool_name": "shell",
    "call_id": "call_Abc123",
    "arguments": '{"command":["ls"]}',
    "output": "a.py\n",
    "duration_ms": 12,
    "success": "true",
    "model": "gpt-5",
}
GEMINI = {
    "event.name": "gemini_cli.tool_call",
    "session.id": "g-1",
    "function_name": "read_file",
    "function_args": '{"path": "a.py"}',
    "duration_ms": 3,
    "success": True,
    "decision": "auto_accept",
    "tool_type": "native",
}


def mapped(*records: dict[str, Any], **request: Any) -> Mapped:
    """Map a request in both encodings, which must give the same, valid by the contract."""
    found = []
    for write, encoding in zip((logs_json, logs_protobuf), ENCODINGS, strict=True):
        decoded = decode_logs(write(*records, **request), encoding)
        assert decoded.refused == []
        found.append(map_logs(decoded, RECEIVED))
    assert found[0] == found[1]
    for observed in found[0].events:
        assert decode(TOPIC_OF[type(observed.event)], encode(observed.event)) == observed.event
    return found[0]


def only(attributes: dict[str, Any], **fields: Any) -> Any:
    """The one event of a request with one record."""
    (observed,) = mapped(log(0, attributes, **fields)).events
    return observed.event


def test_claude_codes_event_gives_the_call():
    """The body has the prefixed name, the attribute the plain one; numbers may come as texts."""
    event = only(CLAUDE, body="claude_code.tool_result")
    assert isinstance(event, ToolCall)
    assert (event.session_id, event.tool, event.call_id) == ("11111111-2222", "Bash", CLAUDE["tool_use_id"])
    assert (event.arguments, event.result, event.status, event.duration_ms) == (INPUT, UNSET, "ok", 1250.0)
    assert (event.agent, event.occurred_at) == (Agent(name="claude-code"), datetime.fromtimestamp(BEGIN_NS / 1e9, UTC))


@pytest.mark.parametrize(
    ("fields", "request_fields"),
    [
        ({"body": "claude_code.tool_result"}, {}),
        ({"event_name": "claude_code.tool_result"}, {}),
        ({}, {"scope": "com.anthropic.claude_code.events"}),
        ({}, {"resource": {"service.name": "claude-code"}}),
    ],
)
def test_the_name_of_an_event_is_found_wherever_it_stands(fields, request_fields):
    """Body, field, or the plain attribute of a process that is known."""
    assert len(mapped(log(0, CLAUDE, **fields), **request_fields).events) == 1


def test_a_plain_name_of_an_unknown_process_is_no_call():
    """Anyone may have an event that is named so."""
    assert mapped(log(0, CLAUDE)).passed == Counter(not_a_tool_call=1)


def test_what_codex_puts_around_an_output_is_taken_off():
    """A search that found nothing has no text, and failed with its exit code, as hooks and transcripts say of it."""
    output = "Exit code: 1\nWall time: 0.1 seconds\nOutput:\n"
    event = only(CODEX | {"output": output, "success": "false"})
    assert (event.result, event.status, event.error) == ("", "error", ErrorInfo(code=1))


def test_codexs_event_gives_the_call_with_its_output():
    """A record without a time has it in an attribute, else when it was collected."""
    event = only(CODEX | {"event.timestamp": "2026-11-30T09:14:07.412Z"}, time=0)
    assert isinstance(event, ToolCall)
    assert (event.session_id, event.tool, event.call_id) == ("0199-c", "shell", "call_Abc123")
    assert (event.arguments, event.result) == ({"command": ["ls"]}, "a.py\n")
    assert event.agent == Agent(name="codex", model="gpt-5")
    assert event.occurred_at == datetime(2026, 11, 30, 9, 14, 7, 412_000, UTC)
    assert only(CODEX | {"event.timestamp": "2999-12-31T23:59:59Z"}, time=0).occurred_at.year == 2999
    for wrong in ("3000-01-01T00:00:00Z", "1999-12-31T23:59:59Z", "soon", 5):
        assert only(CODEX | {"event.timestamp": wrong}, time=0).occurred_at.year == 2026
    assert only(CODEX, time=0).occurred_at == datetime.fromtimestamp(BEGIN_NS / 1e9, UTC)


def test_gemini_clis_event_gives_the_call():
    """It has no id of the call, so it has none."""
    event = only(GEMINI)
    assert (event.session_id, event.tool, event.arguments) == ("g-1", "read_file", {"path": "a.py"})
    assert (event.call_id, event.status, event.agent.name) == (None, "ok", "gemini-cli")


@pytest.mark.parametrize(
    ("attributes", "status", "error"),
    [
        ({"success": "false"}, "error", None),
        ({"success": False, "error_type": "ShellError", "error": "exit 2"}, "error", ("ShellError", "exit 2")),
        ({"success": None}, None, None),
        ({"success": False, "decision": "reject"}, "denied", None),
        ({"success": "false", "decision_type": "reject"}, "denied", None),
    ],
)
def test_how_a_call_ended_is_what_the_record_says(attributes, status, error):
    """Truth values may be texts; what is not said is not known."""
    event = only(GEMINI | attributes)
    assert (event.status, event.error and (event.error.type, event.error.message)) == (status, error)


def test_arguments_that_claude_code_cut_are_not_known():
    """The whole size says that something is missing: two calls that begin alike are not equal."""
    whole = {"tool_input_size_bytes": len(json.dumps(INPUT))}
    assert only(CLAUDE | whole, body="claude_code.tool_result").arguments == INPUT
    cut = {"tool_input_size_bytes": len(json.dumps(INPUT)) + 1}
    assert only(CLAUDE | cut, body="claude_code.tool_result").arguments is UNSET
    del (without := dict(CLAUDE))["tool_input"]
    found = mapped(log(0, without, body="claude_code.tool_result"))
    assert +found.lacking == Counter(arguments=1, result=1)


def test_a_record_without_session_is_counted_and_one_of_a_trace_has_that():
    """Whose it is is not guessed; a trace is one run."""
    del (own := dict(CODEX))["conversation.id"]
    assert mapped(log(0, own)).passed == Counter(no_session_id=1)
    found = mapped(log(0, own, trace=TRACE))
    assert found.events[0].event.session_id == TRACE
    assert found.events[0].traceparent == f"00-{TRACE}-{span_id(1)}-01"
    assert found.lacking["session_id"] == 1
    assert mapped(log(0, own), resource={"session.id": "r"}).events[0].event.session_id == "r"
    del own["tool_name"]
    assert mapped(log(0, own, trace=TRACE)).passed == Counter(no_tool_name=1)


def test_a_sub_agents_record_is_of_its_own_session():
    """What a sub-agent does is not mixed with what its parent does."""
    event = only(CLAUDE | {"agent_id": "a5"}, body="claude_code.tool_result")
    assert (event.session_id, event.parent_session_id) == ("11111111-2222:a5", "11111111-2222")


@pytest.mark.parametrize(
    ("attributes", "usage"),
    [
        (
            {
                "event.name": "claude_code.api_request",
                "session.id": "s",
                "input_tokens": "10",
                "output_tokens": 5,
                "cache_read_tokens": 100,
                "cache_creation_tokens": "20",
                "cost_usd": "0.5",
            },
            Usage(input_tokens=130, output_tokens=5, cost_usd=0.5),
        ),
        (
            {
                "event.name": "codex.sse_event",
                "event.kind": "response.completed",
                "conversation.id": "s",
                "input_token_count": 10,
                "output_token_count": "5",
            },
            Usage(input_tokens=10, output_tokens=5),
        ),
        ({"event.name": "gemini_cli.api_response", "session.id": "s", "input_token_count": 1}, Usage(input_tokens=1)),
        ({"event.name": "gemini_cli.api_response", "session.id": "s", "input_token_count": "-1"}, None),
    ],
)
def test_responses_give_turns_with_what_they_consumed(attributes, usage):
    """Tokens count with the cached ones, by each agent's way of telling them."""
    event = only(attributes)
    assert isinstance(event, SessionEvent)
    assert (event.kind, event.session_id, event.usage) == ("turn", "s", usage)


def test_a_response_is_the_same_turn_by_its_id():
    """Whoever tells of one response tells of one turn."""
    event = only({"event.name": "claude_code.api_request", "session.id": "s", "request_id": "req_1"})
    assert event.event_id == record_id("turn", "s", "req_1")


@pytest.mark.parametrize("name", ["claude_code.user_prompt", "codex.user_prompt", "gemini_cli.user_prompt"])
def test_a_persons_word_is_told_without_the_word(name):
    """That a person spoke clears counts; what was said is not sent."""
    event = only({"event.name": name, "session.id": "s", "prompt": "do something secret"})
    assert (event.kind, event.reason) == ("user_message", None)
    assert b"secret" not in encode(event)


@pytest.mark.parametrize("name", ["codex.sse_event", "claude_code.tool_decision", "codex.api_request", "", "x"])
def test_other_records_are_counted(name):
    """What is neither call, message nor response gives no event."""
    assert mapped(log(0, {"event.name": name, "session.id": "s"}, body=5)).passed == Counter(not_a_tool_call=1)


def test_the_same_record_has_the_same_event_id_whenever_it_comes():
    """A retry is recognised; a later record with the same call id is another event."""
    first, again = (only(CODEX).event_id for _ in range(2))
    (later,) = mapped(log(1, CODEX)).events
    assert first == again != later.event.event_id
    numbers = [only(CLAUDE | {"event.sequence": n}, body="claude_code.tool_result").event_id for n in (0, 1, 1)]
    assert numbers[0] != numbers[1] == numbers[2]


def test_sessions_whose_hooks_tell_their_calls_are_remembered_within_a_bound():
    """As many as can be, and the one whose hook was heard of longest ago goes first."""
    memory = Memory()
    for number in (*range(MAX_HOOKED), 0):
        memory.hear_hook(f"s{number}")
    assert all(memory.has_hooks(f"s{number}") for number in range(MAX_HOOKED))
    memory.hear_hook("one more")
    assert [memory.has_hooks(session) for session in ("s0", "s1", "s2", "one more")] == [True, False, True, True]


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
def test_one_call_seen_as_hook_log_and_span_counts_once(order):
    """In every order, each call of a loop is counted once and the loop is found as if only the hook were there."""
    alone, state, wanted, alerts = SessionState(), SessionState(), [], []
    for number in range(6):
        call_id, at = f"toolu_{number:022}", BEGIN_NS + number * SECOND
        hook = ToolCall(
            event_id=record_id("hook", "s", call_id, "end"),
            session_id="s",
            occurred_at=datetime.fromtimestamp(at / 1e9, UTC),
            tool="Bash",
            arguments=INPUT,
            result="1 failed",
            status="ok",
            call_id=call_id,
        )
        attributes = {"session.id": "s", "tool_name": "Bash", "tool_use_id": call_id}
        record = log(number, attributes, body="claude_code.tool_result")
        told = map_logs(decode_logs(logs_json(record), "json"), RECEIVED).events[0].event
        seen = span(number, "claude_code.tool", attributes)
        spanned = map_traces(decode_traces(traces_json(seen), "json"), RECEIVED, Memory()).events[0].event
        wanted += observe(alone, hook, Limits())
        for each in order:
            alerts += observe(state, (hook, told, spanned)[each], Limits())
    assert wanted
    assert [(alert.detector, alert.level) for alert in alerts] == [(alert.detector, alert.level) for alert in wanted]
    assert (state.calls, state.duplicates) == (6, 12)
