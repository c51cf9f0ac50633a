"""Reads all topics while a run goes on: every committed record, and how many there are for who reads uncommitted ones.

What differs between the two was rolled back: the proof that faults hit transactions in flight. It reads beside the
proxies, and writes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from schemas import topics
from streams.kafka import KafkaSettings, consumer, running
from streams.topics import SESSIONS_TABLE, TASKS_TABLE, changelog_name, default_group, ladders_name, task_events_name
from streams.worker.records import HEARTBEAT_KEY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiokafka import AIOKafkaConsumer
    from aiokafka.structs import ConsumerRecord

T = TypeVar("T")

POLL_MS = 250

REQUEST_MS = 10_000
"""How long a broker may take to answer: frozen ones do not."""

OUTPUTS = (topics.ALERTS, topics.DEAD_LETTERS, topics.DIRECTIVES, topics.TERMINATIONS, topics.NOTIFICATIONS)


@dataclass(frozen=True)
class Place:
    """Where a run takes place.

    Attributes:
        kafka: how the rig connects, and the prefix.
        bootstrap: how processes under test connect.
        app_id: the workers' application id.
        partitions: of all topics that are shared out.
    """

    kafka: KafkaSettings
    bootstrap: str
    app_id: str
    partitions: int

    @property
    def group(self) -> str:
        """The escalation consumer's group."""
        return default_group(self.app_id)

    @property
    def inputs(self) -> list[str]:
        """Names of the session inputs."""
        return [self.kafka.topic(topic) for topic in topics.SESSION_INPUTS]

    @property
    def task_events(self) -> str:
        """Name of the topic on which events are forwarded to tasks."""
        return task_events_name(self.app_id)

    @property
    def alerts(self) -> str:
        """Name of the topic of alerts."""
        return self.kafka.topic(topics.ALERTS)

    @property
    def kept(self) -> list[str]:
        """Names of the topics of which the latest record of a key counts."""
        names = [changelog_name(self.app_id, table) for table in (SESSIONS_TABLE, TASKS_TABLE)]
        return [*names, ladders_name(self.group), *map(self.kafka.topic, (topics.KNOWN_FLAPPING, topics.FITNESS))]

    @property
    def appended(self) -> list[str]:
        """Names of the topics of which every record counts."""
        return [*self.inputs, self.task_events, *map(self.kafka.topic, OUTPUTS)]

    @property
    def read_by(self) -> dict[str, list[str]]:
        """What each group reads."""
        return {self.app_id: [*self.inputs, self.task_events], self.group: [self.alerts, self.task_events]}


@dataclass
class Ledger:
    """What is on the topics.

    Attributes:
        place: where.
        records: the committed records of topics that are appended to, in the order of each partition.
        latest: of the others the latest committed record by topic, and by partition and key.
        counts: committed records by topic.
        uncommitted: records by topic, rolled back ones among them.
        last: offset of the last committed record.
    """

    place: Place
    records: defaultdict[str, list[ConsumerRecord]] = field(default_factory=lambda: defaultdict(list))
    latest: defaultdict[str, dict[tuple[int, bytes], ConsumerRecord]] = field(default_factory=lambda: defaultdict(dict))
    counts: Counter[str] = field(default_factory=Counter)
    uncommitted: Counter[str] = field(default_factory=Counter)
    last: dict[TopicPartition, int] = field(default_factory=dict)

    async def __aenter__(self) -> Self:
        self._stack = contextlib.AsyncExitStack()
        kafka = self.place.kafka
        levels: dict[str, Callable[[ConsumerRecord], None]] = {
            "read_committed": self._take,
            "read_uncommitted": self._count,
        }
        self._tps = [
            TopicPartition(name, number)
            for name in (*self.place.appended, *self.place.kept)
            for number in range(1 if name.endswith(("known-flapping", "fitness")) else self.place.partitions)
        ]
        self._clients = []
        self._tasks = []
        for level, take in levels.items():
            client = consumer(kafka, isolation_level=level, request_timeout_ms=REQUEST_MS, metadata_max_age_ms=5_000)
            # What is sent to the inputs is never rolled back.
            client.assign([tp for tp in self._tps if take == self._take or tp.topic not in self.place.inputs])
            await self._stack.enter_async_context(running(client, kafka))
            self._clients.append(client)
            self._tasks.append(asyncio.create_task(self._read(client, take)))
        self._groups: dict[str, Any] = {}
        for group in self.place.read_by:
            client = consumer(kafka, group_id=group, request_timeout_ms=REQUEST_MS, metadata_max_age_ms=5_000)
            self._groups[group] = await self._stack.enter_async_context(running(client, kafka))
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._stack.aclose()

    @property
    def rolled_back(self) -> Counter[str]:
        """Records by topic that only readers of uncommitted ones see."""
        return self.uncommitted - self.counts

    async def settle(self, seconds: float, also: Callable[[], str] = lambda: "") -> None:
        """Wait until everything on the topics is read by whom it concerns, and nothing is written any more.

        Args:
            seconds: how long nothing may be got done, however slow the machine is.
            also: says what is to be waited for besides.
        """
        seen, since = set[str](), time.monotonic()
        while left := await self._behind() or also():
            if left not in seen:  # what comes again is no progress
                seen.add(left)
                since = time.monotonic()
            assert time.monotonic() < since + seconds, f"for {seconds:.0f} s nothing was got done: {left}"
            await asyncio.sleep(0.5)

    async def _behind(self) -> str:
        """Say what somebody still has to read; empty when nothing is left."""
        for task in self._tasks:
            if task.done():
                task.result()
        before = await self._patiently(self._ends)
        # First of all: what is not read here yet is not looked for below.
        for client in self._clients:
            for tp in client.assignment():
                if await client.position(tp) < before[tp]:
                    return f"{tp.topic}-{tp.partition} is not read to {before[tp]}"
        for group, names in self.place.read_by.items():
            client = self._groups[group]
            for tp in self._tps:
                last = self.last.get(tp)
                if tp.topic in names and last is not None:
                    done = await self._patiently(partial(client.committed, tp))
                    if done is None or done <= last:
                        return f"{group} is at {done} of {tp.topic}-{tp.partition}, which ends with {last}"
        return "" if await self._patiently(self._ends) == before else "something is written"

    async def _ends(self) -> dict[TopicPartition, int]:
        return dict(await self._clients[1].end_offsets(self._tps))

    @staticmethod
    async def _patiently(ask: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await ask()
            except KafkaError:
                await asyncio.sleep(1)

    @staticmethod
    async def _read(client: AIOKafkaConsumer, take: Callable[[ConsumerRecord], None]) -> None:
        while True:
            try:
                found = await client.getmany(timeout_ms=POLL_MS)
            except KafkaError:
                await asyncio.sleep(1)
                continue
            for records in found.values():
                for record in records:
                    take(record)

    def _take(self, record: ConsumerRecord) -> None:
        if record.key == HEARTBEAT_KEY:
            return
        self.counts[record.topic] += 1
        self.last[TopicPartition(record.topic, record.partition)] = record.offset
        if record.topic in self.place.kept:
            self.latest[record.topic][record.partition, record.key] = record
        else:
            self.records[record.topic].append(record)

    def _count(self, record: ConsumerRecord) -> None:
        if record.key != HEARTBEAT_KEY:
            self.uncommitted[record.topic] += 1
