"""Where a sink begins to read: what was delivered is not delivered again, whatever Kafka answers and whenever."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import RecordsToDelete
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.protocol.commit import OffsetFetchResponse_v3

from schemas import topics
from streams.coordinator import StableOffsetFetch
from streams.kafka import KafkaSettings, admin, consumer, running
from streams.sinks.runner import NEW_SINK_MS
from tests.streams.sinks.conftest import PARTITIONS, MakeNotification, Receiver, status
from tests.streams.sinks.test_run import Bench, hooks, ids
from tests.waiting import SOON_SECONDS, until


@pytest.fixture
def bench(kafka: KafkaSettings, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Give a bench whose processes learn soon that partitions are shared anew."""
    monkeypatch.setattr("streams.sinks.runner.HEARTBEAT_MS", 100)
    return Bench(kafka)


@pytest.fixture
async def delivered(bench: Bench, receiver: Receiver, notification: MakeNotification) -> Receiver:
    """Give a receiver that has had two notifications, whose offsets are committed."""
    await bench.send(notification("n0"), notification("n1"))
    async with bench.at_work(hooks(receiver.url)):
        await until(lambda: bench.count("delivered") == 2)
    assert await bench.committed() == 2
    return receiver


async def share_anew(client: AIOKafkaConsumer) -> None:
    """Have the group share its partitions again, and wait until it has."""
    state = client._subscription
    before = state.subscription.assignment
    client._coordinator.request_rejoin()
    await until(lambda: not state.reassignment_in_progress and state.subscription.assignment is not before)


async def only_the_next(bench: Bench, receiver: Receiver, notification: MakeNotification) -> None:
    """See that a process that starts now delivers what comes, and nothing again."""
    async with bench.at_work(hooks(receiver.url)):
        await bench.send(notification("n2"))
        await until(lambda: bench.count("delivered") + bench.count("skipped") >= 1)
        await until(lambda: "n2" in ids(receiver))
    assert ids(receiver) == ["n0", "n1", "n2"]
    assert await bench.committed() == 3


