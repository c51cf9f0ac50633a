"""Which partition numbers of its inputs an escalation process owns, and what is read back of each.

Both inputs of one number come to one process. Once the former owner is fenced the ladders, counts and committed offsets
are read, then reading starts there. Nothing in here knows what an alert means.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiokafka import TopicPartition

from streams.escalation.fitness import FitnessFollower, Partial
from streams.escalation.restore import restore
from streams.escalation.unit import Feed, Unit
from streams.kafka import KafkaSettings, producer
from streams.ownership import Ownership, start
from streams.topics import ladders_name

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from streams.escalation.metrics import EscalationMetrics
    from streams.health import Health


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


class Ownerships(Ownership[int, Unit]):
    """All units that this process owns now, by number.

    Args:
        place: see `Place`.
        fitness: gives what was counted.
        metrics: takes what reading back costs, and see `Ownership`.
        health: see `Ownership`.
    """

    def __init__(self, place: Place, fitness: FitnessFollower, metrics: EscalationMetrics, health: Health) -> None:
        super().__init__(place.kafka, metrics, health)
        self._place = place
        self._fitness = fitness
        self._reading_back = metrics

    def make(self, assigned: Collection[TopicPartition]) -> Mapping[int, Unit]:
        """Make a unit of each number.

        Raises:
            PartitionsApart: one came without that of the other input.
        """
        by_number: defaultdict[int, set[str]] = defaultdict(set)
        for tp in assigned:
            by_number[tp.partition].add(tp.topic)
        wanted = {self._place.alerts, self._place.events}
        for number, names in by_number.items():
            if names != wanted:
                missing = ", ".join(sorted(wanted - names))
                raise PartitionsApart(
                    f"partition {number} of {', '.join(sorted(names))} came without that of {missing}: they must have "
                    f"equally many partitions (traction topics check tells), and all processes of the group "
                    f"{self._place.group} must be of one release and have one --app-id"
                )
        return {number: self._unit(number) for number in by_number}

    def _unit(self, number: int) -> Unit:
        client = producer(
            self._place.kafka,
            transactional_id=f"{self._place.group}-{number}",
            transaction_timeout_ms=self._place.transaction_timeout_ms,
        )
        alerts, events = (Feed(TopicPartition(name, number)) for name in (self._place.alerts, self._place.events))
        return Unit(number, alerts, events, producer=client)

    async def take(self, unit: Unit) -> None:
        """Take a unit whose former owners are fenced, and what they left open is aborted, in four steps.

        1. Read the ladders and counts: nobody else writes them now.
        2. Read the committed offsets: nobody else can move them.
        3. Unless the ownership ended meanwhile, read from there.
        4. From now on what is read belongs to this unit.
        """
        consumer, offsets = self.clients()
        ladders = TopicPartition(ladders_name(self._place.group), unit.number)
        fenced = unit.steps

        def on_read(records: int) -> None:
            unit.steps = fenced + records

        unit.ladders = await restore(self._place.kafka, ladders, self._reading_back, on_read)
        counts = TopicPartition(self._fitness.topic, 0)
        tps = [feed.tp for feed in unit.feeds]
        ends = await offsets.end_offsets([counts, *tps])
        unit.steps += 1
        unit.partial = Partial(unit.number, await self._fitness.of_partition(unit.number, ends[counts]))
        unit.steps += 1
        beginnings = await offsets.beginning_offsets(tps)
        committed = []
        for tp in tps:
            committed.append(await consumer.committed(tp))
            unit.steps += 1
        if not unit.owned:
            return
        for feed, offset in zip(unit.feeds, committed, strict=True):
            feed.end = ends[feed.tp]
            begun = start(feed.tp, offset, beginnings[feed.tp], feed.end)
            feed.position = feed.done = begun.position
            feed.deleted = begun.deleted
            consumer.seek(feed.tp, feed.position)
        unit.ready = True

    async def pass_over_deleted(self, tp: TopicPartition, offset: int) -> None:
        """Go on behind what retention deleted before it was read; logged, and counted once that is committed.

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
        if unit.owned:
            going_on = start(tp, offset, beginning, end)
            consumer.seek(tp, going_on.position)
            if going_on.position > offset:
                feed.position = going_on.position
                feed.deleted += going_on.deleted
