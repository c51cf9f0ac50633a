"""Reads a recording that still grows, in any of the formats that are written line by line.

Who follows a file hands over its whole lines and takes the events that are settled; this finds the format by the first
line that has its marks, and keeps the lines before. Opens no file, and remembers no place in one: lines that were fed
before give the same identifiers again, so that a follower that starts anew feeds them all and drops what it has sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streams.importers.detect import MAX_LINES, format_of
from streams.importers.files import MAX_TEXT_BYTES
from streams.importers.mend import NotJson, parse

if TYPE_CHECKING:
    from datetime import datetime

    from schemas.events import SessionInput
    from streams.importers.lines import LineReader

MAX_HELD_BYTES = 16 * 2**20
"""Longest beginning that is kept while no line tells the format."""


class NotFollowed(Exception):
    """The file is no recording that can be read while it grows; the message says why."""


class Growing:
    """One recording, read while it is written.

    Attributes:
        source: the file, as it was named.
        format: name of its format; None while no line told it.
        line: how many lines were fed.
        faults: lines that could not be read, from 1, with the reason; to be emptied by who tells them.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.format: str | None = None
        self.line = 0
        self.faults: list[tuple[int, str]] = []
        self._reader: LineReader | None = None
        self._held: list[Any] = []
        self._held_bytes = 0

    def feed(self, text: bytes) -> None:
        """Take the next line, whole; one that is no JSON is noted and passed by.

        Raises:
            NotFollowed: it is of a format that is written as a whole, or nothing tells what it is of.
        """
        self.line += 1
        if not text.strip():
            return
        if len(text) > MAX_TEXT_BYTES:
            self.faults.append((self.line, f"longer than {MAX_TEXT_BYTES // 2**20} MiB"))
            return
        try:
            value = parse(text).value
        except NotJson as problem:
            self.faults.append((self.line, problem.reason))
            return
        if self._reader is None:
            self._held.append(value)
            self._held_bytes += len(text)
            self._begin(value)
        else:
            self._take(value)

    def take(self, now: datetime) -> list[SessionInput]:
        """Give the events that are settled and were not given yet.

        Args:
            now: the time of events of which the recording tells none.
        """
        return [] if self._reader is None else self._reader.take(now)

    def close(self, now: datetime) -> list[SessionInput]:
        """Give what is left when nothing more is to come; calls that wait for a result have none."""
        if self._reader is not None:
            self._reader.settle()
        return self.take(now)

    def _begin(self, value: object) -> None:
        known = format_of(value)
        if known is None:
            if len(self._held) >= MAX_LINES or self._held_bytes > MAX_HELD_BYTES:
                raise NotFollowed("no line has the marks of a known format")
            return
        self.format = known.NAME
        made = getattr(known, "Reader", None)
        if made is None:
            raise NotFollowed(f"{known.NAME} is not written line by line: read it with `traction replay`")
        self._reader = made(self.source)
        held, self._held = self._held, []
        for each in held:
            self._take(each)

    def _take(self, value: object) -> None:
        reader = self._reader
        if reader is not None:
            reader.feed(value)
            self.faults += [(self.line, fault) for fault in reader.faults]
            reader.faults.clear()
