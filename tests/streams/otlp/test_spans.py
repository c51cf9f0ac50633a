"""Spans of every convention become the calls they tell, each once, in the session they belong to."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from msgspec import UNSET

from detectors import Limits, SessionState, observe
from schemas.common import Agent, Usage
from schemas.decode import decode
from schemas.encode import encode
from schemas.events import SessionEvent, ToolCall
from schemas.topics import TOPICS
from streams.otlp import Mapped, Memory, decode_traces, map_traces
from streams.otlp.memory import MAX_CALLS, MAX_TRACES
from tests.streams.otlp.otlp_kit import (
    BEGIN_NS,
    ENCODINGS,
    RECEIVED,
    SECOND,
    TRACE,
    span,
    span_id,
    traces_json,
    traces_protobuf,
)

ARGUMENTS = {"path": "src/a.py", "limit": 20}
CALL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "read_file", "gen_ai.tool.call.id": "call_a1"}
CONTENT = {"gen_ai.tool.call.arguments": json.dumps(ARGUMENTS), "gen_ai.tool.call.result": "def a(): ..."}
SESSION = {"gen_ai.conversation.id": "conv-1"}
OTHER_TRACE = "aa" * 16
TOOL_CALLS = next(topic for topic in TOPICS if topic.record is ToolCall)
SESSIONS = next(topic for topic in TOPICS if topic.record is SessionEvent)


def mapped(*spans: dict[str, Any], memory: Memory | None = None, **request: Any) -> Mapped:
    """Map a request in both encodings, which must give the same, valid by the contract."""
    found = []
    for write, encoding in zip((traces_json, traces_protobuf), ENCODINGS, strict=True):
        decoded = decode_traces(write(*spans, **request), encoding)
        assert decoded.refused == []
        found.append(map_traces(decoded, RECEIVED, memory or Memory()))
    assert found[0] == found[1]
    for observed in found[0].events:
        topic = TOOL_CALLS if isinstance(observed.event, ToolCall) else SESSIONS
        assert decode(topic, encode(observed.event)) == observed.event
    return found[0]


def only(*spans: dict[str, Any], **request: Any) -> Any:
    """The one event of a request."""
    (observed,) = mapped(*spans, **request).events
    return observed.event


def test_a_tool_span_gives_the_call_with_all_it_says():
    """Names, content, outcome, times and trace context arrive in their fields."""
    found = mapped(
        span(3, "execute_tool read_file", CALL | CONTENT | SESSION | {"gen_ai.agent.id": "a7"}, status=1),
        resource={"service.name": "my-agent"},
    )
    (observed,) = found.events
    event = observed.event
    assert isinstance(event, ToolCall)
    assert (event.session_id, event.tool, event.call_id) == ("conv-1", "read_file", "call_a1")
    assert (event.arguments, event.result, event.status, event.error) == (ARGUMENTS, "def a(): ...", "ok", None)
    assert (event.duration_ms, event.agent) == (1000.0, Agent(id="a7", name="my-agent"))
    assert int(event.occurred_at.timestamp()) == (BEGIN_NS + 4 * SECOND) // SECOND
    assert observed.traceparent == f"00-{TRACE}-{span_id(3)}-01"
    assert (found.passed, +found.lacking) == (Counter(), Counter())


@pytest.mark.parametrize(
    ("name", "attributes", "tool", "arguments", "result", "call_id"),
    [
        ("execute_tool grep", {}, "grep", UNSET, UNSET, span_id(0)),
        (
            "execute_tool t",
            {"gen_ai.tool.call_id": "g-1", "gen_ai.tool.call.arguments": {"a": [1, 2]}},
            *("t", {"a": [1, 2]}, UNSET, "g-1"),
        ),
        (
            "search",
            {
                "openinference.span.kind": "TOOL",
                "tool.name": "search_web",
                "tool.parameters": '{"q": "str"}',
                "input.value": '{"q": "kafka"}',
                "output.value": '{"content": "found", "tool_call_id": "x1", "status": "success"}',
                "tool_call.id": "x1",
            },
            *("search_web", {"q": "kafka"}, "found", "x1"),
        ),
        (
            "lookup",
            {"openinference.span.kind": "TOOL", "tool.parameters": '{"q": "kafka"}'},
            *("lookup", UNSET, UNSET, span_id(0)),
        ),
        (
            "calc.tool",
            {
                "traceloop.span.kind": "tool",
                "traceloop.entity.name": "calc",
                "traceloop.entity.input": '{"input_str": "{\'a\': 1}", "tags": ["step:7"], "inputs": {"a": 1}}',
                "traceloop.entity.output": '{"output": {"content": "2", "tool_call_id": "c9"}, "kwargs": {"id": 1}}',
            },
            *("calc", {"a": 1}, "2", span_id(0)),
        ),
        (
            "calc.tool",
            {
                "traceloop.span.kind": "tool",
                "traceloop.entity.name": "calc",
                "traceloop.entity.input": '{"args": [], "kwargs": {"a": 1}}',
                "traceloop.entity.output": "2",
            },
            *("calc", {"a": 1}, "2", span_id(0)),
        ),
        (
            "tools/call list_issues",
            {
                "mcp.method.name": "tools/call",
                "gen_ai.tool.name": "list_issues",
                "gen_ai.tool.call.arguments": "{}",
                "gen_ai.tool.call.result": '{"content": [{"type": "text", "text": "none"}], "isError": false}',
            },
            *("list_issues", {}, "none", span_id(0)),
        ),
        (
            "claude_code.tool",
            {"tool_name": "Bash", "tool_use_id": "toolu_01", "file_path": "/etc/hosts"},
            *("Bash", UNSET, UNSET, "toolu_01"),
        ),
    ],
    ids=["bare", "older id", "openinference", "definition only", "langchain", "decorated", "mcp", "claude code"],
)
def test_tool_spans_of_every_convention_are_read(name, attributes, tool, arguments, result, call_id):  # noqa: PLR0917
    """Whatever the names, a call has its tool, arguments, result and id, and what is not known stays unknown."""
    event = only(span(0, name, attributes))
    assert isinstance(event, ToolCall)
    assert (event.tool, event.arguments, event.result, event.call_id) == (tool, arguments, result, call_id)


@pytest.mark.parametrize(
    ("attributes", "fields", "reason"),
    [
        ({"gen_ai.operation.name": "embeddings"}, {}, "not_a_tool_call"),
        ({"gen_ai.operation.name": "invoke_agent", "gen_ai.tool.name": "x"}, {}, "not_a_tool_call"),
        ({"openinference.span.kind": "CHAIN", "input.value": "x"}, {}, "not_a_tool_call"),
        ({"mcp.method.name": "tools/list"}, {}, "not_a_tool_call"),
        ({"http.request.method": "GET"}, {}, "not_a_tool_call"),
        ({"mcp.method.name": "tools/call", "gen_ai.tool.name": "x"}, {"kind": 2}, "server_side"),
        ({"gen_ai.operation.name": "execute_tool"}, {}, "no_tool_name"),
    ],
)
def test_other_spans_are_counted_with_the_reason(attributes, fields, reason):
    """What is no tool call gives no event, and is not lost without a word."""
    found = mapped(span(0, "work", attributes, **fields))
    assert (found.events, found.passed) == ([], Counter({reason: 1}))


@pytest.mark.parametrize(
    ("status", "attributes", "events", "wanted"),
    [
        (0, {}, [], (None, None, None)),
        (1, {}, [], ("ok", None, None)),
        (2, {}, [], ("error", None, "it broke")),
        (2, {"error.type": "ValueError"}, [], ("error", "ValueError", "it broke")),
        (0, {"error.type": "tool_error"}, [], ("error", "tool_error", "it broke")),
        (2, {"error.type": "timeout"}, [], ("timeout", "timeout", "it broke")),
        (
            2,
            {},
            [("exception", {"exception.type": "OSError", "exception.message": "no such file"})],
            ("error", "OSError", "it broke"),
        ),
        (1, {"gen_ai.tool.call.result": {"content": "no", "isError": True}}, [], ("error", None, None)),
    ],
)
def test_how_a_call_ended_is_what_the_span_says(status, attributes, events, wanted):
    """A failure is one by status, class or the answer itself; a status that nobody set says nothing."""
    event = only(
        span(0, "x", CALL | attributes, status=status, events=events, message="it broke" if status != 1 else "")
    )
    error = event.error
    assert (event.status, error and error.type, error and error.message) == wanted


def test_a_process_without_a_name_is_no_agent():
    """What SDKs call a service that nobody named says nothing; the span's own word comes before the process's."""
    nobody, somebody = {"service.name": "unknown_service:python"}, {"service.name": "svc"}
    assert only(span(0, "x", CALL), resource=nobody).agent is None
    assert only(span(0, "x", CALL), resource=somebody).agent == Agent(name="svc")
    assert only(span(0, "x", CALL | {"gen_ai.agent.name": "a"}), resource=somebody).agent == Agent(name="a")
    assert only(span(0, "x", CALL | {"session.id": " ", "gen_ai.conversation.id": True})).session_id == TRACE


def test_without_times_a_span_happened_when_it_was_received():
    """A clock that was never set, or one in another unit, is not believed."""
    assert only(span(0, "x", CALL, start=0, end=0)).occurred_at == RECEIVED
    assert only(span(0, "x", CALL, start=0, end=1_790_000_000)).occurred_at == RECEIVED
    assert only(span(0, "x", CALL, start=BEGIN_NS, end=0)).occurred_at < RECEIVED
    assert only(span(0, "x", CALL, start=0, end=BEGIN_NS)).duration_ms is None


CHAIN = [
    ({"gen_ai.conversation.id": "own"}, "own"),
    ({"session.id": "oi"}, "oi"),
    ({"traceloop.association.properties.session_id": "tl"}, "tl"),
    ({"conversation.id": 7}, "7"),
]


@pytest.mark.parametrize(("own", "wanted"), CHAIN)
def test_a_spans_own_session_comes_first(own, wanted):
    """Each convention's name of the session is known, and wins over all that is around the span."""
    around = span(1, "invoke_agent", {"gen_ai.operation.name": "invoke_agent", "session.id": "around"})
    call = span(0, "x", CALL | own | {"mcp.session.id": "mcp"}, parent=1)
    assert only(call, around, resource={"session.id": "process"}).session_id == wanted


