"""What Antigravity's command line prints as stream-json."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from msgspec import UNSET

from schemas.common import Usage
from schemas.events import SessionEvent, ToolCall
from streams.importers import Growing

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)


def step(index, state, **fields):
    """Give the event of a step."""
    return {
        "event": "step_update",
        "step_update": {"conversation_id": "c", "step_index": index, "state": state} | fields,
    }


def tool(index, state, **told):
    """Give the event of a tool's step."""
    name = told.setdefault("name", "run_command")
    return step(index, state, step_type="tool", tool_name=name, tool_info=told)


def test_steps_of_a_run(sessions, story, calls):
    """A call is what its two events say, once; without an end it has no result, a sub-agent is a session of its own."""
    session, child = sessions("antigravity_stream.jsonl")
    denied = "permission check failed for read_file: user denied permission for read_file(/etc/shadow)"
    assert story(session) == [
        "user_message",
        ("step-2", "view_file", {"AbsolutePath": "/srv/shop/cart.py"}, "def cart(): ...", None),
        ("step-3", "view_file", {"AbsolutePath": "/etc/shadow"}, denied, "denied"),
        "context_trimmed",
        ("step-6", "run_command", {"CommandLine": "pytest -q"}, "1 failed\r\n", None),
        ("step-7", "invoke_subagent", {"Prompt": "look"}, "started", None),
        ("step-8", "run_command", {"CommandLine": "sleep 1"}, UNSET, None),
        "ended: SUCCESS",
    ]
    first, second, third, *_ = calls(session)
    assert first.batch_id == second.batch_id != third.batch_id
    assert first.usage == Usage(input_tokens=900, output_tokens=40)
    assert third.usage == Usage(input_tokens=1200, output_tokens=30)
    assert (first.duration_ms, first.agent.model, session.session_id) == (250, "example-flash-high", "conv-7")
    assert story(child) == [("step-1", "list_dir", {"DirectoryPath": "/srv"}, "shop", None)]
    assert (calls(child)[0].session_id, calls(child)[0].parent_session_id) == ("conv-8", "conv-7")


def test_how_a_call_ended(lines, read_all, calls):
    """An error, told as a state or beside the answer, is a failure, and so is an exit code in the answer but 0."""
    bad = {"type": "TOOL_ERROR", "message": "no such file"}
    (session,) = read_all(
        lines(
            tool(1, "ERROR", error=bad, parameters={}),
            tool(2, "DONE", error=bad, parameters={}),
            tool(3, "ERROR", parameters={}),
            tool(4, "DONE", output="The command failed with exit code: 3\nOutput:", parameters={}),
        )
    )
    assert [(call.result, call.status) for call in calls(session)] == [
        ("no such file", "error"),
        ("no such file", "error"),
        (UNSET, "error"),
        ("The command failed with exit code: 3\nOutput:", "error"),
    ]
    assert calls(session)[3].error.code == 3


def test_without_an_index(lines, read_all, story):
    """Steps that tell no index are calls of their own; the end of one belongs to the latest that began."""
    begun, done = tool(None, "ACTIVE", parameters={"CommandLine": "ls"}), tool(None, "DONE", output="cart.py")
    (session,) = read_all(lines(begun, done, begun, done))
    assert story(session) == [(None, "run_command", {"CommandLine": "ls"}, "cart.py", None)] * 2


def test_an_end_counts_when_nothing_comes_after_it(lines, read_all, story):
    """A result ends a turn: the session goes on with the next one, and has ended after the last."""
    result = {"event": "result", "result": {"conversation_id": "c", "status": "ERROR", "error": "timeout"}}
    turn = [step(0, "DONE", step_type="user_input"), result]
    (session,) = read_all(lines(*turn, *turn))
    assert story(session) == ["user_message", "user_message", "ended: ERROR"]


def test_a_result_is_given_when_it_is_there():
    """Fed as it is printed, a call comes with its end, and what is told of it after that changes nothing."""
    growing = Growing("s")
    for line in (b'{"event":"init","conversation_id":"c","init":{}}', b'{"event":"step_update"}', b'{"event":"new"}'):
        growing.feed(line)
    growing.feed(
        b'{"event":"step_update","step_update":{"step_index":1,"state":"ACTIVE","step_type":"tool","tool_name":"ls"}}'
    )
    assert growing.take(NOW) == []
    done = json.dumps(step(1, "DONE", step_type="tool", tool_info={"output": "a"})).encode()
    growing.feed(done)
    (call,) = growing.take(NOW)
    assert isinstance(call, ToolCall)
    assert (call.session_id, call.tool, call.result) == ("c", "ls", "a")
    growing.feed(done)
    growing.feed(b'{"event":"result","result":{"status":"SUCCESS"}}')
    assert growing.take(NOW) == []
    (end,) = growing.close(NOW)
    assert isinstance(end, SessionEvent)
    assert (end.kind, end.reason, growing.faults) == ("ended", "SUCCESS", [])
