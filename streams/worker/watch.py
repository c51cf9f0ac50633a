"""What a worker tells of itself: how far each partition is, what is under way, and when it is ready.

It only looks. The ends of the topics are asked from the brokers by `streams.lag`; while state is read back, progress is
that of the changelogs, so that a long recovery counts as alive and a stuck one does not.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from streams.lag import BROKER, Applied, answer_seconds
from streams.worker.recovery import RecoveryWatch, read_back

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiokafka import TopicPartition

    from streams.health import Health
    from streams.worker.app import Worker
    from streams.worker.partition import Partition

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.1
"""Time between looks."""

ASSIGNED = "assigned"
"""Condition of readiness: the group has told which partitions are ours, and they are taken over. None is an answer too:
where others have them all, this worker is the one that stands by."""

RECOVERED = "state recovered"
"""Condition of readiness: the state of all partitions that are ours is back from the changelogs."""

PRODUCERS = "producers connected"
"""Condition of readiness: of each partition that is ours the producer is connected, and the brokers answer it."""

CONDITIONS = (ASSIGNED, RECOVERED, PRODUCERS, BROKER)
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


def under_way(worker: Worker) -> Mapping[str, int]:
    """Tell what must go on though it has no end that the brokers know, as `streams.lag.LagWatch` takes it.

    Nothing is told of the time in which the other workers of the group, or the brokers, decide who gets what.

    Args:
        worker: the worker.
    """
    consumer, follower, found = worker.consumer, worker.follower, dict[str, int]()
    if follower.positions:  # it is read whole by now
        found["following overrides"] = follower.turns
    if consumer.moving:
        found[consumer.moving] = worker.ownerships.steps + worker.ownerships.changelogs.steps
    elif consumer.assigned and worker.recovering:
        found["reading state back"] = sum(read_back(worker).values())
    elif consumer.assigned:
        found["fetching"] = consumer.turns
    return found


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
        if worker.consumer.assigned:
            self._health.hold(ASSIGNED)
            self._connected(worker.ownerships.commit_waits)
        else:
            waiting = worker.consumer.moving or "the group has not said yet which partitions are ours"
            self._health.fail(ASSIGNED, waiting)
            self._health.fail(PRODUCERS, "not yet: each partition has one of its own")
        if recovering:
            self._health.fail(RECOVERED, far)
        else:
            self._health.hold(RECOVERED)
            if owned is not self._told:
                self._told = owned
                self._on_ready(sorted(owned))

    def _connected(self, seconds: float) -> None:
        if seconds > answer_seconds(self._health.stall_seconds):
            self._health.fail(PRODUCERS, f"a commit has been waiting for the brokers for {seconds:.0f} s")
        else:
            self._health.hold(PRODUCERS)
