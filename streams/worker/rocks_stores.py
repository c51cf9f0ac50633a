"""The directory below which a worker's RocksDB databases are: one for each partition of each table.

It belongs to one process at a time. What in it cannot be used is thrown away, since the changelogs have it all.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import sys
import time
from typing import TYPE_CHECKING, Final

from streams.topics import SESSIONS_TABLE, TASKS_TABLE, TOMBSTONES_KEPT_HOURS
from streams.worker.rocks import RocksStates, Unusable, rocks_options
from streams.worker.stores import StoreError

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import NoReturn

logger = logging.getLogger(__name__)

_LOCK: Final = "lock"
_CURRENT: Final = "CURRENT"
"""Name of a file that each RocksDB database has."""

_NAME: Final = re.compile(rf"({SESSIONS_TABLE}|{TASKS_TABLE})-[0-9]+")


class RocksStores:
    """Keeps the states of one app below a directory, which no other process may use meanwhile.

    Args:
        directory: the state directory; made when it is not there.
        app_id: names the directory in it.
        fail: ends the process.

    Raises:
        StoreError: the directory cannot be used, or another process uses it.
    """

    def __init__(self, directory: Path, app_id: str, fail: Callable[[str], NoReturn]) -> None:
        if app_id in {".", ".."}:
            raise StoreError(f"the app id {app_id} cannot name a directory: give another --app-id")
        self._path = directory / app_id
        self._fail = fail
        try:
            self._path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = os.open(self._path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as problem:
            raise StoreError(
                f"the state directory {self._path} cannot be used ({problem.strerror}): give a directory with "
                "--state-dir that this user may write to"
            ) from problem
        if sys.platform != "win32":  # there RocksDB's own lock, on each database, has to do
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as problem:
                os.close(self._lock)
                raise StoreError(
                    f"the state directory {self._path} cannot be locked ({problem.strerror}): does another worker use "
                    "it? Each needs a --state-dir of its own, on a disk of this machine"
                ) from problem
        self._options = rocks_options()
        self._sweep()

    def open(self, table: str, number: int) -> RocksStates:
        """Give what is stored of one partition of a table; nothing, where what is there cannot be used."""
        path = self._database(table, number)
        try:
            try:
                return RocksStates(path, self._options, self._fail)
            except Unusable as problem:
                logger.warning("%s is thrown away, and read anew from the changelog: %s", path, problem)
                self.discard(table, number)
                return RocksStates(path, self._options, self._fail)
        except (StoreError, Unusable) as problem:
            self._fail(str(problem))

    def discard(self, table: str, number: int) -> None:
        """Throw away what is stored of a partition that is closed."""
        path = self._database(table, number)
        try:
            shutil.rmtree(path, ignore_errors=False)
        except FileNotFoundError:
            return
        except OSError as problem:
            self._fail(f"the state directory {path} cannot be removed ({problem.strerror}): remove it, and start again")

    def close(self) -> None:
        """Let another process have the directory."""
        os.close(self._lock)

    def _database(self, table: str, number: int) -> Path:
        return self._path / f"{table}-{number}"

    def _sweep(self) -> None:
        """Remove what is left of partitions that have been elsewhere for so long that it is of no use any more."""
        before = time.time() - TOMBSTONES_KEPT_HOURS * 3_600
        for path in self._path.iterdir():
            # Nothing but our own: the directory may be one that somebody else keeps things in.
            with contextlib.suppress(OSError):
                if not (_NAME.fullmatch(path.name) and (path / _CURRENT).is_file()):
                    continue
                if max(each.stat().st_mtime for each in path.iterdir()) < before:
                    logger.info("%s is removed: it is too old to be of use", path)
                    shutil.rmtree(path)
