"""Which partitions a process owns, where each is written under a producer that fences: assigned, taken, let go of.

Taking fences the former owner first. A unit is one object per assignment: what was fetched for another one must not be
written. Nothing in here knows what is read, or what a unit keeps.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from aiokafka.abc import ConsumerRebalanceListener

from streams.fencing import stop_producer
from streams.kafka import start_client
from streams.lag import BROKER

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

    from streams.health import Health
    from streams.kafka import KafkaSettings
    from streams.metrics import ConsumerMetrics

logger = logging.getLogger(__name__)

ASSIGNED: Final = "assigned"
"""Condition of readiness: the group has told which partitions are ours. None is an answer too: where others have them
all, this process is the one that stands by."""

TAKEN: Final = "taken"
"""Condition of readiness: all partitions that are ours are taken."""

CONDITIONS: Final = (BROKER, ASSIGNED, TAKEN)
"""What must hold for such a process to be ready."""


@dataclass(slots=True, eq=False, kw_only=True)
class Unit(ABC):
    """One ownership, from its assignment to its revocation.

    Attributes:
        producer: the transactional producer that fences former owners.
        owned: whether it still stands.
        ready: whether it was taken: fenced, and reading from where the group stands.
        lock: held during a transaction.
        taking: the task that takes it.
        steps: how far taking it is; rises as long as that goes on.
    """

    producer: AIOKafkaProducer
    owned: bool = True
    ready: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    taking: asyncio.Task[None] | None = None
    steps: int = 0

    @property
    @abstractmethod
    def name(self) -> str:
        """What it is called where people read it."""


Key = TypeVar("Key")
Owned = TypeVar("Owned", bound=Unit)


class Ownership(ConsumerRebalanceListener, ABC, Generic[Key, Owned]):  # type: ignore[misc]  # published without types
    """All units that a process owns now.

    aiokafka calls the two methods inherited from the listener in its own coordination routine, during which no
    heartbeat is sent, and swallows what they raise. So taking happens in tasks, and their failures are kept for
    `check`. What concerns readiness is told here, where it happens: the loop that does the work may hang.

    Args:
        kafka: where and how to connect.
        metrics: takes rebalances, and what was deleted unread.
        health: takes the conditions `ASSIGNED` and `TAKEN`.
    """

    def __init__(self, kafka: KafkaSettings, metrics: ConsumerMetrics, health: Health) -> None:
        self._kafka = kafka
        self._metrics = metrics
        self._health = health
        self._units: Mapping[Key, Owned] = {}
        self._clients: tuple[AIOKafkaConsumer, AIOKafkaConsumer] | None = None
        self._failure: BaseException | None = None
        self.assigned = False
        """Whether the group has told which partitions are ours; until then whoever fetches waits for it."""
        self._assignments = self._announced = 0
        self._letting_go = False
        self._let_go = 0
        self._ended = False

    @abstractmethod
    def make(self, assigned: Collection[TopicPartition]) -> Mapping[Key, Owned]:
        """Make the units of what was assigned; what is raised ends the process."""

    @abstractmethod
    async def take(self, unit: Owned) -> None:
        """Take a unit whose former owners are fenced, and set it `ready` unless it is no longer owned."""

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

    def current(self) -> Mapping[Key, Owned]:
        """Give the units of what was assigned last, taken or not yet."""
        return self._units

    def ready(self) -> list[Owned]:
        """Give those that were taken."""
        return [unit for unit in self._units.values() if unit.ready]

    def taking(self) -> bool:
        """Tell whether some are not taken yet; until then, reading may stand anywhere."""
        return not all(unit.ready for unit in self._units.values())

    def check(self) -> None:
        """Raise what went wrong while a partition was assigned or taken."""
        if self._failure is not None:
            raise self._failure

    def news(self) -> bool:
        """Tell, once for each assignment, that all of it was taken."""
        if self._announced == self._assignments or not self.assigned or self.taking():
            return False
        self._metrics.rebalances.inc(self._assignments - self._announced)
        self._announced = self._assignments
        return True

    def under_way(self) -> Mapping[str, int]:
        """Tell what is being taken or let go of, and how far that is, as `streams.lag.LagWatch` takes it.

        If letting go hangs, no others are assigned.
        """
        taking = {f"taking {unit.name}": unit.steps for unit in self._units.values() if not unit.ready}
        return taking | ({"letting go of partitions": self._let_go} if self._letting_go else {})

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Begin to take partitions; called by aiokafka after a rebalance."""
        if self._ended:
            return  # a rebalance that was under way when we began to leave
        try:
            self._units = self.make(assigned)
        except Exception as problem:  # noqa: BLE001 - aiokafka would swallow it
            self._failure = problem
            return
        self.assigned = True
        self._assignments += 1
        self._tell()
        for unit in self._units.values():
            unit.taking = asyncio.create_task(self._take(unit), name=f"take {unit.name}")
            unit.taking.add_done_callback(self._taken)

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Let go of everything, after the transactions under way; called by aiokafka before a rebalance, and by us."""
        del revoked  # with aiokafka's eager protocol always all
        units, self._units = self._units, {}
        self.assigned, self._letting_go = False, True
        for unit in units.values():
            unit.owned = False
        self._tell()
        try:
            await asyncio.gather(*(self._release(unit) for unit in units.values()))
        finally:
            self._letting_go = False
            self._tell()

    async def release_all(self) -> None:
        """Let go of everything at the end, and take nothing more."""
        self._ended = True
        await self.on_partitions_revoked(())

    def _tell(self) -> None:
        """Keep the conditions of readiness."""
        if self.assigned:
            self._health.hold(ASSIGNED)
        elif self._letting_go:
            self._health.fail(ASSIGNED, "partitions are being let go of")
        else:
            self._health.fail(ASSIGNED, "the group has not said yet which partitions are ours")
        taken, owned = len(self.ready()), len(self._units)
        if self.assigned and taken == owned:
            self._health.hold(TAKEN)
        else:
            self._health.fail(TAKEN, f"{taken} of {owned} partitions" if self.assigned else "none is ours yet")

    async def _take(self, unit: Owned) -> None:
        await start_client(unit.producer, self._kafka)  # fences
        unit.steps += 1
        await self.take(unit)

    def _taken(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._failure = task.exception()
        self._tell()

    async def _release(self, unit: Owned) -> None:
        if unit.taking is not None and not unit.taking.done():
            unit.taking.cancel()
            await asyncio.wait([unit.taking])
        async with unit.lock:
            await stop_producer(unit.producer)
        self._let_go += 1


class Start(NamedTuple):
    """Where reading a partition goes on.

    Attributes:
        position: the offset.
        deleted: records before it that were deleted unread, markers between them included. To be counted with the
            commit that passes over them: who takes the partition before that would count them once more.
    """

    position: int
    deleted: int = 0


def start(tp: TopicPartition, committed: int | None, beginning: int, end: int) -> Start:
    """Say where reading a partition goes on.

    Args:
        tp: the partition, for what is logged.
        committed: the committed offset; None when there is none.
        beginning: the first offset that is still there.
        end: the offset after the last.
    """
    if committed is None:
        return Start(beginning)
    if committed < beginning:
        logger.error(
            "%s-%d: records %d to %d were deleted by the topic's retention before they were read",
            tp.topic,
            tp.partition,
            committed,
            beginning - 1,
        )
        return Start(beginning, beginning - committed)
    if committed > end:
        logger.error(
            "%s-%d ends at %d, before the committed offset %d: it was deleted and made anew; reading from its start",
            tp.topic,
            tp.partition,
            end,
            committed,
        )
        return Start(beginning)
    return Start(committed)