def test_the_session_is_looked_for_around_the_span_then_in_trace_process_and_transport():
    """Each place is asked when the ones before it are silent; the trace itself is the last, and is counted."""
    inner, outer = span(0, "x", CALL, parent=1), span(1, "step", {}, parent=2)
    agent = span(2, "invoke_agent", {"gen_ai.operation.name": "invoke_agent", **SESSION})
    elsewhere = span(7, "chat", SESSION | {"gen_ai.operation.name": "embeddings"})
    process = {"session.id": "process"}
    assert only(inner, outer, agent, resource=process).session_id == "conv-1"
    assert only(inner, elsewhere, resource=process).session_id == "conv-1"
    assert only(inner, outer, resource=process).session_id == "process"
    assert only(span(0, "x", CALL | {"mcp.session.id": "m"})).session_id == "m"
    alone = mapped(inner, outer)
    assert alone.events[0].event.session_id == TRACE
    assert alone.lacking["session_id"] == 1


def test_a_trace_of_several_sessions_lends_none_to_its_spans():
    """Which of two sessions a span without one belongs to is not guessed."""
    two = [span(n, "e", {"gen_ai.operation.name": "embeddings", "session.id": f"s{n}"}) for n in (1, 2)]
    assert only(span(0, "x", CALL), *two).session_id == TRACE


