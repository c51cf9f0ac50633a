"""What a record of a collector's topic comes to: events of the contract, a dead letter for what cannot be read.

Pure but for what is remembered of traces. Where and when it is written is for `bridge` to say.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from schemas import topics
from schemas.encode import headers, record_key
from schemas.invalid import InvalidEvent, Reason
from streams.gateway.otlp import events_of
from streams.otlp import InvalidRequest
from streams.received import check_header_names, dead_letter
from streams.transaction import Out

if TYPE_CHECKING:
    from aiokafka.structs import ConsumerRecord

    from streams.gateway.metrics import BridgeMetrics, Signal
    from streams.kafka import KafkaSettings
    from streams.otlp import Encoding, Mapped, Memory, Refusal
    from streams.privacy import Level

SOURCE: Final = "/traction/bridge"
"""Who publishes, in the CloudEvents attribute `source`."""

_MOST_TOLD: Final = 3


@dataclass(frozen=True, slots=True)
class Mapping:
    """How the records of one topic are read.

    Attributes:
        signal: what they hold.
        encoding: how they are written.
        level: how much of tool calls' content goes on.
        group: who reads, for dead letters.
    """

    signal: Signal
    encoding: Encoding
    level: Level
    group: str


@dataclass(slots=True)
class Turn:
    """What some records of one partition come to.

    Attributes:
        outputs: what is to be written.
        events: how many events, by topic.
        taken: how many records were read whole, by topic.
        dead: how many became dead letters, likewise.
        refused: why.
        read: the counts of what was read.
    """

    outputs: list[Out] = field(default_factory=list)
    events: Counter[str] = field(default_factory=Counter)
    taken: Counter[str] = field(default_factory=Counter)
    dead: Counter[str] = field(default_factory=Counter)
    refused: Counter[Reason] = field(default_factory=Counter)
    read: list[tuple[Signal, Mapped, list[Refusal]]] = field(default_factory=list)

    def take(self, record: ConsumerRecord, mapping: Mapping, memory: Memory, kafka: KafkaSettings) -> None:
        """Read one record."""
        try:
            check_header_names(record.headers)
            problem = self._map(record, mapping, memory, kafka)
        except InvalidEvent as refused:
            problem = refused
        if problem is None:
            self.taken[record.topic] += 1
        else:
            self.dead[record.topic] += 1
            self.refused[problem.reason] += 1
            letter = dead_letter(record, problem, mapping.group)
            self.outputs.append(Out(kafka.topic(topics.DEAD_LETTERS), letter.key, letter.value, letter.headers))

    def _map(
        self, record: ConsumerRecord, mapping: Mapping, memory: Memory, kafka: KafkaSettings
    ) -> InvalidEvent | None:
        """Make events of a record, and say what of it was refused: the others are taken."""
        if not record.value:
            raise InvalidEvent("empty", "no value", "have the collector send spans or log records")
        try:
            items, mapped, unread = events_of(mapping.signal, record.value, mapping.encoding, memory, mapping.level)
        except InvalidRequest as problem:
            raise _refusal(problem, mapping.encoding) from None
        self.read.append((mapping.signal, mapped, unread))
        for each in items.taken:
            topic = kafka.topic(each.topic)
            self.events[topic] += 1
            head = headers(each.event, source=SOURCE, traceparent=each.traceparent)
            self.outputs.append(Out(topic, record_key(each.event), each.value, head))
        told = [each.text for each in unread] + [each.reason for each in items.refused]
        if not told:
            return None
        count = sum(each.count for each in unread) + len(items.refused)
        what = "; ".join(dict.fromkeys(told[:_MOST_TOLD]))
        return InvalidEvent("invalid_value", f"{count} of its {mapping.signal} cannot be read", what)

    def measure(self, metrics: BridgeMetrics) -> None:
        """Count what was committed."""
        for topic, count in self.events.items():
            metrics.written.labels(topic, "accepted").inc(count)
        for topic, count in self.taken.items():
            metrics.events.labels(topic, "applied").inc(count)
        for topic, count in self.dead.items():
            metrics.events.labels(topic, "dead").inc(count)
        for reason, count in self.refused.items():
            metrics.dead_letters.labels(reason).inc(count)
        for signal, mapped, unread in self.read:
            metrics.otlp.count(signal, mapped, unread)


def _refusal(problem: InvalidRequest, encoding: Encoding) -> InvalidEvent:
    """Say why a record is a dead letter.

    Raises:
        InvalidRequest: not for what it holds, but since it cannot be read here.
    """
    if problem.reason == "unsupported":
        raise problem
    reason: Reason = "too_large" if problem.reason == "too_large" else "not_otlp"
    option = "json" if encoding == "protobuf" else "protobuf"
    return InvalidEvent(reason, str(problem), f"where the collector writes {option}, say so to traction bridge")
