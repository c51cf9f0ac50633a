"""What a worker tells of itself: how far each partition is, whether it recovers, and when it is ready.

It only looks. The ends of the topics are asked from the brokers by `streams.lag`; while state is read back, progress is
that of the changelogs, so that a long recovery counts as alive and a stuck one does not.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from streams.lag import BROKER, Applied
from streams.worker.recovery import RecoveryWatch, read_back

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiokafka import TopicPartition

    from streams.pages import Health
    from streams.worker.app import Worker
    from streams.worker.partition import Partition

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.1
"""Time between looks."""

RECOVERED = "state recovered"
"""Condition of readiness: the state of all partitions that are ours is back from the changelogs."""

CONDITIONS = (RECOVERED, BROKER)
"""All conditions of readiness."""


def progress(worker: Worker) -> Mapping[TopicPartition, Applied]:
    """Tell how far each partition is: of the inputs, or of the changelogs while state is read back from them.

    Args:
        worker: the worker.
    """
    owned = worker.ownerships.current
    if worker.recovering:
        return {tp: Applied(offset + 1, None) for tp, offset in read_back(worker).items()}
    return {
        tp: Applied(position, partition.applied_ms[tp] / 1_000 if tp in partition.applied_ms else None)
        for partition in owned.values()
        for tp, position in partition.committed.items()
        if tp.topic in worker.settings.inputs
    }


class Watch:
    """Watches one worker.

    Args:
        worker: the worker.
        health: told of readiness.
        on_ready: called with the partitions whenever state is back after they were assigned.
    """

    def __init__(self, worker: Worker, health: Health, on_ready: Callable[[list[int]], None]) -> None:
        self._worker = worker
        self._health = health
        self._on_ready = on_ready
        self._recovery = RecoveryWatch(worker)
        self._told: Mapping[int, Partition] | None = None

    async def run(self) -> None:
        """Look again and again; never returns."""
        while True:
            self._look()
            await asyncio.sleep(LOOK_SECONDS)

    def _look(self) -> None:
        worker = self._worker
        recovering, owned = worker.recovering, worker.ownerships.current
        worker.metrics.recovery_active.set(int(recovering))
        worker.metrics.live_sessions.set(sum(len(partition.sessions) for partition in owned.values()))
        worker.metrics.live_tasks.set(sum(len(partition.tasks) for partition in owned.values()))
        far = self._recovery.look()
        if recovering:
            self._health.fail(RECOVERED, far)
        else:
            self._health.hold(RECOVERED)
            if owned is not self._told:
                self._told = owned
                self._on_ready(sorted(owned))
