"""Tasks of Cline and Roo Code, with calls of tools and with tags."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from schemas.common import Usage
from streams.importers.cline_tags import calls_in, result_in


def test_calls_of_tools(sessions, story, calls):
    """Results find their calls by id, and say by their words how they ended; an answer to a question is a person's."""
    (session,) = sessions("cline_tools.json")
    run = "Command executed in terminal within working directory '/srv'. Exit code: 1\nOutput:\n1 failed"
    failed = '{"status":"error","message":"The tool execution failed","error":"no match"}'
    assert story(session) == [
        "user_message",
        ("toolu_1", "read_file", {"path": "cart.py"}, "def total(): ...", None),
        ("toolu_2", "execute_command", {"command": "pytest"}, run, "error"),
        ("toolu_3", "apply_diff", {"path": "cart.py", "diff": "x"}, failed, "error"),
        ("toolu_4", "write_to_file", {"path": "a", "content": "b"}, "The user denied this operation.", "denied"),
        "context_trimmed",
        ("toolu_5", "attempt_completion", {"result": "Done"}, "<user_message>\nNot yet\n</user_message>", None),
        "user_message",
        ("toolu_6", "list_files", {"path": "."}, UNSET, None),
    ]
    read, command, *_ = calls(session)
    assert read.batch_id == command.batch_id
    assert read.usage == Usage(input_tokens=100, output_tokens=20, cost_usd=0.03)
    assert command.error.code == 1
    assert read.agent.model == "example-1"


def test_calls_as_tags(sessions, story):
    """A result without an id is that of the call before; an answer without a call is one of `(format_error)`."""
    (session,) = sessions("cline_tags.json")
    command = {"command": "cat <<E\n[a] b\nE", "requires_approval": "false"}
    run = "Command executed in terminal  within working directory '/srv'. Exit code: 0\nOutput:\n[a] b"
    again = "[ERROR] You did not use a tool in your previous response! Please retry with a tool use."
    page = {"path": "a.html", "content": "<p>\n<content>x</content>\n</p>"}
    failed = "The tool execution failed with the following error:\n<error>\nno space\n</error>"
    assert story(session) == [
        "user_message",
        (None, "read_file", {"path": "cart.py"}, "def total(): ...", None),
        (None, "execute_command", command, run, "ok"),
        (None, "(format_error)", {"response": "I think it is mended."}, again, "error"),
        (None, "write_to_file", page, failed, "error"),
        "context_trimmed",
        "user_message",
        (None, "search_files", {"path": ".", "regex": "till"}, "", None),
        (None, "attempt_completion", {"result": "Done"}, UNSET, None),
    ]


def test_the_later_form_of_roo(lines, read_all, story):
    """A list within an object with its version is read like the list."""
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "<user_message>\nMend it\n</user_message>"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "list_files", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "a", "is_error": True}]},
    ]
    path = lines({"version": 2, "messages": messages}, name="tasks/17/api_conversation_history.json")
    (session,) = read_all(path)
    assert session.session_id.startswith("17@")
    assert story(session) == ["user_message", ("c", "list_files", {}, "a", "error")]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[list_files] Result:\na", ("list_files", "a")),
        ("[use_mcp_tool for 'db'] Result:", ("use_mcp_tool", "")),
        ("[execute_command for 'ls [a]'] Result: done", ("execute_command", " done")),
        ("[list_files for 'x'] and no more", None),
        ("Result: [list_files] Result:", None),
        (f"[execute_command for '{'x' * 19_000}'] Result:", ("execute_command", "")),
        (f"[execute_command for '{'x' * 20_000}'] Result:", None),
    ],
)
def test_the_head_of_a_result(text, found):
    """The head of a result ends where it says so, whatever stands in the command."""
    assert result_in(text) == found


def test_several_calls_and_tags_that_are_none():
    """Every tool's tag is a call; other tags are text, also where they never end."""
    text = "<b>x</b><read_file><path>a</path></read_file> and <list_files>\n<path>b</path>\n</list_files><i>"
    assert calls_in(text) == [("read_file", {"path": "a"}), ("list_files", {"path": "b"})]
    assert calls_in("<thinking><read>") == []


def test_tags_without_end_take_no_time():
    """A text of nothing but openings is gone through once."""
    assert len(calls_in("<read_file><path>" * 20_000)) == 1
    assert len(calls_in("<read_file></read_file>" * 2_000)) == 2_000
