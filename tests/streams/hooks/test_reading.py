"""What agents hand to their hooks becomes events of the contract."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from detectors import Limits
from detectors.denial import own_denial
from detectors.session import observe
from detectors.state import SessionState
from schemas.decode import decode
from schemas.encode import encode
from schemas.events import SessionEvent, ToolCall
from schemas.topics import SESSIONS, TOOL_CALLS
from streams.hooks import AGENTS, MAX_PAYLOAD_BYTES, Agents, NotRead, Observed, denied, read
from streams.privacy import Level
from streams.verdicts.model import Verdict, call_key
from streams.verdicts.refusal import refusal
from tests.streams.hooks.payloads import ALL, CLAUDE_CODE, CLAUDE_CODE_SUB, CODEX, GEMINI_CLI, OPENHANDS

AT = datetime(2026, 11, 30, 10, 0, 1, tzinfo=UTC)
CASES = [pytest.param(agent, hook, id=f"{agent}-{hook}") for agent, hooks in ALL.items() for hook in hooks]
LEVELS: tuple[Level, ...] = get_args(Level.__value__ if hasattr(Level, "__value__") else Level)
FULL: Level = "full"


def seen(agent: Agents, payload: Any, at: datetime = AT, privacy: Level = FULL) -> Observed:
    """Read a payload that can be read."""
    found = read(agent, json.dumps(payload).encode(), at=at, privacy=privacy)
    assert isinstance(found, Observed), found
    return found


def call_of(agent: Agents, payload: Any, **options: Any) -> ToolCall:
    """Read a payload that tells one call."""
    (event,) = seen(agent, payload, **options).events
    assert isinstance(event, ToolCall)
    return event


@pytest.mark.parametrize(("agent", "hook"), CASES)
@pytest.mark.parametrize("level", LEVELS)
def test_events_keep_to_the_contract(agent, hook, level):
    """Whatever level of privacy holds, each event that a hook gives is one that the worker takes as it is."""
    for event in seen(agent, ALL[agent][hook], privacy=level).events:
        topic = TOOL_CALLS if isinstance(event, ToolCall) else SESSIONS
        assert decode(topic, encode(event)) == event


@pytest.mark.parametrize(("agent", "hook"), CASES)
def test_digests_let_no_text_out(agent, hook):
    """With digests only, nothing of arguments, results, prompts and paths is in what is published."""
    told = b"".join(encode(event) for event in seen(agent, ALL[agent][hook], privacy="digests").events)
    assert not any(word in told for word in (b"make test", b"failed", b"passed", b"mend", b"/home", b"slow"))


@pytest.mark.parametrize(
    ("agent", "before", "after"),
    [("claude-code", "PreToolUse", "PostToolUse"), ("codex", "PreToolUse", "PostToolUse")],
)
def test_both_ends_of_a_call_are_one_call(agent, before, after):
    """The two hooks of a call have its id in common and ids of their own, so that it counts once."""
    start, end = call_of(agent, ALL[agent][before]), call_of(agent, ALL[agent][after])
    assert (start.phase, end.phase) == ("start", "end")
    assert start.call_id == end.call_id is not None
    assert start.event_id != end.event_id
    state = SessionState()
    for event in (start, end):
        observe(state, event, Limits())
    assert state.calls == 1


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("agent", "before", "after"),
    [
        (agent, *(("BeforeTool", "AfterTool") if agent == "gemini-cli" else ("PreToolUse", "PostToolUse")))
        for agent in ALL
    ],
)
def test_the_call_at_hand_equals_the_call_that_was_made(agent, before, after, level):
    """A repeated call is recognised before it is made: both hooks name it alike, and as its event does."""
    start, end = (seen(agent, ALL[agent][hook], privacy=level) for hook in (before, after))
    assert start.call is not None
    assert start.call == end.call
    assert isinstance(end.events[0], ToolCall)
    assert end.call == call_key(end.events[0])


@pytest.mark.parametrize(
    ("text", "code"),
    [("Exit code 1\n2 failed", 1), ("Exit code -9", -9), ("make: Exit code 1", None), ("Exit code 1a", None)],
)
@pytest.mark.parametrize("level", LEVELS)
def test_claude_codes_exit_codes_are_kept(text, code, level):
    """The number at the beginning of what a command said is known at every level of privacy."""
    event = call_of("claude-code", {**CLAUDE_CODE["PostToolUseFailure"], "error": text}, privacy=level)
    assert (event.error.code if event.error else None) == code


@pytest.mark.parametrize(
    ("payload", "status", "result"),
    [
        pytest.param(CLAUDE_CODE["PostToolUse"], "ok", "2 passed\nwarning: slow", id="two-streams-are-one-text"),
        pytest.param(CLAUDE_CODE["PostToolUseFailure"], "error", "Exit code 1\n2 failed", id="failure"),
        pytest.param(
            {**CLAUDE_CODE["PostToolUseFailure"], "error": "Command timed out after 2m"},
            "timeout",
            "Command timed out after 2m",
            id="timeout",
        ),
        pytest.param(
            {**CLAUDE_CODE["PostToolUseFailure"], "error": "", "is_interrupt": True}, "denied", "", id="interrupted"
        ),
        pytest.param(
            {**CLAUDE_CODE["PostToolUse"], "tool_response": {"stdout": "", "stderr": "", "timedOutAfterMs": 5}},
            "timeout",
            "",
            id="timed-out-in-the-background",
        ),
        pytest.param(
            CLAUDE_CODE["PermissionDenied"], "denied", "The command is not allowed here", id="permission-denied"
        ),
        pytest.param(
            {**CLAUDE_CODE["PostToolUse"], "tool_response": {"filenames": ["a"], "durationMs": 3}},
            "ok",
            {"filenames": ["a"]},
            id="durations-are-no-result",
        ),
        pytest.param(
            {**CLAUDE_CODE["PostToolUse"], "tool_response": [{"type": "text", "text": "hello"}]},
            "ok",
            "hello",
            id="blocks-are-text",
        ),
    ],
)
def test_how_claude_codes_calls_end(payload, status, result):
    """Failures, denials and timeouts come out as such, and results as the model saw them."""
    event = call_of("claude-code", payload)
    assert (event.status, event.result) == (status, result)


@pytest.mark.parametrize(
    ("agent", "payload", "status", "code"),
    [
        pytest.param("codex", CODEX["PostToolUse"], "error", 1, id="codex-head-of-the-text"),
        pytest.param("codex", {**CODEX["PostToolUse"], "tool_response": "hello"}, None, None, id="codex-not-told"),
        pytest.param(
            "codex",
            {**CODEX["PostToolUse"], "tool_response": {"output": "hello", "metadata": {"exit_code": 0}}},
            "ok",
            None,
            id="codex-metadata",
        ),
        pytest.param("gemini-cli", GEMINI_CLI["AfterTool"], "error", 1, id="gemini-exit-code-in-the-text"),
        pytest.param(
            "gemini-cli",
            {**GEMINI_CLI["AfterTool"], "tool_response": {"llmContent": {"text": "hello"}}},
            "ok",
            None,
            id="gemini-one-part",
        ),
        pytest.param(
            "gemini-cli",
            {**GEMINI_CLI["AfterTool"], "tool_response": {"llmContent": "no", "error": {"type": "x", "message": "y"}}},
            "error",
            None,
            id="gemini-error",
        ),
        pytest.param("gemini-cli", {**GEMINI_CLI["AfterTool"], "tool_response": {}}, None, None, id="gemini-nothing"),
        pytest.param("openhands", OPENHANDS["PostToolUse"], "error", 2, id="openhands-exit-code"),
        pytest.param(
            "openhands",
            {**OPENHANDS["PostToolUse"], "tool_response": {"content": [], "is_error": True}},
            "error",
            None,
            id="openhands-error",
        ),
        pytest.param(
            "openhands", {**OPENHANDS["PostToolUse"], "tool_response": {}}, None, None, id="openhands-nothing"
        ),
    ],
)
def test_how_other_agents_calls_end(agent, payload, status, code):
    """What an agent says of a call's end is taken, and nothing is invented where it says nothing."""
    event = call_of(agent, payload)
    assert (event.status, event.error.code if event.error else None) == (status, code)
    if status is None:
        assert event.result is UNSET or event.result == "hello"


