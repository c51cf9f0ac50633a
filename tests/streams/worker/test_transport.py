"""While partitions are taken over nothing is fetched, whoever asks for it: it would come from anywhere."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer.subscription_state import SubscriptionState
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from prometheus_client import CollectorRegistry

from streams.worker import transport
from streams.worker.app import Worker, build
from streams.worker.metrics import WorkerMetrics
from streams.worker.settings import WorkerSettings
from streams.worker.watch import under_way

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiokafka import AIOKafkaConsumer

ROOT = Path(__file__).parents[3]
ASSIGNED = {TP("tool-calls", 0)}


@pytest.fixture
async def worker() -> AsyncIterator[Worker]:
    """Give a worker that is not started."""
    built = build(WorkerSettings(), 1, WorkerMetrics(CollectorRegistry()))
    yield built
    await built.ownerships.stop()
    await built.follower.stop()


@pytest.mark.parametrize("asked", [True, False])
async def test_a_recovery_that_was_broken_off_has_nothing_fetched(
    worker: Worker,
    monkeypatch: pytest.MonkeyPatch,
    asked: bool,  # noqa: FBT001
) -> None:
    """What is asked for from the loss of partitions until Faust has heard of the new ones is done then, not before."""
    consumer, seen = worker.consumer, list[bool]()

    async def step(*_: Any) -> None:
        if asked:
            consumer.resume_flow()
        seen.append(consumer.flow_active)

    monkeypatch.setattr(worker.ownerships, "release", step)
    monkeypatch.setattr(worker.ownerships, "take", step)
    monkeypatch.setattr(worker.ownerships.changelogs, "take", step)
    for name in ("on_partitions_revoked", "on_partitions_assigned"):
        monkeypatch.setattr(driver.Consumer, name, step)
    await consumer.on_partitions_revoked(ASSIGNED)
    await consumer.on_partitions_assigned(ASSIGNED)
    assert seen == [False] * 5
    assert consumer.flow_active == asked
    consumer.resume_flow()
    assert consumer.flow_active


async def test_what_is_done_with_partitions_is_told_and_what_others_do_is_not(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that hangs there is seen, and one that waits for the rest of its group is not taken for hung."""
    consumer, seen = worker.consumer, list[tuple[set[str], bool]]()

    async def step(*_: Any) -> None:
        seen.append((set(under_way(worker)), consumer.assigned))

    monkeypatch.setattr(worker.ownerships, "release", step)
    monkeypatch.setattr(worker.ownerships, "take", step)
    monkeypatch.setattr(worker.ownerships.changelogs, "take", step)
    for name in ("on_partitions_revoked", "on_partitions_assigned"):
        monkeypatch.setattr(driver.Consumer, name, step)
    await step()
    await consumer.on_partitions_revoked(ASSIGNED)
    await step()
    await consumer.on_partitions_assigned(ASSIGNED)
    await step()
    letting, taking = ({"letting go of partitions"}, False), ({"taking partitions"}, False)
    waiting = (set[str](), False)
    assert seen == [waiting, letting, letting, waiting, taking, taking, taking, ({"reading state back"}, True)]


async def test_a_partition_that_was_just_assigned_is_no_error(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """However long ago the process started: Faust would say that it was not fetched since then."""
    consumer, tp = worker.consumer, TP("tool-calls", 0)
    state = SubscriptionState()
    state.subscribe({tp.topic})
    state.assign_from_subscribed({TopicPartition(*tp)})
    fetcher = SimpleNamespace(_subscriptions=state)
    monkeypatch.setattr(consumer._thread, "_consumer", SimpleNamespace(_fetcher=fetcher))
    consumer._thread.time_started = time.monotonic() - 3_600
    consumer.verify_event_path(time.monotonic(), tp)
    consumer.verify_recovery_event_path(time.monotonic(), tp)
    assert caplog.messages == []
    driver.Consumer.verify_event_path(consumer, time.monotonic(), tp)
    assert ["since start" in message for message in caplog.messages] == [True], "what this is about"


async def test_inputs_are_fetched_once_their_committed_offsets_are_sought(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then, and until the flow is resumed after it, changelogs alone are fetched; so it is at each assignment."""
    consumer = worker.consumer
    changelog, tool_calls = TopicPartition("traction-sessions-changelog", 0), TopicPartition("agent.tool-calls", 0)

    async def sought(_: Any) -> None:
        """Do as if."""

    monkeypatch.setattr(driver.Consumer, "perform_seek", sought)
    for _ in range(2):
        consumer.resume_flow()  # as a recovery does that begins
        assert [consumer._wanted(tp) for tp in (changelog, tool_calls)] == [True, False]
        await consumer.perform_seek()
        assert not consumer._wanted(tool_calls)
        consumer.resume_flow()
        assert consumer._wanted(tool_calls)
        consumer._hold_flow()
        consumer._held = False


class Log:
    """Stands in for aiokafka's consumer: nothing is there to fetch until a record comes."""

    _closed = False
    _max_poll_records = 100

    def __init__(self, tp: TopicPartition) -> None:
        state = SimpleNamespace(position=0, has_valid_position=True)
        assignment = SimpleNamespace(tps={tp}, state_value=lambda _: state)
        self._fetcher = SimpleNamespace(
            _closed=False,
            _records={},
            _subscriptions=SimpleNamespace(
                fetch_context=nullcontext,
                reassignment_in_progress=False,
                subscription=SimpleNamespace(assignment=assignment),
            ),
            _create_fetch_waiter=self._wait,
            fetched_records=self._fetched,
        )
        self._tp, self._state = tp, state
        self._come = False
        self.waits = asyncio.Event()
        self._waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def come(self) -> None:
        """Have a record come."""
        self._come = True
        self._waiting.set_result(None)

    def _wait(self) -> asyncio.Future[None]:
        self.waits.set()
        return self._waiting

    async def _fetched(self, *_: Any, **__: Any) -> dict[TopicPartition, list[Any]]:
        if not self._come:
            return {}
        self._state.position = 1
        return {self._tp: [SimpleNamespace(serialized_value_size=2)]}


@pytest.mark.parametrize("moved", [True, False])
async def test_a_fetch_ends_with_the_assignment_it_began_under(worker: Worker, moved: bool) -> None:  # noqa: FBT001
    """One that waits while partitions are taken over brings nothing, even when the flow goes on before it looks."""
    consumer, tp = worker.consumer, TopicPartition("agent.tool-calls", 0)
    log = Log(tp)
    consumer.resume_flow()
    fetch = asyncio.create_task(consumer._thread._fetch(cast("AIOKafkaConsumer", log), {TP(*tp)}, 60.0, consumer.holds))
    await log.waits.wait()
    if moved:
        consumer._hold_flow()
        consumer._held = False
        consumer.resume_flow()
    log.come()
    assert set(await fetch) == (set() if moved else {tp})


def test_the_tests_that_it_names_exist() -> None:
    """Whoever takes another release of Faust finds what to run; each override has a test."""
    overrides = (transport.__doc__ or "").split("\n* ")[1:]
    assert overrides
    for override in overrides:
        named = re.findall(r"(tests/\S+\.py)::(\w+)", override)
        assert named, override
        for path, name in named:
            assert re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(), re.MULTILINE), name
