"""What tests of dead letters share: records as they came, their letters, and what puts them on a topic and reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiokafka import TopicPartition
from aiokafka.structs import ConsumerRecord

from schemas import topics
from schemas.invalid import InvalidEvent
from streams.kafka import consumer, producer, running
from streams.reading import reading
from streams.received import dead_letter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streams.kafka import KafkaSettings
    from streams.received import DeadLetter

BROKEN = InvalidEvent("detector_error", "a detector raised KeyError", "report it")


def came(topic: str, value: bytes | None = b"{", *, key: bytes | None = b"s", **fields: Any) -> ConsumerRecord:
    """Make a record as a reader gets it."""
    defaults: dict[str, Any] = {
        "partition": 1, "offset": 7, "timestamp": 1_796_000_000_000, "timestamp_type": 1, "headers": (),
        "checksum": None, "serialized_key_size": len(key or b""), "serialized_value_size": len(value or b""),
    }  # fmt: skip
    return ConsumerRecord(topic=topic, key=key, value=value, **defaults | fields)


def refused(record: ConsumerRecord, problem: InvalidEvent = BROKEN, group: str = "g") -> DeadLetter:
    """Make its dead letter as every process of ours does."""
    return dead_letter(record, problem, group)


def as_read(letter: DeadLetter, **fields: Any) -> ConsumerRecord:
    """Make the record of a dead letter as it is read."""
    where = {"partition": 3, "offset": 12, "headers": tuple(letter.headers)} | fields
    return came("agent.dead-letters", letter.value, key=letter.key, **where)


async def write(
    kafka: KafkaSettings, letters: Sequence[DeadLetter], *, partition: int = 0, timestamps: Sequence[int] | None = None
) -> list[str]:
    """Write letters, and name them as people do."""
    async with running(producer(kafka), kafka) as client:
        name = kafka.topic(topics.DEAD_LETTERS)
        sent = [
            await client.send(
                name,
                letter.value,
                key=letter.key,
                partition=partition,
                headers=list(letter.headers),
                timestamp_ms=None if timestamps is None else timestamps[number],
            )
            for number, letter in enumerate(letters)
        ]
        return [f"{partition}@{(await each).offset}" for each in sent]


async def records(kafka: KafkaSettings, topic: topics.Topic, partitions: int = 2) -> list[ConsumerRecord]:
    """Read all committed records of a topic, once the transactions that are over are seen to be."""
    name = kafka.topic(topic)
    async with running(consumer(kafka, isolation_level="read_uncommitted"), kafka) as client:
        ends = await client.end_offsets([TopicPartition(name, number) for number in range(partitions)])
    async with reading(kafka, [name]) as reader:
        return [record async for record in reader.read(name, until=ends)]


def own(record: ConsumerRecord) -> list[tuple[str, bytes | None]]:
    """Give a record's headers without those that say that it was put back."""
    return [each for each in record.headers if not each[0].startswith("__traction.replay.")]
