"""A verdict becomes the answer that the agent's own protocol defines, and nothing that it does not know."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import jsonschema_rs
import pytest

from streams.hooks import AGENTS, Agents, Observed, answer, denies, read
from streams.verdicts.model import GO_ON, Step, Verdict
from tests.streams.hooks.codex_schemas import INPUT, OUTPUT
from tests.streams.hooks.payloads import ALL, CLAUDE_CODE

AT = datetime(2026, 11, 30, 10, 0, 1, tzinfo=UTC)
TEXT = "The same call failed five times. Read the error first."
STEPS: tuple[Step, ...] = ("guide", "deny", "ask", "stop")
CASES = [pytest.param(agent, hook, id=f"{agent}-{hook}") for agent, hooks in ALL.items() for hook in hooks]


def said(agent: Agents, payload: Any, action: Step, *, enforce: bool = True, text: str = TEXT) -> dict[str, Any]:
    """Answer a payload."""
    seen = read(agent, json.dumps(payload).encode(), at=AT, privacy="full")
    assert isinstance(seen, Observed)
    return answer(agent, seen, Verdict(action=action, session_id=seen.session_id, text=text), enforce=enforce)


def specific(hook: str, **fields: str) -> dict[str, Any]:
    """Give what Claude Code and Codex take for one hook."""
    return {"hookSpecificOutput": {"hookEventName": hook, **fields}}


PAUSED = f"[Traction] This call was not made: the session is paused.\n{TEXT}"
ENDED = f"[Traction] This call was not made: the session is stopped.\n{TEXT}"
WAITS = f"[Traction] This call was not made: the session waits for a person.\n{TEXT}"
FIRST = f"[Traction] This call was not made: read this first.\n{TEXT}"
DENIAL = {
    text: specific("PreToolUse", permissionDecision="deny", permissionDecisionReason=text)
    for text in (PAUSED, ENDED, WAITS)
}
ASKING = specific("PreToolUse", permissionDecision="ask", permissionDecisionReason=TEXT)
STOPPING = {"continue": False, "stopReason": TEXT}
GEMINI_STOPPING = {"continue": False, "stopReason": TEXT, "reason": TEXT}


@pytest.mark.parametrize(
    ("agent", "hook", "action", "expected"),
    [
        ("claude-code", "PreToolUse", "stop", STOPPING | DENIAL[ENDED]),
        ("claude-code", "PostToolUse", "stop", STOPPING),
        ("claude-code", "PostToolUseFailure", "stop", STOPPING),
        ("claude-code", "UserPromptSubmit", "stop", STOPPING),
        ("claude-code", "SessionStart", "stop", {}),
        ("claude-code", "PreToolUse", "deny", DENIAL[PAUSED]),
        ("claude-code", "PostToolUse", "deny", {}),
        ("claude-code", "PreToolUse", "ask", ASKING),
        ("claude-code", "PreToolUse", "guide", specific("PreToolUse", additionalContext=TEXT)),
        ("claude-code", "PostToolUse", "guide", specific("PostToolUse", additionalContext=TEXT)),
        ("claude-code", "PostToolUseFailure", "guide", specific("PostToolUseFailure", additionalContext=TEXT)),
        ("claude-code", "Stop", "guide", {}),
        ("claude-code", "SessionEnd", "guide", {}),
        ("codex", "PreToolUse", "stop", DENIAL[ENDED]),
        ("codex", "PreToolUse", "deny", DENIAL[PAUSED]),
        ("codex", "PreToolUse", "ask", DENIAL[WAITS]),
        ("codex", "PostToolUse", "stop", STOPPING),
        ("codex", "PostToolUse", "ask", {}),
        ("codex", "UserPromptSubmit", "stop", STOPPING),
        ("codex", "PostToolUse", "guide", specific("PostToolUse", additionalContext=TEXT)),
        ("codex", "Stop", "guide", {}),
        ("gemini-cli", "BeforeTool", "stop", GEMINI_STOPPING),
        ("gemini-cli", "AfterAgent", "stop", GEMINI_STOPPING),
        ("gemini-cli", "BeforeTool", "deny", {"decision": "deny", "reason": PAUSED}),
        ("gemini-cli", "BeforeTool", "ask", {"decision": "ask", "reason": TEXT, "systemMessage": TEXT}),
        ("gemini-cli", "BeforeTool", "guide", {}),
        ("gemini-cli", "AfterTool", "guide", specific("AfterTool", additionalContext=TEXT)),
        ("gemini-cli", "AfterTool", "deny", {}),
        ("openhands", "PreToolUse", "stop", {"decision": "deny", "reason": ENDED}),
        ("openhands", "PreToolUse", "guide", {"decision": "deny", "reason": FIRST}),
        ("openhands", "UserPromptSubmit", "guide", {"additionalContext": TEXT}),
        ("openhands", "UserPromptSubmit", "stop", {"decision": "deny", "reason": TEXT}),
        ("openhands", "PostToolUse", "stop", {}),
        ("openhands", "Stop", "stop", {}),
    ],
)
def test_the_answer_is_the_agents_own(agent, hook, action, expected):
    """Each step of a verdict is said in the words of the agent's protocol, at the moments that can say it."""
    assert said(agent, ALL[agent][hook], action) == expected


def test_where_nobody_can_be_asked_the_session_is_stopped():
    """Asking is for agents with a person at hand."""
    unattended = {**CLAUDE_CODE["PreToolUse"], "permission_mode": "bypassPermissions"}
    assert said("claude-code", unattended, "ask") == STOPPING | DENIAL[WAITS]


@pytest.mark.parametrize(("agent", "hook"), CASES)
@pytest.mark.parametrize("action", STEPS)
def test_observing_says_nothing(agent, hook, action):
    """An agent that is only observed never hears of a verdict, nor does one whose verdict has no text."""
    assert said(agent, ALL[agent][hook], action, enforce=False) == {}
    assert said(agent, ALL[agent][hook], action, text=" ") == {}


@pytest.mark.parametrize("agent", AGENTS)
def test_where_nothing_is_asked_nothing_is_said(agent):
    """The verdict to go on is the empty answer."""
    for payload in ALL[agent].values():
        seen = read(agent, json.dumps(payload).encode(), at=AT, privacy="full")
        assert isinstance(seen, Observed)
        assert answer(agent, seen, GO_ON, enforce=True) == {}


@pytest.mark.parametrize("agent", AGENTS)
def test_a_denial_is_recognised(agent):
    """Every answer that keeps a call from being made is told from those that do not."""
    before = ALL[agent]["BeforeTool" if agent == "gemini-cli" else "PreToolUse"]
    assert denies(said(agent, before, "deny"))
    assert denies(said(agent, before, "stop"))
    assert not denies({})
    if agent in {"claude-code", "gemini-cli"}:
        assert not denies(said(agent, before, "guide"))
        assert not denies(said(agent, before, "ask"))


@pytest.mark.parametrize("hook", INPUT)
def test_codex_would_send_our_payloads_and_take_our_answers(hook):
    """Payloads and answers keep to the schemas of Codex's repository, which refuse what they do not know."""
    jsonschema_rs.Draft7Validator(INPUT[hook]).validate(ALL["codex"][hook])
    takes = jsonschema_rs.Draft7Validator(OUTPUT[hook])
    for action in STEPS:
        takes.validate(said("codex", ALL["codex"][hook], action))
    assert not takes.is_valid({"decision": "deny"})
