"""Reads alerts and writes what follows from them, in one transaction per partition and batch with the offset read.

So a reader of committed records sees each alert's consequences exactly once, whatever crashes or freezes: a former
owner of a partition is fenced and ends with `Fenced`. What follows from an alert is the policy's business.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from aiokafka.errors import KafkaError

from schemas import topics
from streams.escalation.batch import Batch, answer
from streams.escalation.ownership import Owner, Ownerships
from streams.fencing import fenced
from streams.kafka import KafkaSettings, consumer, running
from streams.lag import BROKER, Applied, LagWatch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

    from streams.escalation.policy import PolicySettings
    from streams.metrics import EscalationMetrics
    from streams.pages import Health

logger = logging.getLogger(__name__)

POLL_MS = 250
"""How long a poll waits for alerts, hence how long the end of the process may have to wait for a poll."""

TAKE_PAUSE = 0.02
"""Seconds between two looks whether all partitions are taken; that takes some tenths of a second."""

HEARTBEAT_MS = 1_000
"""Between two signs of life; also how soon a process learns that it has to share its partitions with a new one."""

BATCH_RECORDS = 500
"""Most alerts of one poll: keeps a transaction, and with it the end of the process, well under a second."""

CONDITIONS = (BROKER, "assigned", "taken")
"""What must hold for the process to be ready."""


class Fenced(Exception):
    """Another process has taken over a partition of ours: nothing was written twice, and this process must end."""


class PositionMoved(Exception):
    """The consumer reads elsewhere than where it was left: the topic is not what it was, so this process must end."""


@dataclass(frozen=True, slots=True)
class EscalationSettings:
    """What the consumer leaves to whoever runs it.

    Attributes:
        group: the consumer group.
        session_timeout_ms: without a heartbeat for that long, a process loses its partitions.
        transaction_timeout_ms: after this the brokers abort a transaction that its owner left open; until then readers
            of committed records wait behind it.
        remember: how many records before the committed offset are read again for their ids, and ids remembered.
    """

    group: str = "traction-escalation"
    session_timeout_ms: int = 30_000
    transaction_timeout_ms: int = 30_000
    remember: int = 10_000


class Escalation:
    """The consumer of one process.

    Args:
        kafka: where and how to connect.
        settings: see `EscalationSettings`.
        policy: see `PolicySettings`.
        metrics: takes what is measured.
        health: takes `CONDITIONS` and progress.
        on_ready: is told the partitions when they are all taken: at first, and after every rebalance.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        settings: EscalationSettings,
        policy: PolicySettings,
        *,
        metrics: EscalationMetrics,
        health: Health,
        on_ready: Callable[[list[int]], None],
    ) -> None:
        self._kafka = kafka
        self._settings = settings
        self._policy = policy
        self._metrics = metrics
        self._health = health
        self._on_ready = on_ready
        self._announced = 0
        self._ownerships = Ownerships(
            kafka,
            group=settings.group,
            remember=settings.remember,
            transaction_timeout_ms=settings.transaction_timeout_ms,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Read and answer until told to stop.

        Args:
            stop: when set, the transactions under way are finished and the partitions given up.

        Raises:
            Fenced: another process has taken over a partition of ours.
            PositionMoved: the consumer's position changed without us.
            KafkaUnavailable: the brokers cannot be reached at the start.
            KafkaError: they refuse something later; what can be retried is retried without an end.
        """
        client = consumer(
            self._kafka,
            group_id=self._settings.group,
            session_timeout_ms=self._settings.session_timeout_ms,
            heartbeat_interval_ms=min(HEARTBEAT_MS, self._settings.session_timeout_ms // 4),
            rebalance_timeout_ms=2 * self._settings.session_timeout_ms,
        )
        watch = LagWatch(self._kafka, self._metrics, self._health, self._applied)
        async with running(client, self._kafka):
            self._ownerships.use(client)
            client.subscribe([self._kafka.topic(topics.ALERTS)], listener=self._ownerships)
            watching = asyncio.create_task(watch.run(), name="lag watch")
            try:
                while not stop.is_set():
                    if watching.done():
                        watching.result()
                    self._ownerships.check()
                    self._tell()
                    await self._turn(client)
            finally:
                watching.cancel()
                await asyncio.wait([watching])
                await self._ownerships.release_all()

    async def _turn(self, client: AIOKafkaConsumer) -> None:
        """Poll once and answer what came.

        1. Poll, once all partitions are taken: before, reading may stand anywhere. Nothing awaits between aiokafka's
           handing over the records and step 2.
        2. Bind each batch to the ownership under which it was fetched; without one it is dropped, and read again by
           whoever takes the partition.
        3. See that reading went on where this owner left it. It never goes back, unless the client found the position
           gone, for example because the topic was made anew.
        4. Answer the partitions side by side.
        """
        if len(self._ready()) < len(self._ownerships.current()):
            await asyncio.sleep(TAKE_PAUSE)
            return
        fetched: Mapping[TopicPartition, list[ConsumerRecord]] = await client.getmany(
            timeout_ms=POLL_MS, max_records=BATCH_RECORDS
        )
        bound = []
        for owner in self._ready():
            records = fetched.get(owner.tp)
            position = await client.position(owner.tp)  # known, hence no waiting: also control records move it
            if position < owner.position or (records and records[0].offset < owner.position):
                raise PositionMoved(
                    f"{owner.tp.topic}-{owner.tp.partition} is no longer read at {owner.position} but at {position}: "
                    "start this process again, it will find out what was committed"
                )
            owner.position = position
            if records:
                bound.append((owner, records))
            elif owner.settled:
                owner.done = owner.position
        await asyncio.gather(*(self._answer(owner, records) for owner, records in bound))

    def _ready(self) -> list[Owner]:
        return [owner for owner in self._ownerships.current().values() if owner.ready]

    async def _answer(self, owner: Owner, records: list[ConsumerRecord]) -> None:
        async with owner.lock:
            if not self._ownerships.owns(owner):
                return
            batch = answer(
                records,
                owner,
                policy=self._policy,
                kafka=self._kafka,
                group=self._settings.group,
                now=datetime.now(UTC),
            )
            if batch.count:
                await self._commit(owner, batch)
                self._measure(batch)
                owner.timestamp = batch.timestamp
            if owner.settled:
                owner.done = batch.position

    async def _commit(self, owner: Owner, batch: Batch) -> None:
        producer = owner.producer
        begun = time.perf_counter()
        sent: list[asyncio.Future[Any]] = []
        try:
            async with producer.transaction():
                for out in batch.outputs:
                    future = await producer.send(out.topic, key=out.key, value=out.value, headers=out.headers)
                    sent.append(future)  # one by one: those before a failure are asked for its cause
                await asyncio.gather(*sent)
                await producer.send_offsets_to_transaction({owner.tp: batch.position}, self._settings.group)
        except KafkaError as problem:
            if fenced(problem, sent):
                self._metrics.transaction_failures.labels("fenced").inc()
                raise Fenced(f"{owner.tp.topic}-{owner.tp.partition} was taken over") from problem
            self._metrics.transaction_failures.labels("failed").inc()
            raise
        self._metrics.commit_seconds.observe(time.perf_counter() - begun)
        self._metrics.last_commit_timestamp.set_to_current_time()

    def _measure(self, batch: Batch) -> None:
        self._metrics.batch_records.observe(batch.count)
        for level, count in batch.levels.items():
            self._metrics.alerts.labels(level).inc(count)
        for action, count in batch.actions.items():
            self._metrics.directives.labels(action).inc(count)
        for reason, count in batch.dead.items():
            self._metrics.dead_letters.labels(reason).inc(count)
        self._metrics.terminations.inc(len(batch.terminations))
        self._metrics.duplicates.inc(batch.duplicates)
        now = time.time()
        for timestamp in batch.answered:
            self._metrics.response_seconds.observe(max(0.0, now - timestamp))
        for line in batch.terminations:
            logger.warning("%s", line)

    def _applied(self) -> Mapping[TopicPartition, Applied]:
        return {owner.tp: Applied(owner.done, owner.timestamp) for owner in self._ready()}

    def _tell(self) -> None:
        """Keep readiness and the assignment's metrics, and announce a new assignment once it is taken."""
        owners = self._ownerships.current().values()
        taken = [owner.tp.partition for owner in owners if owner.settled]
        self._metrics.assigned_partitions.set(len(owners))
        if not self._ownerships.assignments:
            return
        self._health.hold("assigned")
        if len(taken) < len(owners):
            self._health.fail("taken", f"{len(taken)} of {len(owners)} partitions")
            return
        self._health.hold("taken")
        if self._announced < self._ownerships.assignments:
            self._metrics.rebalances.inc(self._ownerships.assignments - self._announced)
            self._announced = self._ownerships.assignments
            self._on_ready(sorted(taken))
