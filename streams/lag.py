"""Watches how far a process is behind the end of its partitions, with a client of its own.

The ends are asked of the brokers, not taken from the consumer that is watched: one that has silently stopped believes
that there is nothing to read. The watch feeds the metrics and the health; it never touches what it watches.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiokafka.errors import KafkaError

from streams.kafka import KafkaSettings, KafkaUnavailable, consumer, running

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiokafka import AIOKafkaConsumer, TopicPartition

    from streams.metrics import ConsumerMetrics
    from streams.pages import Health

logger = logging.getLogger(__name__)

INTERVAL_SECONDS = 5.0
"""Between two looks: a scrape's usual interval is 15 s or more."""

ANSWER_SECONDS = 5.0
"""How long the brokers may take to answer before they count as away."""

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


class LagWatch:
    """Looks every few seconds.

    Args:
        settings: where and how to connect.
        metrics: takes lag and age.
        health: takes progress, and the condition `BROKER`.
        applied: tells what is owned now and how far each partition is.
        taking: tells what is being taken or let go of, by name, and a number that grows as long as that goes on; it has
            no position, and a process that hangs there would seem to have nothing to do.
        interval: seconds between two looks.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        metrics: ConsumerMetrics,
        health: Health,
        applied: Callable[[], Mapping[TopicPartition, Applied]],
        *,
        taking: Callable[[], Mapping[str, int]] = dict,
        interval: float = INTERVAL_SECONDS,
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._health = health
        self._applied = applied
        self._taking = taking
        self._taken: set[str] = set()
        self._interval = interval
        self._waiting: dict[TopicPartition, Waiting] = {}

    async def run(self) -> None:
        """Watch until cancelled. The brokers' absence is waited out."""
        while True:
            try:
                # A group id is not given: this client joins no group and commits nothing.
                async with running(consumer(self._settings), self._settings) as client:
                    while True:
                        await self._look(client)
                        await asyncio.sleep(self._interval)
            except (KafkaUnavailable, KafkaError, TimeoutError) as problem:
                self._health.fail(BROKER, f"does not answer: {type(problem).__name__}")
                self._metrics.brokers_reachable.set(0)
                logger.debug("the ends of the partitions cannot be learnt: %s", problem)
            await asyncio.sleep(self._interval)

    async def _look(self, client: AIOKafkaConsumer) -> None:
        # The positions come first: an end that was learnt later cannot lie before them.
        applied = self._applied()
        question = client.end_offsets(list(applied)) if applied else client.topics()  # whether they answer at all
        async with asyncio.timeout(ANSWER_SECONDS):
            ends = await question
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
            waiting = self._waiting.setdefault(tp, Waiting())
            behind = max(behind, waiting.seconds(now, ends[tp], time.time()))
        self._metrics.behind_seconds.set(behind)
        for tp in self._waiting.keys() - applied.keys():
            del self._waiting[tp]
            self._metrics.forget_partition(tp.topic, tp.partition)
            self._health.forget(f"{tp.topic}-{tp.partition}")
