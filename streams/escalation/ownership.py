"""Which partitions this process owns: takes one when the group assigns it, lets it go when it is revoked.

Both inputs of one number come to one process. Taking fences the former owner: a transactional producer whose id names
the number is initialised, then the ladders, counts and committed offsets are read, then reading starts there. A unit is
one object per assignment: what was fetched for another one must not be written. Nothing in here knows what an alert
means.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiokafka import TopicPartition
from aiokafka.abc import ConsumerRebalanceListener

from streams.escalation.fitness import FitnessFollower, Partial
from streams.escalation.restore import restore
from streams.escalation.unit import Feed, Unit
from streams.fencing import stop_producer
from streams.kafka import KafkaSettings, producer, start_client
from streams.topics import ladders_name

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from aiokafka import AIOKafkaConsumer

    from streams.escalation.metrics import EscalationMetrics

logger = logging.getLogger(__name__)


class PartitionsApart(Exception):
    """The inputs' partitions of one number came to different processes: the message says what to look at."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where units are and what they are called.

    Attributes:
        kafka: where and how to connect.
        group: the consumer group; its name begins the transactional ids and the name of the topic of ladders.
        alerts: name of the topic of alerts.
        events: name of the topic of forwarded events.
        transaction_timeout_ms: after this the brokers abort a transaction that its owner left open.
    """

    kafka: KafkaSettings
    group: str
    alerts: str
    events: str
    transaction_timeout_ms: int


class Ownerships(ConsumerRebalanceListener):  # type: ignore[misc]  # published without types
    """All units that this process owns now.

    aiokafka calls the two methods inherited from the listener in its own coordination routine, during which no
    heartbeat is sent, and swallows what they raise. So taking happens in tasks, and their failures are kept for
    `check`.

    Args:
        place: see `Place`.
        fitness: gives what was counted.
        metrics: takes what reading back costs, and what was deleted unread.
    """

    def __init__(self, place: Place, fitness: FitnessFollower, metrics: EscalationMetrics) -> None:
        self._place = place
        self._fitness = fitness
        self._metrics = metrics
        self._units: dict[int, Unit] = {}
        self._clients: tuple[AIOKafkaConsumer, AIOKafkaConsumer] | None = None
        self._failure: BaseException | None = None
        self._ended = False
        self.assignments = 0
        """How often partitions were assigned; 0 means not yet."""
        self.letting_go = False
        """Whether partitions are being let go of; if that hangs, no others are assigned."""

    def use(self, consumer: AIOKafkaConsumer, offsets: AIOKafkaConsumer) -> None:
        """Tell which clients to use, before anything is assigned.

        Args:
            consumer: the group's member.
            offsets: asks the brokers for offsets, those beyond open transactions; a question of the member would wait
                behind its own fetches.
        """
        self._clients = consumer, offsets

    def clients(self) -> tuple[AIOKafkaConsumer, AIOKafkaConsumer]:
        """Give the clients that `use` told."""
        if self._clients is None:
            raise RuntimeError("a partition was assigned before the clients were known")
        return self._clients

    def current(self) -> Mapping[int, Unit]:
        """Give the units of what was assigned last, by number, taken or not yet."""
        return self._units

    def owns(self, unit: Unit) -> bool:
        """Tell whether an ownership still stands."""
        return self._units.get(unit.number) is unit

    def check(self) -> None:
        """Raise what went wrong while a partition was assigned or taken."""
        if self._failure is not None:
            raise self._failure

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Begin to take partitions; called by aiokafka after a rebalance."""
        if self._ended:
            return  # a rebalance that was under way when we began to leave
        self.assignments += 1
        by_number: defaultdict[int, set[str]] = defaultdict(set)
        for tp in assigned:
            by_number[tp.partition].add(tp.topic)
        wanted = {self._place.alerts, self._place.events}
        for number, names in by_number.items():
            if names != wanted:
                missing = ", ".join(sorted(wanted - names))
                self._failure = PartitionsApart(
                    f"partition {number} of {', '.join(sorted(names))} came without that of {missing}: they must have "
                    f"equally many partitions (traction topics check tells), and all processes of the group "
                    f"{self._place.group} must be of one release and have one --app-id"
                )
                return
        for number in by_number:
            client = producer(
                self._place.kafka,
                transactional_id=f"{self._place.group}-{number}",
                transaction_timeout_ms=self._place.transaction_timeout_ms,
            )
            alerts, events = (Feed(TopicPartition(name, number)) for name in (self._place.alerts, self._place.events))
            unit = self._units[number] = Unit(number, alerts, events, client)
            unit.taking = asyncio.create_task(self._take(unit), name=f"take partition {number}")
            unit.taking.add_done_callback(self._taken)

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Let go of everything, after the transactions under way; called by aiokafka before a rebalance, and by us."""
        del revoked  # with aiokafka's eager protocol always all
        units, self._units = self._units, {}
        self.letting_go = True
        try:
            await asyncio.gather(*(self._release(unit) for unit in units.values()))
        finally:
            self.letting_go = False

    async def pass_over_deleted(self, tp: TopicPartition, offset: int) -> None:
        """Go on behind what retention deleted before it was read; logged and counted.

        Elsewhere the offset is not out of what the log holds any more, or the topic was made anew: that is seen by the
        position, as any move of it that is not ours.

        Args:
            tp: a partition of an input.
            offset: the offset that the brokers said they have nothing at.
        """
        unit = self._units.get(tp.partition)
        feed = None if unit is None else next((each for each in unit.feeds if each.tp == tp), None)
        if unit is None or feed is None or not unit.ready or feed.position != offset:
            return  # asked for under another ownership
        consumer, offsets = self.clients()
        beginning, end = (await offsets.beginning_offsets([tp]))[tp], (await offsets.end_offsets([tp]))[tp]
        if self.owns(unit):
            going_on = self._start(tp, offset, beginning, end)
            consumer.seek(tp, going_on)
            if going_on > offset:
                feed.position = going_on

    async def release_all(self) -> None:
        """Let go of everything at the end, and take nothing more."""
        self._ended = True
        await self.on_partitions_revoked(())

    async def _take(self, unit: Unit) -> None:
        """Take a unit in five steps.

        1. Initialise the producer: former owners are fenced, and what they left open is aborted.
        2. Read the ladders and counts: since 1 nobody else writes them.
        3. Read the committed offsets: since 1 nobody else can move them.
        4. Unless the ownership ended meanwhile, read from there.
        5. From now on what is read belongs to this unit.
        """
        consumer, offsets = self.clients()
        await start_client(unit.producer, self._place.kafka)
        ladders = TopicPartition(ladders_name(self._place.group), unit.number)

        def on_read(records: int) -> None:
            unit.read_back = records

        unit.ladders = await restore(self._place.kafka, ladders, self._metrics, on_read)
        counts = TopicPartition(self._fitness.topic, 0)
        tps = [feed.tp for feed in unit.feeds]
        ends = await offsets.end_offsets([counts, *tps])
        unit.partial = Partial(unit.number, await self._fitness.of_partition(unit.number, ends[counts]))
        beginnings = await offsets.beginning_offsets(tps)
        committed = [await consumer.committed(tp) for tp in tps]
        if not self.owns(unit):
            return
        for feed, offset in zip(unit.feeds, committed, strict=True):
            feed.end = ends[feed.tp]
            feed.position = feed.done = self._start(feed.tp, offset, beginnings[feed.tp], feed.end)
            consumer.seek(feed.tp, feed.position)
        unit.ready = True

    def _start(self, tp: TopicPartition, committed: int | None, beginning: int, end: int) -> int:
        if committed is not None and committed < beginning:
            self._metrics.deleted_unread.inc(beginning - committed)
        return start(tp, committed, beginning, end)

    def _taken(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._failure = task.exception()

    @staticmethod
    async def _release(unit: Unit) -> None:
        if unit.taking is not None and not unit.taking.done():
            unit.taking.cancel()
            await asyncio.wait([unit.taking])
        async with unit.lock:
            await stop_producer(unit.producer)


def start(tp: TopicPartition, committed: int | None, beginning: int, end: int) -> int:
    """Say where reading a partition goes on.

    Args:
        tp: the partition, for what is logged.
        committed: the committed offset; None when there is none.
        beginning: the first offset that is still there.
        end: the offset after the last.
    """
    if committed is None:
        return beginning
    if committed < beginning:
        logger.error(
            "%s-%d: records %d to %d were deleted by the topic's retention before they were read",
            tp.topic,
            tp.partition,
            committed,
            beginning - 1,
        )
        return beginning
    if committed > end:
        logger.error(
            "%s-%d ends at %d, before the committed offset %d: it was deleted and made anew; reading from its start",
            tp.topic,
            tp.partition,
            end,
            committed,
        )
        return beginning
    return committed
