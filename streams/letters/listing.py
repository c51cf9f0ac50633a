"""Lists dead letters, the newest of them, and sums all of them up by topic and reason.

However many there are: only rows that are shown are kept, and never a key, value or header of a record.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from streams.letters.ledger import Ledger
from streams.letters.letter import read_letter, read_receipt

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiokafka.structs import ConsumerRecord

    from streams.letters.letter import Choice, Letter
    from streams.reading import Reader

OTHERS = ("other", "other")


class Row(msgspec.Struct, kw_only=True):
    """A letter in a list, without what the record holds. Times are None where they are beyond every calendar."""

    letter: str
    written_at: datetime | None
    topic: str
    partition: int
    offset: int
    recorded_at: datetime | None
    group: str
    stage: str
    reason: str
    message: str
    bytes: int
    attempts: int
    replayed: bool = False


class Sum(msgspec.Struct, kw_only=True):
    """The letters of one topic and reason."""

    topic: str
    reason: str
    letters: int = 0
    replayed: int = 0
    bytes: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None


@dataclass(slots=True)
class Listing:
    """What was found.

    Attributes:
        rows: the newest letters, newest last.
        sums: all letters, those of which there are most first.
        foreign: records that are no dead letters of Traction.
    """

    rows: list[Row] = field(default_factory=list)
    sums: list[Sum] = field(default_factory=list)
    foreign: int = 0

    @property
    def total(self) -> int:
        """How many letters fit."""
        return sum(each.letters for each in self.sums)


def instant(at_ms: int) -> datetime | None:
    """Give a time; None when it is beyond the calendar, as whoever wrote the record may have chosen."""
    try:
        return datetime.fromtimestamp(at_ms / 1_000, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def row(letter: Letter, *, replayed: bool = False) -> Row:
    """Make the row of a letter."""
    return Row(
        letter=letter.name,
        written_at=instant(letter.at_ms),
        topic=letter.topic,
        partition=letter.from_partition,
        offset=letter.from_offset,
        recorded_at=instant(letter.from_ms),
        group=letter.group,
        stage=letter.stage,
        reason=letter.reason,
        message=letter.message,
        bytes=letter.bytes,
        attempts=letter.attempts,
        replayed=replayed,
    )


async def listing(
    reader: Reader, name: str, choice: Choice, most: int, progress: Callable[[ConsumerRecord], None]
) -> Listing:
    """List letters.

    Args:
        reader: reads the topic.
        name: the topic of dead letters.
        choice: which letters.
        most: rows that are kept, the newest.
        progress: is told of every record that is read.

    Raises:
        TooSlow: the brokers do not answer in time.
    """
    found = Listing()
    ledger = Ledger(OTHERS)
    spans: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 2**62, -(2**62)])
    newest: list[tuple[int, int, int, Row]] = []
    async for record in reader.read(name, since=choice.since, long=True):
        progress(record)
        put_back, letter = read_receipt(record), read_letter(record)
        if put_back is not None:
            ledger.settle(record.partition, put_back)
        elif letter is None:
            found.foreign += 1
        elif choice.fits(letter):
            kind = ledger.note(letter.partition, letter.offset, (letter.topic, letter.reason))
            span = spans[kind]
            span[:] = span[0] + letter.bytes, min(span[1], letter.at_ms), max(span[2], letter.at_ms)
            place = (letter.at_ms, letter.partition, letter.offset)
            if len(newest) < most:
                heapq.heappush(newest, (*place, row(letter)))
            elif most and place > newest[0][:3]:
                heapq.heapreplace(newest, (*place, row(letter)))
    for _, partition, offset, each in sorted(newest, key=lambda item: item[:3]):
        each.replayed = ledger.settled(partition, offset)
        found.rows.append(each)
    still, done = ledger.count()
    for (topic, reason), letters in (still + done).most_common():
        size, first, last = spans[topic, reason]
        found.sums.append(
            Sum(
                topic=topic,
                reason=reason,
                letters=letters,
                replayed=done[topic, reason],
                bytes=size,
                first_at=instant(first),
                last_at=instant(last),
            )
        )
    return found
