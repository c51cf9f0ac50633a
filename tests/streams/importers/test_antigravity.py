"""Transcripts of Antigravity."""

from __future__ import annotations

from msgspec import UNSET

from schemas.common import Usage


def test_steps_of_a_conversation(sessions, story, calls):
    """Results find their calls by their kind; labels and times, other each time, are no part of what is compared."""
    (session,) = sessions("antigravity.jsonl")
    command = {"CommandLine": "pytest", "WaitMsBeforeAsync": 5000, "Blocking": True}
    failed = "The command failed with exit code: 1\n\t\t\t\tOutput:\n\t\t\t\t1 failed"
    listed = "The command completed successfully.\n\t\t\t\tOutput:\n\t\t\t\tcart.py"
    assert story(session) == [
        "user_message",
        (None, "list_dir", {"DirectoryPath": "/srv/shop"}, '{"name":"cart.py"}', None),
        (None, "run_command", command, failed, "error"),
        (None, "run_command", {"CommandLine": "ls"}, listed, "ok"),
        "context_trimmed",
        (None, "view_file", {"AbsolutePath": "/no"}, "no such file", "error"),
        (None, "view_file", {"AbsolutePath": "/srv/cart.py"}, UNSET, None),
    ]
    first, second, third, *_ = calls(session)
    assert first.batch_id == second.batch_id != third.batch_id
    assert (second.duration_ms, second.error.code) == (3000, 1)
    assert first.usage == Usage(input_tokens=100, output_tokens=20)
    assert first.agent.model == "Example 3.5 (High)"


def test_the_folder_names_the_conversation(lines, data, read_all):
    """The transcript has no identifier of its own; its folder has."""
    content = (data / "antigravity.jsonl").read_bytes()
    (session,) = read_all(lines(content, name="brain/conv-1/.system_generated/logs/transcript.jsonl"))
    assert session.session_id == "conv-1"


def test_the_full_transcript_is_the_one_that_counts(lines, data, found_in):
    """Beside the one whose texts are cut, a folder's full transcript is the session; a file that is named is read."""
    content = (data / "antigravity.jsonl").read_bytes()
    short = lines(content, name="logs/transcript.jsonl")
    full = lines(content, name="logs/transcript_full.jsonl")
    (session,) = found_in(full.parent).sessions
    assert session.source == str(full)
    (session,) = found_in(short).sessions
    assert session.source == str(short)


def test_an_exit_code_of_its_own(lines, read_all, calls):
    """Later versions tell a command's exit code beside the text, and may give a result no kind."""
    step = {"source": "MODEL", "status": "DONE", "created_at": "2026-03-02T08:00:00Z"}
    asked = [{"name": "list_dir", "args": {}}, {"name": "run_command", "args": {"CommandLine": '"x"'}}]
    answers = [
        step | {"type": "GENERIC", "content": "a"},
        step | {"type": "RUN_COMMAND", "exit_code": 3, "content": ""},
    ]
    (session,) = read_all(lines(step | {"type": "PLANNER_RESPONSE", "tool_calls": asked}, *answers))
    assert [(call.result, call.status) for call in calls(session)] == [("a", None), ("", "error")]
    assert calls(session)[1].error.code == 3


def test_a_message_of_an_error_answers_a_call(lines, read_all, story):
    """A call that could not be made is answered by a step that says so."""
    step = {"source": "MODEL", "status": "DONE", "created_at": "2026-03-02T08:00:00Z"}
    call = step | {"type": "PLANNER_RESPONSE", "tool_calls": [{"name": "view_file", "args": {"AbsolutePath": "a b"}}]}
    (session,) = read_all(lines(call, step | {"source": "SYSTEM", "type": "ERROR_MESSAGE", "content": "invalid call"}))
    assert story(session) == [(None, "view_file", {"AbsolutePath": "a b"}, "invalid call", "error")]
