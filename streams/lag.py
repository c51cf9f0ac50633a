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


class LagWatch:
    """Looks every few seconds.

    Args:
        settings: where and how to connect.
        metrics: takes lag and age.
        health: takes progress, and the condition `BROKER`.
        applied: tells what is owned now and how far each partition is.
        interval: seconds between two looks.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        metrics: ConsumerMetrics,
        health: Health,
        applied: Callable[[], Mapping[TopicPartition, Applied]],
        *,
        interval: float = INTERVAL_SECONDS,
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._health = health
        self._applied = applied
        self._interval = interval
        self._shown: set[TopicPartition] = set()

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
                logger.debug("the ends of the partitions cannot be learnt: %s", problem)
            await asyncio.sleep(self._interval)

    async def _look(self, client: AIOKafkaConsumer) -> None:
        # The positions come first: an end that was learnt later cannot lie before them.
        applied = self._applied()
        question = client.end_offsets(list(applied)) if applied else client.topics()  # whether they answer at all
        async with asyncio.timeout(ANSWER_SECONDS):
            ends = await question
        self._health.hold(BROKER)
        behind = 0.0
        for tp, now in applied.items():
            lag = max(0, ends[tp] - now.position)
            self._metrics.lag_records.labels(tp.topic, str(tp.partition)).set(lag)
            self._health.progress(f"{tp.topic}-{tp.partition}", now.position, ends[tp])
            if lag and now.timestamp is not None:
                behind = max(behind, time.time() - now.timestamp)
        self._metrics.behind_seconds.set(behind)
        for tp in self._shown - applied.keys():
            self._metrics.forget_partition(tp.topic, tp.partition)
            self._health.forget(f"{tp.topic}-{tp.partition}")
        self._shown = set(applied)
