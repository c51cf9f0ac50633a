"""What processes measure of themselves, as Prometheus metrics on a registry of their own: what is common to several.

Names are `traction_…`, units base units, and every label's values come from a closed or capped set: a session, agent,
tool or error text never becomes a label. Nothing in here decides or logs anything.
"""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import TYPE_CHECKING, Final, Literal, get_args

from prometheus_client import (
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.gc_collector import GCCollector

from schemas.invalid import Reason
from streams.labels import Bounded, create

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prometheus_client import CollectorRegistry

    from streams.health import Health

Certificate = Literal["kafka", "pages"]
"""A certificate of a process's own: what it shows to brokers, and what its pages show."""

SECONDS_TO_ALERT: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""From an event's append to the alert's commit, and from there to the answer's. Edges are where something is promised:
0.1 s is the aim of detection, 1 s its objective, 5 s that of the answer."""

SECONDS_OF_COMMIT: Final = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""A Kafka transaction takes some 5 ms on a quiet machine; 30 s is a broker that is being replaced."""

RECORDS_OF_BATCH: Final = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000)


def dead_letters(registry: CollectorRegistry) -> Bounded[Counter]:
    """Make the counter of dead letters, the same for all who write some."""
    counter = Counter(
        "traction_dead_letters_total",
        "Records that were set aside, since they could not be read or delivered, by reason.",
        ["reason"],
        registry=registry,
    )
    return Bounded(create(counter, get_args(Reason)))


def state_written(registry: CollectorRegistry) -> Counter:
    """Make the counter of what is written of state, the same for all who keep some."""
    return Counter(
        "traction_state_written_bytes_total",
        "Bytes of state written to its topic: of sessions and tasks to the changelogs, of ladders to theirs.",
        registry=registry,
    )


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
        self._ready = Gauge(
            "traction_ready", "1 when /readyz says that the process is at work, else 0.", registry=registry
        )
        self._healthy = Gauge(
            "traction_healthy", "1 when /healthz says that the process makes progress, else 0.", registry=registry
        )
        self._certificates = Gauge(
            "traction_certificate_expiry_timestamp_seconds",
            "When a certificate in use runs out, in seconds since 1970: this process's own for the brokers as it was "
            "read at the start, and that of the pages; not there without one.",
            ["certificate"],
            registry=registry,
        )

    def watch_certificate(self, certificate: Certificate, expiry: Callable[[], float]) -> None:
        """Show when a certificate runs out, asked at each scrape: `expiry` gives seconds since 1970."""
        self._certificates.labels(certificate).set_function(expiry)

    def watch_health(self, health: Health) -> None:
        """Show what the pages of health say, asked at each scrape."""
        self._ready.set_function(lambda: health.ready().ok)
        self._healthy.set_function(lambda: health.live().ok)


class ConsumerMetrics(ProcessMetrics):
    """What processes measure of themselves as consumers of a group.

    Args:
        registry: where the metrics are registered.
        topics: the inputs, by their names on the brokers.
        results: what may become of what is read of them.
    """

    def __init__(
        self, registry: CollectorRegistry, topics: Iterable[str] = (), results: Iterable[str] = ("applied", "dead")
    ) -> None:
        super().__init__(registry)
        events = Counter(
            "traction_events_total",
            "Records read of the inputs, by topic and what became of them.",
            ["topic", "result"],
            registry=registry,
        )
        self.events = Bounded(create(events, topics, results))
        self.dead_letters = dead_letters(registry)
        self.brokers_reachable = Gauge(
            "traction_brokers_reachable",
            "1 when the brokers answered when they were asked last for the ends of topics, every 5 s; else 0.",
            registry=registry,
        )
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
            "How long the record that comes next has been waiting, to 5 s; 0 when there is no lag.",
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
