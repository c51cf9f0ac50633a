"""Removes tasks that nothing was heard of for longer than tasks are kept.

A task's age is that of its last applied record, by the brokers' clock: events' own times are their producers', and say
nothing of when a task was heard of. It is compared with our clock, and while records wait to be applied with the time
of the last applied one: else a worker that was away would remove tasks whose next event waits already. That is seen of
this worker's inputs alone: where all were away for longer than tasks are kept, one may be forgotten too early whose
next event is still on its way through another's partition.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streams.worker.app import Worker
    from streams.worker.partition import Partition

logger = logging.getLogger(__name__)

SLICE_TASKS = 1_000
"""Tasks looked at without a break: at a microsecond or two each, others wait no longer than for a slice of records."""

MS_PER_DAY = 86_400_000


class Sweeper:
    """Sweeps the partitions of one worker.

    Args:
        worker: the worker.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    async def run(self) -> None:
        """Sweep from time to time; never returns."""
        while True:
            await asyncio.sleep(self._worker.settings.sweep_interval)
            try:
                await self._sweep()
            except (KafkaError, TimeoutError) as problem:
                logger.debug("no task is removed for now, the ends of the topics cannot be learnt: %s", problem)

    async def _sweep(self) -> None:
        worker = self._worker
        if worker.recovering:
            return  # what is back of a task may be older than what is not
        # Nothing awaits between: what is owned now is recovered, and what is won later is not among it.
        owned = worker.ownerships.current
        retention_ms = worker.overrides.policy.common.tasks.retention_days * MS_PER_DAY
        before_ms = int(await self._now_ms(owned) - retention_ms)
        for partition in owned.values():
            await self._sweep_partition(partition, before_ms)

    async def _now_ms(self, owned: Mapping[int, Partition]) -> float:
        """Give the time up to which everything was applied; 0 when that is not known."""
        tps = [TopicPartition(topic, number) for number in owned for topic in self._worker.settings.inputs]
        ends = await self._worker.consumer.ends(tps)
        now_ms = time.time() * 1_000
        for tp in tps:
            partition = owned[tp.partition]
            if partition.positions[tp] < ends[tp]:
                now_ms = min(now_ms, partition.applied_ms.get(tp, 0))
        return now_ms

    async def _sweep_partition(self, partition: Partition, before_ms: int) -> None:
        keys = partition.tasks.stored_keys()
        for begin in range(0, len(keys), SLICE_TASKS):
            if partition.ended:
                return
            expired = partition.expire_tasks(keys[begin : begin + SLICE_TASKS], before_ms)
            self._worker.metrics.tasks_expired.inc(expired)
            await asyncio.sleep(0)
