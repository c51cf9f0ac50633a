"""The records of the changelog topics: one per session or task, and one heartbeat per partition.

The form is versioned apart from the detectors' own, so that either can change without the other. Kind and version of
the state stand in front, so that a reader sees at a glance what it cannot use; what a state means is not known here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import cramjam
import msgspec

from detectors import UnsupportedState
from detectors.state import VERSIONS as SESSION_VERSIONS
from detectors.tasks.state import VERSIONS as TASK_VERSIONS

if TYPE_CHECKING:
    from detectors.versions import Versions

FORMAT: Final = 2
"""Version of the record's form. Format 1 is read as well: it had neither kind nor version, and was not compressed."""

SESSION: Final = 0
TASK: Final = 1

MAX_STATE_BYTES: Final = 2**20
"""Of a state as the detectors encode it, which is bounded to a hundredth of that: a larger one is damage."""

HEARTBEAT_KEY: Final = b"\xffheartbeat"
"""Key of the heartbeat record. Ids are UTF-8, which has no byte 0xFF: no session or task can have this key."""

HEARTBEAT_VALUE: Final = b"heartbeat"

_VERSIONS: Final[dict[int, Versions[Any]]] = {SESSION: SESSION_VERSIONS, TASK: TASK_VERSIONS}
_NO_RECORD: Final = (
    "keep whatever else writes to the changelog topic out of it; then write a tombstone under the record's key, which "
    "helps once the topic is compacted, or delete the records up to it, which loses their states, or take a new "
    "--app-id"
)
_SIZE_BYTES: Final = 4  # in front of what is compressed


class UnsupportedRecord(ValueError):
    """A changelog record of a form that this release does not read: the message says which and what to do."""


class Head(msgspec.Struct, array_like=True, frozen=True):
    """What a changelog record says of a session or task, without its state.

    Attributes:
        format: version of this form.
        kind: SESSION or TASK.
        version: that of the state, as the detectors count it.
        over: whether nothing more is expected, so that it is kept for a shorter time.
        applied: for each input topic (short name) the offset applied last and its record's time, ms since 1970.
    """

    format: int
    kind: int
    version: int
    over: bool
    applied: dict[str, tuple[int, int]]


class Stored(Head, array_like=True, frozen=True):
    """One session or task in its changelog.

    Attributes:
        state: the detectors' state, encoded by them; compressed as it is in the changelog.
    """

    state: bytes


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Stored)
_HEAD = msgspec.msgpack.Decoder(Head)
_INT = msgspec.msgpack.Decoder(int)
_FIRST = msgspec.msgpack.Decoder(list[msgspec.Raw])
_FIELDS = len(Stored.__struct_fields__)

_READ: Final = frozenset(
    bytes((0x90 + _FIELDS, FORMAT, kind, version))
    for kind, versions in _VERSIONS.items()
    for version in range(versions.oldest, versions.current + 1)
)
"""How records begin that are read: an array of so many, format, kind and version, of a byte each."""


def encode_stored(kind: int, applied: dict[str, tuple[int, int]], state: bytes, *, over: bool = False) -> bytes:
    """Give the value of a changelog record.

    Args:
        applied: see `Stored`.
        state: the state as the detectors encode it, in the version that they write.
        kind: see `Stored`.
        over: see `Stored`.
    """
    packed = memoryview(cramjam.lz4.compress_block(state))
    return _ENCODER.encode((FORMAT, kind, _VERSIONS[kind].current, over, applied, packed))  # a `Stored`


def decode_stored(data: bytes) -> Stored:
    """Read the value of a changelog record; its state comes as the detectors encoded it.

    Raises:
        UnsupportedRecord: it is of another form, or no such record.
    """
    if data[:4] not in _READ:
        return _other(data)
    try:
        found = _DECODER.decode(data)
        return msgspec.structs.replace(found, state=_unpacked(found.state))
    except (msgspec.MsgspecError, RecursionError, ValueError, cramjam.DecompressionError) as problem:
        raise UnsupportedRecord(f"a changelog record cannot be read ({problem}): {_NO_RECORD}") from None


def read_head(data: bytes) -> Head:
    """Read the value of a changelog record but for the state.

    Raises:
        UnsupportedRecord: it is of another form, or no such record.
    """
    if data[:4] not in _READ:
        return _other(data)
    try:
        return _HEAD.decode(data)
    except (msgspec.MsgspecError, RecursionError, ValueError) as problem:
        raise UnsupportedRecord(f"a changelog record cannot be read ({problem}): {_NO_RECORD}") from None


def check_stored(value: bytes) -> None:
    """Check that this release can use a changelog record: cheap, for each that is read back.

    Raises:
        UnsupportedRecord: its form, or the version of the state in it, is neither read nor migrated. The message says
            which was found, which are read, and what to do.
    """
    if value[:4] not in _READ:
        _other(value)


def latest_ms(applied: dict[str, tuple[int, int]]) -> int:
    """Give the newest record's time, ms since 1970 by the brokers' clock; 0 when nothing was applied."""
    return max((at_ms for _, at_ms in applied.values()), default=0)


def _unpacked(state: bytes) -> bytes:
    if int.from_bytes(state[:_SIZE_BYTES], "little") > MAX_STATE_BYTES:
        raise ValueError("its state is too large")
    return bytes(cramjam.lz4.decompress_block(state))


def _other(data: bytes) -> Stored:
    """Read a record of the older form, or say why it cannot be used."""
    try:
        first, *rest = _FIRST.decode(data)
        found = _INT.decode(first)
        if found == 1:
            return _of_format_1(*rest)
        if found == FORMAT:
            _VERSIONS[_INT.decode(rest[0])].check(_INT.decode(rest[1]))
    except UnsupportedState as refused:
        raise UnsupportedRecord(str(refused)) from None
    except (msgspec.MsgspecError, IndexError, KeyError, RecursionError, TypeError, ValueError) as problem:
        raise UnsupportedRecord(f"a changelog record cannot be read ({problem}): {_NO_RECORD}") from None
    if found == FORMAT:
        raise UnsupportedRecord(f"a changelog record cannot be read (other fields than format 2 has): {_NO_RECORD}")
    raise UnsupportedRecord(
        f"a changelog record has format {found}, and this release reads formats 1 and {FORMAT}: "
        "run the release that wrote it, or a newer one"
    )


def _of_format_1(applied: msgspec.Raw, state: msgspec.Raw) -> Stored:
    """Of a session, the state's fields stood beside its version; of a task, in one list behind it."""
    encoded = msgspec.msgpack.decode(state, type=bytes)
    version, *fields = _FIRST.decode(encoded)
    kind, found = TASK if len(fields) == 1 else SESSION, _INT.decode(version)
    _VERSIONS[kind].check(found)
    offsets = msgspec.msgpack.decode(applied, type=dict[str, tuple[int, int]])
    return Stored(FORMAT, kind, found, over=False, applied=offsets, state=encoded)
