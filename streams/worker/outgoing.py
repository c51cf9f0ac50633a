"""The records that a partition writes besides its states: alerts, dead letters, and what is forwarded to tasks.

What a session's event means to its task is forwarded under the task's key, and read back by whoever owns that. It takes
along where the event stood, so that an alert names that place, and its latency counts from there. Where it is asked
for, events in a partition that is not their key's are written again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from detectors import encode_task
from schemas.encode import encode, headers, record_key
from schemas.outputs import Position
from streams.forwarded import origin, origin_header
from streams.received import dead_letter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiokafka.structs import ConsumerRecord

    from detectors import TaskEvent
    from schemas.invalid import InvalidEvent
    from schemas.outputs import Alert
    from streams.forwarded import Origin
    from streams.worker.metrics import TaskEventKind
    from streams.worker.settings import WorkerSettings


REKEYED_HEADER: Final = "traction-rekeyed"
"""Name of the header of an event that was written again to the partition of its key: it says where the event stood.
Whoever writes events may set it, so nothing is believed of it but that the event is not to be written again."""

MAX_REKEYED_BYTES: Final = 1_000_000
"""Most bytes of an event that is written again, headers included: uncompressed, as it then is, it fits into what a
topic takes by the brokers' default (1,048,588 bytes)."""

RECORD_BYTES: Final = 1_000
"""Of these for what comes around a record: our header, a topic's name of up to 249 bytes in it, and a batch's frame."""

HEADER_BYTES: Final = 10
"""And for what comes around a header: two lengths of up to 5 bytes (Apache Kafka, "Record Header")."""


@dataclass(slots=True)
class Outgoing:
    """A record to be written with the next commit.

    Attributes:
        topic: its topic's name.
        key: its key; it decides the partition (murmur2).
        value: its value.
        headers: its headers.
        appended_ms: when the agent's record was appended that brought it about, ms since 1970.
        urgent: whether it is to be committed at once.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    appended_ms: int
    urgent: bool = True


def kind_of(event: TaskEvent) -> TaskEventKind:
    """Say what an event tells a task."""
    if event.attempt is not None:
        return "derived" if event.attempt.derived else "attempt"
    if event.review is not None:
        return "review"
    return "spent" if event.word is None else "word"


def forwarded(settings: WorkerSettings, event: TaskEvent, place: Origin, trace: bytes | None) -> Outgoing:
    """Make the record that takes an event to its task. What was only spent can wait for the next commit.

    Args:
        settings: gives the topic's name.
        event: what the agent's record means to the task.
        place: where that record stands.
        trace: its trace context.
    """
    head: list[tuple[str, bytes | None]] = [origin_header(place)]
    if trace is not None:
        head.append(("traceparent", trace))
    key, value = event.task_id.encode(), encode_task(event)
    urgent = kind_of(event) != "spent"
    return Outgoing(settings.task_events, key, value, head, place.appended_ms, urgent=urgent)


def alert_record(
    settings: WorkerSettings, found: Alert, place: Origin, trace: bytes | None, *, muted: bool
) -> Outgoing:
    """Make the record of an alert.

    Args:
        settings: gives the topic's name.
        found: the alert as the detectors made it.
        place: where the agent's record stands that brought it about.
        trace: its trace context.
        muted: whether an override silences it.
    """
    position = Position(topic=place.topic, partition=place.partition, offset=place.offset)
    evidence = msgspec.structs.replace(found.evidence, position=position)
    alert = msgspec.structs.replace(found, evidence=evidence, muted=muted or found.muted)
    head = headers(alert, source=f"/traction/worker/{settings.app_id}", traceparent=trace)
    return Outgoing(settings.alerts, record_key(alert), encode(alert), head, place.appended_ms)


def refused(settings: WorkerSettings, record: ConsumerRecord, problem: InvalidEvent) -> Outgoing:
    """Make the dead letter of a record: key, value and headers as they came, and why."""
    letter = dead_letter(record, problem, settings.app_id)
    return Outgoing(settings.dead_letters, letter.key, letter.value, letter.headers, record.timestamp)


def rekeyed(record: ConsumerRecord, most: int = MAX_REKEYED_BYTES) -> Outgoing | None:
    """Make an event's record anew for the partition of its key, with a header that says where it stood.

    None where that was done before, so that two processes which count the partitions otherwise do not send it to and
    fro, and where it is too large to be written without the compression that it may have come with.

    Args:
        record: the event's.
        most: bytes that its topic takes, if these are fewer than `MAX_REKEYED_BYTES`.
    """
    size = len(record.key) + len(record.value) + RECORD_BYTES
    for name, content in record.headers:
        if name == REKEYED_HEADER:
            return None
        size += len(name.encode()) + len(content or b"") + HEADER_BYTES
    if size > min(most, MAX_REKEYED_BYTES):
        return None
    _, place = origin_header(origin(record))
    return Outgoing(
        record.topic, record.key, record.value, [*record.headers, (REKEYED_HEADER, place)], record.timestamp
    )
