"""What an orchestrator does on Kafka: takes directives and terminations, answers them, looks up tasks and fitness.

Each item is handed out again after a crash until it was answered or done; its id lets the orchestrator drop what it did
before. It must not decide what is done about an item.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from schemas.decode import InvalidEvent, decode
from schemas.encode import encode, headers, record_key
from schemas.outputs import Directive, Fitness, KnownFlapping, Termination
from schemas.topics import CONTROL, DIRECTIVES, FITNESS, KNOWN_FLAPPING, TERMINATIONS
from streams.access.rights import check_rights
from streams.client.answers import Answer, answer_to
from streams.client.fitness import FitnessTotals, total
from streams.client.handed_out import HandedOut
from streams.client.tables import Table, still_flapping, table
from streams.kafka import KafkaSettings, consumer, producer, running
from streams.topics import check_topics

if TYPE_CHECKING:
    from typing import Self

    import msgspec
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka.structs import ConsumerRecord

    from schemas.topics import Topic

logger = logging.getLogger(__name__)

Item = Directive | Termination
"""What an orchestrator is asked to do."""

SOURCE = "/traction/client"
"""Who publishes, in the CloudEvents attribute `source`."""

MAX_ANSWERED = 10_000
"""Answers remembered, so that a termination that is repeated is obeyed once: it is repeated for minutes, not days."""


class Orchestrator:
    """An orchestrator on Kafka, to be used with `async with` and then `async for`.

    Runs in one event loop; items may be answered in any order, and from several tasks.

    Args:
        kafka: where and how to connect.
        group: consumer group. Orchestrators of one group share the sessions; each group is asked everything.
        actor: who answers, for people; the group when not given.

    Attributes:
        expired: items that were left out since their time had passed.
        repeated: items that came again and were not handed out again: those that were answered here got their answer
            once more, those that are being worked on will get one.
        unreadable: records that were left out since this version cannot read them.
    """

    def __init__(self, kafka: KafkaSettings, *, group: str, actor: str | None = None) -> None:
        self.expired = 0
        self.repeated = 0
        self.unreadable = 0
        self._kafka = kafka
        self._group = group
        self._actor = actor or group
        self._answered: OrderedDict[str, tuple[Answer, str | None]] = OrderedDict()
        self._topics = {kafka.topic(topic): topic for topic in (DIRECTIVES, TERMINATIONS)}
        self._open = HandedOut()
        self._repeat: tuple[Item, Answer, str | None] | None = None
        self._stack = AsyncExitStack()
        self._tables: dict[str, Table[msgspec.Struct]] = {}
        self._making = asyncio.Lock()
        self._consumer: AIOKafkaConsumer
        self._producer: AIOKafkaProducer

    async def __aenter__(self) -> Self:
        """Connect.

        Raises:
            KafkaUnavailable: the brokers cannot be reached.
            TopicsError: a topic is missing, or a right of the role `orchestrator`.
        """
        await check_rights(self._kafka, "orchestrator", orchestrator_group=self._group)
        await check_topics(self._kafka, topics=(DIRECTIVES, TERMINATIONS, KNOWN_FLAPPING, FITNESS, CONTROL))
        async with AsyncExitStack() as stack:
            self._producer = await stack.enter_async_context(running(producer(self._kafka), self._kafka))
            client = consumer(self._kafka, group_id=self._group)
            self._consumer = await stack.enter_async_context(running(client, self._kafka))
            client.subscribe(list(self._topics), listener=self._open)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *problem: object) -> None:
        """Leave. What was handed out and neither answered nor done comes again."""
        await self._stack.aclose()

    def __aiter__(self) -> Self:
        """Give what is to be done, one by one, without an end."""
        return self

    async def __anext__(self) -> Item:
        """Give the next item, as soon as there is one.

        Raises:
            KafkaError: the brokers refuse us; that they are away is waited out.
        """
        while True:
            if self._repeat is not None:  # also what a call that was cancelled meanwhile has left
                repeated, action, reason = self._repeat
                await self.answer(repeated, action, reason=reason)
                self._repeat = None
            record = await self._consumer.getone()
            self._open.took(record)
            item = self._item(record)
            if item is None:
                await self._settle(record)
            elif item.acknowledge.answers in self._answered:
                self.repeated += 1
                self._open.hand_out(item, record)
                self._repeat = (item, *self._answered[item.acknowledge.answers])
            elif self._open.hand_out(item, record):
                return item
            else:
                self.repeated += 1

    async def answer(self, item: Item, action: Answer, *, reason: str | None = None) -> None:
        """Answer an item, and have it behind us: returns when the brokers have the answer.

        An item that comes again after it was answered here gets this answer again, without being handed out.

        Args:
            item: what was handed out.
            action: `obeyed` when it was done, `refused` when it will not be, `ended` when the session had ended before.
            reason: why, for people.

        Raises:
            ValueError: the item does not take this answer.
            KafkaError: the answer could not be written. The item comes again at the next start.
        """
        control = answer_to(item, action, actor=self._actor, reason=reason, now=datetime.now(UTC))
        await self._producer.send_and_wait(
            item.acknowledge.topic, encode(control), key=record_key(control), headers=headers(control, source=SOURCE)
        )
        self._answered[item.acknowledge.answers] = (action, reason)
        while len(self._answered) > MAX_ANSWERED:
            self._answered.popitem(last=False)
        await self.done(item)

    async def done(self, item: Item) -> None:
        """Have an item behind us without an answer: it does not come again after a crash.

        A termination that nobody answers is repeated all the same.
        """
        for record in self._open.take_back(item):
            await self._settle(record)

    async def known_flapping(self, task_id: str) -> KnownFlapping | None:
        """Tell whether a task should not be tried again without a person, as it stands now; None when it may be.

        Args:
            task_id: the task.

        Raises:
            TooSlow: the brokers are away.
            KafkaError: they refuse us.
        """
        entries = await (await self._table(KNOWN_FLAPPING)).latest()
        return still_flapping(cast("KnownFlapping | None", entries.get(task_id.encode())))

    async def fitness(self, task_type: str | None = None) -> list[FitnessTotals]:
        """Tell how configurations of agents fared with types of tasks, the best first; `rank` puts types together.

        Args:
            task_type: only this type; None for all.

        Raises:
            TooSlow: the brokers are away.
            KafkaError: they refuse us.
        """
        records = await (await self._table(FITNESS)).latest()
        return total((cast("Fitness", record) for record in records.values()), task_type)

    async def _table(self, topic: Topic) -> Table[msgspec.Struct]:
        async with self._making:
            if topic.name not in self._tables:
                self._tables[topic.name] = await self._stack.enter_async_context(table(self._kafka, topic))
        return self._tables[topic.name]

    def _item(self, record: ConsumerRecord) -> Item | None:
        """Read what is to be done; None when there is nothing to do any more, or ever was."""
        topic = self._topics[record.topic]
        if record.value is None:
            return None
        try:
            item = cast("Item", decode(topic, record.value, record.headers))
        except InvalidEvent as problem:
            self.unreadable += 1
            place = f"{record.topic}-{record.partition}@{record.offset}"
            logger.warning("%s is left out, unanswered: %s; is a newer client needed?", place, problem)
            return None
        if item.expires_at is not None and item.expires_at <= datetime.now(UTC):
            self.expired += 1
            return None
        return item

    async def _settle(self, record: ConsumerRecord) -> None:
        positions: dict[Any, int] = self._open.settle(record)
        if not positions:
            return
        await self._open.commit(self._consumer, positions)