def test_the_session_of_a_trace_is_remembered_between_requests_within_a_bound():
    """A response tells the session before the calls come; other traces are not concerned; the oldest is forgotten."""
    memory = Memory()
    mapped(span(0, "chat", SESSION | {"gen_ai.operation.name": "chat"}), memory=memory)
    assert only(span(1, "x", CALL), memory=memory).session_id == "conv-1"
    assert only(span(1, "x", CALL, trace=OTHER_TRACE), memory=memory).session_id == OTHER_TRACE
    for number in range(MAX_TRACES - 1):
        memory.learn(f"{number}", "s")
    assert memory.session_of(TRACE) == "conv-1"
    memory.learn("more", "s")
    assert memory.session_of(TRACE) is None
    for number in range(MAX_CALLS + 1):
        memory.tell("t", f"{number}")
    assert (memory.was_told("t", "0"), memory.was_told("t", "1")) == (False, True)


def test_a_sub_agent_of_claude_code_is_a_session_of_its_own():
    """Its spans say which agent acted; those of the main session, and other agents' ids, do not split it."""
    attributes = {"tool_name": "Bash", "session.id": "s", "agent_id": "sub1"}
    event = only(span(0, "claude_code.tool", attributes))
    assert (event.session_id, event.parent_session_id, event.agent.name) == ("s:sub1", "s", "claude-code")
    event = only(span(0, "execute_tool x", {"session.id": "s", "gen_ai.agent.id": "asst_1"}))
    assert (event.session_id, event.parent_session_id) == ("s", None)


MCP = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "read_file"}


