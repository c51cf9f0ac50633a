"""Who owns which partition of the alerts: takes a partition when the group assigns it, lets it go when it is revoked.

Taking fences the former owner: a transactional producer whose id names the partition is initialised, then the committed
offset is read again, then reading starts there. An owner is one object per assignment: what was fetched for another
one must not be written. Nothing in here knows what an alert means.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.errors import KafkaError

from streams.fencing import fenced
from streams.kafka import KafkaSettings, producer

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

logger = logging.getLogger(__name__)


class RecentIds:
    """The ids seen last, a bounded number of them.

    Args:
        most: how many are remembered.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._ids: OrderedDict[str, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, seen: str) -> bool:
        """Remember an id.

        Args:
            seen: the id.

        Returns:
            Whether it is new among those remembered.
        """
        if seen in self._ids:
            self._ids.move_to_end(seen)
            return False
        self._ids[seen] = None
        if len(self._ids) > self._most:
            self._ids.popitem(last=False)
        return True


@dataclass(slots=True, eq=False)
class Owner:
    """One ownership of one partition, from its assignment to its revocation.

    Attributes:
        tp: the partition.
        producer: the transactional producer that fences former owners.
        recent: alerts seen, so that a repeated one is dropped.
        first: the committed offset; records before it only fill `recent`.
        position: where the consumer reads next; changes only by what was read under this ownership.
        done: like `position`, but committed.
        timestamp: time of the record applied last, in seconds since 1970.
        ready: whether it was taken: fenced, offset read, reading from there.
        lock: held during a transaction.
        taking: the task that takes it.
    """

    tp: TopicPartition
    producer: AIOKafkaProducer
    recent: RecentIds
    first: int = 0
    position: int = 0
    done: int = 0
    timestamp: float | None = None
    ready: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    taking: asyncio.Task[None] | None = None

    @property
    def settled(self) -> bool:
        """Whether it was taken and has read again what was seen before."""
        return self.ready and self.position >= self.first


class Ownerships(ConsumerRebalanceListener):  # type: ignore[misc]  # published without types
    """All partitions that this process owns now.

    aiokafka calls the two methods inherited from the listener in its own coordination routine, during which no
    heartbeat is sent, and swallows what they raise. So taking happens in tasks, and their failures are kept for
    `check`.

    Args:
        settings: where and how to connect.
        group: the consumer group; its name begins the transactional ids.
        remember: how many records before the committed offset are read again for their alert ids.
        transaction_timeout_ms: after this the brokers abort a transaction that its owner left open.
    """

    def __init__(self, settings: KafkaSettings, *, group: str, remember: int, transaction_timeout_ms: int) -> None:
        self._settings = settings
        self._group = group
        self._remember = remember
        self._transaction_timeout_ms = transaction_timeout_ms
        self._owners: dict[TopicPartition, Owner] = {}
        self._consumer: AIOKafkaConsumer | None = None
        self._failure: BaseException | None = None
        self._ended = False
        self.assignments = 0
        """How often partitions were assigned; 0 means not yet."""

    def use(self, consumer: AIOKafkaConsumer) -> None:
        """Tell which consumer is the group's member; before it subscribes."""
        self._consumer = consumer

    def current(self) -> Mapping[TopicPartition, Owner]:
        """Give the owners of what was assigned last, taken or not yet."""
        return self._owners

    def owns(self, owner: Owner) -> bool:
        """Tell whether an ownership still stands."""
        return self._owners.get(owner.tp) is owner

    def check(self) -> None:
        """Raise what went wrong while a partition was taken."""
        if self._failure is not None:
            raise self._failure

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Begin to take partitions; called by aiokafka after a rebalance."""
        if self._ended:
            return  # a rebalance that was under way when we began to leave
        self.assignments += 1
        for tp in assigned:
            client = producer(
                self._settings,
                transactional_id=f"{self._group}-{tp.partition}",
                transaction_timeout_ms=self._transaction_timeout_ms,
            )
            owner = self._owners[tp] = Owner(tp, client, RecentIds(self._remember))
            owner.taking = asyncio.create_task(self._take(owner), name=f"take {tp.topic}-{tp.partition}")
            owner.taking.add_done_callback(self._taken)

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Let go of everything, after the transactions under way; called by aiokafka before a rebalance, and by us."""
        del revoked  # with aiokafka's eager protocol always all
        owners, self._owners = self._owners, {}
        await asyncio.gather(*(self._release(owner) for owner in owners.values()))

    async def release_all(self) -> None:
        """Let go of everything at the end, and take nothing more."""
        self._ended = True
        await self.on_partitions_revoked(())

    async def _take(self, owner: Owner) -> None:
        """Take a partition in four steps.

        1. Initialise the producer: former owners are fenced, and what they left open is aborted.
        2. Read the committed offset: since 1 nobody else can move it.
        3. Unless the ownership ended meanwhile, read from there, or from as far before as alerts are remembered.
        4. From now on what is read belongs to this owner.
        """
        if self._consumer is None:
            raise RuntimeError("a partition was assigned before the consumer was known")
        await owner.producer.start()
        committed = await self._consumer.committed(owner.tp)
        beginning = (await self._consumer.beginning_offsets([owner.tp]))[owner.tp]
        end = (await self._consumer.end_offsets([owner.tp]))[owner.tp]
        if not self.owns(owner):
            return
        owner.first = owner.done = start(owner.tp, committed, beginning, end)
        owner.position = max(beginning, owner.first - self._remember)
        self._consumer.seek(owner.tp, owner.position)
        owner.ready = True

    def _taken(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._failure = task.exception()

    @staticmethod
    async def _release(owner: Owner) -> None:
        if owner.taking is not None and not owner.taking.done():
            owner.taking.cancel()
            await asyncio.wait([owner.taking])
        async with owner.lock:
            try:
                await owner.producer.stop()
            except KafkaError as problem:
                if not fenced(problem):
                    raise
                # Somebody else has it already; nothing of ours was under way.


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
            "%s-%d: alerts %d to %d were deleted by the topic's retention before they were read",
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
