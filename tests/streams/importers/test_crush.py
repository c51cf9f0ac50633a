"""Databases of Crush, and of the OpenCode written in Go."""

from __future__ import annotations

import json
import shutil
import sqlite3

from msgspec import UNSET

from streams.importers import Session, Unreadable, read_path
from tests.streams.importers import making


def filled(path, rows, *, columns=""):
    """Write a database with the messages of some sessions."""
    db = sqlite3.connect(path)
    db.executescript(making.CRUSH)
    if columns:
        db.execute(columns)
    for session, parent in (("s", None), ("m$$call", "s"), ("title-s", "s")):
        db.execute("INSERT INTO sessions VALUES (?, ?, 'Mend it', 1772438400)", (session, parent))
    for n, (session, role, *parts) in enumerate(rows):
        told = json.dumps([{"type": kind, "data": data} for kind, data in parts])
        db.execute(
            "INSERT INTO messages (id, session_id, role, parts, model, created_at) VALUES (?, ?, ?, ?, ?, ?)",
            (f"m{n}", session, role, told, "example-1", 1772438400 + n),
        )
    db.commit()
    return db


def call(name, tool, given):
    """Give the part of a call."""
    return "tool_call", {"id": name, "name": tool, "input": given, "finished": True}


def answer(name, text, *, failed=False):
    """Give the part of a result."""
    return "tool_result", {"tool_call_id": name, "content": text, "is_error": failed}


ROWS = [
    ("s", "user", ("text", {"text": "Mend the cart"})),
    (
        "s",
        "assistant",
        ("text", {"text": "I look"}),
        call("c1", "bash", '{"command": "pytest"}'),
        call("c2", "view", "{}"),
    ),
    ("s", "tool", answer("c1", "1 failed\nExit code 1"), answer("c2", "def total(): ...")),
    (
        "s",
        "assistant",
        call("c3", "bash", '{"command": "ls"}'),
        call("c4", "edit", "{}"),
        call("c5", "agent", '{"prom'),
    ),
    ("s", "tool", answer("c3", "cart.py"), answer("c4", "old_string not found", failed=True)),
    ("m$$call", "assistant", call("d1", "glob", '{"pattern": "*"}')),
    ("m$$call", "tool", answer("d1", "cart.py")),
]


def test_sessions_and_sub_agents(tmp_path, story, calls):
    """For a command the exit code in its text decides, else the flag; a sub-agent is a session with a parent."""
    filled(tmp_path / "crush.db", ROWS).close()
    main, child = read_path(tmp_path / "crush.db")
    assert story(main) == [
        "user_message",
        ("c1", "bash", {"command": "pytest"}, "1 failed\nExit code 1", "error"),
        ("c2", "view", {}, "def total(): ...", "ok"),
        ("c3", "bash", {"command": "ls"}, "cart.py", None),
        ("c4", "edit", {}, "old_string not found", "error"),
        ("c5", "agent", '{"prom', UNSET, None),
    ]
    first, second, *_ = calls(main)
    assert first.batch_id == second.batch_id == "c1"
    assert first.error.code == 1
    assert (first.agent.name, first.agent.model) == ("crush", "example-1")
    assert first.occurred_at.timestamp() == 1772438401
    assert story(child) == [("d1", "glob", {"pattern": "*"}, "cart.py", "ok")]
    assert calls(child)[0].parent_session_id == "s"


def test_what_stands_in_the_write_ahead_log_counts(tmp_path, calls):
    """A database that the agent still writes holds all data in its log; it is read, and nothing of it is written."""
    path = tmp_path / "crush.db"
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.close()
    writer = filled(path, ROWS)
    log = path.with_name("crush.db-wal")
    before = (path.read_bytes(), log.read_bytes())
    assert log.stat().st_size > path.stat().st_size
    main, _ = read_path(path)
    assert len(calls(main)) == 5
    copied = tmp_path / "copy"
    copied.mkdir()
    for name in ("crush.db", "crush.db-wal"):
        shutil.copy(tmp_path / name, copied)
    assert len([each for each in read_path(copied) if isinstance(each, Session)]) == 2
    assert before == (path.read_bytes(), log.read_bytes())
    writer.close()


def test_a_folder_that_sqlite_cannot_write_to(tmp_path, calls):
    """Without a log the database is read all the same; with one, which would be passed over, it is told what to do."""
    path = tmp_path / "crush.db"
    filled(path, ROWS).close()
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.close()
    barred = path.rename(tmp_path / f"{'c' * 250}.db")  # so long that no file of SQLite's own can lie beside it
    assert len(calls(next(iter(read_path(barred))))) == 5
    barred.rename(path)
    (tmp_path / "crush.db-shm").mkdir()  # where SQLite would put one
    (tmp_path / "crush.db-wal").write_bytes(b"log" * 20)
    (found,) = read_path(path)
    assert isinstance(found, Unreadable)
    assert "copy it, with the file crush.db-wal beside it, to a folder that you may write to" in found.reason


def test_later_columns(tmp_path, story):
    """A message that a later version marks as a summary is a trim of the context."""
    path = tmp_path / "crush.db"
    db = filled(path, ROWS[:3], columns="ALTER TABLE messages ADD COLUMN is_summary_message INTEGER DEFAULT 0")
    db.execute("UPDATE messages SET is_summary_message = 1 WHERE id = 'm0'")
    db.commit()
    db.close()
    (main,) = read_path(path)
    assert story(main)[0] == "context_trimmed"


def test_a_damaged_row_and_a_damaged_file(tmp_path, calls):
    """A row that cannot be read is told by its place and costs itself; a file that cannot be opened is told as such."""
    path = tmp_path / "crush.db"
    db = filled(path, ROWS)
    db.execute("UPDATE messages SET parts = '{cut' WHERE id = 'm4'")
    db.commit()
    db.close()
    found = list(read_path(path))
    assert [len(calls(each)) for each in found if isinstance(each, Session)] == [5, 1]
    (fault,) = [each for each in found if isinstance(each, Unreadable)]
    assert "table messages, row m4: field `parts`" in fault.reason
    path.write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    for where in (path, tmp_path):
        (broken,) = read_path(where)
        assert isinstance(broken, Unreadable)
        assert "database cannot be read" in broken.reason
