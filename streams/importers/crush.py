"""Reads databases of Crush (`.crush/crush.db`), and of the OpenCode written in Go that it comes from.

A message has parts; `tool_call` is a call, `tool_result` in a later message its result, found by the id. Times are
those of the messages, to the second. Sub-agents are sessions that name their parent. The flag for errors stays false
when a command exits with another code than 0, so that for commands the code in the text decides, and nothing without.
"""

from __future__ import annotations

import re
import sqlite3
from typing import TYPE_CHECKING, Any

from schemas.common import ErrorInfo
from streams.importers.build import Builder, Call, Session, agent_of
from streams.importers.containers import Tables, database
from streams.importers.files import CannotRead
from streams.importers.mend import NotJson, parse
from streams.importers.shape import arguments_of, as_dict, as_list, as_text, as_time, result_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.importers.files import Recording

NAME = "crush"

_SHELLS = ("bash",)
_EXIT_CODE = re.compile(r"^Exit code (-?\d+)$", re.MULTILINE)
_TAIL_CHARS = 300
_DENIED = ("permission denied", "user denied permission")


def recognise(value: object) -> bool:
    """Tell whether a database is one of this format."""
    if not isinstance(value, Tables):
        return False
    messages = ("id", "session_id", "role", "parts", "created_at")
    return value.has("sessions", "id", "parent_session_id") and value.has("messages", *messages)


def read(recording: Recording, *, whole: bool) -> Iterator[Session]:  # noqa: ARG001 - a database is no text
    """Read the sessions of a database.

    Args:
        recording: the database.
        whole: means nothing here.
    """
    try:
        tables = recording.contents
        with database(recording.path) as connection:
            query = "SELECT id, parent_session_id FROM sessions ORDER BY rowid"
            for name, parent in connection.execute(query):
                builder = Builder(str(name), agent_of(NAME), parent=as_text(parent))
                rows = connection.execute(_query(tables), (str(name),))
                _messages(rows, builder, recording)
                if builder.entries:  # sessions that only made a title have none
                    yield builder.build(recording.source, NAME)
    except CannotRead as problem:
        recording.fault(None, str(problem))


def _query(tables: object) -> str:
    """Ask for what there is of a message: the columns grew with the versions."""
    known = tables.columns["messages"] if isinstance(tables, Tables) else frozenset()
    extra = [name if name in known else "NULL" for name in ("model", "is_summary_message")]
    return (
        f"SELECT id, role, parts, created_at, {', '.join(extra)} FROM messages "  # noqa: S608 - of names that are ours
        "WHERE session_id = ? ORDER BY created_at, rowid"
    )


def _messages(rows: sqlite3.Cursor, builder: Builder, recording: Recording) -> None:
    by_id: dict[str, Call] = {}
    for name, role, parts, created, model, is_summary in _until_damage(rows, builder, recording):
        try:
            data = parts if isinstance(parts, bytes) else str(parts).encode("utf-8", "replace")
            told = as_list(parse(data).value)
        except NotJson as problem:
            recording.fault(None, f"table messages, row {name}: field `parts` is passed by: {problem.reason}")
            continue
        if is_summary:
            builder.happened("context_trimmed", as_time(created))
        elif role == "user" and any(as_dict(part).get("type") == "text" for part in told):
            builder.happened("user_message", as_time(created))
        if role == "assistant" and builder.agent is not None and builder.agent.model is None:
            builder.agent = agent_of(NAME, model)
        _parts(builder, told, created, by_id)


def _until_damage(rows: sqlite3.Cursor, builder: Builder, recording: Recording) -> Iterator[tuple[Any, ...]]:
    """Give rows up to one that cannot be read: what was read of the session before counts."""
    try:
        yield from rows
    except sqlite3.Error as problem:
        recording.fault(None, f"table messages, session {builder.session_id}: the rest cannot be read: {problem}")


def _parts(builder: Builder, parts: list[Any], created: object, by_id: dict[str, Call]) -> None:
    calls: list[Call] = []
    for part in map(as_dict, parts):
        data = as_dict(part.get("data"))
        if part.get("type") == "tool_call":
            name = as_text(data.get("id"))
            if name is not None and name in by_id:
                continue
            call = Call(as_text(data.get("name")) or "", arguments_of(data.get("input")), as_time(created), name)
            calls.append(builder.call(call))
            if name is not None:
                by_id[name] = call
        elif part.get("type") == "tool_result":
            answered = by_id.get(as_text(data.get("tool_call_id")) or "")
            if answered is not None and not answered.settled:
                answered.settled = True
                _result(answered, data)
    for call in calls if len(calls) > 1 else ():
        call.batch_id = calls[0].call_id


def _result(call: Call, data: dict[str, Any]) -> None:
    call.result = result_of(data.get("content"))
    text = call.result if isinstance(call.result, str) else ""
    failed = data.get("is_error")
    code = _EXIT_CODE.search(text[-_TAIL_CHARS:]) if call.tool in _SHELLS else None
    if failed is True:
        call.status = "denied" if text.strip().lower() in _DENIED else "error"
    elif code is not None and int(code[1]):
        call.status = "error"
    elif failed is False and call.tool not in _SHELLS:
        call.status = "ok"
    if call.status == "error" and code is not None:
        call.error = ErrorInfo(code=int(code[1]))
