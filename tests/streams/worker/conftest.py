"""Records as they come from Kafka, and a partition to apply them to; no broker is needed for these."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

import pytest
from aiokafka import TopicPartition
from aiokafka.structs import ConsumerRecord
from prometheus_client import CollectorRegistry

from detectors import Limits, Step, TaskEvent, encode_task, step
from detectors.tasks.facts import Spent
from schemas import topics
from schemas.encode import encode, record_key
from schemas.outputs import Alert, Evidence, LimitReached
from streams.forwarded import ORIGIN_HEADER
from streams.policy.policy import Policy
from streams.worker.apply import Applier
from streams.worker.judge import DETECTION, Detection
from streams.worker.live import SESSIONS, TASKS, LiveTable
from streams.worker.metrics import WorkerMetrics
from streams.worker.overrides import Overrides
from streams.worker.partition import Partition
from streams.worker.settings import WorkerSettings
from streams.worker.states import MemoryStates
from streams.worker.tally import Tally
from tests.kit import BEGIN, TOPIC_OF

if TYPE_CHECKING:
    from collections.abc import Iterable

    from detectors import SessionState, TaskState
    from schemas.events import SessionInput

SETTINGS = WorkerSettings()
TOOL_CALLS = TopicPartition(SETTINGS.kafka.topic(topics.TOOL_CALLS), 0)
TASK_EVENTS = TopicPartition(SETTINGS.task_events, 0)
ORIGIN = (ORIGIN_HEADER, b'["agent.fix-attempts",3,17,900000]')


class MakeRecord(Protocol):
    """Builds a record of an input; offsets rise by one, fields go by name."""

    def __call__(self, event: SessionInput | TaskEvent, **fields: Any) -> ConsumerRecord:
        """Build it."""


def records_from_zero() -> MakeRecord:
    """Give a builder of records."""
    offsets = itertools.count()

    def make(event: SessionInput | TaskEvent, **fields: Any) -> ConsumerRecord:
        offset = next(offsets)
        defaults: dict[str, Any] = {
            "partition": 0,
            "offset": offset,
            "timestamp": 1_000_000 + offset,
            "timestamp_type": 1,
            "checksum": None,
            "serialized_key_size": 1,
            "serialized_value_size": 1,
        }
        if isinstance(event, TaskEvent):
            of_kind: dict[str, Any] = {
                "topic": TASK_EVENTS.topic,
                "key": event.task_id.encode(),
                "value": encode_task(event),
                "headers": (ORIGIN,),
            }
        else:
            topic = SETTINGS.kafka.topic(TOPIC_OF[type(event)])
            of_kind = {"topic": topic, "key": record_key(event), "value": encode(event), "headers": ()}
        return ConsumerRecord(**defaults | of_kind | fields)

    return make


@pytest.fixture
def record() -> MakeRecord:
    """Give a builder of records."""
    return records_from_zero()


class Bench:
    """A partition with what applies to it."""

    def __init__(self, detection: Detection = DETECTION, limits: Limits | None = None) -> None:
        self.registry = CollectorRegistry()
        self.metrics = WorkerMetrics(self.registry, topics=SETTINGS.inputs)
        self.overrides = Overrides(Policy(limits))
        self.applier = Applier(SETTINGS, self.overrides, self.metrics, detection)
        self.stored: dict[bytes, bytes] = {}
        self.stored_tasks: dict[bytes, bytes] = {}
        self.partition = self.own()

    def own(self, count: int = 1) -> Partition:
        """Begin an ownership of the first of some partitions, with what is stored."""
        self.partition = Partition(
            0,
            sessions=LiveTable(SESSIONS, 0, count, lambda: MemoryStates(self.stored)),
            tasks=LiveTable(TASKS, 0, count, lambda: MemoryStates(self.stored_tasks)),
            positions={TopicPartition(name, 0): 0 for name in SETTINGS.inputs},
            redo=self.applier.redo,
        )
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
            taken.tally.publish(self.metrics)
        return taken

    def shown(self, name: str, **labels: str) -> float:
        """Read a metric, as the page shows it."""
        return self.registry.get_sample_value(name, labels) or 0.0

    def value(self, name: str, **labels: str) -> float:
        """Read a metric, as it is once what was applied is committed."""
        self.partition.tally.publish(self.metrics)
        self.partition.tally = Tally()
        return self.shown(name, **labels)


@pytest.fixture
def bench() -> Bench:
    """Give a partition with the real detectors."""
    return Bench()


def task_event(number: int = 0, name: str = "t", **fields: Any) -> TaskEvent:
    """Build the n-th event of a task: a call was spent on it, and somebody says to go on, unless told otherwise."""
    defaults: dict[str, Any] = {
        "event_id": f"{name}:{number}",
        "session_id": "s",
        "task_id": name,
        "at_ms": int(BEGIN.timestamp() * 1_000) + number,
        "spent": Spent(calls=1),
        "word": "resume",
    }
    return TaskEvent(**defaults | fields)


def alert_each(state: TaskState, event: TaskEvent, limits: Limits) -> list[Alert]:
    """Do as a detector of tasks would that warns whenever so many calls were spent; a reset ends the task."""
    state.task_id = event.task_id
    state.spent = Spent() if event.word == "reset" else state.spent.plus(event.spent)
    every = limits.too_many_attempts.warn
    if not state.spent.calls or state.spent.calls % every:
        return []
    at = datetime.fromtimestamp(event.at_ms / 1_000, UTC)
    alert = Alert(
        alert_id=f"{event.task_id}:{state.spent.calls}",
        level="warn",
        scope="task",
        mode=limits.mode,
        detector="too_many_attempts",
        loop_id="l",
        session_id=event.session_id,
        task_id=event.task_id,
        seq=state.spent.calls,
        occurred_at=at,
        first_seen=at,
        count=state.spent.calls,
        limits=(LimitReached(name="too_many_attempts.warn", value=every, layer="default"),),
        evidence=Evidence(event_ids=(event.event_id,)),
        reasoning="many calls",
    )
    return [alert]


def spend_each(state: SessionState, event: SessionInput, limits: Limits) -> Step:
    """Do as the detectors of sessions do, and have each event tell its task that a call was spent."""
    found = step(state, event, limits).alerts
    task = state.task.id if state.task and state.task.id else event.session_id
    return Step(found, task_event(name=task, event_id=event.event_id, session_id=event.session_id, word=None))


TELLING = Detection(spend_each, alert_each)
"""Detectors under which every event concerns a task, in the plainest way."""
