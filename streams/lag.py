"""Watches how far a process is behind the end of its partitions, with a client of its own.

The ends are asked of the brokers, not taken from the consumer that is watched: one that has silently stopped believes
that there is nothing to read. The watch feeds the metrics and the health; it never touches what it watches.
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiokafka.errors import KafkaError

from streams.kafka import KafkaSettings, KafkaUnavailable, consumer, running

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiokafka import AIOKafkaConsumer, TopicPartition

    from streams.health import Health
    from streams.metrics import ConsumerMetrics

logger = logging.getLogger(__name__)

INTERVAL_SECONDS = 5.0
"""Between two looks: a scrape's usual interval is 15 s or more. Less where the stall limit is short."""

ANSWER_SECONDS = 5.0
"""How long the brokers may take to answer before they count as away. Less where the stall limit is short."""

LOOKS_PER_STALL = 16
"""Looks in a stall limit, at least: with the time for an answer, an eighth of it, two are closer than the quarter from
which on `Health` takes them for blind."""

RETRY_MS = 20
"""Between a client's two looks for a topic that is new to it, one topic after the other: with aiokafka's 100 ms the
first answer would take half a second, and count as none where the stall limit is short."""

BROKER = "broker"
"""Name of the condition of readiness that the watch keeps."""


@dataclass(frozen=True, slots=True)
class Applied:
    """How far one partition has been applied and committed.

    Attributes:
        position: offset that comes next; beyond control records that were read after the last event.
        timestamp: time of the record applied last, in seconds since 1970; None when there was none yet.
    """

    position: int
    timestamp: float | None


def interval_seconds(stall_seconds: float) -> float:
    """Give the time between two looks, for a stall limit."""
    return min(INTERVAL_SECONDS, stall_seconds / LOOKS_PER_STALL)


def answer_seconds(stall_seconds: float) -> float:
    """Give how long the brokers may take to answer before they count as away, for a stall limit."""
    return min(ANSWER_SECONDS, 2 * stall_seconds / LOOKS_PER_STALL)


MAX_ENDS = 500
"""Ends of one partition that are remembered, those of an hour or so at first; the longer it waits, the fewer."""


class Waiting:
    """Tells how long the record that comes next in a partition has been waiting, from the ends that were seen.

    The age of the record applied last would not do: where there was nothing for hours, one that has just come would
    seem to have waited for hours. It serves where a backlog was there before the first look, since it is next to it.
    """

    def __init__(self) -> None:
        self._ends: list[tuple[int, float]] = []
        self._first = -1

    def seconds(self, applied: Applied, end: int, now: float) -> float:
        """Give how long it has been waiting, at most one look's interval too little; 0 when none does.

        Args:
            applied: how far the partition is.
            end: where it ends.
            now: seconds since 1970.
        """
        if self._first < 0 or (self._ends and end < self._ends[-1][0]):  # the first look, or the topic was made anew
            self._ends, self._first = [], end
        if not self._ends or end > self._ends[-1][0]:
            self._ends.append((end, now))
        self._ends = [each for each in self._ends if each[0] > applied.position]
        if len(self._ends) > MAX_ENDS:
            del self._ends[1::2]
        if not self._ends:
            return 0.0
        since = self._ends[0][1]
        if applied.position < self._first and applied.timestamp is not None:
            since = min(since, applied.timestamp)
        return max(0.0, now - since)


class HangLog:
    """Logs what begins to hang and what goes on: after a restart, nobody can ask the page any more.

    Args:
        health: knows.
    """

    def __init__(self, health: Health) -> None:
        self._health = health
        self._stuck: set[str] = set()

    def tell(self) -> None:
        """Log what is new since the last call."""
        stuck = {name: state for name, state in self._health.live().checks.items() if state != "ok"}
        for name in sorted(stuck.keys() - self._stuck):
            logger.error(
                "%s: %s; /healthz says so until it goes on, for this process to be restarted", name, stuck[name]
            )
        for name in sorted(self._stuck - stuck.keys()):
            logger.warning("%s: does not hang any more", name)
        self._stuck = set(stuck)


