"""What the worker measures, as Prometheus metrics on a registry of their own.

Counters of what is applied rise with the commit of it (see `streams.worker.tally`). Nothing in here decides or logs.
"""

from __future__ import annotations

import math
import shutil
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, get_args

from prometheus_client import Counter, Gauge, Histogram

from detectors.limits import DetectorName
from schemas.events import ControlAction
from schemas.outputs import Level
from streams.labels import Bounded, create
from streams.metrics import SECONDS_TO_ALERT, ConsumerMetrics, state_written
from streams.topics import SESSIONS_TABLE, TASKS_TABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from prometheus_client import CollectorRegistry

    from streams.worker.states import States

EVENT_RESULTS: Final = ("applied", "duplicate", "late", "dead", "rekeyed")
"""What became of an event: counted once; seen before; too old, not counted; unreadable, to the dead letters; written
again to the partition of its key, where it is one more event that is read."""

TaskEventKind = Literal["attempt", "derived", "review", "word", "spent"]
"""What an event tells a task: an attempt that was sent, or read from tool calls; a review; a person's or orchestrator's
word; only what was spent."""

Copy = Literal["own", "standby"]
"""Whether what is stored is of a partition that is this process's own, or that it keeps a copy of."""

TABLES: Final = (SESSIONS_TABLE, TASKS_TABLE)

SPIN_SCORES: Final = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""By tenths, so that a shift upwards shows while it is still below any limit; finer at both ends, where scores gather.
None at 1, which is the same as the bucket of all."""


class WorkerMetrics(ConsumerMetrics):
    """What the worker measures.

    Args:
        registry: where the metrics are registered.
        topics: the input topics, by their names on the brokers.
    """

    def __init__(self, registry: CollectorRegistry, topics: Iterable[str] = ()) -> None:
        topics = tuple(topics)
        super().__init__(registry, topics, EVENT_RESULTS)
        alerts = Counter(
            "traction_alerts_total",
            "Alerts written, by level and detector; recovered: a loop that was warned about is over.",
            ["level", "detector"],
            registry=registry,
        )
        self.alerts = Bounded(create(alerts, get_args(Level), get_args(DetectorName)))
        false_alarms = Counter(
            "traction_false_alarms_total",
            "Loops that people marked as no loops, by the detector that found them.",
            ["detector"],
            registry=registry,
        )
        self.false_alarms = Bounded(create(false_alarms, get_args(DetectorName)))
        control = Counter(
            "traction_control_total",
            "What people and orchestrators decided for a session, by action.",
            ["action"],
            registry=registry,
        )
        self.control = Bounded(create(control, get_args(ControlAction)))
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
        task_events = Counter(
            "traction_task_events_total", "Events forwarded to their task, by kind.", ["kind"], registry=registry
        )
        self.task_events = Bounded(create(task_events, get_args(TaskEventKind)))
        misrouted = Counter(
            "traction_misrouted_events_total",
            "Events in another partition than murmur2 of their key gives: a producer uses another partitioner.",
            ["topic"],
            registry=registry,
        )
        self.misrouted = Bounded(create(misrouted, topics))
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
        self._of_states(registry)
        self._of_recovery(registry)
        self._registry = registry

    def _of_states(self, registry: CollectorRegistry) -> None:
        self.live_sessions = Gauge(
            "traction_live_sessions", "Sessions whose state is held in memory.", registry=registry
        )
        self.live_tasks = Gauge("traction_live_tasks", "Tasks whose state is held in memory.", registry=registry)
        self.live_limit = Gauge(
            "traction_live_states_limit",
            "How many sessions and tasks together --live-sessions lets be held in memory.",
            registry=registry,
        )
        of = ["table", "copy"]
        self._stored_states = Gauge(
            "traction_stored_states",
            "States of sessions and tasks that are stored here; with RocksDB its estimate, which errs about what is "
            "written again or removed until it merges its files.",
            of,
            registry=registry,
        )
        self._stored_bytes = Gauge(
            "traction_stored_state_bytes", "Size of these states; with RocksDB likewise.", of, registry=registry
        )
        for gauge in (self._stored_states, self._stored_bytes):
            create(gauge, TABLES, get_args(Copy))
        self._disk_free = Gauge(
            "traction_state_disk_free_bytes",
            "Room left on the disk of --state-dir; not there when states are kept in memory.",
            registry=None,
        )
        self._disk_size = Gauge("traction_state_disk_size_bytes", "Size of that disk, likewise.", registry=None)
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
        self.state_bytes = state_written(registry)

    def _of_recovery(self, registry: CollectorRegistry) -> None:
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

    def watch_states(self, held: Callable[[str, Copy], Iterable[States]]) -> None:
        """Show what is stored, asked at each scrape: `held` gives what there is of a table."""

        def total(of: Literal["count", "size"], table: str, copy: Copy) -> float:
            return float(sum(getattr(each, of) for each in held(table, copy)))

        for table in TABLES:
            for copy in get_args(Copy):
                self._stored_states.labels(table, copy).set_function(partial(total, "count", table, copy))
                self._stored_bytes.labels(table, copy).set_function(partial(total, "size", table, copy))

    def watch_disk(self, directory: Path) -> None:
        """Show the room on the disk of a directory, asked at each scrape; NaN while it cannot be told."""

        def room(of: Literal["free", "total"]) -> float:
            try:
                return float(getattr(shutil.disk_usage(directory), of))
            except OSError:
                return math.nan

        self._disk_free.set_function(partial(room, "free"))
        self._disk_size.set_function(partial(room, "total"))
        self._registry.register(self._disk_free)
        self._registry.register(self._disk_size)
