"""Writes records for the wire: the JSON of the value, the key, and CloudEvents attributes as headers.

A reader that knows nothing of CloudEvents takes the value; one that does gets binary mode of the "CloudEvents 1.0 Kafka
Protocol Binding". Dead letters keep what came and get headers that say why. Nothing here sends.
"""

from typing import Final

import msgspec

from schemas.cloudevents import Headers
from schemas.invalid import Reason, Stage
from schemas.outputs import DeadLetterHeaders, Fitness, KnownFlapping, Termination
from schemas.records import BY_STRUCT

CONTENT_TYPE: Final = b"application/json"
MAX_MESSAGE_CHARS: Final = 1_000
"""Longest message in a dead letter's headers: a sentence, never a stack trace."""

_STREAMS_PREFIX = "__streams.errors."
_OWN_PREFIX = "__traction.errors."

_ENCODER = msgspec.json.Encoder()


def encode(record: msgspec.Struct) -> bytes:
    """Give the value of a record: its JSON in UTF-8, fields that have their default left out."""
    return _ENCODER.encode(record)


def record_key(record: msgspec.Struct) -> bytes:
    """Give the key under which a record is written: the session's id, the task's or the scope."""
    key: str = getattr(record, BY_STRUCT[type(record)].key_field)
    return key.encode()


def headers(record: msgspec.Struct, *, source: str, traceparent: bytes | None = None) -> list[tuple[str, bytes]]:
    """Give the headers of a record that Traction publishes.

    Args:
        record: the record; of those that have an identifier.
        source: who publishes, as a URI reference such as ``/traction/worker``.
        traceparent: that of the event which led to the record (W3C Trace Context), copied as it is.

    Returns:
        CloudEvents attributes as ``ce_*``, the content type, and the trace context if there is one.
    """
    kind = BY_STRUCT[type(record)]
    found = [
        ("ce_specversion", b"1.0"),
        ("ce_id", _event_id(record).encode()),
        ("ce_source", source.encode()),
        ("ce_type", kind.event_type.encode()),
        ("ce_subject", record_key(record)),
        ("ce_time", getattr(record, kind.time_field).isoformat().encode()),
        ("content-type", CONTENT_TYPE),
    ]
    if traceparent is not None:
        found.append(("traceparent", traceparent))
    return found


def dead_letter_headers(
    original: Headers,
    *,
    topic: str,
    partition: int,
    offset: int,
    timestamp_ms: int,
    group: str,
    stage: Stage,
    reason: Reason,
    message: str,
) -> list[tuple[str, bytes | None]]:
    """Give the headers of a dead letter: those that came, then ours.

    A record that was a dead letter before and was sent again loses the headers of that time: there is one answer.

    Args:
        original: the headers as they came.
        topic: topic that it was read from.
        partition: partition that it was read from.
        offset: offset that it had.
        timestamp_ms: record time that it had, in milliseconds since 1970.
        group: consumer group that refused it.
        stage: where it was refused.
        reason: what is wrong, as a code.
        message: what is wrong and what to do, without any part of the record; cut to `MAX_MESSAGE_CHARS`.

    Returns:
        Names and values; the ``__streams.errors.*`` ones say the same for viewers that know Kafka Streams (KIP-1034).
    """
    message = message[:MAX_MESSAGE_CHARS]
    ours = DeadLetterHeaders(
        topic=topic,
        partition=str(partition),
        offset=str(offset),
        timestamp=str(timestamp_ms),
        group=group,
        stage=stage,
        reason=reason,
        message=message,
    )
    texts: dict[str, str] = {
        **msgspec.to_builtins(ours),
        f"{_STREAMS_PREFIX}exception": f"{stage}:{reason}",
        f"{_STREAMS_PREFIX}stacktrace": "",
        f"{_STREAMS_PREFIX}message": message,
        f"{_STREAMS_PREFIX}topic": topic,
        f"{_STREAMS_PREFIX}partition": ours.partition,
        f"{_STREAMS_PREFIX}offset": ours.offset,
    }
    kept = [(name, value) for name, value in original if not name.startswith((_OWN_PREFIX, _STREAMS_PREFIX))]
    return [*kept, *((name, text.encode("utf-8", "replace")) for name, text in texts.items())]


def _event_id(record: msgspec.Struct) -> str:
    """Give an identifier that no other event of the same source has."""
    if isinstance(record, Fitness):
        return f"{record.fitness_id}:{record.updated_at.timestamp():.6f}"
    if isinstance(record, KnownFlapping):
        return f"known-flapping:{record.termination_id}"
    if isinstance(record, Termination) and record.attempt > 1:
        return f"{record.termination_id}:{record.attempt}"
    field = BY_STRUCT[type(record)].id_field
    if field is None:
        raise TypeError(f"{type(record).__name__} has no identifier; write it without CloudEvents headers")
    identifier: str = getattr(record, field)
    return identifier
