"""Removes sessions and tasks that nothing was heard of for as long as they are kept.

It decides nothing: what it removes is what the next record would begin anew anyway (see `streams.worker.keeping`), so
that it matters to room alone. Each input tells from when on its next record can be: from now on where all of it was
applied, else from the last applied record on, so that a worker that was away removes nothing whose next record waits.
"""

from __future__ import annotations

import asyncio
import logging
import time
from itertools import islice
from typing import TYPE_CHECKING

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from streams.topics import TASK_EVENTS
from streams.worker.keeping import keeping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prometheus_client import Counter

    from schemas.topics import Topic
    from streams.worker.app import Worker
    from streams.worker.partition import Partition

logger = logging.getLogger(__name__)

SLICE_STATES = 1_000
"""States looked at without a break: at a microsecond or two each, others wait no longer than for a slice of records."""

FORGOTTEN_SECONDS = 1.0
"""Between two looks for sessions that were to be forgotten, as long as there are any: one question to the brokers."""

TAKEN_OVER_SECONDS = 60.0
"""Until all states are looked at after partitions were taken over: what was to be forgotten and waited for its removal
only their former owner knew. Not at once, since there is more to do then, and partitions may go on moving."""

MAX_REMOVED_STATES = 10_000
"""States removed until a commit is waited for: each takes 3 kB until then.

With a shorter time, or a release that begins to forget, they may be nearly all that there are, for which neither memory
nor one transaction has room.
"""


class Sweeper:
    """Sweeps the partitions of one worker.

    Args:
        worker: the worker.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        metrics, inputs = worker.metrics, worker.settings.inputs
        tasks = {name: topic for name, topic in inputs.items() if topic is TASK_EVENTS}
        sessions = {name: topic for name, topic in inputs.items() if topic is not TASK_EVENTS}
        self._tables: tuple[tuple[dict[str, Topic], Counter], ...] = (
            (sessions, metrics.sessions_expired),
            (tasks, metrics.tasks_expired),
        )

    async def run(self) -> None:
        """Sweep from time to time, and more often what people want to be forgotten; never returns."""
        interval = self._worker.settings.sweep_interval
        due, owned = time.monotonic() + interval, self._worker.ownerships.current
        while True:
            await asyncio.sleep(min(interval, FORGOTTEN_SECONDS))
            if self._worker.ownerships.current is not owned:
                owned = self._worker.ownerships.current
                due = time.monotonic() + min(interval, TAKEN_OVER_SECONDS)
            if self._worker.recovering or not all(map(self._worker.ownerships.changelogs.whole, owned)):
                continue  # what is back of a state may be older than what is not
            try:
                if time.monotonic() < due:
                    await self._sweep_forgotten()
                    continue
                due = time.monotonic() + min(interval, TAKEN_OVER_SECONDS)  # again soon, should it fail
                await self._sweep()
                due = time.monotonic() + interval
            except (KafkaError, TimeoutError) as problem:
                logger.debug("nothing is removed for now, the ends of the topics cannot be learnt: %s", problem)

    async def _sweep(self) -> None:
        worker = self._worker
        # Nothing awaits between: what is owned now is recovered, and what is won later is not among it.
        owned = worker.ownerships.current
        now_ms = time.time() * 1_000  # before the ends are asked for: what comes meanwhile is no older
        ends = await worker.consumer.ends(
            [TopicPartition(name, number) for number in owned for name in worker.settings.inputs]
        )
        for partition in owned.values():
            for inputs, expired in self._tables:
                await self._sweep_table(partition, inputs, expired, reached_ms(partition, inputs, ends, now_ms))

    async def _sweep_forgotten(self) -> None:
        """Remove the sessions that were to be forgotten of which no record from before can come any more."""
        worker, (sessions, _) = self._worker, self._tables[0]
        owned = {number: each for number, each in worker.ownerships.current.items() if each.sessions.forgotten}
        if not owned:
            return
        now_ms = time.time() * 1_000
        kept = keeping(next(iter(sessions.values())), worker.overrides.policy.common)
        keys = {number: list(each.sessions.forgotten) for number, each in owned.items()}
        ends = await worker.consumer.ends([TopicPartition(name, number) for number in owned for name in sessions])
        for number, partition in owned.items():
            if not partition.ended:
                partition.expire(partition.sessions, keys[number], kept, reached_ms(partition, sessions, ends, now_ms))

    async def _sweep_table(
        self, partition: Partition, inputs: Mapping[str, Topic], expired: Counter, now_ms: float
    ) -> None:
        if partition.ended:
            return
        topic = next(iter(inputs.values()))
        table = partition.table(topic)
        kept = keeping(topic, self._worker.overrides.policy.common)
        keys, waiting = iter(table.stored_keys()), 0
        while part := list(islice(keys, SLICE_STATES)):
            removed = partition.expire(table, part, kept, now_ms)
            partition.tally.count(expired, removed)
            waiting += removed
            if waiting >= MAX_REMOVED_STATES:
                waiting = 0
                partition.room.clear()  # nothing awaits since they were removed: their commit is still to come
                await partition.room.wait()
            await asyncio.sleep(0)
            if partition.ended:
                return


def reached_ms(
    partition: Partition, inputs: Mapping[str, Topic], ends: Mapping[TopicPartition, int], now_ms: float
) -> float:
    """Give the time that all records to come of some inputs have reached; 0 when that is not known."""
    for name in inputs:
        tp = TopicPartition(name, partition.number)
        if partition.positions[tp] < ends[tp]:
            now_ms = min(now_ms, partition.applied_ms.get(tp, 0))
    return now_ms
