"""Sessions of OpenCode, wherever they are kept."""

from __future__ import annotations

import json
import sqlite3

from msgspec import UNSET

from schemas.common import Usage
from streams.importers import Session, Skipped, Unreadable, files, read_path
from tests.streams.importers import making
from tests.streams.importers.making import Step

STEPS = [Step("read", {"filePath": "a"}, "A"), Step("read", {"filePath": "b"}, "B")]


def test_lines_of_a_run(sessions, story, calls):
    """`run --format json` tells each call once, completed; a command's exit code stands in its metadata."""
    (session,) = sessions("opencode_run.jsonl")
    assert session.session_id == "ses_run"
    assert story(session) == [
        ("call_1", "bash", {"command": "pytest"}, "1 failed", "error"),
        ("call_2", "read", {"filePath": "/no"}, "File not found: /no", "error"),
    ]
    run, read = calls(session)
    assert run.batch_id == read.batch_id == "call_1"
    assert (run.usage, read.usage) == (Usage(input_tokens=111, output_tokens=7, cost_usd=0.02), None)
    assert (run.duration_ms, run.error.code) == (500, 1)


def test_an_export(sessions, story, calls):
    """A sub-agent names its parent; an exit code that is missing is none; a refusal is no error."""
    (session,) = sessions("opencode_export.json")
    refused = "The user rejected permission to use this specific tool call."
    assert story(session) == [
        "started",
        "user_message",
        ("call_1", "bash", {"command": "ls"}, "cart.py", None),
        ("call_2", "bash", {"command": "true"}, "", "ok"),
        "context_trimmed",
        ("call_3", "edit", {"filePath": "a"}, refused, "denied"),
        ("call_4", "task", {"prompt": "look"}, UNSET, None),
    ]
    assert calls(session)[0].parent_session_id == "ses_main"
    assert calls(session)[0].agent.model == "example-1"


def test_folders_of_files_are_one_session_each(tmp_path, calls):
    """Messages and parts are read with their session, and are neither sessions nor strangers of their own."""
    top = making.opencode_storage(tmp_path, STEPS)
    (found,) = read_path(top)
    assert [call.result for call in calls(found)] == ["A", "B"]
    (alone,) = read_path(top / "session" / "p" / "ses_s.json")
    assert isinstance(alone, Session)
    assert isinstance(found, Session)
    assert alone.events == found.events


def test_folders_of_before(tmp_path, calls):
    """In the first half of 2025 all lay below the folder of the sessions."""
    top = making.opencode_storage(tmp_path, STEPS)
    (top / "session" / "info").mkdir()
    (top / "session" / "p" / "ses_s.json").rename(top / "session" / "info" / "ses_s.json")
    (top / "message").rename(top / "session" / "message")
    (top / "session" / "part" / "ses_s").mkdir(parents=True)
    for part in (top / "part").iterdir():
        part.rename(top / "session" / "part" / "ses_s" / part.name)
    sessions = [found for found in read_path(top) if isinstance(found, Session)]
    assert [call.result for session in sessions for call in calls(session)] == ["A", "B"]


def test_a_file_that_breaks_off_costs_itself(tmp_path, calls):
    """A part that was not written to its end is told by its name, and the others are read."""
    top = making.opencode_storage(tmp_path, STEPS)
    part = top / "part" / "msg_000" / "prt_000.json"
    part.write_text(part.read_text()[:40])
    found = list(read_path(top / "session"))
    (fault,) = [each for each in found if isinstance(each, Unreadable)]
    assert "prt_000.json" in fault.reason
    assert [call.result for each in found if isinstance(each, Session) for call in calls(each)] == ["B"]


def test_a_file_that_is_too_large_costs_itself(tmp_path, calls, monkeypatch):
    """A part beyond the limit is told by its name and never read; one that just fits is."""
    top = making.opencode_storage(tmp_path, [Step("read", {}, "A" * 999), Step("read", {}, "B" * 1000)])
    smaller = (top / "part" / "msg_000" / "prt_000.json").stat().st_size
    monkeypatch.setattr(files, "MAX_TEXT_BYTES", smaller)
    found = list(read_path(top / "session"))
    (fault,) = [each for each in found if isinstance(each, Unreadable)]
    assert "prt_001.json is passed by: larger than" in fault.reason
    assert [call.result for each in found if isinstance(each, Session) for call in calls(each)] == ["A" * 999]


def test_a_database(tmp_path, calls):
    """Sessions of the database come in their order, sub-agents with their parents, and a broken row costs itself."""
    path = making.opencode_database(tmp_path, STEPS)
    with sqlite3.connect(path) as db:
        db.execute("INSERT INTO session VALUES ('ses_t', 'ses_s', 'Look', ?)", (making.MS + 5,))
        info = json.dumps({"role": "assistant", "time": {"created": making.MS}})
        db.execute("INSERT INTO message VALUES ('msg_t', 'ses_t', 1, ?)", (info,))
        db.execute("INSERT INTO part VALUES ('prt_t', 'msg_t', 'ses_t', '{broken')")
    db.close()
    found = list(read_path(path))
    main, child = [each for each in found if isinstance(each, Session)]
    assert [call.result for call in calls(main)] == ["A", "B"]
    assert (child.session_id, child.events[0].parent_session_id) == ("ses_t", "ses_s")
    (fault,) = [each for each in found if isinstance(each, Unreadable)]
    assert "table part, row prt_t" in fault.reason


def test_other_databases_are_no_recordings(tmp_path):
    """A database of something else is passed by in a folder, and told where it is named."""
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE session (id TEXT)")
    db.close()
    assert [type(found) for found in read_path(tmp_path)] == [Skipped]
    (found,) = read_path(path)
    assert isinstance(found, Unreadable)
    assert found.reason.startswith("a database of SQLite, but of no known format")
