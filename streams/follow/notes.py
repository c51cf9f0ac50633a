"""Remembers on disk how far each file was sent, and which events: so that a restart goes on where it was.

One database of SQLite in a directory of its own. What is noted together is there together or not at all, also after
`kill -9`; a power cut may take back the latest, which are then sent again under the same identifiers. Holds digests of
what was sent, never a text of it.
"""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import Self

MOST_GIVEN: Final = 1_000_000
"""Events that are remembered, of all files; some 40 bytes each. They matter where a file is written anew as a whole."""

FORGET_SECONDS: Final = 30 * 86_400.0
"""How long a file that is gone is remembered: it may be on a disk that is mounted later."""

_VERSION: Final = 1
_NAME: Final = "follow.db"
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS files (
  identity TEXT PRIMARY KEY, path TEXT NOT NULL, source TEXT NOT NULL, head_bytes INTEGER NOT NULL,
  head BLOB NOT NULL, start INTEGER NOT NULL, since REAL, offset INTEGER NOT NULL, modified_ns INTEGER NOT NULL,
  seen REAL NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS files_by_path ON files (path);
CREATE TABLE IF NOT EXISTS given (id INTEGER NOT NULL, content INTEGER NOT NULL, UNIQUE (id, content)) STRICT;
CREATE TABLE IF NOT EXISTS roots (path TEXT PRIMARY KEY) STRICT;
"""


class NotesUnusable(Exception):
    """What was noted cannot be used; the message says why, and what to do."""


class Given(NamedTuple):
    """An event that was sent, as digests of 64 bits: of its identifier, and of what it says."""

    id: int
    content: int


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a file.

    Attributes:
        identity: device and inode.
        path: where it was seen last.
        source: where it was seen first: formats without names of their own name sessions by it.
        head_bytes: how much of its beginning `head` is of.
        head: digest of its beginning, by which a file that was written anew is told from one that grew.
        start: events of lines that end up to here were there before anybody followed it, and are not sent.
        since: events that are older are not sent either, in seconds since 1970; None for no such bound.
        offset: up to here all lines were read, and what they gave was acknowledged.
        modified_ns: its time of modification when it was read to `offset`.
    """

    identity: str
    path: str
    source: str
    head_bytes: int = 0
    head: bytes = b""
    start: int = 0
    since: float | None = None
    offset: int = 0
    modified_ns: int = 0


class Notes:
    """What was sent; for one process at a time. `with` closes it.

    Args:
        directory: where it is kept, made when it is not there; None keeps it in memory, for a run that sends nothing.

    Raises:
        NotesUnusable: the directory cannot be written to, another process has it, or it is damaged or of another
            version.
    """

    def __init__(self, directory: Path | None) -> None:
        self._where = str(directory)
        try:
            if directory is not None:
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            name = ":memory:" if directory is None else str(directory / _NAME)
            self._database = sqlite3.connect(name, timeout=0, isolation_level=None)
        except (OSError, sqlite3.Error) as problem:
            raise NotesUnusable(f"{self._where} cannot be used: {problem}; give --state a directory to write to") from (
                problem
            )
        try:
            self._open()
        except BaseException:
            self._database.close()
            raise

    def __enter__(self) -> Self:
        """Give the notes."""
        return self

    def __exit__(self, *problem: object) -> None:
        """Close them."""
        self._database.close()

    def find(self, identity: str) -> Known | None:
        """Give what is known of a file."""
        return self._known("identity = ?", identity)

    def at(self, path: str) -> Known | None:
        """Give the file that was seen latest under a path, by whatever identity."""
        return self._known("path = ? ORDER BY seen DESC, rowid DESC LIMIT 1", path)

    def contents(self, event_id: int) -> set[int]:
        """Give what was sent under an identifier, as `Given` has both."""
        rows = self._database.execute("SELECT content FROM given WHERE id = ?", (event_id,))
        return {content for (content,) in rows}

    def is_followed(self, root: str) -> bool:
        """Tell whether all files below a path were seen before."""
        return self._database.execute("SELECT 1 FROM roots WHERE path = ?", (root,)).fetchone() is not None

    def note(
        self, files: Iterable[Known], given: Iterable[Given] = (), *, roots: Iterable[str] = (), now: float = 0.0
    ) -> None:
        """Note all of it, at once.

        Args:
            files: files as they are now.
            given: events that were acknowledged.
            roots: paths below which all files were seen.
            now: seconds since 1970.

        Raises:
            NotesUnusable: the disk is full, or gone.
        """
        rows = [
            (
                *(each.identity, each.path, each.source, each.head_bytes, each.head, each.start, each.since),
                *(each.offset, each.modified_ns, now),
            )
            for each in files
        ]
        try:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                self._database.executemany("REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
                self._database.executemany("INSERT INTO given VALUES (?, ?) ON CONFLICT DO NOTHING", given)
                self._database.executemany(
                    "INSERT INTO roots VALUES (?) ON CONFLICT DO NOTHING", ((root,) for root in roots)
                )
                self._database.execute("COMMIT")
            except sqlite3.Error:
                with contextlib.suppress(sqlite3.Error):
                    self._database.execute("ROLLBACK")
                raise
        except sqlite3.Error as problem:
            raise NotesUnusable(f"{self._where} cannot be written: {problem}; see that the disk has space") from problem

    def tidy(self, present: Iterable[str], now: float, *, most: int = MOST_GIVEN) -> None:
        """Forget files that are gone for long, and the oldest events where there are too many.

        Args:
            present: identities of the files that there are.
            now: seconds since 1970.
            most: events that are kept.
        """
        self._database.execute("BEGIN IMMEDIATE")
        self._database.executemany("UPDATE files SET seen = ? WHERE identity = ?", ((now, each) for each in present))
        self._database.execute("DELETE FROM files WHERE seen < ?", (now - FORGET_SECONDS,))
        self._database.execute("DELETE FROM given WHERE rowid <= (SELECT max(rowid) FROM given) - ?", (most,))
        self._database.execute("COMMIT")

    def _open(self) -> None:
        try:
            self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            version = self._database.execute("PRAGMA user_version").fetchone()[0]
            if version not in {0, _VERSION}:
                raise NotesUnusable(f"{self._where} is of another version of traction: give --state another directory")
            self._database.executescript(f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {_VERSION}; COMMIT;")
        except sqlite3.OperationalError as problem:
            locked = "locked" in str(problem)
            why = "another traction follow uses it" if locked else str(problem)
            raise NotesUnusable(f"{self._where} cannot be used: {why}; give --state another directory") from problem
        except sqlite3.DatabaseError as problem:
            raise NotesUnusable(
                f"{self._where} is damaged ({problem}): remove it, and say with --since what is to be sent again"
            ) from problem

    def _known(self, where: str, value: str) -> Known | None:
        row = self._database.execute(
            "SELECT identity, path, source, head_bytes, head, start, since, offset, modified_ns FROM files "  # noqa: S608 - ours
            f"WHERE {where}",
            (value,),
        ).fetchone()
        return None if row is None else Known(*row)
