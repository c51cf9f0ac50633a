"""Trajectories of mini-swe-agent, with actions in text and as tool calls."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import UNSET

from schemas.common import Usage


def test_actions_in_text(sessions, calls, kinds):
    """The only bash block is the command; the marked return code tells the status and is no part of the result."""
    (session,) = sessions("mini_text.traj.json")
    assert session.session_id.startswith("shop__cart-7@")
    first, failing, malformed, killed, final = calls(session)
    assert (first.tool, first.arguments) == ("bash", {"command": "ls -R"})
    assert (first.result, first.status) == ("<output>\na.py\n</output>", "ok")
    assert first.usage == Usage(input_tokens=11, output_tokens=5, cost_usd=0.002)
    assert first.occurred_at == datetime.fromtimestamp(1772442000, UTC)
    assert (failing.status, failing.error.code) == ("error", 1)
    assert (malformed.tool, malformed.status) == ("(format_error)", "error")
    assert malformed.result.startswith("Please always provide EXACTLY ONE action")
    assert killed.status == "timeout"
    assert (final.result, final.status) == ("diff --git a/a.py b/a.py", None)
    assert kinds(session) == ["started", "user_message", "ended"]


def test_actions_as_tool_calls(sessions, calls, kinds):
    """Results find their calls by id, raw output is preferred, and a batch is known as one."""
    (session,) = sessions("mini_tools.traj.json")
    first, second, malformed = calls(session)
    assert (first.call_id, first.status, first.result) == ("c1", "timeout", "")
    assert (second.call_id, second.status, second.result) == ("c2", "ok", "uid=0")
    assert first.batch_id == second.batch_id == "r1"
    assert first.usage == Usage(cost_usd=0.01)
    assert (malformed.tool, malformed.result) == ("(format_error)", "No tool call found.")
    assert kinds(session) == ["started", "user_message", "ended"]


def test_actions_of_version_2(sessions, story, calls):
    """An answer that could not be read shows in the reply to it alone; the Responses API has messages of its own."""
    (session,) = sessions("mini_tools_2.traj.json")
    assert story(session) == [
        "started",
        "user_message",
        ("c1", "bash", {"command": "ls"}, "cart.py", "ok"),
        (None, "(format_error)", UNSET, "No tool calls found in the response.", "error"),
        (None, "(format_error)", {"response": "two actions"}, "Expected exactly 1 action, found 2.", "error"),
        ("c2", "bash", {"command": "false"}, "", "error"),
        "user_message",
        "ended: RepeatedFormatError",
    ]
    assert calls(session)[-1].error.code == 1