def test_labels_of_an_action_are_no_arguments():
    """OpenHands puts fields of its own among a call's arguments, which would tell equal calls apart."""
    event = call_of("openhands", OPENHANDS["PreToolUse"])
    assert event.arguments == {"command": "make test", "is_input": False, "timeout": None}


def test_a_sub_agent_is_a_session_of_its_own():
    """A sub-agent's calls are counted apart from its parent's, whose termination still concerns it."""
    own, sub = seen("claude-code", CLAUDE_CODE["PreToolUse"]), seen("claude-code", CLAUDE_CODE_SUB)
    assert sub.session_id == f"{own.session_id}:a81f"
    assert (own.parent_id, sub.parent_id) == (None, own.session_id)
    assert sub.events[0].parent_session_id == own.session_id


@pytest.mark.parametrize(
    ("agent", "payload", "kind"),
    [
        ("claude-code", CLAUDE_CODE["UserPromptSubmit"], "user_message"),
        ("claude-code", {**CLAUDE_CODE["UserPromptSubmit"], "source": "loop_wakeup"}, None),
        ("claude-code", CLAUDE_CODE["SessionStart"], "started"),
        ("claude-code", {**CLAUDE_CODE["SessionStart"], "source": "resume"}, None),
        ("claude-code", {**CLAUDE_CODE["SessionStart"], "source": "compact"}, "context_trimmed"),
        ("claude-code", CLAUDE_CODE["SessionEnd"], "ended"),
        ("claude-code", CLAUDE_CODE["SubagentStart"], "started"),
        ("claude-code", CLAUDE_CODE["SubagentStop"], "ended"),
        ("claude-code", CLAUDE_CODE["Stop"], None),
        ("claude-code", {**CLAUDE_CODE["Stop"], "hook_event_name": "SomethingNew"}, None),
        ("codex", CODEX["UserPromptSubmit"], "user_message"),
        ("codex", CODEX["SubagentStop"], "ended"),
        ("gemini-cli", GEMINI_CLI["BeforeAgent"], "user_message"),
        ("gemini-cli", GEMINI_CLI["PreCompress"], "context_trimmed"),
        ("gemini-cli", GEMINI_CLI["SessionEnd"], "ended"),
        ("openhands", OPENHANDS["UserPromptSubmit"], "user_message"),
        ("openhands", OPENHANDS["SessionEnd"], "ended"),
        ("openhands", OPENHANDS["Stop"], None),
    ],
)
def test_what_happens_to_a_session(agent, payload, kind):
    """Beginnings, ends, trimmed contexts and people's words are told; the program's own prompts are none of these."""
    events = seen(agent, payload).events
    assert [event.kind for event in events if isinstance(event, SessionEvent)] == ([kind] if kind else [])


