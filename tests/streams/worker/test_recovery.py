"""While state is read back it is told how far that is: in words, in the log every few seconds, and in metrics."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaTimeoutError
from faust.tables.recovery import RebalanceAgain, ServiceStopped
from prometheus_client import CollectorRegistry

from streams.worker import recovery
from streams.worker.app import build
from streams.worker.metrics import WorkerMetrics
from streams.worker.recovery import RecoveryWatch, read_back
from streams.worker.settings import WorkerSettings

OURS, OTHER = TopicPartition("changelog", 0), TopicPartition("changelog", 1)


class Bench:
    """A worker as far as it is looked at, and a clock."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.now = 100.0
        self.faust = SimpleNamespace(active_highwaters={}, active_offsets={})
        self.changelogs = SimpleNamespace(read=Counter[TopicPartition]())
        self.worker = cast(
            "Any",
            SimpleNamespace(
                recovering=True,
                metrics=WorkerMetrics(self.registry),
                tables=SimpleNamespace(recovery=self.faust),
                ownerships=SimpleNamespace(current={0: None}, changelogs=self.changelogs),
            ),
        )
        self.watch = RecoveryWatch(self.worker)

    def look(self, seconds: float = 0.0) -> str:
        """Look after so many seconds."""
        self.now += seconds
        return self.watch.look()

    def value(self, name: str) -> float | None:
        """Read a metric."""
        return self.registry.get_sample_value(f"traction_recovery_{name}")


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Bench:
    """Give a worker that begins to read its state back."""
    made = Bench()
    monkeypatch.setattr(recovery, "time", SimpleNamespace(monotonic=lambda: made.now))
    caplog.set_level(logging.INFO)
    return made


def test_before_it_is_known_where_it_ends(bench: Bench) -> None:
    """Nothing is made up before Faust knows begin and end; what is another worker's is left out."""
    assert bench.look() == "partitions are being assigned"
    bench.faust.active_highwaters = {OURS: 1_999, OTHER: 5}
    bench.faust.active_offsets = {OURS: None, OTHER: 0}
    assert bench.look() == "partitions are being assigned"
    assert read_back(bench.worker) == {}


def test_how_far_it_is(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """Done and total count from where it began; the log has it every five seconds, with the records a second."""
    bench.faust.active_highwaters, bench.faust.active_offsets = {OURS: 1_999}, {OURS: 999}
    assert bench.look() == "0 of 1,000 offsets read, 0%"
    bench.faust.active_offsets[OURS] = 1_249
    bench.changelogs.read.update({OURS: 120, OTHER: 7})
    assert bench.look(4.9) == "250 of 1,000 offsets read, 25%, 15 s left"
    assert bench.value("remaining_records") == 750
    assert caplog.messages == []
    bench.look(0.1)
    (line,) = caplog.messages
    assert line == (
        "state is read back from 1 changelog partitions: 250 of 1,000 offsets read, 25%, 15 s left, 24 records/s "
        "(partitions 0)"
    )
    bench.look(4.9)
    assert len(caplog.messages) == 1


def test_its_end(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """When the worker works the duration is known, nothing remains, and one line tells; the next look tells nothing."""
    bench.faust.active_highwaters, bench.faust.active_offsets = {OURS: 9}, {OURS: -1}
    bench.look()
    bench.changelogs.read[OURS] = 10
    bench.worker.recovering = False
    bench.look(2.5)
    bench.look(1.0)
    assert (bench.value("remaining_records"), bench.value("duration_seconds")) == (0, 2.5)
    assert caplog.messages == ["state is back: 10 changelog records read in 2.5 s"]


def test_another_rebalance_begins_anew(bench: Bench) -> None:
    """What was read under the former assignment is not counted into the next one."""
    bench.faust.active_highwaters, bench.faust.active_offsets = {OURS: 99}, {OURS: -1}
    bench.look()
    bench.faust.active_offsets[OURS] = 49
    bench.worker.ownerships.current = {0: None}
    assert bench.look(3.0) == "0 of 50 offsets read, 0%"


async def test_brokers_that_do_not_answer_in_time() -> None:
    """Faust would recover nothing any more and say nothing; only a stop is a stop, and a rebalance begins anew."""
    worker = build(WorkerSettings(), 1, WorkerMetrics(CollectorRegistry()))
    reading = cast("Any", worker.tables.recovery)
    await reading._wait(asyncio.sleep(0), timeout=60.0)
    with pytest.raises(KafkaTimeoutError, match=r"no answer for 0.01 s while state is read back"):
        await reading._wait(asyncio.sleep(60), timeout=0.01)
    reading.signal_recovery_start.set()
    with pytest.raises(RebalanceAgain):
        await reading._wait(asyncio.sleep(60))
    reading._stopped.set()
    with pytest.raises(ServiceStopped):
        await reading._wait(asyncio.sleep(60))
    await worker.ownerships.stop()
    await worker.follower.stop()
