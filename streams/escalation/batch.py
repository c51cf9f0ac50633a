"""Turns a fetched batch of alerts into the records to write, without awaiting anything.

Repetitions are dropped by alert id, what cannot be read becomes a dead letter, the rest goes through the policy. What
was counted is kept beside the records, to be added to the metrics once they are committed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from schemas import topics
from schemas.decode import decode
from schemas.encode import encode, headers, record_key
from schemas.invalid import InvalidEvent
from schemas.outputs import Alert, Directive, KnownFlapping, Termination
from streams.escalation.policy import PolicySettings, respond
from streams.escalation.text import line
from streams.received import check_header_names, dead_letter, traceparent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from aiokafka import ConsumerRecord

    from schemas.topics import Topic
    from streams.escalation.ownership import Owner
    from streams.escalation.policy import Output
    from streams.kafka import KafkaSettings

SOURCE = "/traction/escalation"
"""What outputs give as their CloudEvents source."""

MOST_LOGGED = 120
"""Characters of an id in a log line."""

TOPICS: dict[type[Output], Topic] = {
    Directive: topics.DIRECTIVES,
    Termination: topics.TERMINATIONS,
    KnownFlapping: topics.KNOWN_FLAPPING,
}


@dataclass(frozen=True, slots=True)
class Out:
    """One record to write."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


@dataclass(slots=True)
class Batch:
    """What a batch of alerts comes to.

    Attributes:
        position: the offset to commit.
        timestamp: time of the last record, in seconds since 1970.
        count: records that were not applied before.
        outputs: the records to write, in order.
        levels: alerts by level, repetitions included.
        actions: directives by action.
        terminations: one line for the log for each.
        duplicates: alerts dropped because their id was seen.
        dead: alerts that cannot be read, by reason.
        answered: times of the alerts that led to outputs, in seconds since 1970.
    """

    position: int
    timestamp: float | None = None
    count: int = 0
    outputs: list[Out] = field(default_factory=list)
    levels: Counter[str] = field(default_factory=Counter)
    actions: Counter[str] = field(default_factory=Counter)
    terminations: list[str] = field(default_factory=list)
    duplicates: int = 0
    dead: Counter[str] = field(default_factory=Counter)
    answered: list[float] = field(default_factory=list)


def answer(
    records: Iterable[ConsumerRecord],
    owner: Owner,
    *,
    policy: PolicySettings,
    kafka: KafkaSettings,
    group: str,
    now: datetime,
) -> Batch:
    """Say what is to be written for a batch; what lies before the owner's first offset only fills its memory.

    Args:
        records: alerts as they were fetched, in order.
        owner: whose batch it is; its memory of ids is brought up to date.
        policy: see `PolicySettings`.
        kafka: gives the topics' names.
        group: the consumer group, for dead letters.
        now: when this is decided.
    """
    batch = Batch(position=owner.position)
    for record in records:
        fresh = record.offset >= owner.first
        try:
            check_header_names(record.headers)
            alert = decode(topics.ALERTS, record.value, record.headers)
        except InvalidEvent as problem:
            if fresh:
                batch.dead[problem.reason] += 1
                letter = dead_letter(record, problem, group)
                batch.outputs.append(Out(kafka.topic(topics.DEAD_LETTERS), letter.key, letter.value, letter.headers))
        else:
            if not isinstance(alert, Alert):
                raise TypeError(f"the alerts topic decodes to {type(alert).__name__}")
            new = owner.recent.add(alert.alert_id)
            if fresh:
                batch.levels[alert.level] += 1
                batch.duplicates += not new
            if fresh and new:
                _respond(batch, alert, record, policy=policy, kafka=kafka, now=now)
        if fresh:
            batch.count += 1
            batch.timestamp = record.timestamp / 1000
    return batch


def _respond(
    batch: Batch, alert: Alert, record: ConsumerRecord, *, policy: PolicySettings, kafka: KafkaSettings, now: datetime
) -> None:
    trace = traceparent(record.headers)
    outputs = respond(alert, now, policy)
    for output in outputs:
        batch.outputs.append(
            Out(
                topic=kafka.topic(TOPICS[type(output)]),
                key=record_key(output),
                value=encode(output),
                headers=headers(output, source=SOURCE, traceparent=trace),
            )
        )
        if isinstance(output, Directive):
            batch.actions[output.action] += 1
        if isinstance(output, Termination):
            batch.terminations.append(
                f"session {line(output.session_id, MOST_LOGGED)} is to be terminated: {line(output.report.title, 200)} "
                f"(termination {output.termination_id}, alert {line(output.alert_id, MOST_LOGGED)}, "
                f"task {line(output.task_id, MOST_LOGGED)})"
            )
    if outputs:
        batch.answered.append(record.timestamp / 1000)
