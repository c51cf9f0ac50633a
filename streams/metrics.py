"""What processes measure, as Prometheus metrics on a registry of their own: what is common, and the worker's.

Names are `traction_…`, units base units, and every label's values come from a closed or capped set: a session, agent,
tool or error text never becomes a label. Nothing in here decides or logs anything.
"""

from __future__ import annotations

import itertools
import platform
from importlib.metadata import version
from typing import TYPE_CHECKING, Generic, Literal, TypeVar, get_args

from prometheus_client import (
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.gc_collector import GCCollector
from prometheus_client.metrics import MetricWrapperBase

from detectors.limits import DetectorName
from schemas.events import ControlAction
from schemas.invalid import Reason
from schemas.outputs import Level

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client import CollectorRegistry

Metric = TypeVar("Metric", bound=MetricWrapperBase)

OTHER = "other"
"""Label value that takes the overflow of a capped label."""

MAX_LABEL_VALUES = 50
"""Most values of a label whose set is open in principle (detectors by name); more fold into `other`."""

EVENT_RESULTS = ("applied", "duplicate", "late", "dead", "rekeyed")
"""What became of an event: counted once; seen before; too old, not counted; unreadable, to the dead letters; written
again to the partition of its key, where it is one more event that is read."""

TaskEventKind = Literal["attempt", "derived", "review", "word", "spent"]
"""What an event tells a task: an attempt that was sent, or read from tool calls; a review; a person's or orchestrator's
word; only what was spent."""

SECONDS_TO_ALERT = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""From an event's append to the alert's commit; 0.1 s is the objective, hence an edge."""

SECONDS_OF_COMMIT = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""A Kafka transaction takes some 5 ms on a quiet machine; 30 s is a broker that is being replaced."""

SPIN_SCORES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""By tenths, so that a shift upwards shows while it is still below any limit; finer at both ends, where scores gather.
None at 1, which is the same as the bucket of all."""

RECORDS_OF_BATCH = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000)


class Bounded(Generic[Metric]):
    """A labelled metric whose last label takes a limited number of values; further ones count as `other`.

    Children are kept, since looking one up by label costs more than counting in it.

    Args:
        metric: the metric.
        limit: most values of the last label, per values of the others.
    """

    def __init__(self, metric: Metric, limit: int = MAX_LABEL_VALUES) -> None:
        self._metric = metric
        self._limit = limit
        self._children: dict[tuple[str, ...], Metric] = {}
        self._values: dict[tuple[str, ...], int] = {}

    def labels(self, *values: str) -> Metric:
        """Give the child with these label values, or the one whose last value is `other` when there are too many."""
        child = self._children.get(values)
        if child is not None:
            return child
        others = values[:-1]
        if values[-1] != OTHER:
            if self._values.get(others, 0) >= self._limit:
                return self.labels(*others, OTHER)
            self._values[others] = self._values.get(others, 0) + 1
        child = self._children[values] = self._metric.labels(*values)
        return child


def create(metric: Metric, *sets: Iterable[str]) -> Metric:
    """Make the children of a metric for all combinations of label values, so that they count from 0 on.

    Args:
        metric: the metric.
        sets: the values of each label, in order.
    """
    for values in itertools.product(*sets):
        metric.labels(*values)
    return metric


class ProcessMetrics:
    """What every process measures of itself.

    Args:
        registry: where the metrics are registered; its page shows them.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        # Else each counter has a second series that no query of ours uses.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        build = Gauge("traction_build_info", "Always 1; which version runs.", ["version", "python"], registry=registry)
        build.labels(version("traction"), platform.python_version()).set(1)


class ConsumerMetrics(ProcessMetrics):
    """What processes measure of themselves as consumers of a group.

    Args:
        registry: where the metrics are registered.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self.assigned_partitions = Gauge(
            "traction_assigned_partitions", "Partitions of the input that this process owns now.", registry=registry
        )
        self.rebalances = Counter(
            "traction_rebalances_total", "Times that partitions were assigned anew to this process.", registry=registry
        )
        self.lag_records = Gauge(
            "traction_consumer_lag_records",
            "Records between what is committed and the end, per partition owned.",
            ["topic", "partition"],
            registry=registry,
        )
        self.behind_seconds = Gauge(
            "traction_consumer_behind_seconds",
            "Age of the record applied last when there is lag, 0 when there is none.",
            registry=registry,
        )
        self.batch_records = Histogram(
            "traction_batch_records",
            "Records of one fetched batch of one partition.",
            buckets=RECORDS_OF_BATCH,
            registry=registry,
        )
        self.deleted_unread = Counter(
            "traction_deleted_unread_records_total",
            "Input records that retention deleted before they were read, markers between them included: lost.",
            registry=registry,
        )
        self.commit_seconds = Histogram(
            "traction_commit_duration_seconds",
            "Time that a transaction took, from its begin to its commit.",
            buckets=SECONDS_OF_COMMIT,
            registry=registry,
        )
        self.last_commit_timestamp = Gauge(
            "traction_last_commit_timestamp_seconds",
            "When this process last committed a transaction, in seconds since 1970; 0 for never.",
            registry=registry,
        )
        self.transaction_failures = Counter(
            "traction_transaction_failures_total",
            "Transactions that ended otherwise than by commit: fenced by a successor, or failed.",
            ["reason"],
            registry=registry,
        )
        create(self.transaction_failures, ("fenced", "failed"))

    def forget_partition(self, topic: str, partition: int) -> None:
        """Take a partition's series off the page when it is no longer owned: its new owner shows it."""
        self.lag_records.remove_by_labels({"topic": topic, "partition": str(partition)})


class WorkerMetrics(ConsumerMetrics):
    """What the worker measures.

    Args:
        registry: where the metrics are registered.
        topics: the input topics, by their names on the brokers.
    """

    def __init__(self, registry: CollectorRegistry, topics: Iterable[str] = ()) -> None:
        super().__init__(registry)
        topics = tuple(topics)
        events = Counter(
            "traction_events_total",
            "Events read, by topic and what became of them.",
            ["topic", "result"],
            registry=registry,
        )
        self.events = Bounded(create(events, topics, EVENT_RESULTS))
        alerts = Counter(
            "traction_alerts_total", "Alerts written, by level and detector.", ["level", "detector"], registry=registry
        )
        self.alerts = Bounded(create(alerts, get_args(Level), get_args(DetectorName)))
        false_alarms = Counter(
            "traction_false_alarms_total",
            "Loops that people marked as no loops, by the detector that found them.",
            ["detector"],
            registry=registry,
        )
        self.false_alarms = Bounded(create(false_alarms, get_args(DetectorName)))
        self.control = Counter(
            "traction_control_total",
            "What people and orchestrators decided for a session, by action.",
            ["action"],
            registry=registry,
        )
        create(self.control, get_args(ControlAction))
        dead_letters = Counter(
            "traction_dead_letters_total", "Events that could not be read, by reason.", ["reason"], registry=registry
        )
        self.dead_letters = create(dead_letters, get_args(Reason))
        self.alert_seconds = Histogram(
            "traction_append_to_alert_seconds",
            "Time from the broker's append of an event to the commit of the alert that it brought about.",
            buckets=SECONDS_TO_ALERT,
            registry=registry,
        )
        self.spin_score = Histogram(
            "traction_spin_score",
            "How likely it is, from 0 to 1, that the latest calls spin, at each tool call that has a score.",
            buckets=SPIN_SCORES,
            registry=registry,
        )
        self.live_sessions = Gauge(
            "traction_live_sessions", "Sessions whose state is held in memory.", registry=registry
        )
        self.live_tasks = Gauge("traction_live_tasks", "Tasks whose state is held in memory.", registry=registry)
        self.task_events = Counter(
            "traction_task_events_total", "Events forwarded to their task, by kind.", ["kind"], registry=registry
        )
        create(self.task_events, get_args(TaskEventKind))
        self.sessions_expired = Counter(
            "traction_sessions_expired_total",
            "Sessions that were forgotten since nothing was heard of them for as long as sessions are kept.",
            registry=registry,
        )
        self.tasks_expired = Counter(
            "traction_tasks_expired_total",
            "Tasks that were forgotten since nothing was heard of them for as long as tasks are kept.",
            registry=registry,
        )
        self.state_bytes = Counter(
            "traction_state_written_bytes_total",
            "Bytes of the state of sessions and tasks written to the changelogs.",
            registry=registry,
        )
        misrouted = Counter(
            "traction_misrouted_events_total",
            "Events in another partition than murmur2 of their key gives: a producer uses another partitioner.",
            ["topic"],
            registry=registry,
        )
        self.misrouted = Bounded(create(misrouted, topics))
        self.recovery_active = Gauge(
            "traction_recovery_active", "1 while state is read back from the changelogs, else 0.", registry=registry
        )
        self.recovery_remaining = Gauge(
            "traction_recovery_remaining_records",
            "Offsets of the changelogs still to be read back until work goes on; 0 when none is.",
            registry=registry,
        )
        self.recovery_seconds = Gauge(
            "traction_recovery_duration_seconds",
            "Time that the last reading back of state took, until this process worked.",
            registry=registry,
        )
        self.recovered_records = Counter(
            "traction_recovered_records_total",
            "Changelog records read back, by whether the partition is this process's own or it keeps a standby copy.",
            ["copy"],
            registry=registry,
        )
        create(self.recovered_records, ("own", "standby"))
        self.applied_twice = Counter(
            "traction_applied_twice_total",
            "Events that the state says were applied already: must stay 0, anything else is a defect.",
            registry=registry,
        )
        self.source_resets = Counter(
            "traction_source_resets_total",
            "Input partitions found to have been deleted and made anew: offsets begin again.",
            registry=registry,
        )
