"""While partitions are taken over nothing is fetched, whoever asks for it: it would come from anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from prometheus_client import CollectorRegistry

from streams.metrics import WorkerMetrics
from streams.worker.app import Worker, build
from streams.worker.settings import WorkerSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

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