def test_the_protocols_span_within_a_tools_span_is_the_same_call():
    """One event, with what either knows, in whichever order they come; steps in between make no difference."""
    outer = span(0, "execute_tool read_file", CALL | SESSION)
    step = span(1, "step", {}, parent=0)
    inner = span(2, "tools/call read_file", MCP | CONTENT | {"error.type": "tool_error"}, parent=1, kind=3)
    for spans in ((outer, step, inner), (inner, step, outer)):
        found = mapped(*spans)
        event: Any
        (event,) = (observed.event for observed in found.events)
        assert (event.call_id, event.arguments, event.result) == ("call_a1", ARGUMENTS, "def a(): ...")
        assert (event.session_id, event.status) == ("conv-1", "error")
        assert found.passed == Counter(not_a_tool_call=1, same_call=1)


def test_two_instrumentations_of_one_call_are_one():
    """Nested spans of one tool, and spans that share the provider's id, tell one call."""
    outer = span(0, "execute_tool read_file", CALL | SESSION)
    inner = span(1, "read_file", {"openinference.span.kind": "TOOL", "tool.name": "read_file"}, parent=0)
    beside = span(2, "read_file", {"openinference.span.kind": "TOOL", "tool_call.id": "call_a1"})
    found = mapped(outer, inner, beside)
    assert (len(found.events), found.passed) == (1, Counter(same_call=2))


def test_calls_of_an_agent_within_a_tool_are_calls_of_their_own():
    """A tool that is an agent calls tools itself; so does a tool that calls another one."""
    outer = span(0, "execute_tool ask", {"gen_ai.tool.name": "ask"})
    agent = span(1, "invoke_agent helper", {"gen_ai.operation.name": "invoke_agent"}, parent=0)
    inner = span(2, "execute_tool ask", {"gen_ai.tool.name": "ask"}, parent=1)
    other = span(3, "execute_tool fetch", {"gen_ai.tool.name": "fetch"}, parent=0)
    again = span(4, "execute_tool ask", {"gen_ai.tool.name": "ask", "gen_ai.tool.call.id": "b"}, parent=5)
    before = span(5, "execute_tool ask", {"gen_ai.tool.name": "ask", "gen_ai.tool.call.id": "a"})
    found = mapped(outer, agent, inner, other, again, before)
    assert len({observed.event.call_id for observed in found.events if isinstance(observed.event, ToolCall)}) == 5


def test_an_inner_span_that_is_sent_before_its_outer_one_has_its_id():
    """Spans are sent as they end, so the outer one comes in a later request: its id says that it is the same call."""
    for provider_id in ({"gen_ai.tool.call.id": "call_a1"}, {}):
        memory = Memory()
        outer = {"gen_ai.tool.name": "read_file", "gen_ai.operation.name": "execute_tool", **provider_id}
        inner = only(span(2, "tools/call read_file", MCP | CONTENT, parent=0, kind=3), memory=memory)
        late = only(span(0, "execute_tool read_file", outer), memory=memory)
        assert inner.call_id == late.call_id == span_id(0)


def test_responses_give_turns_with_what_they_consumed():
    """Old and new names of the usage are read; a response told twice, one within the other, is one turn."""
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1", **SESSION}
    new = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 7, "gen_ai.usage.cost": 0.25}
    event = only(span(0, "chat m-1", chat | new))
    assert isinstance(event, SessionEvent)
    assert (event.kind, event.agent) == ("turn", Agent(model="m-1"))
    assert event.usage == Usage(input_tokens=100, output_tokens=7, cost_usd=0.25)
    old = {"gen_ai.usage.prompt_tokens": "5", "gen_ai.usage.completion_tokens": 6}
    assert only(span(0, "c", {"llm.request.type": "chat", **old})).usage == Usage(input_tokens=5, output_tokens=6)
    counts = {"llm.token_count.prompt": 8, "llm.token_count.completion": 9, "llm.cost.total": 0.5}
    event = only(span(0, "c", {"openinference.span.kind": "LLM", **counts}))
    assert event.usage == Usage(input_tokens=8, output_tokens=9, cost_usd=0.5)
    found = mapped(span(0, "chat", chat | new), span(1, "chat", chat | new, parent=0))
    assert (len(found.events), found.passed) == (1, Counter(not_a_tool_call=1))
    ids = [only(span(n, "chat", chat | {"gen_ai.response.id": "r-1"})).event_id for n in (0, 1)]
    assert ids[0] == ids[1]
    assert only(span(0, "chat", chat)).usage is None
    assert mapped(span(0, "claude_code.llm_request", chat)).events == []


