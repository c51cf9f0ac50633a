"""What the formats share that are written line by line: one reader, fed by a whole file or by one that still grows.

A format's reader takes lines in their order and knows no file. Reading a recording is feeding it all lines; following
one is feeding it those that are there, and taking what is settled now and then. Parses nothing: lines come as values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from schemas.events import SessionInput
    from streams.importers.build import Builder, Session
    from streams.importers.files import Recording


class LineReader(ABC):
    """Reads the lines of one recording.

    Attributes:
        source: the file, as it was named.
        builders: the sessions in it, by what tells them apart.
        faults: what is wrong with the latest line, where the format is ours; to be emptied by who tells it.
    """

    NAME: ClassVar[str]

    def __init__(self, source: str) -> None:
        self.source = source
        self.builders: dict[str, Builder] = {}
        self.faults: list[str] = []

    @abstractmethod
    def feed(self, value: object) -> None:
        """Take what the next line holds; anything that is not known is passed by."""

    def take(self, now: datetime) -> list[SessionInput]:
        """Give the events that are settled and were not given yet.

        Args:
            now: the time of events of which, and before which, the recording tells none.
        """
        return [event for builder in self.builders.values() for event in builder.take(now)]

    def settle(self) -> None:
        """Say that nothing more is to come: calls without a result by now have none."""
        for builder in self.builders.values():
            builder.settle()

    def finish(self) -> Iterator[Session]:
        """Give the sessions of a recording that was read to its end, with all events that were not taken."""
        for builder in self.builders.values():
            yield builder.build(self.source, self.NAME)


def read_lines(reader: LineReader, recording: Recording, *, whole: bool) -> Iterator[Session]:
    """Read a file to its end.

    Args:
        reader: a new reader of its format.
        recording: the file.
        whole: the file is one JSON document, that is one line over many.
    """
    for _, value, _ in recording.values(whole=whole):
        reader.feed(value)
    yield from reader.finish()
