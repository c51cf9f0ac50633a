"""Reads alerts and answers and writes what follows, in one transaction per partition and turn with the offsets read.

So a reader of committed records sees the consequences of each exactly once, whatever crashes or freezes: a former owner
of a partition is fenced and ends with `Fenced`. What follows from a record, or from time, is the ladder's business.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import NoOffsetForPartitionError, OffsetOutOfRangeError

from schemas import topics
from streams.escalation.batch import Rules, UnitTurn
from streams.escalation.fitness import FitnessFollower, Standing
from streams.escalation.ladders import Totals
from streams.escalation.outgoing import Outgoing
from streams.escalation.ownership import Ownerships, Place
from streams.fetching import UnreadableBatch
from streams.kafka import KafkaSettings, consumer, start_client, stop_client
from streams.lag import Applied, LagWatch
from streams.topics import DEFAULT_APP_ID, default_group, task_events_name
from streams.transaction import PositionMoved, write

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiokafka import AIOKafkaConsumer, TopicPartition
    from aiokafka.structs import ConsumerRecord

    from streams.escalation.metrics import EscalationMetrics
    from streams.escalation.unit import Feed, Unit
    from streams.health import Health
    from streams.policy.policy import Policy

POLL_MS = 250
"""How long a poll waits for records, hence how late what is timed may come, and the end of the process."""

TAKE_PAUSE = 0.02
"""Seconds between two looks whether all partitions are taken; that takes some tenths of a second."""

HEARTBEAT_MS = 1_000
"""Between two signs of life; also how soon a process learns that it has to share its partitions with a new one."""

BATCH_RECORDS = 500
"""Most records of one turn of one partition, and most ladders that time is told to in it: keeps a transaction, and with
it the end of the process, well under a second."""

MAX_TAKE_MS = 3_600_000
"""How long taking partitions may last before the group gives this process up: millions of ladders are read in that."""

SET_BACK_SECONDS = 1.0
"""By how much the clock must have been set back to be noticed; less delays nothing that matters."""

FITNESS_SECONDS = 10.0
"""Between two updates of what the pages show of fitness; scrapes are no more frequent."""


@dataclass(frozen=True, slots=True)
class EscalationSettings:
    """What the consumer leaves to whoever runs it.

    Attributes:
        group: the consumer group.
        app_id: the workers' application id, which names the topic on which they forward events.
        session_timeout_ms: without a heartbeat for that long, a process loses its partitions.
        transaction_timeout_ms: after this the brokers abort a transaction that its owner left open; until then readers
            of committed records wait behind it.
    """

    group: str = default_group(DEFAULT_APP_ID)
    app_id: str = DEFAULT_APP_ID
    session_timeout_ms: int = 30_000
    transaction_timeout_ms: int = 30_000


def utc_now() -> datetime:
    """Give the time."""
    return datetime.now(UTC)


class Escalation:
    """The consumer of one process.

    Args:
        kafka: where and how to connect.
        settings: see `EscalationSettings`.
        policy: what is done about loops; see `replace`.
        metrics: takes what is measured.
        health: takes `streams.ownership.CONDITIONS` and progress.
        on_ready: is told the partitions when they are all taken: at first, and after every rebalance.
        clock: gives the time; read once in each turn.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        settings: EscalationSettings,
        policy: Policy,
        *,
        metrics: EscalationMetrics,
        health: Health,
        on_ready: Callable[[list[int]], None],
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._kafka = kafka
        self._settings = settings
        self._policy = policy
        self._metrics = metrics
        self._health = health
        self._on_ready = on_ready
        self._clock = clock
        self._turns = 0
        self._ahead = 0.0
        self._fares = 0.0
        self._fared: list[Unit] = []
        self._standing = Standing()
        self._fitness = FitnessFollower(kafka, self._standing)
        self._outgoing = Outgoing(kafka, settings.group)
        self._place = Place(
            kafka=kafka,
            group=settings.group,
            alerts=kafka.topic(topics.ALERTS),
            events=task_events_name(settings.app_id),
            transaction_timeout_ms=settings.transaction_timeout_ms,
        )
        self._ownerships = Ownerships(self._place, self._fitness, metrics, health)

    def replace(self, policy: Policy) -> None:
        """Go by another policy from the next turn on."""
        self._policy = policy
        for unit in self._ownerships.ready():
            unit.ladders.look_at_all()

    async def run(self, stop: asyncio.Event) -> None:
        """Read and answer until told to stop.

        Args:
            stop: when set, the transactions under way are finished and the partitions given up.

        Raises:
            Fenced: another process has taken over a partition of ours.
            PositionMoved: the consumer's position changed without us.
            PartitionsApart: the inputs' partitions of one number came to different processes.
            UnreadableLadder: what was done about a task cannot be read.
            KafkaUnavailable: the brokers cannot be reached at the start.
            KafkaError: they refuse something later; what can be retried is retried without an end.
        """
        client = consumer(
            self._kafka,
            group_id=self._settings.group,
            auto_offset_reset="none",  # where reading goes on is decided when a partition is taken, and never unsaid
            partition_assignment_strategy=(RangePartitionAssignor,),  # one number of both inputs to one process
            session_timeout_ms=self._settings.session_timeout_ms,
            heartbeat_interval_ms=min(HEARTBEAT_MS, self._settings.session_timeout_ms // 4),
            rebalance_timeout_ms=2 * self._settings.session_timeout_ms,
            max_poll_interval_ms=MAX_TAKE_MS,
        )
        watch = LagWatch(self._kafka, self._metrics, self._health, self._applied, taking=self._under_way)
        offsets = consumer(self._kafka, isolation_level="read_uncommitted")
        async with contextlib.AsyncExitStack() as stack:
            clients = (client, offsets, self._fitness)
            for each in clients:  # also those that do not come to be started, since one before them fails
                stack.push_async_callback(stop_client, each)
            for each in clients:
                await start_client(each, self._kafka)
            self._ownerships.use(client, offsets)
            tasks = [
                asyncio.create_task(watch.run(), name="lag watch"),
                asyncio.create_task(self._fitness.follow(lambda: None), name="fitness"),
            ]
            client.subscribe([self._place.alerts, self._place.events], listener=self._ownerships)
            try:
                while not stop.is_set():
                    for task in tasks:
                        if task.done():
                            task.result()
                    self._ownerships.check()
                    self._tell()
                    await self._turn(client)
                    self._turns += 1
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
                await self._ownerships.release_all()

    async def _turn(self, client: AIOKafkaConsumer) -> None:
        """Poll once, answer what came, and do what has come due.

        1. Poll, once all partitions are taken: before, reading may stand anywhere. Nothing awaits between aiokafka's
           handing over the records and step 3.
        2. Bind each batch to the unit under which it was fetched; without one it is dropped, and read again by whoever
           takes the partition.
        3. See that reading went on where this unit left it. It never goes back, unless the client found the position
           gone, for example because the topic was made anew.
        4. Answer the partitions side by side. When what comes next cannot be read at all, first whatever was read
           before; what aiokafka had in hand of other partitions is gone then, although its positions lie behind it.
        """
        if self._ownerships.taking():
            await asyncio.sleep(TAKE_PAUSE)
            return
        units = self._ownerships.ready()
        wanted = [feed.tp for unit in units for feed in unit.feeds if len(feed.queue) < BATCH_RECORDS]
        left = any(unit.behind or (unit.waiting is None and any(feed.queue for feed in unit.feeds)) for unit in units)
        fetched: Mapping[TopicPartition, list[ConsumerRecord]] = {}
        end: UnreadableBatch | None = None
        if wanted or not units:
            try:
                fetched = await self._fetch(client, wanted, 0 if left else POLL_MS)
            except UnreadableBatch as problem:
                end = problem
        units = self._ownerships.ready()
        for unit in units if end is None else ():
            for feed in unit.feeds:
                await self._advance(client, feed, fetched.get(feed.tp, []))
        now = self._clock()
        self._notice_set_back(now, units)
        await asyncio.gather(*(self._act(unit, client, now) for unit in units))
        if end is not None:
            while any(feed.queue for unit in self._ownerships.ready() for feed in unit.feeds):
                await asyncio.gather(*(self._act(unit, client, now, wait=False) for unit in self._ownerships.ready()))
            raise end

    async def _fetch(
        self, client: AIOKafkaConsumer, wanted: list[TopicPartition], wait_ms: int
    ) -> Mapping[TopicPartition, list[ConsumerRecord]]:
        while True:
            try:
                found: Mapping[TopicPartition, list[ConsumerRecord]] = await client.getmany(
                    *wanted, timeout_ms=wait_ms, max_records=BATCH_RECORDS
                )
            except NoOffsetForPartitionError:
                # Found before that partition was taken, once for each. All of these in one go: else the first partition
                # would be asked for alone, and the others wait until the broker answers.
                self._ownerships.check()  # else it would be found again and again where a partition cannot be taken
                await asyncio.sleep(TAKE_PAUSE if self._ownerships.taking() else 0)
                continue
            except OffsetOutOfRangeError as problem:
                for tp, offset in problem.args[0].items():
                    await self._ownerships.pass_over_deleted(tp, offset)
                return {}
            return found

    @staticmethod
    async def _advance(client: AIOKafkaConsumer, feed: Feed, records: list[ConsumerRecord]) -> None:
        position = await client.position(feed.tp)  # known, hence no waiting: also control records move it
        if position < feed.position or (records and records[0].offset < feed.position):
            raise PositionMoved(
                f"{feed.tp.topic}-{feed.tp.partition} is no longer read at {feed.position} but at {position}: "
                "start this process again, it will find out what was committed"
            )
        feed.fetched(records, position)

    def _notice_set_back(self, now: datetime, units: list[Unit]) -> None:
        """Have all ladders looked at when the clock was set back, so that nothing timed is put off for long."""
        ahead = now.timestamp() - time.monotonic()
        if ahead < self._ahead - SET_BACK_SECONDS:
            for unit in units:
                unit.ladders.look_at_all()
        self._ahead = ahead

    async def _act(self, unit: Unit, client: AIOKafkaConsumer, now: datetime, *, wait: bool = True) -> None:
        async with unit.lock:
            if not unit.owned:
                return

            def drained(feed: Feed) -> bool:
                stable = client.last_stable_offset(feed.tp)
                return not wait or (stable is not None and feed.position >= stable)

            records = unit.take(BATCH_RECORDS, drained, time.monotonic())
            rules = Rules(self._policy.ladder, self._kafka.topic(topics.CONTROL), self._standing.choose)
            turn = UnitTurn(unit.number, unit.ladders, unit.partial, rules=rules, outgoing=self._outgoing, now=now)
            turn.take(records, self._place.alerts)
            unit.behind = unit.caught_up and turn.pass_time(BATCH_RECORDS)
            batch = turn.end()
            read = {record.topic for record in records}
            passed = [
                feed for feed in unit.feeds if feed.deleted and not feed.queue
            ]  # of what came before, all is done
            moved = [feed for feed in unit.feeds if feed.tp.topic in read or feed in passed]
            if batch.count or batch.outputs or moved:
                await write(
                    unit.producer,
                    batch.outputs,
                    {feed.tp: feed.next for feed in moved},
                    group=self._settings.group,
                    what=f"{unit.name} of {self._place.alerts}",
                    metrics=self._metrics,
                )
                batch.measure(self._metrics, time.time())
            for feed in passed:
                self._metrics.deleted_unread.inc(feed.deleted)
                feed.deleted = 0
            for feed in unit.feeds:
                feed.done = feed.next
                feed.timestamp = next(
                    (record.timestamp / 1000 for record in reversed(records) if record.topic == feed.tp.topic),
                    feed.timestamp,
                )

    def _applied(self) -> Mapping[TopicPartition, Applied]:
        return {feed.tp: Applied(feed.done, feed.timestamp) for unit in self._ownerships.ready() for feed in unit.feeds}

    def _under_way(self) -> Mapping[str, int]:
        answering = {"answering": self._turns} if self._ownerships.assigned else {}
        return {**self._ownerships.under_way(), **answering, "following counts of fitness": self._fitness.turns}

    def _tell(self) -> None:
        """Keep the metrics of what is owned, and announce a new assignment once it is taken."""
        taken = self._ownerships.ready()
        self._metrics.assigned_partitions.set(len(self._ownerships.current()))
        totals = Totals()
        for unit in taken:
            totals.add(unit.ladders.totals)
        self._metrics.hold(totals)
        if taken != self._fared or time.monotonic() - self._fares > FITNESS_SECONDS:
            self._fares, self._fared = time.monotonic(), taken
            self._metrics.fare(counts for unit in taken for counts in unit.partial.counts.values())
        if self._ownerships.news():
            self._on_ready(sorted(unit.number for unit in taken))
