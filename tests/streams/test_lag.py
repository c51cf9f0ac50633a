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
from streams.health import STALL_BOUNDS, STALL_SECONDS, Health
from streams.kafka import KafkaSettings, producer, running
from streams.lag import BROKER, MAX_ENDS, Applied, LagWatch, Waiting, answer_seconds, interval_seconds
from streams.topics import create_topics
from tests.waiting import until

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
        self.taking: dict[str, int] = {}
        self.watch = LagWatch(
            kafka,
            EscalationMetrics(self.registry),
            self.health,
            lambda: self.applied,
            taking=lambda: self.taking,
        )

    def lag(self, tp: TopicPartition) -> float | None:
        """Read a partition's lag off the page."""
        labels = {"topic": tp.topic, "partition": str(tp.partition)}
        return self.registry.get_sample_value("traction_consumer_lag_records", labels)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something holds."""
        await until(condition, told=self.health.live)


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
        assert watched.registry.get_sample_value("traction_brokers_reachable") == 1
        age = watched.registry.get_sample_value("traction_consumer_behind_seconds")
        assert age is not None
        assert 59 < age < 90
        watched.applied = {tp: Applied(5, time.time() - 60)}
        await watched.until(lambda: watched.lag(tp) == 0)
        assert watched.registry.get_sample_value("traction_consumer_behind_seconds") == 0
        watched.applied = {}
        await watched.until(lambda: watched.lag(tp) is None)


async def test_a_position_that_does_not_move_is_found(kafka: KafkaSettings, caplog: pytest.LogCaptureFixture) -> None:
    """With records waiting the process is not alive after the stall time; once it moves, it is again; it is logged."""
    tp = TopicPartition(kafka.topic(ALERTS), 1)

    def said() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.name == "streams.lag"]

    async with running(producer(kafka), kafka) as client:
        await client.send_and_wait(tp.topic, value=b"x", partition=1)
    async with watching(kafka) as watched:
        watched.applied = {tp: Applied(0, None)}
        await watched.until(lambda: not watched.health.live().ok)
        await watched.until(lambda: len(said()) == 1)
        watched.applied = {tp: Applied(1, time.time())}
        await watched.until(lambda: watched.health.live().ok)
        await watched.until(lambda: len(said()) > 1)
    name = f"{tp.topic}-{tp.partition}"
    assert [message.partition(" for ")[0] for message in said()] == [
        f"{name}: stuck at 0",
        f"{name}: does not hang any more",
    ]


async def test_taking_that_hangs_is_found(kafka: KafkaSettings) -> None:
    """A partition that is taken for the stall time without a step is not alive; with steps, or once taken, it is."""
    async with watching(kafka) as watched:
        for step in range(20):
            watched.taking = {"taking partition 0": step}
            await asyncio.sleep(0.1)
            assert watched.health.live().ok
        await watched.until(lambda: not watched.health.live().ok)
        watched.taking = {}
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
        assert watched.registry.get_sample_value("traction_brokers_reachable") == 0


@pytest.mark.parametrize("stall", [*STALL_BOUNDS, STALL_SECONDS, 5.0])
def test_a_stall_is_never_longer_than_the_watch_can_see(stall: float) -> None:
    """Two looks with the slowest answer between them are close enough for the position to count as seen throughout."""
    now = 0.0
    health = Health((), clock=lambda: now, stall_seconds=stall)
    while now < stall:
        health.progress("p", 7, 8)
        assert health.live().ok
        now += interval_seconds(stall) + answer_seconds(stall)
    health.progress("p", 7, 8)
    assert not health.live().ok


def at(position: int, timestamp: float | None = None) -> Applied:
    """Say how far a partition is."""
    return Applied(position, timestamp)


def test_a_record_waits_since_it_came() -> None:
    """However long ago the one before it came: what comes after a quiet night has not waited all night."""
    waiting = Waiting()
    assert waiting.seconds(at(7, 100.0), 7, 50_000) == 0
    assert waiting.seconds(at(7, 100.0), 9, 50_005) == 0
    assert waiting.seconds(at(7, 100.0), 9, 50_010) == 5
    assert waiting.seconds(at(8, 50_001.0), 12, 50_015) == 10, "the next one came with the first"
    assert waiting.seconds(at(9, 50_004.0), 12, 50_020) == 5
    assert waiting.seconds(at(12, 50_014.0), 12, 50_025) == 0


def test_a_backlog_from_before_the_first_look_is_as_old_as_what_was_applied_last() -> None:
    """After a restart nobody saw when it came; until something was applied it is at least as old as the first look."""
    waiting = Waiting()
    assert waiting.seconds(at(3), 9, 1_000) == 0
    assert waiting.seconds(at(3), 9, 1_005) == 5
    assert waiting.seconds(at(4, 400.0), 9, 1_010) == 610
    assert waiting.seconds(at(9, 990.0), 12, 1_015) == 0, "what came since was seen to come"


def test_a_topic_made_anew_begins_anew() -> None:
    """Ends of the one that was deleted say nothing of the new one."""
    waiting = Waiting()
    waiting.seconds(at(3), 90, 1_000)
    assert waiting.seconds(at(0), 5, 2_000) == 0
    assert waiting.seconds(at(0), 6, 2_005) == 5


@pytest.mark.parametrize("over", [0, 1])
def test_what_is_remembered_of_ends_is_bounded(over: int) -> None:
    """A partition that is stuck for days takes no more memory, and is as old as it is."""
    waiting = Waiting()
    ages = [waiting.seconds(at(0), look + 1, 5.0 * look) for look in range(MAX_ENDS + over)]
    assert ages[-1] == 5 * (MAX_ENDS + over - 1)
    assert len(waiting._ends) == (MAX_ENDS // 2 + 1 if over else MAX_ENDS)


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
