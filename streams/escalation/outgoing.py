"""Makes the records that the escalation consumer writes: outputs, ladders, counts of fitness, dead letters.

Each knows its topic, its key and its headers. Nothing here decides what is written, or writes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from schemas import topics
from schemas.encode import encode, headers, record_key
from schemas.outputs import Directive, Fitness, KnownFlapping, Notification, Termination
from streams.escalation.ladder import Cleared
from streams.received import dead_letter
from streams.topics import ladders_name
from streams.transaction import Out

if TYPE_CHECKING:
    from aiokafka.structs import ConsumerRecord

    from schemas.invalid import InvalidEvent
    from schemas.topics import Topic
    from streams.escalation.ladder import Output
    from streams.kafka import KafkaSettings

SOURCE = "/traction/escalation"
"""What outputs give as their CloudEvents source."""

TOPICS: dict[type[Output | Fitness], Topic] = {
    Directive: topics.DIRECTIVES,
    Termination: topics.TERMINATIONS,
    KnownFlapping: topics.KNOWN_FLAPPING,
    Cleared: topics.KNOWN_FLAPPING,
    Notification: topics.NOTIFICATIONS,
    Fitness: topics.FITNESS,
}


class Outgoing:
    """Makes records.

    Args:
        kafka: gives the topics' names.
        group: the consumer group, for dead letters and the name of its own topic.
    """

    def __init__(self, kafka: KafkaSettings, group: str) -> None:
        self._kafka = kafka
        self._group = group
        self._ladders = ladders_name(group)

    def output(self, output: Output | Fitness, trace: bytes | None = None) -> Out:
        """Make the record of an output.

        Args:
            output: what is put out.
            trace: the trace context of what led to it.
        """
        topic = self._kafka.topic(TOPICS[type(output)])
        if isinstance(output, Cleared):
            return Out(topic, output.task_id.encode(), None)
        return Out(topic, record_key(output), encode(output), headers(output, source=SOURCE, traceparent=trace))

    def ladder(self, partition: int, task_id: str, value: bytes | None) -> Out:
        """Make the record that keeps a ladder, or forgets it."""
        return Out(self._ladders, task_id.encode(), value, partition=partition)

    def refused(self, record: ConsumerRecord, problem: InvalidEvent) -> Out:
        """Make a dead letter."""
        letter = dead_letter(record, problem, self._group)
        return Out(self._kafka.topic(topics.DEAD_LETTERS), letter.key, letter.value, letter.headers)
