"""Reads one transcript that grows: whole lines from where it was, and what they settle, line by line.

The file stays open, so that the end of one that is renamed or removed is read too. What a line gives depends on the
lines before it only, never on how they came: so identifiers are the same whenever a file is read again. Sends nothing.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from streams.follow.scan import identity
from streams.importers import Growing, NotFollowed
from streams.importers.detect import MAX_LINES, detect
from streams.importers.files import UTF_16, UTF_16_REMEDY, CannotRead, Recording

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from schemas.events import SessionInput
    from streams.follow.notes import Known

CHUNK_BYTES: Final = 2**18
"""How much is read at once; a longer line is read in larger pieces."""

MAX_LINE_BYTES: Final = 32 * 2**20
"""Longest line that is read: several pictures. A longer one is named, and passed by."""

HEAD_BYTES: Final = 1024
"""How much of a file's beginning tells whether it is still the same: more than a first line with an id and a time."""

MAX_DOCUMENT_BYTES: Final = 16 * 2**20
"""Largest document that is looked into to say of which format it is."""

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_DIGEST_BYTES: Final = 16
_PACKED: Final = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"SQLite format 3\0", b"PK\x03\x04")
_REMEDY: Final = "read it with `traction replay --to-kafka` when it is done"


class NoRecording(Exception):
    """The file is something else; of no concern unless it was named. The message says what.

    Attributes:
        final: it will not become one when it grows.
    """

    def __init__(self, reason: str, *, final: bool = False) -> None:
        super().__init__(reason)
        self.final = final


class Gone(Exception):
    """The file is not there any more, or another one is."""


class Read(NamedTuple):
    """What came of a line.

    Attributes:
        end: where it ends, without its line end.
        following: where the next one begins.
        at: when it was read, which is the time of events of which the recording tells none.
        events: what it settled.
        faults: lines that could not be read, from 1, with the reason: up to this one, and not given before.
    """

    end: int
    following: int
    at: datetime
    events: list[SessionInput]
    faults: list[tuple[int, str]]


