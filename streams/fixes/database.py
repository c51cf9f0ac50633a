"""Opens the SQLite file of circular-fix detection: private, ours, of this version, safe among many processes.

Every use is one immediate transaction on a connection of its own, so that a process may fork in between; what goes
wrong is told with the file and the remedy. The tables are made here, and read and written in `store` only.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from typing import TYPE_CHECKING, Final

from detectors.tasks.state import EVENT_VERSION
from streams.fixes.records import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_APPLICATION: Final = 0x54726678  # "Trfx": tells our files from other SQLite databases
_LAYOUT: Final = 1  # of the tables
_VERSION: Final = 1_000 * _LAYOUT + EVENT_VERSION
_BUSY_SECONDS: Final = 20.0  # another process needs milliseconds; longer means that it hangs
_RETRY_SECONDS: Final = 0.02

_SCHEMA = (
    """CREATE TABLE attempts (
        subtask TEXT NOT NULL, number INTEGER NOT NULL, at_ms INTEGER NOT NULL, outcome TEXT NOT NULL,
        approach TEXT NOT NULL, files BLOB NOT NULL, files_total INTEGER NOT NULL, error TEXT, facts BLOB NOT NULL,
        PRIMARY KEY (subtask, number)
    )""",
    "CREATE INDEX attempts_by_age ON attempts (at_ms)",
    "CREATE TABLE totals (name TEXT PRIMARY KEY, value INTEGER NOT NULL)",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_VERSION}",
)


class Database:
    """A SQLite file, or one in memory.

    Args:
        path: the file, made when something is written; None keeps everything in this object.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._memory = None if path else sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._closed = False

    def close(self) -> None:
        """Let go of it; what is in memory only is gone."""
        with self._lock:
            self._closed = True
            if self._memory:
                self._memory.close()

    @contextlib.contextmanager
    def transaction(self, *, creates: bool = True) -> Iterator[sqlite3.Connection]:
        """Give a connection in a transaction; committed in the end, rolled back when something is raised.

        Args:
            creates: a file that is not there is made; else it counts as empty.

        Raises:
            StoreError: the file cannot be used.
        """
        with self._lock:
            if self._closed:
                raise StoreError("the detector is closed; make a new one")
            try:
                with self._connected(creates=creates) as database:
                    database.execute("BEGIN IMMEDIATE")
                    try:
                        _make(database)
                        yield database
                    except BaseException:
                        database.rollback()  # nothing where SQLite has done so itself
                        raise
                    database.execute("COMMIT")
            except sqlite3.Error as problem:
                raise StoreError(self._told(problem)) from problem
            except OSError as problem:
                raise StoreError(
                    f"{self._path}: cannot be used ({problem.strerror}); name a file in a directory of your own"
                ) from problem

    @contextlib.contextmanager
    def _connected(self, *, creates: bool) -> Iterator[sqlite3.Connection]:
        if self._memory:
            yield self._memory
            return
        path = self._path
        if path is None or not (creates or path.exists()):
            with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as nothing:
                yield nothing
            return
        if path.is_dir():
            raise StoreError(f"{path}: is a directory; name a file in it, for example {path / 'fixes.sqlite3'}")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # SQLite gives its other files the same mode
        with contextlib.closing(sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)) as database:
            self._check(database)
            _log_ahead(database)
            database.execute("PRAGMA secure_delete = ON")  # what is forgotten is overwritten
            yield database

    def _check(self, database: sqlite3.Connection) -> None:
        """Refuse a file that is not ours or of another version, before anything in it is changed."""
        database.execute("BEGIN")
        (application,) = database.execute("PRAGMA application_id").fetchone()
        (version,) = database.execute("PRAGMA user_version").fetchone()
        (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        database.execute("COMMIT")
        if not (application or version or tables):
            return
        if application != _APPLICATION:
            raise StoreError(f"{self._path}: is a database of another program; name a file of its own")
        if version > _VERSION:
            raise StoreError(
                f"{self._path}: is of version {version}, and this release knows {_VERSION}; use the release that wrote "
                "it, or name another file"
            )
        if version < _VERSION:
            raise StoreError(
                f"{self._path}: is of version {version}, and this release writes {_VERSION}; remove it to begin anew, "
                "or name another file"
            )

    def _told(self, problem: sqlite3.Error) -> str:
        name = getattr(problem, "sqlite_errorname", "")  # absent where Python itself raises
        if name == "SQLITE_NOTADB":
            return f"{self._path}: is no SQLite database; name a file of its own"
        if name.startswith("SQLITE_CORRUPT"):
            return self.damaged(str(problem))
        if name.startswith("SQLITE_BUSY"):
            return f"{self._path}: another process has locked it for {_BUSY_SECONDS:g} seconds; end that process"
        if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
            return (
                f"{self._path}: cannot be written to ({problem}); let it and its directory be written to, or name "
                "another file"
            )
        return f"{self._path or 'the history in memory'}: cannot be used: {problem}; mend that, or name another file"

    def damaged(self, problem: str) -> str:
        """Say that what was read makes no sense."""
        return f"{self._path}: is damaged ({problem}); remove it to begin anew, or name another file"


def _make(database: sqlite3.Connection) -> None:
    """Make the tables where there are none. Within a transaction: others see all of it or nothing."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if not version:
        for statement in _SCHEMA:
            database.execute(statement)


def _log_ahead(database: sqlite3.Connection) -> None:
    """Have readers and a writer not wait for each other. The file remembers it."""
    deadline = time.monotonic() + _BUSY_SECONDS
    while database.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        try:
            database.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as problem:
            # SQLite does not wait here when another process is making the file.
            if problem.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_SECONDS)
