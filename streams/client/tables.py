"""Small compacted topics of one partition, read whole and kept up to date: known-flapping tasks, fitness.

What is asked for is as the topic is when it is asked: a look costs one question to the brokers once the topic was read.
It writes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Generic, TypeVar, cast

import msgspec

from schemas.decode import InvalidEvent, decode
from schemas.topics import KNOWN_FLAPPING, Topic
from streams.reading import DEFAULT_SECONDS, Positions, Reader, reading

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from schemas.outputs import KnownFlapping
    from streams.kafka import KafkaSettings

logger = logging.getLogger(__name__)

Record = TypeVar("Record", bound=msgspec.Struct)


class Table(Generic[Record]):
    """The latest record of each key of one topic.

    Args:
        reader: reads it, and nothing else meanwhile.
        topic: the topic of the contract.
        name: its name on the brokers.
    """

    def __init__(self, reader: Reader, topic: Topic, name: str) -> None:
        self._reader = reader
        self._topic = topic
        self._name = name
        self._read_to: Positions | None = None
        self._turn = asyncio.Lock()
        self._records: dict[bytes, Record] = {}

    async def latest(self) -> dict[bytes, Record]:
        """Read on to the end as it is now, and give the records by key.

        Raises:
            TooSlow: it takes too long, or the brokers are away.
            KafkaError: they refuse it.
        """
        async with self._turn:
            ends = await self._reader.ends(self._name)
            if self._read_to is not None and any(ends[tp] < offset for tp, offset in self._read_to.items()):
                self._records, self._read_to = {}, None  # the topic was made anew
            async for record in self._reader.read(self._name, start=self._read_to, until=ends):
                self._put(record.key, record.value)
            self._read_to = ends
            return self._records

    def _put(self, key: bytes | None, value: bytes | None) -> None:
        self._records.pop(key or b"", None)
        if key is None or value is None:
            return
        try:
            self._records[key] = cast("Record", decode(self._topic, value))
        except InvalidEvent as problem:
            logger.warning("a record of %s is ignored: %s", self._name, problem)


@asynccontextmanager
async def table(
    kafka: KafkaSettings, topic: Topic, *, seconds: float = DEFAULT_SECONDS
) -> AsyncIterator[Table[msgspec.Struct]]:
    """Give the table of a topic of one partition.

    Args:
        kafka: where and how to connect.
        topic: the topic.
        seconds: how long a look may take.

    Raises:
        KafkaUnavailable: the brokers cannot be reached.
        TopicsError: the topic is missing.
    """
    name = kafka.topic(topic)
    async with reading(kafka, [name], seconds=seconds) as reader:
        yield Table(reader, topic, name)


def still_flapping(entry: KnownFlapping | None) -> KnownFlapping | None:
    """Give an entry unless it has expired, by this machine's clock: then the task may be tried again."""
    return entry if entry is not None and datetime.now(UTC) < entry.expires_at else None


def known_flapping(kafka: KafkaSettings, task_id: str) -> KnownFlapping | None:
    """Tell whether a task is known to flap, from code that is not asynchronous; reads the topic anew each time.

    Args:
        kafka: where and how to connect.
        task_id: the task.

    Raises:
        KafkaUnavailable: the brokers cannot be reached.
        TopicsError: the topic is missing.
    """

    async def look() -> KnownFlapping | None:
        async with table(kafka, KNOWN_FLAPPING) as entries:
            return still_flapping(cast("KnownFlapping | None", (await entries.latest()).get(task_id.encode())))

    return asyncio.run(look())
