"""Reads topics to their end as it is now, or on from there, for those who look things up: committed records only.

Joins no group and commits nothing, so that looking changes nothing for anybody. It must not decide what a record means.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from aiokafka import TopicPartition
from aiokafka.partitioner import murmur2

from streams.kafka import KafkaSettings, consumer, running, unavailable
from streams.topics import TopicsError, missing_topics, partition_counts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Collection, Mapping
    from datetime import datetime
    from typing import TypeVar

    from aiokafka import AIOKafkaConsumer
    from aiokafka.structs import ConsumerRecord

    T = TypeVar("T")

POLL_MS = 200
"""How long one fetch may wait for news, hence how soon the end of waiting is noticed."""

DEFAULT_SECONDS = 60.0
"""How long a look at a topic may take before it is given up: a week of alerts of a large fleet is read in a few."""

NEWS_MS = 30_000
"""How soon partitions that are added to a topic are noticed; aiokafka by itself asks every five minutes."""

Positions = dict[TopicPartition, int]
"""For each partition of one topic the offset to read next."""


class TooSlow(Exception):
    """A topic was not read to its end in time: the message says which, and what to do."""


def partition_of(key: bytes, partitions: int) -> int:
    """Tell in which partition a key's records are: murmur2, as Java's default partitioner and ours hash."""
    hashed: int = murmur2(key)
    return (hashed & 0x7FFFFFFF) % partitions


class Reader:
    """Reads one topic after the other with one client.

    Args:
        kafka: where the topics are.
        client: a started consumer without a group.
        partitions: how many each topic has, by name on the brokers; those that are not there are left out.
        seconds: how long reading one topic to its end may take.
    """

    def __init__(
        self, kafka: KafkaSettings, client: AIOKafkaConsumer, partitions: Mapping[str, int], seconds: float
    ) -> None:
        self._kafka = kafka
        self._client = client
        self._partitions = partitions
        self._seconds = seconds
        self.turns = 0
        """How often `follow` fetched; rises as long as it is followed, whether anything comes or not."""

    def has(self, name: str) -> bool:
        """Tell whether a topic is there."""
        return name in self._partitions

    async def ends(self, name: str, *, key: bytes | None = None) -> Positions:
        """Give where a topic ends now.

        Args:
            name: the topic, on the brokers.
            key: only the partition that this key's records are in; None for all.

        Raises:
            TooSlow: the brokers do not answer in time.
        """
        tps = self._tps(name, key)
        self._client.assign(tps)
        found: Positions = await self._in_time(self._client.end_offsets(tps), self._deadline(), name)
        return found

    async def read(
        self,
        name: str,
        *,
        key: bytes | None = None,
        since: datetime | None = None,
        start: Positions | None = None,
        until: Positions | None = None,
        long: bool = False,
    ) -> AsyncIterator[ConsumerRecord]:
        """Give a topic's records up to its end as it is when this begins; none when there is no such topic.

        Args:
            name: the topic, on the brokers.
            key: only this key's records, of which only the partition is read; None for all.
            since: only records written then or later, by the time that the record has on the brokers.
            start: where to begin, as `ends` gave it earlier; None for the beginning.
            until: where to end, likewise; None for the end as it is now.
            long: whether the time counts anew with whatever comes, for a topic of any length.

        Raises:
            TooSlow: it takes too long, or the brokers are away.
        """
        if not self.has(name):
            return
        deadline = self._deadline()
        ends = await self.ends(name, key=key) if until is None else until
        if start is not None and ends == start:
            return
        self._client.assign(list(ends))
        for tp, offset in (start or await self._starts(name, ends, since, deadline)).items():
            self._client.seek(tp, offset)
        while any([await self._position(tp, name, deadline) < end for tp, end in ends.items()]):
            fetched = await self._in_time(self._client.getmany(timeout_ms=POLL_MS), deadline, name)
            for tp, records in fetched.items():
                for record in records:
                    if record.offset < ends[tp] and key in {None, record.key}:
                        yield record
            if long and fetched:
                deadline = self._deadline()

    async def follow(self, positions: Positions, *, key: bytes | None = None) -> AsyncIterator[ConsumerRecord]:
        """Give what comes from given positions on, without an end: whoever calls says how long.

        Where no key is given, partitions that are added to the topics meanwhile are read from their beginning.

        Args:
            positions: where to begin, as `ends` gave it.
            key: only this key's records; None for all.
        """
        standing = dict(positions)
        self._go_to(standing)
        while True:
            fetched = await self._client.getmany(timeout_ms=POLL_MS)
            self.turns += 1
            for tp, records in fetched.items():
                for record in records:
                    standing[tp] = record.offset + 1
                    if key in {None, record.key}:
                        yield record
            added = self._added(standing) if key is None else {}
            if added:
                standing |= added
                self._go_to(standing)

    async def positions(self) -> Positions:
        """Give what is read next of each partition that is followed; markers of transactions count as read.

        Raises:
            KafkaError: it is not known.
        """
        return {tp: await self._client.position(tp) for tp in self._client.assignment()}

    def _go_to(self, positions: Positions) -> None:
        self._client.assign(list(positions))
        for tp, offset in positions.items():
            self._client.seek(tp, offset)

    def _added(self, known: Positions) -> Positions:
        """Give the beginnings of the partitions that topics have beyond those that are known, as the client knows."""
        found = {
            TopicPartition(name, number)
            for name in {tp.topic for tp in known}
            for number in self._client.partitions_for_topic(name) or ()
        }
        return dict.fromkeys(found - known.keys(), 0)

    async def _starts(self, name: str, ends: Positions, since: datetime | None, deadline: float) -> Positions:
        tps = list(ends)
        if since is None:
            starts: Positions = await self._in_time(self._client.beginning_offsets(tps), deadline, name)
            return starts
        at_ms = max(0, int(since.timestamp() * 1_000))
        found = await self._in_time(self._client.offsets_for_times(dict.fromkeys(tps, at_ms)), deadline, name)
        return {tp: ends[tp] if found[tp] is None else found[tp].offset for tp in tps}

    async def _position(self, tp: TopicPartition, name: str, deadline: float) -> int:
        position: int = await self._in_time(self._client.position(tp), deadline, name)
        return position

    def _tps(self, name: str, key: bytes | None) -> list[TopicPartition]:
        count = self._partitions[name]
        numbers = range(count) if key is None else [partition_of(key, count)]
        return [TopicPartition(name, number) for number in numbers]

    def _deadline(self) -> float:
        return time.monotonic() + self._seconds

    async def _in_time(self, work: Awaitable[T], deadline: float, name: str) -> T:
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                return await work
        except TimeoutError as problem:
            raise TooSlow(
                f"{name} could not be read to its end within {self._seconds:g} s: are the brokers at "
                f"{self._kafka.bootstrap} reachable? If they are, and it is long, give more time"
            ) from problem


@asynccontextmanager
async def reading(
    kafka: KafkaSettings,
    needed: Collection[str],
    *,
    optional: Collection[str] = (),
    seconds: float = DEFAULT_SECONDS,
) -> AsyncIterator[Reader]:
    """Look which of some topics are there, and give what reads them.

    Args:
        kafka: where and how to connect.
        needed: topics, by their name on the brokers, without which nothing can be said.
        optional: likewise, those of which each may be missing.
        seconds: how long reading one topic to its end may take, and how long connecting may.

    Raises:
        KafkaUnavailable: the brokers cannot be reached.
        TopicsError: a topic that is needed is missing, or hidden from us.
    """
    async with AsyncExitStack() as stack:
        try:
            async with asyncio.timeout(seconds):
                counts = await partition_counts(kafka, {*needed, *optional})
                problems = missing_topics(kafka, set(needed) - counts.keys(), None, None)
                if problems:
                    raise TopicsError(problems)
                client = await stack.enter_async_context(running(consumer(kafka, metadata_max_age_ms=NEWS_MS), kafka))
        except TimeoutError as problem:
            raise unavailable(kafka, TimeoutError(f"no answer within {seconds:g} s")) from problem
        yield Reader(kafka, client, counts, seconds)
