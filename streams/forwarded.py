"""Reads what the workers forward to tasks: what a session's event means to its task, and where that event stood.

Workers read it to judge tasks, escalation to learn what people and orchestrators answered. It writes nothing and
applies nothing; a record that cannot be read is told as data, for the dead letters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from detectors import TaskEvent, UnsupportedState, decode_task
from schemas.invalid import InvalidEvent

if TYPE_CHECKING:
    from aiokafka.structs import ConsumerRecord

ORIGIN_HEADER: Final = "traction-origin"
"""Name of the header of what is forwarded that says where the agent's record stands."""

_REMEDY: Final = "leave this topic to the workers, and run one release of them under one application id"


class Origin(msgspec.Struct, array_like=True, frozen=True):
    """Where the agent's record stands that something comes from, and when it was appended there, ms since 1970."""

    topic: str
    partition: int
    offset: int
    appended_ms: int


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Origin)


def origin(record: ConsumerRecord) -> Origin:
    """Give where a session's record stands."""
    return Origin(record.topic, record.partition, record.offset, record.timestamp)


def origin_header(place: Origin) -> tuple[str, bytes]:
    """Give the header that says where the agent's record stands."""
    return ORIGIN_HEADER, _ENCODER.encode(place)


def read_forwarded(record: ConsumerRecord) -> tuple[TaskEvent, Origin]:
    """Read a record that a worker forwarded to a task.

    Raises:
        InvalidEvent: it is none, or one of a release that writes them otherwise. That is no reason to stop: the task's
            state can be read, and the record is kept among the dead letters.
    """
    key = record.key
    if key is None:
        raise InvalidEvent("key_missing", "the record has no key", _REMEDY, field="task_id")
    try:
        event = decode_task(record.value or b"", TaskEvent)
        place = _DECODER.decode(dict(record.headers).get(ORIGIN_HEADER) or b"")
    except (UnsupportedState, msgspec.MsgspecError):
        problem = "no event that this release forwards to a task: damaged, or written by another release"
        raise InvalidEvent("unsupported_version", problem, _REMEDY) from None
    if key != event.task_id.encode():
        raise InvalidEvent("key_mismatch", "the record's key is another", _REMEDY, field="task_id")
    return event, place