@pytest.mark.parametrize(("agent", "hook"), CASES)
def test_the_same_payload_is_the_same_event(agent, hook):
    """A payload that was spooled and is sent again gives the same ids, and so counts once."""
    first, again = (seen(agent, ALL[agent][hook]).events for _ in range(2))
    assert first == again


@pytest.mark.parametrize("agent", ["openhands", "codex"])
def test_prompts_without_an_id_are_told_apart_by_their_time(agent):
    """Where no id tells two prompts of a session apart, the time at which each was handed over does."""
    payload = ALL[agent]["UserPromptSubmit"]
    first, second = (seen(agent, payload, at=AT + timedelta(microseconds=after)) for after in (0, 1))
    assert first.events[0].event_id != second.events[0].event_id


def test_gemini_clis_own_time_is_taken_where_it_is_one():
    """The payload's time is the event's; one that no clock shows is not."""
    assert call_of("gemini-cli", GEMINI_CLI["AfterTool"]).occurred_at == datetime(2026, 11, 30, 10, 0, 0, 125_000, UTC)
    for wrong in ("1999-12-31T23:59:59Z", "3000-01-01T00:00:00Z", "soon", None, 7):
        assert call_of("gemini-cli", {**GEMINI_CLI["AfterTool"], "timestamp": wrong}).occurred_at == AT


