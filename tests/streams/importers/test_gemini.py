"""Chats of Gemini CLI: saved as a document and as lines, and what it prints."""

from __future__ import annotations

from msgspec import UNSET

from schemas.common import Usage
from streams.importers import Session, read_path
from tests.streams.importers import making
from tests.streams.importers.making import Step


def test_a_chat_saved_as_lines(sessions, story, calls):
    """A message that is written again counts once; a rewind unmakes no call; a shell's exit code decides."""
    (session,) = sessions("gemini_chat.jsonl")
    assert session.session_id == "g-1"
    assert story(session) == [
        "started",
        "user_message",
        ("read_file-1", "read_file", {"absolute_path": "/srv/cart.py"}, "def total(): ...", "ok"),
        ("run-2", "run_shell_command", {"command": "pytest"}, "1 failed", "error"),
        "user_message",
        ("edit-3", "replace", {"file_path": "b.py"}, "0 occurrences found", "error"),
        ("run-4", "run_shell_command", {"command": "rm b.py"}, UNSET, "denied"),
        ("run-5", "run_shell_command", {"command": "sleep 9"}, UNSET, None),
        "context_trimmed",
    ]
    read, run, *_ = calls(session)
    assert read.batch_id == run.batch_id == "m1"
    assert (read.usage, run.usage) == (Usage(input_tokens=900, output_tokens=50), None)
    assert run.error.code == 1
    assert read.agent.model == "gemini-example"


def test_a_chat_saved_as_a_document(sessions, story):
    """Earlier versions keep the whole chat in one document."""
    (session,) = sessions("gemini_chat.json")
    assert story(session) == [
        "started",
        "user_message",
        ("ls-1", "list_directory", {"path": "/srv"}, "cart.py", "ok"),
    ]


def test_the_stream_of_a_headless_run(sessions, story, calls):
    """`stream-json` tells results by the id of the call, in any order, and how the run ended."""
    (session,) = sessions("gemini_stream.jsonl")
    assert session.session_id == "g-2"
    assert story(session) == [
        "started",
        "user_message",
        ("run-1", "run_shell_command", {"command": "ls"}, "cart.py", "ok"),
        ("read-2", "read_file", {"absolute_path": "/no"}, "File not found", "error"),
        "ended: success",
    ]
    assert calls(session)[1].error.type == "FILE_NOT_FOUND"


def test_numbers_of_processes_make_no_two_results_differ(tmp_path, calls):
    """A shell's result ends with the number of its process, which is no part of what is compared."""
    shown = "Output: all is well\nBackground PIDs: 71, 72\nProcess Group PGID: {}"
    steps = [Step("run_shell_command", {"command": "npm test"}, shown.format(9_000 + 37 * n)) for n in range(12)]
    for write in (making.gemini_lines, making.gemini_stream):
        (session,) = read_path(write(tmp_path, steps))
        assert isinstance(session, Session)
        assert {call.result for call in calls(session)} == {"all is well"}


def test_a_sub_agent_is_a_session_of_its_own(lines, read_all, calls):
    """A sub-agent's chat lies in the folder of its parent, and names it so."""
    head = {"sessionId": "child", "projectHash": "abc", "startTime": "2026-03-02T08:00:00Z", "kind": "subagent"}
    told: dict[str, object] = {"id": "ls-1", "name": "ls", "args": {}, "status": "success", "result": None}
    message = {"id": "m", "timestamp": "2026-03-02T08:00:00Z", "type": "gemini", "toolCalls": [told]}
    (session,) = read_all(lines(head, message, name="chats/parent-session/child.jsonl"))
    assert session.session_id == "child"
    assert calls(session)[0].parent_session_id == "parent-session"
