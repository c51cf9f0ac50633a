"""Finds what OpenCode stores of a session: in its database, or in one small file for each session, message and part.

Gives messages with their parts, one session after the other, and knows nothing of what they mean.

Folders of today are `storage/session/<project>/<id>.json`, `storage/message/<session>/` and `storage/part/<message>/`;
those of the first half of 2025 are `session/info/<id>.json`, `session/message/<session>/` and
`session/part/<session>/<message>/`.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streams.importers import files
from streams.importers.containers import Tables, database
from streams.importers.mend import NotJson, parse
from streams.importers.shape import as_dict, as_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from streams.importers.files import Recording


@dataclass(frozen=True, slots=True)
class Stored:
    """One session.

    Attributes:
        info: what is kept of the session itself.
        messages: its messages in order, each with its parts; to be gone through once.
    """

    info: dict[str, Any]
    messages: Iterable[tuple[dict[str, Any], list[Any]]]


def is_database(tables: Tables) -> bool:
    """Tell whether a database is OpenCode's."""
    return (
        tables.has("session", "id", "parent_id")
        and tables.has("message", "id", "session_id", "data")
        and tables.has("part", "message_id", "data")
    )


def is_file(document: dict[str, Any]) -> bool:
    """Tell whether a document is the file of a session, of a message or of a part."""
    kind, owner = document.get("id"), document.get("sessionID")
    if not isinstance(kind, str):
        return False
    if kind.startswith("ses_"):
        return isinstance(document.get("time"), dict) and "title" in document
    is_message = kind.startswith("msg_") and isinstance(document.get("role"), str)
    return isinstance(owner, str) and (is_message or (kind.startswith("prt_") and "messageID" in document))


def rows(recording: Recording) -> Iterator[Stored]:
    """Give the sessions of a database.

    Raises:
        CannotRead: it is damaged, or held by another program.
    """
    with database(recording.path) as connection:
        sessions = connection.execute("SELECT id, parent_id, time_created FROM session ORDER BY time_created, id")
        for name, parent, created in sessions:
            info = {"id": name, "parentID": parent, "time": {"created": created}}
            yield Stored(info, _messages(connection, str(name), recording))


def _messages(
    connection: sqlite3.Connection, session: str, recording: Recording
) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    told = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
    try:
        for name, data in connection.execute(told, (session,)):
            parts = connection.execute("SELECT id, data FROM part WHERE message_id = ? ORDER BY id", (name,))
            info = _document(data, f"table message, row {name}", recording)
            yield info, [_document(part, f"table part, row {key}", recording) for key, part in parts]
    except sqlite3.Error as problem:  # what was read of the session before counts
        recording.fault(None, f"table message or part, session {session}: the rest cannot be read: {problem}")


def _document(data: object, place: str, recording: Recording) -> dict[str, Any]:
    try:
        return as_dict(parse(data if isinstance(data, bytes) else str(data).encode("utf-8", "replace")).value)
    except NotJson as problem:
        recording.fault(None, f"{place}: field `data` is passed by: {problem.reason}")
        return {}


def files_of(recording: Recording, document: dict[str, Any]) -> Iterator[Stored]:
    """Give the session that a session's own file is about; nothing for the file of a message or a part."""
    name = as_text(document.get("id")) or ""
    if not name.startswith("ses_"):
        return  # read together with its session
    folder = recording.path.parent
    top = folder.parent if folder.name == "info" else folder.parent.parent
    parts = top / "part" / name if folder.name == "info" else top / "part"
    yield Stored(document, _from_files(top / "message" / name, parts, recording))


def _from_files(folder: Path, parts: Path, recording: Recording) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    for path in _sorted(folder):
        message = _file(path, recording)
        if message:
            yield message, [_file(part, recording) for part in _sorted(parts / path.stem)]


def _sorted(folder: Path) -> list[Path]:
    """Give the files of a folder; their names rise with time."""
    return sorted(folder.glob("*.json")) if folder.is_dir() else []


def _file(path: Path, recording: Recording) -> dict[str, Any]:
    try:
        if path.stat().st_size <= files.MAX_TEXT_BYTES:
            return as_dict(parse(path.read_bytes()).value)
        recording.fault(None, f"{path.name} is passed by: larger than {files.MAX_TEXT_BYTES // 2**20} MiB")
    except OSError as problem:
        recording.fault(None, f"{path.name} cannot be read: {problem.strerror or problem}")
    except NotJson as problem:
        recording.fault(None, f"{path.name} is passed by: {problem.reason}")
    return {}
