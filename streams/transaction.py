"""Writes what follows from records in one transaction with the offsets read, and tells why one did not come about.

So a reader of committed records sees what follows from each exactly once. What follows is for others to say.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streams.fencing import lost, reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from aiokafka import AIOKafkaProducer, TopicPartition

    from streams.metrics import ConsumerMetrics


class Fenced(Exception):
    """Another process has taken over a partition of ours: nothing was written twice, and this process must end."""


class PositionMoved(Exception):
    """The consumer reads elsewhere than where it was left: the topic is not what it was, so this process must end."""


@dataclass(frozen=True, slots=True)
class Out:
    """One record to write.

    Attributes:
        topic: its topic's name.
        key: its key.
        value: its value; None removes what is under the key.
        headers: its headers.
        partition: where it is written; None where the key decides.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    partition: int | None = None


async def write(
    producer: AIOKafkaProducer,
    outputs: Iterable[Out],
    offsets: Mapping[TopicPartition, int],
    *,
    group: str,
    what: str,
    metrics: ConsumerMetrics,
) -> None:
    """Write records and commit offsets, all or nothing.

    Args:
        producer: transactional, of the partition.
        outputs: the records.
        offsets: what comes next in what was read.
        group: the consumer group.
        what: the partition, for messages.
        metrics: takes how long it took, and failures.

    Raises:
        Fenced: another process has taken the partition over.
        KafkaError: the brokers refuse something.
    """
    begun = time.perf_counter()
    sent: list[asyncio.Future[Any]] = []
    try:
        async with producer.transaction():
            for out in outputs:
                future = await producer.send(
                    out.topic, key=out.key, value=out.value, headers=out.headers, partition=out.partition
                )
                sent.append(future)  # one by one: those before a failure are asked for its cause
            await asyncio.gather(*sent)
            if offsets:
                await producer.send_offsets_to_transaction(offsets, group)
    except Exception as problem:  # not only `KafkaError`: see `lost`
        if lost(producer, problem, sent):
            metrics.transaction_failures.labels("fenced").inc()
            raise Fenced(f"{what} was taken over") from problem
        metrics.transaction_failures.labels("failed").inc()
        why = reason(producer, problem, sent)
        if why is not problem:
            raise why from None
        raise
    metrics.commit_seconds.observe(time.perf_counter() - begun)
    metrics.last_commit_timestamp.set_to_current_time()
