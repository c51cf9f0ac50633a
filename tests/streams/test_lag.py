"""The watch sees how far a process is behind, and when it is stuck, from the brokers and not from the process."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from prometheus_client import CollectorRegistry

from schemas.topics import ALERTS
from streams.escalation.metrics import EscalationMetrics
from streams.kafka import KafkaSettings, producer, running
from streams.lag import BROKER, Applied, LagWatch
from streams.pages import Health
from streams.topics import create_topics

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


@pytest.fixture
async def kafka(bootstrap: str, prefix: str) -> KafkaSettings:
    """Give a broker with the topics."""
    settings = KafkaSettings(bootstrap=bootstrap, prefix=prefix)
    await create_topics(settings, partitions=2, app_id=prefix.rstrip("."))
    return settings


class Watched:
    """A watch on whatever a test says was applied."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self.registry = CollectorRegistry()
        self.health = Health((BROKER,), stall_seconds=1.0)
        self.applied: dict[TopicPartition, Applied] = {}
        self.watch = LagWatch(kafka, EscalationMetrics(self.registry), self.health, lambda: self.applied, interval=0.1)

    def lag(self, tp: TopicPartition) -> float | None:
        """Read a partition's lag off the page."""
        labels = {"topic": tp.topic, "partition": str(tp.partition)}
        return self.registry.get_sample_value("traction_consumer_lag_records", labels)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something holds."""
        deadline = time.monotonic() + 15
        while not condition():
            assert time.monotonic() < deadline, self.health.live()
            await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def watching(kafka: KafkaSettings) -> AsyncIterator[Watched]:
    """Watch while the block runs."""
    watched = Watched(kafka)
    task = asyncio.create_task(watched.watch.run())
    try:
        yield watched
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_lag_and_age_follow_what_was_applied(kafka: KafkaSettings) -> None:
    """Records between the position and the end; the age of the last one applied while there are any."""
    tp = TopicPartition(kafka.topic(ALERTS), 0)
    async with running(producer(kafka), kafka) as client:
        for _ in range(5):
            await client.send_and_wait(tp.topic, value=b"x", partition=0)
    async with watching(kafka) as watched:
        watched.applied = {tp: Applied(2, time.time() - 60)}
        await watched.until(lambda: watched.lag(tp) == 3)
        assert watched.health.ready().ok
        age = watched.registry.get_sample_value("traction_consumer_behind_seconds")
        assert age is not None
        assert 59 < age < 90
        watched.applied = {tp: Applied(5, time.time() - 60)}
        await watched.until(lambda: watched.lag(tp) == 0)
        assert watched.registry.get_sample_value("traction_consumer_behind_seconds") == 0
        watched.applied = {}
        await watched.until(lambda: watched.lag(tp) is None)


async def test_a_position_that_does_not_move_is_found(kafka: KafkaSettings) -> None:
    """With records waiting the process is not alive after the stall time; once it moves, it is again."""
    tp = TopicPartition(kafka.topic(ALERTS), 1)
    async with running(producer(kafka), kafka) as client:
        await client.send_and_wait(tp.topic, value=b"x", partition=1)
    async with watching(kafka) as watched:
        watched.applied = {tp: Applied(0, None)}
        await watched.until(lambda: not watched.health.live().ok)
        watched.applied = {tp: Applied(1, time.time())}
        await watched.until(lambda: watched.health.live().ok)


async def test_open_transactions_are_not_lag(kafka: KafkaSettings) -> None:
    """Records that cannot be read yet do not make a process look stuck."""
    tp = TopicPartition(kafka.topic(ALERTS), 0)
    async with running(producer(kafka, transactional_id=kafka.prefix), kafka) as client, client.transaction():
        await client.send_and_wait(tp.topic, value=b"x", partition=0)
        async with watching(kafka) as watched:
            watched.applied = {tp: Applied(0, None)}
            await watched.until(lambda: watched.lag(tp) == 0)
            await asyncio.sleep(1.5)
            assert watched.health.live().ok


async def test_a_process_without_partitions_is_ready(kafka: KafkaSettings) -> None:
    """A spare process, which owns nothing, knows that the brokers answer."""
    async with watching(kafka) as watched:
        await watched.until(lambda: watched.health.ready().ok)


async def test_brokers_out_of_reach_make_it_unready_but_not_dead() -> None:
    """The watch waits for the brokers, and says so."""
    async with watching(KafkaSettings(bootstrap="127.0.0.1:1")) as watched:
        await watched.until(lambda: "does not answer" in watched.health.ready().checks[BROKER])
        assert watched.health.live().ok


@pytest.mark.parametrize("turns", range(4))
async def test_it_ends_when_cancelled_as_an_answer_comes(
    kafka: KafkaSettings, monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    """However many turns of the loop lie between the answer and the cancellation: a process that stops waits for it."""
    asked, answer = asyncio.Event(), asyncio.get_running_loop().create_future()

    async def topics(_: AIOKafkaConsumer) -> set[str]:
        asked.set()
        await answer
        return set()

    monkeypatch.setattr(AIOKafkaConsumer, "topics", topics)
    task = asyncio.create_task(Watched(kafka).watch.run())
    await asked.wait()
    answer.set_result(None)
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task], timeout=5)
    assert task.cancelled()
