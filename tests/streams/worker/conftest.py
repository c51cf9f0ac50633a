"""Records as they come from Kafka, and a partition to apply them to; no broker is needed for these."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Protocol

import pytest
from aiokafka import TopicPartition
from aiokafka.structs import ConsumerRecord
from prometheus_client import CollectorRegistry

from detectors import Limits, observe
from schemas import topics
from schemas.encode import encode, record_key
from streams.metrics import WorkerMetrics
from streams.worker.apply import Applier
from streams.worker.overrides import Overrides
from streams.worker.partition import Partition
from streams.worker.settings import WorkerSettings
from tests.kit import TOPIC_OF

if TYPE_CHECKING:
    from collections.abc import Iterable

    from schemas.events import SessionInput
    from streams.worker.apply import Observe

SETTINGS = WorkerSettings()
TOOL_CALLS = TopicPartition(SETTINGS.kafka.topic(topics.TOOL_CALLS), 0)


class MakeRecord(Protocol):
    """Builds a record of an input; offsets rise by one, fields go by name."""

    def __call__(self, event: SessionInput, **fields: Any) -> ConsumerRecord:
        """Build it."""


@pytest.fixture
def record() -> MakeRecord:
    """Give a builder of records."""
    offsets = itertools.count()

    def make(event: SessionInput, **fields: Any) -> ConsumerRecord:
        offset = next(offsets)
        defaults: dict[str, Any] = {
            "topic": SETTINGS.kafka.topic(TOPIC_OF[type(event)]),
            "partition": 0,
            "offset": offset,
            "timestamp": 1_000_000 + offset,
            "timestamp_type": 1,
            "key": record_key(event),
            "value": encode(event),
            "checksum": None,
            "serialized_key_size": 1,
            "serialized_value_size": 1,
            "headers": (),
        }
        return ConsumerRecord(**defaults | fields)

    return make


class Bench:
    """A partition with what applies to it."""

    def __init__(self, observe_with: Observe = observe, limits: Limits | None = None) -> None:
        self.registry = CollectorRegistry()
        self.metrics = WorkerMetrics(self.registry, topics=SETTINGS.inputs)
        self.overrides = Overrides(limits or Limits())
        self.applier = Applier(SETTINGS, self.overrides, self.metrics, observe_with)
        self.stored: dict[bytes, bytes] = {}
        self.partition = self.own()

    def own(self) -> Partition:
        """Begin an ownership, with what is stored."""
        positions = {TopicPartition(name, 0): 0 for name in SETTINGS.inputs}
        self.partition = Partition(0, 1, lambda: self.stored, positions)
        return self.partition

    def apply(self, records: Iterable[ConsumerRecord]) -> None:
        """Apply records one by one, as slices of one."""
        for each in records:
            self.applier.apply(self.partition, SETTINGS.inputs[each.topic], [each])
            self.partition.advance(TopicPartition(each.topic, each.partition), each.offset + 1, 1, each.timestamp)

    def commit(self) -> Any:
        """Do as if what there is had been committed, and give it."""
        taken = self.partition.snapshot()
        if taken is not None:
            self.partition.settle(taken)
        return taken

    def value(self, name: str, **labels: str) -> float:
        """Read a metric."""
        return self.registry.get_sample_value(name, labels) or 0.0


@pytest.fixture
def bench() -> Bench:
    """Give a partition with the real detectors."""
    return Bench()
