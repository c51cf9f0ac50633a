"""The records of the changelog topic: one per session, and one heartbeat per partition.

The form is versioned apart from the detectors' own, so that either can change without the other. Nothing in here
knows what a state means.
"""

from __future__ import annotations

from typing import Final

import msgspec

FORMAT: Final = 1
"""Version of the record's form."""

HEARTBEAT_KEY: Final = b"\xffheartbeat"
"""Key of the heartbeat record. Session ids are UTF-8, which has no byte 0xFF: no session can have this key."""

HEARTBEAT_VALUE: Final = b"heartbeat"


class UnsupportedRecord(ValueError):
    """A changelog record of a form that this release does not read: the message says which and what to do."""


class StoredSession(msgspec.Struct, array_like=True, frozen=True):
    """One session in the changelog.

    Attributes:
        format: version of this form.
        applied: for each input topic (short name) the offset applied last and its record's time, ms since 1970.
        state: the detectors' state, encoded by them.
    """

    format: int
    applied: dict[str, tuple[int, int]]
    state: bytes


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(StoredSession)
_HEAD = msgspec.msgpack.Decoder(list[msgspec.Raw])


def encode_session(applied: dict[str, tuple[int, int]], state: bytes) -> bytes:
    """Give the value of a session's changelog record."""
    return _ENCODER.encode(StoredSession(FORMAT, applied, state))


def decode_session(data: bytes) -> StoredSession:
    """Read the value of a session's changelog record.

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
