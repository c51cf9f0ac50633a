"""Reads the ladders of one partition back, to the end, before anything is answered.

Whoever calls this has fenced the former owner, so that the end does not move. A ladder that cannot be read ends the
process: going on without it would do again what was done, or leave undone what is due.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from detectors import UnsupportedState
from streams.escalation.ladders import Ladders
from streams.escalation.text import line
from streams.kafka import consumer, running

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiokafka import TopicPartition
    from aiokafka.structs import ConsumerRecord

    from streams.escalation.metrics import EscalationMetrics
    from streams.kafka import KafkaSettings

logger = logging.getLogger(__name__)

POLL_MS = 200
"""How long one fetch may wait: the end is known, so there is nothing to wait for but the brokers."""

FETCH_RECORDS = 500
"""Records, and ladders that are decoded, between two turns of the event loop: the group wants signs of life."""

TELL_SECONDS = 5.0
"""Between two lines of the log on how far it is."""


class UnreadableLadder(Exception):
    """A ladder cannot be read: the message says where it is, why, and what to do."""


async def restore(
    kafka: KafkaSettings, tp: TopicPartition, metrics: EscalationMetrics, on_read: Callable[[int], None]
) -> Ladders:
    """Read the ladders of one partition.

    Args:
        kafka: where and how to connect.
        tp: the partition of the topic of ladders.
        metrics: takes how many records there were, and how long it took.
        on_read: told how many were read so far.

    Raises:
        KafkaUnavailable: the brokers cannot be reached.
        UnreadableLadder: a ladder is damaged, or of another release.
    """
    begun = told = time.monotonic()
    latest: dict[bytes, ConsumerRecord] = {}
    read = 0
    async with running(consumer(kafka), kafka) as client:
        client.assign([tp])
        start: int = (await client.beginning_offsets([tp]))[tp]
        end: int = (await client.end_offsets([tp]))[tp]
        client.seek(tp, start)
        # The position, not the last record: a compacted topic ends in the markers of transactions.
        while (position := await client.position(tp)) < end:
            for records in (await client.getmany(timeout_ms=POLL_MS, max_records=FETCH_RECORDS)).values():
                read += len(records)
                on_read(read)
                for record in records:
                    if record.value is None:
                        latest.pop(record.key, None)
                    else:
                        latest[record.key] = record
            if time.monotonic() - told > TELL_SECONDS:
                told = time.monotonic()
                logger.info("%s-%d: read back to offset %d of %d", tp.topic, tp.partition, position, end)
    ladders = Ladders()
    for number, record in enumerate(latest.values()):
        _take(ladders, record)
        if number % FETCH_RECORDS == 0:
            await asyncio.sleep(0)
    metrics.restored.inc(read)
    metrics.restore_seconds.observe(time.monotonic() - begun)
    return ladders


def _take(ladders: Ladders, record: ConsumerRecord) -> None:
    task_id = (record.key or b"").decode("utf-8", "backslashreplace")
    try:
        ladders.restore(task_id, record.value)
    except UnsupportedState as problem:
        raise UnreadableLadder(
            f"{record.topic}-{record.partition}@{record.offset}: {problem}. To go on without it, and "
            f"forget what was done about its task, write an empty record under its key ({line(task_id, 120)}) there"
        ) from problem
