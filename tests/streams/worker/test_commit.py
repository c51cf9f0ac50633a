"""A commit says why it failed: that somebody else owns the partition now, also where only the sender knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import pytest

from streams.kafka import KafkaSettings, producer, running
from streams.topics import create_topics
from streams.worker.commit import Committer
from streams.worker.faults import EXIT_LOST
from streams.worker.settings import WorkerSettings
from tests.kit import tool_call, until

if TYPE_CHECKING:
    from tests.streams.worker.conftest import Bench, MakeRecord


class Ended(Exception):
    """The process would have ended."""


def abandon(code: int, message: str) -> NoReturn:
    """Stand in for the end of the process."""
    raise Ended(code, message)


async def test_a_producer_that_was_fenced_before(bench: Bench, record: MakeRecord, bootstrap: str, prefix: str) -> None:
    """The next commit is refused by aiokafka in words that say nothing of it; it is told as what it is all the same."""
    kafka = KafkaSettings(bootstrap=bootstrap, prefix=prefix)
    settings = WorkerSettings(kafka=kafka, app_id=prefix.rstrip("."))
    await create_topics(kafka, partitions=1, replication=1, app_id=settings.app_id)
    client = producer(kafka, transactional_id=settings.transactional_id(0))
    await client.start()
    try:
        await client.begin_transaction()
        async with running(producer(kafka, transactional_id=settings.transactional_id(0)), kafka):
            sent = await client.send(settings.alerts, b"v")

            async def dead() -> bool:
                return bool(client._sender.sender_task.done())

            await until(dead)
            assert sent.done()
        committer = Committer(
            bench.partition,
            client,
            settings=settings,
            metrics=bench.metrics,
            live_limit=lambda: 10,
            abandon=abandon,
        )
        bench.apply([record(tool_call("s", 0))])
        with pytest.raises(Ended) as ended:
            await committer.commit()
    finally:
        committer._task.cancel()
        await client.stop()
    code, message = ended.value.args
    assert code == EXIT_LOST
    assert "fenced: another worker owns partition 0 now" in message
    assert bench.value("traction_transaction_failures_total", reason="fenced") == 1