class EndsWatch(ABC):
    """Asks every few seconds where partitions end, with a client of its own, and waits out the brokers' absence.

    Args:
        settings: where and how to connect.
        health: told; looks are as close together as its stall limit asks for.
    """

    def __init__(self, settings: KafkaSettings, health: Health) -> None:
        self._settings = settings
        self._health = health
        self._hangs = HangLog(health)
        self._interval = interval_seconds(health.stall_seconds)
        self._answer = answer_seconds(health.stall_seconds)
        self._waiting: dict[TopicPartition, Waiting] = {}

    @abstractmethod
    async def positions(self) -> Mapping[TopicPartition, Applied]:
        """Give how far each partition is."""

    @abstractmethod
    def seen(self, applied: Mapping[TopicPartition, Applied], ends: Mapping[TopicPartition, int]) -> None:
        """Take in a look: how far each partition was, and where it ended after that."""

    @abstractmethod
    def away(self, problem: str) -> None:
        """Take in that the brokers do not answer, and why."""

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            try:
                # A group id is not given: this client joins no group and commits nothing.
                async with running(consumer(self._settings, retry_backoff_ms=RETRY_MS), self._settings) as client:
                    while True:
                        await self._look(client)
                        await asyncio.sleep(self._interval)
            except (KafkaUnavailable, KafkaError, TimeoutError) as problem:
                self._away(problem)
            await asyncio.sleep(self._interval)

    async def _look(self, client: AIOKafkaConsumer) -> None:
        try:
            async with asyncio.timeout(self._answer):
                # The positions come first: an end that was learnt later cannot lie before them.
                applied = await self.positions()
                # Where there are none: whether the brokers answer at all.
                ends = await (client.end_offsets(list(applied)) if applied else client.topics())
        except (KafkaError, TimeoutError) as problem:
            self._away(problem)  # at once: the client may wait for them a while before it is stopped
            raise
        self.seen(applied, ends)
        self._hangs.tell()

    def _away(self, problem: Exception) -> None:
        self.away(type(problem).__name__)
        logger.debug("the ends of the partitions cannot be learnt: %s", problem)

    def waits(self, tp: TopicPartition, applied: Applied, end: int, now: float) -> float:
        """Give for how long a partition's next record has been waiting; see `Waiting`."""
        return self._waiting.setdefault(tp, Waiting()).seconds(applied, end, now)


class LagWatch(EndsWatch):
    """Looks how far a consumer of a group is behind.

    Args:
        settings: where and how to connect.
        metrics: takes lag and age.
        health: takes progress, and the condition `BROKER`.
        applied: tells what is owned now and how far each partition is.
        taking: tells what is under way and has no end that the brokers know, by name, with a number that grows as long
            as it goes on: partitions being taken or let go of, and the turns of each loop that must never wait for
            ever. A process that hangs there would seem to have nothing to do. What is not named is not watched: leave
            out what waits for others rightly.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        metrics: ConsumerMetrics,
        health: Health,
        applied: Callable[[], Mapping[TopicPartition, Applied]],
        *,
        taking: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        super().__init__(settings, health)
        self._metrics = metrics
        self._applied = applied
        self._taking = taking
        self._taken: set[str] = set()

    async def positions(self) -> Mapping[TopicPartition, Applied]:
        """Give how far each partition is that is owned."""
        return self._applied()

    def away(self, problem: str) -> None:
        """Take in that the brokers do not answer."""
        self._health.fail(BROKER, f"does not answer: {problem}")
        self._metrics.brokers_reachable.set(0)

    def seen(self, applied: Mapping[TopicPartition, Applied], ends: Mapping[TopicPartition, int]) -> None:
        """Take in a look."""
        self._health.hold(BROKER)
        self._metrics.brokers_reachable.set(1)
        taking = self._taking()
        for name, done in taking.items():
            self._health.progress(name, done, done + 1)
        for name in self._taken - taking.keys():
            self._health.forget(name)
        self._taken = set(taking)
        behind = 0.0
        for tp, now in applied.items():
            self._metrics.lag_records.labels(tp.topic, str(tp.partition)).set(max(0, ends[tp] - now.position))
            self._health.progress(f"{tp.topic}-{tp.partition}", now.position, ends[tp])
            behind = max(behind, self.waits(tp, now, ends[tp], time.time()))
        self._metrics.behind_seconds.set(behind)
        for tp in self._waiting.keys() - applied.keys():
            del self._waiting[tp]
            self._metrics.forget_partition(tp.topic, tp.partition)
            self._health.forget(f"{tp.topic}-{tp.partition}")