async def test_a_refusal_is_not_taken_for_no_offset(
    bench: Bench, delivered: Receiver, notification: MakeNotification, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the coordinator loads the group (14), or is another broker (16), it is asked again, and reading waits."""
    real, refusals = GroupCoordinator._send_req, [14, 16] * 10

    async def send(self: Any, request: Any) -> Any:
        if isinstance(request, StableOffsetFetch) and refusals:
            return OffsetFetchResponse_v3(0, [], refusals.pop(0))
        return await real(self, request)

    monkeypatch.setattr(GroupCoordinator, "_send_req", send)
    await only_the_next(bench, delivered, notification)
    assert not refusals


async def test_one_answer_without_an_offset_is_not_enough(
    bench: Bench, delivered: Receiver, notification: MakeNotification, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the second answer contradicts the first, all is asked again before anything is read or committed."""
    real, told = AIOKafkaConsumer.committed, set()

    async def committed(self: Any, tp: TopicPartition) -> int | None:
        offset: int | None = await real(self, tp)
        first = tp not in told
        told.add(tp)
        return None if first else offset

    monkeypatch.setattr(AIOKafkaConsumer, "committed", committed)
    await only_the_next(bench, delivered, notification)
    assert len(told) == PARTITIONS


async def test_partitions_shared_anew_while_a_start_is_looked_for(
    bench: Bench, delivered: Receiver, notification: MakeNotification, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start found under an assignment that no longer stands is neither committed nor read from."""
    real = {name: getattr(AIOKafkaConsumer, name) for name in ("committed", "offsets_for_times")}
    shared: list[bool] = []
    doubtful = [True]

    async def committed(self: Any, tp: TopicPartition) -> int | None:
        offset: int | None = await real["committed"](self, tp)
        if doubtful[0]:
            doubtful[0] = not shared
            return None
        return offset

    async def offsets_for_times(self: Any, times: Any) -> Any:
        found = await real["offsets_for_times"](self, times)
        if not shared:
            await share_anew(self)
            shared.append(True)
        return found

    monkeypatch.setattr(AIOKafkaConsumer, "committed", committed)
    monkeypatch.setattr(AIOKafkaConsumer, "offsets_for_times", offsets_for_times)
    await only_the_next(bench, delivered, notification)
    assert (shared, doubtful) == ([True], [False])


async def test_partitions_shared_anew_before_the_start_is_sought(
    bench: Bench, delivered: Receiver, notification: MakeNotification, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An offset that was the group's under the assignment before is not sought under the next one."""
    real, stale = AIOKafkaConsumer.committed, [0]

    async def committed(self: Any, tp: TopicPartition) -> int | None:
        offset: int | None = await real(self, tp)
        if stale:
            await share_anew(self)
            return stale.pop()
        return offset

    monkeypatch.setattr(AIOKafkaConsumer, "committed", committed)
    await only_the_next(bench, delivered, notification)
    assert not stale


async def test_a_late_commit_takes_nothing_back(
    bench: Bench, receiver: Receiver, notification: MakeNotification, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that had its partition back while it delivered goes on from where another one came to meanwhile."""
    held, free = asyncio.Event(), asyncio.Event()
    commits: list[int] = []
    tried: list[Any] = []
    real: Callable[[Any, Any], Awaitable[None]] = AIOKafkaConsumer.commit

    async def answer(request: Any) -> Any:
        held.set()
        await free.wait()
        return await status(200)(request)

    async def commit(self: Any, offsets: dict[TopicPartition, int]) -> None:
        commits.extend(offsets.values())
        await real(self, offsets)

    async def elsewhere(self: Any, tp: TopicPartition) -> int:
        del self
        return 2 if tp in tried else 0

    receiver.handler = answer
    await bench.send(notification("n0"), notification("n1"), notification("n2"))
    async with bench.at_work(hooks(receiver.url)) as sinks:
        async with asyncio.timeout(SOON_SECONDS):
            await held.wait()
        runner, _ = sinks._running["hooks"]
        tried.append(runner._current)
        await share_anew(runner._client)
        monkeypatch.setattr(AIOKafkaConsumer, "committed", elsewhere)
        monkeypatch.setattr(AIOKafkaConsumer, "commit", commit)
        free.set()
        await until(lambda: commits)
    assert (ids(receiver), commits) == (["n0", "n2"], [3])


@pytest.mark.parametrize("stands", [0, 100])
async def test_where_it_stands_is_no_longer_there(
    bench: Bench, receiver: Receiver, notification: MakeNotification, stands: int
) -> None:
    """Behind what retention deleted it goes on with the oldest; in a topic made anew with what is an hour old."""
    tps = [TopicPartition(bench.kafka.topic(topics.NOTIFICATIONS), number) for number in range(PARTITIONS)]
    other = consumer(bench.kafka, group_id=f"{bench.group}-sink-hooks")
    other.assign(tps)
    async with running(other, bench.kafka):
        await other.commit(dict.fromkeys(tps, stands))
    old = int(time.time() * 1000) - NEW_SINK_MS - 60_000
    await bench.send(notification("deleted"), notification("old"), timestamp_ms=old, partition=0)
    await bench.send(notification("young"), partition=0)
    async with running(admin(bench.kafka), bench.kafka) as client:
        await client.delete_records({tps[0]: RecordsToDelete(before_offset=1)})
    wanted = ["old", "young"] if stands == 0 else ["young"]
    async with bench.at_work(hooks(receiver.url)):
        await until(lambda: bench.count("delivered") == len(wanted))
        lost = bench.registry.get_sample_value("traction_sink_deleted_untold_records_total", {"sink": "hooks"})
    assert (ids(receiver), lost) == (wanted, 1 if stands == 0 else 0)


async def test_what_retention_deletes_under_a_running_sink(
    bench: Bench, receiver: Receiver, notification: MakeNotification, caplog: pytest.LogCaptureFixture
) -> None:
    """Notifications deleted while it tells an earlier one are logged and counted, and the one left is told."""
    tp = TopicPartition(bench.kafka.topic(topics.NOTIFICATIONS), 0)
    await bench.send(notification("n0"), partition=0)
    async with bench.at_work(hooks(receiver.url)) as sinks:
        await until(lambda: bench.count("delivered") == 1)
        runner, _ = sinks._running["hooks"]
        assert runner._client is not None
        runner._client.pause(tp)
        await bench.send(*(notification(f"n{n}") for n in (1, 2, 3)), partition=0)
        async with running(admin(bench.kafka), bench.kafka) as client:
            await client.delete_records({tp: RecordsToDelete(before_offset=3)})
        runner._client.resume(tp)
        await until(lambda: bench.count("delivered") == 2)
        lost = bench.registry.get_sample_value("traction_sink_deleted_untold_records_total", {"sink": "hooks"})
    assert (ids(receiver), lost) == (["n0", "n3"], 2)
    assert f"sink hooks: {tp.topic}-0: records 1 to 2 were deleted" in caplog.text
