"""Opens recordings: plain, gzip or Zstandard, by their first bytes; line by line, or whole where one is one document.

Keeps account of what could not be read, by line and reason, and goes on behind it. Knows no format.
"""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from streams.importers.mend import NotJson, parse

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_TEXT_BYTES = 256 * 2**20
"""Longest line, and largest whole document, that is read: what is read stands in memory, with its values, several times
over."""

MAX_RATIO = 1_000
"""How many times its size a packed file may give, beyond the largest document: a small file that is made to fill a disk
gives up to 32,000 times as much (Zstandard), a session that repeats itself from begin to end some hundred times."""

_WINDOW_LOG = 27
"""Memory that unpacking takes at most, as a power of two: 128 MiB, what every reader of Zstandard takes (RFC 8878
names 8 MiB as the least)."""

UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""How text in UTF-16 begins, as Windows PowerShell writes what is redirected into a file."""

UTF_16_REMEDY = "UTF-16, and only UTF-8 is read: convert it (iconv -f UTF-16 -t UTF-8)"

_GZIP = b"\x1f\x8b"
_ZSTANDARD = b"\x28\xb5\x2f\xfd"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_CHUNK = 2**20


class CannotRead(Exception):
    """A recording cannot be read at all, or not further: the message says why and, where it helps, what to do."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Something that could not be read.

    Attributes:
        source: the file, as it was named.
        line: the line, from 1; None when it concerns the whole file.
        reason: what is wrong.
    """

    source: str
    line: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Damaged:
    """Lines that a scrubber of secrets has cut or spoilt, read as far as they go. Not a fault of the reading.

    Attributes:
        source: the file, as it was named.
        lines: the lines, from 1; none when the file is one document.
        lost: whether something of them is lost, rather than only kept literally.
    """

    source: str
    lines: tuple[int, ...]
    lost: bool


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file in a directory that is no recording of a known format.

    Attributes:
        source: the file.
    """

    source: str


class Readable(Protocol):
    """What is read of an open file."""

    def read(self, size: int = -1, /) -> bytes:
        """Give so many bytes, or all that is left."""

    def readline(self, size: int = -1, /) -> bytes:
        """Give the rest of the line, but no more than so many bytes."""


class _Unpacked:
    """A packed file, with an end to what it may give.

    Args:
        file: gives what it holds.
        most: bytes.
    """

    def __init__(self, file: Readable, most: int) -> None:
        self._file = file
        self._left = most

    def read(self, size: int = -1, /) -> bytes:
        return self._counted(self._file.read(size))

    def readline(self, size: int = -1, /) -> bytes:
        return self._counted(self._file.readline(size))

    def _counted(self, data: bytes) -> bytes:
        self._left -= len(data)
        if self._left < 0:
            raise CannotRead(f"gives more than {MAX_RATIO:,} times its size; if it is a recording, unpack it first")
        return data


@dataclass(slots=True)
class Recording:
    """A file, and what could not be read of it so far.

    Attributes:
        path: where it is.
        source: how it was named.
        unreadable: what could not be read, in the order of its lines.
        spoilt: lines with characters that JSON does not allow; 0 stands for the whole document.
        cut: lines of which something is lost, likewise.
        named: whether it was named itself, rather than found in a directory.
        contents: what is in it where it is a database or an archive, as `containers.contents` gives it.
    """

    path: Path
    source: str
    unreadable: list[Unreadable] = field(default_factory=list)
    spoilt: list[int] = field(default_factory=list)
    cut: list[int] = field(default_factory=list)
    named: bool = True
    contents: object = None

    @contextmanager
    def open(self) -> Iterator[Readable]:
        """Open the file, unpacked.

        Raises:
            CannotRead: it cannot be opened; while reading, that it breaks off, is damaged, or gives far too much.
        """
        try:
            with self.path.open("rb") as file:
                start = file.read(len(_ZSTANDARD))
                most = max(MAX_TEXT_BYTES, MAX_RATIO * file.seek(0, os.SEEK_END))
                file.seek(0)
                if start == _ZSTANDARD:
                    options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
                    yield _Unpacked(zstd.ZstdFile(file, options=options), most)
                else:
                    yield _Unpacked(gzip.GzipFile(fileobj=file), most) if start.startswith(_GZIP) else file
        except OSError as problem:  # gzip.BadGzipFile among them
            raise CannotRead(f"cannot be read: {problem.strerror or problem}") from problem
        except EOFError:
            raise CannotRead("breaks off: the end of the packed data is missing") from None
        except (zlib.error, zstd.ZstdError) as problem:
            raise CannotRead(f"the packed data is damaged: {problem}") from problem

    def texts(self) -> Iterator[tuple[int, bytes]]:
        """Read the lines that are not blank, with their numbers from 1.

        Raises:
            CannotRead: as in `open`; the lines before the fault have been given.
        """
        with self.open() as file:
            number = 0
            while line := file.readline(MAX_TEXT_BYTES + 1):
                number += 1
                if len(line) > MAX_TEXT_BYTES:
                    self.fault(number, f"longer than {MAX_TEXT_BYTES // 2**20} MiB")
                    while line and not line.endswith(b"\n"):
                        line = file.readline(_CHUNK)
                    continue
                if number == 1:
                    line = line.removeprefix(_BYTE_ORDER_MARK)
                if not line.isspace():
                    yield number, line

    def values(self, *, whole: bool) -> Iterator[tuple[int, Any, bytes]]:
        """Read the JSON values, each with its line, from 1, and its text; what is none is noted and passed by.

        A file that breaks off is noted likewise: what stands before counts.

        Args:
            whole: the file is one JSON document, rather than one value a line.
        """
        number = 0
        try:
            for number, text in self._whole() if whole else self.texts():
                try:
                    parsed = parse(text)
                except NotJson as problem:
                    self.fault(number + problem.line - 1, problem.reason)
                else:
                    if parsed.damage != "none":
                        lines = self.spoilt if parsed.damage == "escapes" else self.cut
                        lines.append(0 if whole else number)
                    yield number, parsed.value, text
        except CannotRead as problem:
            self.fault(None if whole else number + 1, str(problem))

    def _whole(self) -> Iterator[tuple[int, bytes]]:
        yield 1, self.content()

    def content(self) -> bytes:
        """Read the whole file.

        Raises:
            CannotRead: as in `open`, or it is too large to be one document.
        """
        with self.open() as file:
            data = file.read(MAX_TEXT_BYTES + 1)
        if len(data) > MAX_TEXT_BYTES:
            raise CannotRead(f"is one JSON document of more than {MAX_TEXT_BYTES // 2**20} MiB")
        return data.removeprefix(_BYTE_ORDER_MARK)

    def fault(self, line: int | None, reason: str) -> None:
        """Note that something could not be read."""
        self.unreadable.append(Unreadable(self.source, line, reason))

    def damages(self) -> Iterator[Damaged]:
        """Say which lines were damaged and read all the same."""
        for lines, lost in ((self.spoilt, False), (self.cut, True)):
            if lines:
                yield Damaged(self.source, tuple(filter(None, lines)), lost)
