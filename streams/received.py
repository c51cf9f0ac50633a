"""What both processes do with a record as it came: look at its headers' names, take its trace context, set it aside.

A producer may have written anything, of any size and without key and value; whatever goes on from a record is checked
or cut here. Nothing in here decodes values or sends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from schemas.encode import MAX_MESSAGE_CHARS, dead_letter_headers
from schemas.invalid import InvalidEvent
from streams.kafka import MAX_DEAD_LETTER_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from aiokafka.structs import ConsumerRecord

MAX_KEPT_BYTES = MAX_DEAD_LETTER_BYTES - 2**20
"""Bytes of a refused value that are kept: what the topic of dead letters takes, less room for key and headers. Only a
record that was compressed manifold can be longer; of that one the beginning is kept."""

MAX_KEPT_KEY_BYTES = 2**16
"""Likewise of a key. Identifiers are far shorter, and murmur2 in Python takes a second for some megabytes."""

MAX_KEPT_HEADER_BYTES = 2**19
"""Bytes of headers that are kept; those of a record with more are left out of its dead letter."""

CUT = ". Cut for want of room, bytes kept: "
"""Begins what is said at the end of a dead letter's message when a part of the record is missing in it."""

NOT_TEXT = "the name of a header is not UTF-8"
"""What is said of a record with such a header; its dead letter has the name in another form."""

REPLAY_PREFIX = "__traction.replay."
"""What the names of headers begin with that a record has which was put back from the dead letters."""

FOR_GROUP = f"{REPLAY_PREFIX}group"
"""The one group that is to read a notification which was put back: all other sinks had it."""

_TRACEPARENT = re.compile(rb"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
"""Version 00 of the header and what later versions must begin with (W3C Trace Context, "traceparent Header")."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A dead letter's parts: key and value as they came, as far as there is room, and headers that say why."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


def check_header_names(headers: Iterable[tuple[str, bytes | None]]) -> None:
    """See that header names are text.

    Raises:
        InvalidEvent: one is not.
    """
    if not all(is_text(name) for name, _ in headers):
        raise InvalidEvent("not_utf8", NOT_TEXT, "encode the names of headers as UTF-8")


def traceparent(headers: Iterable[tuple[str, bytes | None]]) -> bytes | None:
    """Give the header that ties a record to a trace (W3C Trace Context); None when there is none that is valid."""
    return next(
        (value for name, value in headers if name == "traceparent" and value and _TRACEPARENT.fullmatch(value)), None
    )


def meant_for(headers: Iterable[tuple[str, bytes | None]], group: str) -> bool:
    """Tell whether a notification is for a group: all are, but for those that were put back for another one."""
    return all(value == group.encode() for name, value in headers if name == FOR_GROUP)


def dead_letter(record: ConsumerRecord, problem: InvalidEvent, group: str) -> DeadLetter:
    """Set a record aside.

    Args:
        record: the record.
        problem: why it is refused.
        group: who refuses it.
    """
    key: bytes | None = record.key
    value: bytes | None = record.value
    came = [(_text(name), content) for name, content in record.headers]
    cut = []
    if key is not None and len(key) > MAX_KEPT_KEY_BYTES:
        cut.append(f"key {MAX_KEPT_KEY_BYTES} of {len(key)}")
        key = key[:MAX_KEPT_KEY_BYTES]
    if value is not None and len(value) > MAX_KEPT_BYTES:
        cut.append(f"value {MAX_KEPT_BYTES} of {len(value)}")
        value = value[:MAX_KEPT_BYTES]
    header_bytes = sum(len(name.encode()) + len(content or b"") for name, content in came)
    if header_bytes > MAX_KEPT_HEADER_BYTES:
        cut.append(f"headers 0 of {header_bytes}")
        came = []
    told = f"{CUT}{', '.join(cut)}" if cut else ""
    reasons = dead_letter_headers(
        came,
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp,
        group=group,
        stage=problem.stage,
        reason=problem.reason,
        message=str(problem)[: MAX_MESSAGE_CHARS - len(told)] + told,
    )
    if key is None and value is None:
        value = b""  # aiokafka does not write a record that has neither
    return DeadLetter(key, value, reasons)


def is_text(name: str) -> bool:
    """Tell whether something can be written as UTF-8: bytes that were none are read as lone surrogates."""
    try:
        name.isascii() or name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _text(name: str) -> str:
    r"""Give a header's name so that it can be written: each byte that was no UTF-8 as ``\xff``."""
    return name if name.isascii() else name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