class Tail:
    """One file that is read.

    Args:
        known: what is known of it.
        named: lines that cannot be read are told also while no line says that it is a recording.

    Attributes:
        known: as given; the follower's to keep up to date.
        floor: lines that end up to here gave what was acknowledged before.
        position: where the next line begins.
        at_end: no whole line was left when it was read last.
        looked: size and time of modification, in ns, as they were then.

    Raises:
        Gone: it is not there, or not the one that is known.
    """

    def __init__(self, known: Known, *, named: bool) -> None:
        self._named = named
        self.restart(known)
        try:
            self._file = os.open(known.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except OSError as problem:
            raise Gone(problem.strerror) from problem
        if identity(self.stat()) != known.identity:
            self.close()
            raise Gone("it is another file")

    def restart(self, known: Known) -> None:
        """Read the same file from its beginning."""
        self.known = known
        self.position = 0
        self.floor = known.offset
        self.at_end = False
        self.looked = (-1, -1)
        self._growing = Growing(known.source)
        self._skipping = False
        self._bare = False  # the latest line had no line end yet
        self._faults: list[tuple[int, str]] = []

    def stat(self) -> os.stat_result:
        """Give what the system says of the file."""
        return os.fstat(self._file)

    def close(self) -> None:
        """Close the file; once."""
        os.close(self._file)

    def head(self, count: int) -> bytes:
        """Give the digest of the file's first bytes."""
        return _digest(os.pread(self._file, count, 0))

    def begins_as(self, known: Known) -> bool:
        """Tell whether it begins as a file that is known; no where nothing is known of its beginning."""
        return known.head_bytes > 0 and self.head(known.head_bytes) == known.head

    def has_grown(self) -> bool:
        """Tell whether it is not as it was when it was read last."""
        found = self.stat()
        return self.looked != (found.st_size, found.st_mtime_ns)

    def is_same(self) -> bool:
        """Tell whether the file still begins as it is known to, and has all that was read of it."""
        size = self.stat().st_size
        if size < max(self.known.offset, self.position, self.known.head_bytes):
            return False
        return not self.known.head_bytes or self.begins_as(self.known)

    def read(self, most: int, clock: Callable[[], datetime]) -> Iterator[Read]:
        """Read whole lines, up to the end of the file or until so many bytes were read.

        Args:
            most: bytes; the line that exceeds them is the last.
            clock: gives the time of events of which the recording tells none.

        Raises:
            NotFollowed: it is of a format that is written as a whole.
            NoRecording: it is no recording.
        """
        found = self.stat()
        self.looked = (found.st_size, found.st_mtime_ns)
        self.at_end = False
        until = self.position + most
        while self.position < until:
            data = self._chunk()
            if self.position == 0:
                self._look(data)
            before = self.position
            for line, following in self._lines(data):
                yield self._feed(line, following, clock())
                if self.position >= until:
                    return
            if self.position == before:
                self.at_end = True
                return

    def finish(self, now: datetime) -> list[SessionInput]:
        """Give what is left of a file that is gone: calls that wait for a result have none."""
        return self._growing.close(now)

    def _chunk(self) -> bytes:
        size = CHUNK_BYTES
        while True:
            data = os.pread(self._file, size, self.position)
            if self._bare and data:  # the end of a line that was taken without one
                rest = data.removeprefix(b"\r").removeprefix(b"\n")
                self.position += len(data) - len(rest)
                self._bare = False
                continue
            if len(data) < size or size > MAX_LINE_BYTES or self._skipping or b"\n" in data:
                return data
            size = min(4 * size, MAX_LINE_BYTES + 1)

    def _lines(self, data: bytes) -> Iterator[tuple[bytes | None, int]]:
        """Give whole lines and where the next begins; None for the end of one that is too long."""
        at = 0
        begin = self.position
        while (end := data.find(b"\n", at)) >= 0:
            self.position = begin + end + 1
            line, at = data[at:end], end + 1
            skipped, self._skipping = self._skipping, False
            yield (None if skipped or len(line) > MAX_LINE_BYTES else line), self.position
        rest = data[at:]
        if self._skipping or len(rest) > MAX_LINE_BYTES:
            self._skipping = True
            self.position = begin + len(data)
        elif _is_whole(rest):
            self._bare = True
            self.position = begin + len(data)
            yield rest, self.position

    def _feed(self, line: bytes | None, following: int, now: datetime) -> Read:
        growing = self._growing
        if line is None:
            growing.line += 1
            self._faults.append((growing.line, f"longer than {MAX_LINE_BYTES // 2**20} MiB: passed by"))
            return Read(following, following, now, [], self._told())
        bare = self._bare and following == self.position
        end = following - (0 if bare else 1)
        text = line.removeprefix(_BYTE_ORDER_MARK) if growing.line == 0 else line
        try:
            growing.feed(text)
        except NotFollowed as problem:
            if growing.format is None:
                raise NoRecording(str(problem), final=True) from problem
            raise
        faults, growing.faults = growing.faults, []
        self._faults += faults
        if faults and growing.format is None:
            if growing.line == 1 and text.lstrip()[:1] in {b"{", b"["}:
                self._document("one JSON document over several lines", lines=True)
            if growing.line >= MAX_LINES:
                raise NoRecording("no line has the marks of a known format", final=True)
        end -= len(line) - len(line.rstrip())
        return Read(end, following, now, growing.take(now), self._told())

    def _told(self) -> list[tuple[int, str]]:
        """Give faults, once it is sure that they are a recording's."""
        if self._growing.format is None and not self._named:
            return []
        faults, self._faults = self._faults, []
        return faults

    def _look(self, data: bytes) -> None:
        """See whether this can be text at all."""
        if data.startswith(_PACKED):
            self._document("packed or a database", lines=False)
        if data.startswith(UTF_16):
            raise NoRecording(f"not a recording: {UTF_16_REMEDY}")
        if b"\0" in data[:HEAD_BYTES]:
            raise NoRecording("not a recording: it is no text")

    def _document(self, what: str, *, lines: bool) -> None:
        """Say what a file is that is not written line by line.

        Args:
            what: how it looks.
            lines: it may be lines all the same, of which the first is damaged.

        Raises:
            NotFollowed: a recording.
            NoRecording: something else, or not yet one.
        """
        path = Path(self.known.path)
        found = None
        if self.stat().st_size <= MAX_DOCUMENT_BYTES:
            try:
                found = detect(Recording(path, self.known.source))
            except (CannotRead, OSError) as problem:
                raise NoRecording(f"{what}, which cannot be read ({problem})") from problem
        if found is None or found.format is None:
            raise NoRecording(f"{what}, of no known format; if it is a recording, {_REMEDY}")
        if found.whole or not lines:
            raise NotFollowed(f"{found.format.NAME}, {what}, is not written line by line: {_REMEDY}")


def begins_as(path: str, known: Known) -> bool:
    """Tell whether the file at a path begins as one that is known; no for one of which nothing is known."""
    try:
        with Path(path).open("rb") as file:
            return known.head_bytes > 0 and _digest(file.read(known.head_bytes)) == known.head
    except OSError:
        return False


def head_of(path: str, count: int) -> bytes:
    """Give the digest of the first bytes at a path, that of none where it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return _digest(file.read(count))
    except OSError:
        return _digest(b"")


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST_BYTES).digest()


def _is_whole(rest: bytes) -> bool:
    """Tell whether a last line without line end is whole: after an object nothing else can come."""
    if not rest.rstrip().endswith(b"}"):
        return False
    try:
        return isinstance(orjson.loads(rest.removeprefix(_BYTE_ORDER_MARK)), dict)
    except orjson.JSONDecodeError:
        return False