def test_the_same_span_has_the_same_event_id_whenever_it_comes():
    """A retry is recognised; other spans, and the same number in another trace, are other events."""
    ids = [
        [observed.event.event_id for observed in mapped(*spans).events]
        for spans in (
            [span(0, "x", CALL)],
            [span(1, "x", CALL | {"gen_ai.tool.call.id": "b"}), span(0, "x", CALL)],
            [span(0, "x", CALL, trace=OTHER_TRACE)],
        )
    ]
    assert ids[0][0] == ids[1][1]
    assert len({*ids[0], *ids[1], *ids[2]}) == 3


def play(*requests: list[dict[str, Any]]) -> tuple[SessionState, list[str]]:
    """Apply what requests give, in their order, to one session."""
    state, memory, alerts = SessionState(), Memory(), []
    for spans in requests:
        for observed in mapped(*spans, memory=memory).events:
            alerts += [alert.detector for alert in observe(state, observed.event, Limits())]
    return state, alerts


def test_a_loop_in_spans_is_found_and_spans_without_content_are_never_one():
    """Equal calls with equal results in a row alert; the same spans with the content left out count and say nothing."""
    base = CALL | SESSION | {"gen_ai.tool.name": "bash"}
    spans = [span(n, "execute_tool bash", base | CONTENT | {"gen_ai.tool.call.id": f"call_{n:020}"}) for n in range(12)]
    state, alerts = play(spans)
    assert "identical" in alerts
    bare = [span(n, "execute_tool bash", base | {"gen_ai.tool.call.id": f"call_{n:020}"}, status=2) for n in range(40)]
    bare_state, bare_alerts = play(bare)
    assert (state.calls, bare_state.calls, bare_alerts) == (12, 40, [])
    assert +mapped(*bare).lacking == Counter(arguments=40, result=40)


def test_inner_spans_before_outer_ones_count_once_in_the_worker():
    """Requests in the order in which spans end give each call once, and the loop as if they came together."""
    requests = []
    for n in range(0, 24, 2):
        outer = SESSION | {"gen_ai.tool.name": "read_file", "gen_ai.tool.call.id": f"call_{n:020}"}
        inner = MCP | CONTENT | SESSION
        requests += [
            [span(n + 1, "tools/call read_file", inner, parent=n, kind=3)],
            [span(n, "execute_tool read_file", outer)],
        ]
    state, alerts = play(*requests)
    assert (state.calls, state.duplicates) == (12, 12)
    assert "identical" in alerts


def test_long_content_is_cut_as_the_contract_has_it():
    """A long result is cut and says so; long arguments become a digest: equal for equal ones, else different."""
    long = "x" * 131_072
    event = only(span(0, "x", CALL | {"gen_ai.tool.call.result": long}))
    assert (event.result, event.result_length, event.result_digest) == (long, None, None)
    event = only(span(0, "x", CALL | {"gen_ai.tool.call.result": long + "y"}))
    assert (event.result, event.result_length) == (long, 131_073)
    assert event.result_digest
    short = {"a": "x" * (131_072 - len('{"a":""}'))}
    digests = []
    for arguments in (short, {"a": long + "1"}, {"a": long + "2"}, {"a": long + "2"}):
        event = only(span(0, "x", CALL | {"gen_ai.tool.call.arguments": json.dumps(arguments)}))
        digests.append(event.arguments_digest)
        assert (event.arguments is UNSET) == (arguments is not short)
    assert digests[0] is None
    assert digests[1] != digests[2] == digests[3]


def test_a_record_of_the_longest_content_is_within_a_brokers_limit():
    """The worst that an event can hold, all of it escaped, is less than a mebibyte."""
    worst = "\x01" * 200_000
    attributes = CALL | {"gen_ai.tool.call.result": worst, "gen_ai.tool.call.arguments": worst[: 131_070 // 6]}
    event = only(span(0, "x" * 9_000, attributes | {"error.type": worst}, status=2, message=worst))
    assert len(event.arguments) == 131_070 // 6
    assert 900_000 < len(encode(event)) < 1024 * 1024


def test_a_far_parent_and_a_circle_of_parents_end():
    """Parents that are their own children are looked at a bounded number of times."""
    circle = [span(0, "x", CALL, parent=1), span(1, "y", {}, parent=0)]
    assert only(*circle).session_id == TRACE
    assert only(span(0, "x", CALL, parent=0)).call_id == "call_a1"
    assert (RECEIVED - only(*circle).occurred_at) > timedelta(0)
