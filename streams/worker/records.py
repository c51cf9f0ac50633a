"""The records of the changelog topics: one per session or task, and one heartbeat per partition.

The form is versioned apart from the detectors' own, so that either can change without the other. Nothing in here
knows what a state means.
"""

from __future__ import annotations

from typing import Final

import msgspec

FORMAT: Final = 1
"""Version of the record's form."""

HEARTBEAT_KEY: Final = b"\xffheartbeat"
"""Key of the heartbeat record. Ids are UTF-8, which has no byte 0xFF: no session or task can have this key."""

HEARTBEAT_VALUE: Final = b"heartbeat"


class UnsupportedRecord(ValueError):
    """A changelog record of a form that this release does not read: the message says which and what to do."""


class Stored(msgspec.Struct, array_like=True, frozen=True):
    """One session or task in its changelog.

    Attributes:
        format: version of this form.
        applied: for each input topic (short name) the offset applied last and its record's time, ms since 1970.
        state: the detectors' state, encoded by them.
    """

    format: int
    applied: dict[str, tuple[int, int]]
    state: bytes


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Stored)
_HEAD = msgspec.msgpack.Decoder(list[msgspec.Raw])


def encode_stored(applied: dict[str, tuple[int, int]], state: bytes) -> bytes:
    """Give the value of a changelog record."""
    return _ENCODER.encode(Stored(FORMAT, applied, state))


def decode_stored(data: bytes) -> Stored:
    """Read the value of a changelog record.

    Raises:
        UnsupportedRecord: it is of another form, or no such record.
    """
    try:
        found = msgspec.msgpack.decode(_HEAD.decode(data)[0], type=int)
        if found == FORMAT:
            return _DECODER.decode(data)
    except (msgspec.MsgspecError, IndexError) as problem:
        raise UnsupportedRecord(
            f"a changelog record cannot be read ({problem}): is something else writing to the changelog topic?"
        ) from None
    raise UnsupportedRecord(
        f"a changelog record has format {found}, and this release reads format {FORMAT}: "
        "run the release that wrote it, or a newer one"
    )


def latest_ms(applied: dict[str, tuple[int, int]]) -> int:
    """Give the newest record's time, ms since 1970 by the brokers' clock; 0 when nothing was applied."""
    return max((at_ms for _, at_ms in applied.values()), default=0)