@pytest.mark.parametrize(
    ("hook", "field", "own"),
    [
        ("PostToolUseFailure", "error", True),
        ("PermissionDenied", "reason", True),
        ("PostToolUse", "tool_response", False),
    ],
)
def test_a_denial_that_comes_back_as_a_failure_is_known(hook, field, own):
    """By our text, where the agent says that the call failed; what a call brings that was made is its result."""
    text = refusal(Verdict(action="deny", text="Wait."))
    event = call_of("claude-code", {**CLAUDE_CODE[hook], field: text})
    assert own_denial(event) == ("other" if own else None)
    assert own_denial(call_of("claude-code", {**CLAUDE_CODE[hook], field: "Wait."})) is None


@pytest.mark.parametrize("denial", ["repeat", "other"])
@pytest.mark.parametrize("agent", AGENTS)
def test_a_denied_call_is_told_as_such(agent, denial):
    """A call that was denied on our word ends as denied, and says why, so that it can be told from what failed."""
    before = seen(agent, ALL[agent]["BeforeTool" if agent == "gemini-cli" else "PreToolUse"])
    (event,) = denied(before, denial)
    assert isinstance(event, ToolCall)
    assert (event.phase, event.status, own_denial(event)) == ("end", "denied", denial)
    assert event.event_id != before.events[0].event_id
    after = seen(agent, ALL[agent]["AfterTool" if agent == "gemini-cli" else "PostToolUse"])
    assert denied(after, denial) == []


@pytest.mark.parametrize("mode", ["bypassPermissions", "dontAsk"])
def test_nobody_can_be_asked_where_permissions_are_bypassed(mode):
    """Claude Code says in which mode it runs, and so whether a person can be asked."""
    assert not seen("claude-code", {**CLAUDE_CODE["PreToolUse"], "permission_mode": mode}).attended
    assert seen("claude-code", CLAUDE_CODE["PreToolUse"]).attended


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "malformed"),
        (b"[]", "malformed"),
        (b"{", "malformed"),
        (b"\xff", "malformed"),
        (b'{"session_id": ""}', "no_session_id"),
        (b'{"session_id": 7}', "no_session_id"),
        (b'{"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": " "}', "no_tool_name"),
        (b"[" * 100_000, "malformed"),
    ],
)
def test_what_cannot_be_read_says_why(payload, reason):
    """A payload of which nothing can be made gives a reason that names the field and quotes nothing."""
    found = read("claude-code", payload, at=AT, privacy="digests")
    assert isinstance(found, NotRead)
    assert found.reason == reason


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("depth", [200, 900, 5_000])
def test_deep_nesting_is_read_or_refused(depth, level):
    """Arguments nested without end raise nothing: they are read where that can be done, else refused."""
    frame = json.dumps({**CLAUDE_CODE["PreToolUse"], "tool_input": "HERE"}).encode()
    found = read("claude-code", frame.replace(b'"HERE"', b"[" * depth + b"]" * depth), at=AT, privacy=level)
    if isinstance(found, NotRead):
        assert found.reason in {"too_deep", "malformed"}
        assert depth > 200
    else:
        assert depth < 5_000


@pytest.mark.parametrize(("more", "reads"), [(0, True), (1, False)])
def test_the_largest_payload(more, reads):
    """A payload of the largest size is read, one byte more is not."""
    frame = json.dumps({**CLAUDE_CODE["PreToolUse"], "tool_input": {"text": ""}}).encode()
    payload = frame.replace(b'"text": ""', b'"text": "%s"' % (b"x" * (MAX_PAYLOAD_BYTES - len(frame) + more)))
    assert len(payload) == MAX_PAYLOAD_BYTES + more
    assert isinstance(read("claude-code", payload, at=AT, privacy="full"), Observed) is reads


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(agent=st.sampled_from(AGENTS), data=st.data())
def test_no_payload_is_too_strange(agent, data):
    """Whatever values stand in the fields of a payload, it is read or refused, and its events keep to the contract."""
    payload = dict(data.draw(st.sampled_from(list(ALL[agent].values()))))
    for field in data.draw(st.lists(st.sampled_from(sorted(payload)), max_size=4)):
        payload[field] = data.draw(JSON)
    level = data.draw(st.sampled_from(LEVELS))
    found = read(agent, json.dumps(payload).encode(), at=AT, privacy=level)
    for event in found.events if isinstance(found, Observed) else []:
        decode(TOOL_CALLS if isinstance(event, ToolCall) else SESSIONS, encode(event))
