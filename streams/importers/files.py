"""Opens recordings: plain or gzip, found by their first bytes; line by line, or whole where the format is one document.

Keeps account of what could not be read, by line and reason, and goes on behind it. Knows no format.
"""

from __future__ import annotations

import gzip
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, cast

from streams.importers.mend import NotJson, parse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_TEXT_BYTES = 256 * 2**20
"""Longest line, and largest whole document, that is read: what is read stands in memory, with its values, several times
over."""

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
    def open(self) -> Iterator[IO[bytes]]:
        """Open the file, unpacked.

        Raises:
            CannotRead: it cannot be opened, or is packed in another way than gzip; while reading, that it breaks off.
        """
        try:
            with self.path.open("rb") as file:
                start = file.read(len(_ZSTANDARD))
                file.seek(0)
                if start == _ZSTANDARD:
                    raise CannotRead("is compressed with zstd, which is not read here; unpack it first (zstd -d)")
                yield cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if start.startswith(_GZIP) else file
        except OSError as problem:  # gzip.BadGzipFile among them
            raise CannotRead(f"cannot be read: {problem.strerror or problem}") from problem
        except EOFError:
            raise CannotRead("breaks off: the end of the gzip data is missing") from None
        except zlib.error as problem:
            raise CannotRead(f"the gzip data is damaged: {problem}") from problem

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
