"""Opens recordings that are no text: databases of SQLite and zip archives, found by their first bytes.

Only reads: a database is opened so that it cannot be written, and an archive is read member by member, never unpacked
to disk. Knows no format.
"""

from __future__ import annotations

import lzma
import os
import sqlite3
import struct
import sys
import zipfile
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from streams.importers import files
from streams.importers.files import CannotRead

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SQLITE = b"SQLite format 3\0"
_ZIP = b"PK\x03\x04"
_ZSTANDARD = 93
"""Number of the compression in a zip archive (APPNOTE.TXT 6.3.10, section 4.4.5)."""

_LOCAL_HEADER_BYTES = 30
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    lzma.LZMAError,
    zstd.ZstdError,
    EOFError,
    KeyError,
    OSError,
    ValueError,
)
"""What Python's readers raise for an archive that is damaged, names that are no text among it."""

_BUSY_S = 5.0
"""How long is waited for an agent that writes its database."""


class CannotOpen(CannotRead):
    """A file begins as a database or an archive, and what is in it cannot be told."""


@dataclass(frozen=True, slots=True)
class Tables:
    """What is in a database: the columns of each table."""

    columns: dict[str, frozenset[str]]

    def has(self, table: str, *columns: str) -> bool:
        """Tell whether a table has these columns."""
        return self.columns.get(table, frozenset()) >= set(columns)


@dataclass(frozen=True, slots=True)
class Members:
    """What is in an archive: the names of its members."""

    names: tuple[str, ...]


def contents(path: Path) -> Tables | Members | None:
    """Say what is in a container; None when the file is none.

    Raises:
        CannotRead: the file cannot be read.
        CannotOpen: it is one, and damaged.
    """
    try:
        with path.open("rb") as file:
            start = file.read(len(_SQLITE))
    except OSError as problem:
        raise CannotRead(f"cannot be read: {problem.strerror or problem}") from problem
    try:
        if start == _SQLITE:
            with database(path) as connection:
                return _tables(connection)
        if start.startswith(_ZIP):
            with archive(path) as opened:
                return Members(tuple(opened.namelist()))
    except CannotRead as problem:
        raise CannotOpen(str(problem)) from problem
    return None


@contextmanager
def database(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database for reading, with what stands in its write-ahead log.

    Raises:
        CannotRead: it cannot be opened; while reading, that it is damaged or held by another program.
    """
    connection: sqlite3.Connection | None = None
    try:
        connection = _connect(path, "mode=ro")
        yield connection
    except (sqlite3.Error, UnicodeDecodeError) as problem:  # the latter: a message that quotes what is damaged
        raise CannotRead(f"the database cannot be read: {problem}") from problem
    finally:
        if connection is not None:
            connection.close()


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{quote(os.fsencode(path.absolute()))}?{mode}", uri=True, timeout=_BUSY_S)
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as problem:
        connection.close()
        # SQLite keeps files of its own beside the database, which a folder that may not be written to forbids; without
        # a write-ahead log there is nothing in them.
        log = path.with_name(f"{path.name}-wal")
        if mode == "immutable=1" or _is_filled(log):
            raise CannotRead(
                f"the database cannot be read: {problem}; copy it, with the file {log.name} beside it, to a folder "
                "that you may write to"
            ) from problem
        return _connect(path, "immutable=1")
    return connection


def _is_filled(log: Path) -> bool:
    try:
        return log.stat().st_size > 0
    except OSError:
        return False


def _tables(connection: sqlite3.Connection) -> Tables:
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    columns = {}
    for name in names:
        rows = connection.execute("SELECT name FROM pragma_table_info(?)", (name,))
        columns[name] = frozenset(column for (column,) in rows)
    return Tables(columns)


@contextmanager
def archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive.

    Raises:
        CannotRead: it is damaged, or was not written to its end.
    """
    try:
        opened = zipfile.ZipFile(path)
    except _DAMAGE as problem:
        raise CannotRead(f"the archive is damaged, or not written to its end: {problem}") from problem
    except NotImplementedError as problem:  # a version that no archive has, or will have
        raise CannotRead(f"the archive cannot be read: {problem}") from problem
    with opened:
        yield opened


def member(opened: zipfile.ZipFile, name: str) -> bytes:
    """Read one member, also where it is packed with Zstandard, which Python's reader lacks before 3.14.

    Raises:
        CannotRead: it is too large, damaged, or packed in a way that is not known.
    """
    try:
        info = opened.getinfo(name)
        if info.file_size > files.MAX_TEXT_BYTES:
            raise CannotRead(f"{name} is larger than {files.MAX_TEXT_BYTES // 2**20} MiB")
        return _unpacked(opened, info) if info.compress_type == _ZSTANDARD else opened.read(info)
    except _DAMAGE as problem:
        raise CannotRead(f"{name} in the archive is damaged: {problem}") from problem
    except (NotImplementedError, RuntimeError) as problem:  # another compression, or a password
        raise CannotRead(f"{name} in the archive cannot be read: {problem}") from problem


def _unpacked(opened: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    file = opened.fp
    if file is None:
        raise ValueError("the archive is closed")
    file.seek(info.header_offset)
    header = file.read(_LOCAL_HEADER_BYTES)
    file.seek(int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little"), 1)
    content = zstd.ZstdDecompressor().decompress(file.read(info.compress_size), max_length=info.file_size)
    if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
        raise ValueError("its check sum is another")
    return content
