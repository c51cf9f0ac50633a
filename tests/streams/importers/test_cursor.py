"""Runs of Cursor's command line, and transcripts of its agents."""

from __future__ import annotations

from msgspec import UNSET


def test_the_stream_of_a_run(sessions, story, calls):
    """A result says by its key how the call ended; for a command its exit code does, unless it went on behind."""
    (session,) = sessions("cursor_stream.jsonl")
    assert session.session_id == "c-1"
    assert story(session) == [
        "user_message",
        ("toolu_1", "read", {"path": "cart.py"}, "def total(): ...", "ok"),
        ("toolu_2", "shell", {"command": "pytest"}, "1 failed\noh\n", "error"),
        ("toolu_3", "shell", {"command": "rm -r ."}, "not allowed", "denied"),
        ("toolu_4", "edit", {"path": "cart.py"}, "no match", "error"),
        ("toolu_5", "edit", {"path": "cart.py"}, '{"path":"cart.py","linesAdded":1}', "ok"),
        ("toolu_6", "lookup", {"q": "tax"}, UNSET, None),
        ("toolu_7", "shell", {"command": "serve &"}, "", None),
        "ended: success",
    ]
    read, run, *_ = calls(session)
    assert (read.duration_ms, run.duration_ms) == (40, 812)
    assert run.error.code == 4
    assert read.agent.model == "Example 1"


def test_a_transcript_has_calls_and_mostly_no_results(sessions, story):
    """What was not recorded is not taken for empty; results that are there answer the calls in their order."""
    (session,) = sessions("cursor_transcript.jsonl")
    assert story(session) == [
        "user_message",
        (None, "Read", {"path": "cart.py"}, UNSET, None),
        (None, "Shell", {"command": "pytest"}, "1 failed", None),
        (None, "Grep", {"pattern": "total"}, "cart.py:1", None),
    ]


def test_a_sub_agents_transcript_names_its_parent(lines, read_all, calls):
    """A sub-agent's transcript lies below the folder of the session that started it."""
    said = {"role": "assistant", "message": {"content": [{"type": "tool_use", "name": "Read", "input": {}}]}}
    (session,) = read_all(lines(said, name="agent-transcripts/parent/subagents/child.jsonl"))
    assert session.session_id == "child"
    assert calls(session)[0].parent_session_id == "parent"


def test_times_of_calls(lines, read_all, calls):
    """Some versions tell the times within the call, as texts."""
    body = {"readToolCall": {"args": {}}, "toolCallId": "c", "startedAtMs": "1772438400000"}
    ended = body | {"readToolCall": {"args": {}, "result": {"success": {}}}, "completedAtMs": "1772438400250"}
    line = {"type": "tool_call", "session_id": "s"}
    started = line | {"subtype": "started", "tool_call": body}
    (session,) = read_all(lines(started, line | {"subtype": "completed", "tool_call": ended}))
    (call,) = calls(session)
    assert (call.call_id, call.duration_ms) == ("c", 250)
    assert call.occurred_at.timestamp() == 1772438400


def test_lines_without_ids(lines, read_all, story):
    """Of old versions, that give no id, the end of a call is that of the first that waits by its tool."""
    told = [("started", {"args": {"path": "a"}}), ("completed", {"args": {"path": "a"}, "result": {"success": "A"}})]
    values = [{"type": "tool_call", "subtype": kind, "tool_call": {"readToolCall": body}} for kind, body in told * 2]
    (session,) = read_all(lines(*values))
    assert story(session) == [(None, "read", {"path": "a"}, "A", "ok")] * 2
