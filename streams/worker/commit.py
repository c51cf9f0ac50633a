"""Commits what one partition has to write: states, offsets and all other records in one Kafka transaction.

The transactional id names the partition, so that a later owner's producer fences this one. A commit that fails is not
tried again in this process: the partition is somebody else's now, or the brokers are gone, and the process ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING, Any

from streams.fencing import lost, reason
from streams.kafka import in_words
from streams.worker.faults import EXIT_LOST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import NoReturn

    from aiokafka import AIOKafkaProducer

    from streams.worker.metrics import WorkerMetrics
    from streams.worker.partition import Partition, Snapshot
    from streams.worker.settings import WorkerSettings
    from streams.worker.states import Changes

logger = logging.getLogger(__name__)


def batches(producer: AIOKafkaProducer, changes: Changes) -> Iterator[Any]:
    """Give batches of changelog records, in their order, each as large as a producer's may be.

    `AIOKafkaProducer.send` takes ten microseconds of a record, more than all else that is done for one here.
    """
    batch = producer.create_batch()
    for key, value in changes:
        if batch.append(key=key, value=value, timestamp=None) is None:  # full; a first record always fits
            yield batch
            batch = producer.create_batch()
            batch.append(key=key, value=value, timestamp=None)
    if batch.record_count():
        batch.close()
        yield batch


class Committer:
    """Commits one partition as long as it is ours.

    Args:
        partition: what it commits.
        producer: its transactional producer, started.
        settings: intervals and names.
        metrics: counts.
        live_limit: gives the number of sessions and tasks that the partition may keep in memory.
        abandon: ends the process.
    """

    def __init__(
        self,
        partition: Partition,
        producer: AIOKafkaProducer,
        *,
        settings: WorkerSettings,
        metrics: WorkerMetrics,
        live_limit: Callable[[], int],
        abandon: Callable[[int, str], NoReturn],
    ) -> None:
        self._partition = partition
        self._producer = producer
        self._settings = settings
        self._metrics = metrics
        self._live_limit = live_limit
        self._abandon = abandon
        self._lock = asyncio.Lock()
        self.began: float | None = None
        """When the commit under way began, monotonic; None where none is."""
        self._task = asyncio.create_task(self._run(), name=f"commits of partition {partition.number}")

    async def close(self) -> None:
        """Commit what was applied, and give the partition up."""
        self._partition.ended = True
        self._partition.room.set()
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        await self.commit()
        await self._producer.stop()

    async def commit(self) -> None:
        """Commit what was applied since the last time; comes back when it is committed."""
        async with self._lock:  # 1. One transaction at a time.
            began, sent = time.monotonic(), list["asyncio.Future[Any]"]()
            try:
                # 2. Snapshot before the first await: state and offsets agree, later batches go into the next one.
                taken = self._partition.snapshot()
                if taken is None:
                    return
                self.began = began
                async with asyncio.timeout(self._settings.away_timeout):
                    offsets = await self._write(taken, sent)
                self.began = None
                # 8. What was committed is what recovery would give: it may be stored.
                self._partition.settle(taken, **offsets)
                self._partition.trim(self._live_limit())
                self._measure(taken, began)
            except Exception as problem:  # noqa: BLE001 - the process ends with it
                await self._lose(problem, sent)

    async def _write(self, taken: Snapshot, sent: list[asyncio.Future[Any]]) -> dict[str, int]:
        producer, number = self._producer, self._partition.number
        # 3. Begin. (Not by `async with`: that would wait for an abort when we are fenced or the brokers are gone.)
        await producer.begin_transaction()
        # 4. Send everything; a changelog has one partition for each of ours. Noted one by one: what was sent before a
        #    failure is asked for its cause.
        settings = self._settings
        ends: dict[str, tuple[asyncio.Future[Any], int]] = {}
        for table, changelog, changes in (
            ("sessions", settings.sessions_changelog, taken.sessions),
            ("tasks", settings.tasks_changelog, taken.tasks),
        ):
            for batch in batches(producer, changes):
                future = await producer.send_batch(batch, changelog, partition=number)
                sent.append(future)
                ends[table] = future, batch.record_count()
        for out in taken.outgoing:
            future = await producer.send(out.topic, key=out.key, value=out.value, headers=out.headers)
            sent.append(future)
        # 5. The offsets belong to the same transaction, and go while the records do, so that an alert waits for one
        #    answer less. There are none when something only expired.
        if taken.applied:
            offsets = producer.send_offsets_to_transaction(taken.applied, settings.app_id)
            sent.append(asyncio.create_task(offsets))
        # 6. Wait until the brokers have it all.
        await asyncio.gather(*sent)
        # 7. Commit.
        await producer.commit_transaction()
        return {table: future.result().offset + count - 1 for table, (future, count) in ends.items()}

    async def _run(self) -> None:
        partition, interval = self._partition, self._settings.commit_interval
        while True:
            await partition.changed.wait()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(interval):
                    await partition.urgent.wait()
            # A rebalance may cancel this task; a commit that has begun is seen through.
            await asyncio.shield(self.commit())

    async def _lose(self, problem: Exception, sent: list[asyncio.Future[Any]]) -> NoReturn:
        await asyncio.sleep(0)  # aiokafka tells what became of a batch a turn after it told its sender
        number = self._partition.number
        if lost(self._producer, problem, sent):
            self._metrics.transaction_failures.labels("fenced").inc()
            self._abandon(
                EXIT_LOST,
                f"fenced: another worker owns partition {number} now ({type(problem).__name__}). This one was "
                "away for longer than its session; what it had not committed is read again by the new owner",
            )
        self._metrics.transaction_failures.labels("failed").inc()
        why = reason(self._producer, problem, sent)
        self._abandon(
            EXIT_LOST,
            f"partition {number} cannot be committed ({in_words(self._settings.kafka, why)}). Are the brokers "
            f"reachable, and may we write there? Given up after at most {self._settings.away_timeout:.0f} s; what was "
            "not committed is read again",
        )

    def _measure(self, taken: Snapshot, began: float) -> None:
        metrics, now = self._metrics, time.time()
        metrics.commit_seconds.observe(time.monotonic() - began)
        metrics.last_commit_timestamp.set(now)
        taken.tally.publish(metrics)
        metrics.state_bytes.inc(sum(len(value or b"") for _, value in (*taken.sessions, *taken.tasks)))
        alerts = self._settings.alerts
        for out in taken.outgoing:
            if out.topic == alerts:
                metrics.alert_seconds.observe(max(0.0, now - out.appended_ms / 1_000))
