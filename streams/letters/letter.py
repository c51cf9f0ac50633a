"""Reads a record of the topic of dead letters: a letter with what its headers say, or the receipt of one put back.

Only the headers that Traction itself writes decide anything. What the record holds that was refused is kept as bytes,
and nothing in here looks into it or sends it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from schemas.encode import MAX_MESSAGE_CHARS
from streams.received import FOR_GROUP, REPLAY_PREFIX, is_text

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from aiokafka.structs import ConsumerRecord

ERRORS: Final = "__traction.errors."
STREAMS: Final = "__streams.errors."
RECEIPT: Final = f"{ERRORS}replayed"
"""Only a receipt has it. Names that begin so cannot come from a producer: they are taken out of what is refused."""

REPLAYED_BY: Final = f"{ERRORS}replayed_by"

ATTEMPT: Final = f"{REPLAY_PREFIX}attempt"
"""How often the record was put back so far; it stays with the record, so that its next dead letter tells."""

RECEIPT_MESSAGE: Final = "put back onto its topic; nothing is left to do"

Headers = list[tuple[str, bytes | None]]

_COUNT = re.compile(rb"[0-9]{1,9}")
_NUMBER = re.compile(rb"-?[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter.

    Attributes:
        partition: partition of the topic of dead letters that it is in.
        offset: its offset there.
        at_ms: when it was written, in milliseconds since 1970.
        topic: topic of the record that was refused.
        from_partition: partition of it.
        from_offset: offset that it had.
        from_ms: record time that it had, in milliseconds since 1970.
        group: who refused it.
        stage: where.
        reason: why, as a code; it may be one that this release does not know.
        message: why, and what to do.
        attempts: how often it was put back before it was refused this time.
        key: the record's key.
        value: the record's value.
        headers: the record's own headers, as they came.
    """

    partition: int
    offset: int
    at_ms: int
    topic: str
    from_partition: int
    from_offset: int
    from_ms: int
    group: str
    stage: str
    reason: str
    message: str
    attempts: int
    key: bytes | None
    value: bytes | None
    headers: Headers

    @property
    def name(self) -> str:
        """How people name it: ``partition@offset``."""
        return f"{self.partition}@{self.offset}"

    @property
    def source(self) -> str:
        """Where the record stood."""
        return f"{self.topic}-{self.from_partition}@{self.from_offset}"

    @property
    def bytes(self) -> int:
        """Bytes of key, value and headers."""
        head = sum(len(name.encode()) + len(value or b"") for name, value in self.headers)
        return len(self.key or b"") + len(self.value or b"") + head


@dataclass(frozen=True, slots=True)
class Choice:
    """Which letters are meant: those that fit everything that is given here.

    Attributes:
        topics: names, on the brokers, of the topics that the records were on; none for all.
        reasons: likewise codes.
        stages: likewise.
        groups: likewise.
        since: written then or later; None for any time.
        names: partition and offset of each that is meant; None for all.
    """

    topics: Collection[str] = ()
    reasons: Collection[str] = ()
    stages: Collection[str] = ()
    groups: Collection[str] = ()
    since: datetime | None = None
    names: Collection[tuple[int, int]] | None = None

    def fits(self, letter: Letter) -> bool:
        """Tell whether a letter is meant."""
        return (
            (not self.topics or letter.topic in self.topics)
            and (not self.reasons or letter.reason in self.reasons)
            and (not self.stages or letter.stage in self.stages)
            and (not self.groups or letter.group in self.groups)
            and (self.since is None or letter.at_ms >= self.since.timestamp() * 1_000)
            and (self.names is None or (letter.partition, letter.offset) in self.names)
        )


def read_letter(record: ConsumerRecord) -> Letter | None:
    """Read a dead letter; None when a record is none of Traction's, or a receipt.

    Traction writes no header name that is not UTF-8, and nothing longer than a message: whoever forges letters has them
    left out, and ends no command.
    """
    told = {name: value or b"" for name, value in record.headers if name.startswith(ERRORS)}
    numbers = [told.get(f"{ERRORS}{name}", b"") for name in ("partition", "offset", "timestamp")]
    texts = [
        told.get(f"{ERRORS}{name}", b"").decode("utf-8", "replace")
        for name in ("topic", "group", "stage", "reason", "message")
    ]
    ours = all(map(_NUMBER.fullmatch, numbers)) and all(0 < len(text) <= MAX_MESSAGE_CHARS for text in texts)
    if RECEIPT in told or not ours or not all(is_text(name) for name, _ in record.headers):
        return None
    topic, group, stage, reason, message = texts
    partition, offset, at_ms = map(int, numbers)
    return Letter(
        partition=record.partition,
        offset=record.offset,
        at_ms=record.timestamp,
        topic=topic,
        from_partition=partition,
        from_offset=offset,
        from_ms=at_ms,
        group=group,
        stage=stage,
        reason=reason,
        message=message,
        attempts=_attempts(record.headers),
        key=record.key,
        value=record.value,
        headers=[each for each in record.headers if not each[0].startswith((ERRORS, STREAMS))],
    )


def read_receipt(record: ConsumerRecord) -> int | None:
    """Give the offset, in the record's own partition, of the letter that it says was put back; None when it is none."""
    told = dict(record.headers).get(RECEIPT)
    if told is None or not _NUMBER.fullmatch(told):
        return None
    offset = int(told)
    return offset if 0 <= offset < record.offset else None


def returned_headers(letter: Letter, *, group: str | None) -> Headers:
    """Give the headers with which a record is put back: its own, and which attempt this is.

    Args:
        letter: its dead letter.
        group: the one group that is to read it; None for all.
    """
    kept = [each for each in letter.headers if not each[0].startswith(REPLAY_PREFIX)]
    ours: Headers = [(ATTEMPT, str(letter.attempts + 1).encode())]
    return [*kept, *ours, *([] if group is None else [(FOR_GROUP, group.encode())])]


def receipt_headers(letter: Letter, by: str) -> Headers:
    """Give the headers of the receipt for a letter: where and why as the letter says, and who put it back."""
    texts = {
        "topic": letter.topic,
        "partition": str(letter.from_partition),
        "offset": str(letter.from_offset),
        "timestamp": str(letter.from_ms),
        "group": letter.group,
        "stage": letter.stage,
        "reason": letter.reason,
        "message": RECEIPT_MESSAGE,
    }
    ours = {f"{ERRORS}{name}": text for name, text in texts.items()} | {RECEIPT: str(letter.offset), REPLAYED_BY: by}
    return [(name, text.encode()) for name, text in ours.items()]


def _attempts(headers: Sequence[tuple[str, bytes | None]]) -> int:
    told = next((value for name, value in headers if name == ATTEMPT), None)
    return int(told) if told is not None and _COUNT.fullmatch(told) else 0
