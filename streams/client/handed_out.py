"""Which records were handed out and not answered yet, and up to where that lets a partition be committed.

Items may be answered in any order, and a partition is committed up to its first open one: after a crash nothing is left
out, and what was answered behind it comes again. It reads and answers nothing itself.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import TYPE_CHECKING

from aiokafka import TopicPartition
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.errors import CommitFailedError, IllegalStateError

if TYPE_CHECKING:
    from collections.abc import Collection

    from aiokafka import AIOKafkaConsumer
    from aiokafka.structs import ConsumerRecord

    from schemas.outputs import Directive, Termination

logger = logging.getLogger(__name__)


class HandedOut(ConsumerRebalanceListener):  # type: ignore[misc]  # published without types
    """Keeps account of what is open, for the partitions that the group has given us."""

    def __init__(self) -> None:
        self._open: dict[TopicPartition, set[int]] = defaultdict(set)
        self._next: dict[TopicPartition, int] = {}
        self._records: dict[str, list[ConsumerRecord]] = {}

    def took(self, record: ConsumerRecord) -> None:
        """Note that a record was read: it is open."""
        tp = _tp(record)
        self._open[tp].add(record.offset)
        self._next[tp] = record.offset + 1

    def hand_out(self, item: Directive | Termination, record: ConsumerRecord) -> bool:
        """Note what a record asks for, and tell whether it is new: not when it is being worked on."""
        name = item.acknowledge.answers
        new = name not in self._records
        self._records.setdefault(name, []).append(record)
        return new

    def take_back(self, item: Directive | Termination) -> list[ConsumerRecord]:
        """Give the records that asked for what is behind us now; none when it was before."""
        return self._records.pop(item.acknowledge.answers, [])

    def settle(self, record: ConsumerRecord) -> dict[TopicPartition, int]:
        """Note that a record is behind us, and give what can be committed for its partition: nothing when not ours."""
        tp = _tp(record)
        if record.offset not in self._open.get(tp, ()):
            return {}
        self._open[tp].discard(record.offset)
        return {tp: min(self._open[tp], default=self._next[tp])}

    async def commit(self, client: AIOKafkaConsumer, positions: dict[TopicPartition, int]) -> None:
        """Commit; where the group has just taken a partition from us, its next owner reads the items again."""
        try:
            await client.commit(positions)
        except (CommitFailedError, IllegalStateError) as problem:
            logger.info("not committed, so that items come again: %s", problem)

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Forget what is another's now; called by the consumer."""
        self._forget(revoked)

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Begin anew with what the group gives us; called by the consumer."""
        self._forget(assigned)

    def _forget(self, tps: Collection[TopicPartition]) -> None:
        """Drop positions. What is being worked on stays known: it may come again, and is not handed out twice."""
        for tp in tps:
            self._open.pop(tp, None)
            self._next.pop(tp, None)


def _tp(record: ConsumerRecord) -> TopicPartition:
    return TopicPartition(record.topic, record.partition)
