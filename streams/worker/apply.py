"""Applies records to a partition: read, check the key, let the detectors look, collect what is to be written.

Synchronous from beginning to end, so that a commit never sees half of a record. It knows nothing of transactions or
assignments, and no record stops it: what cannot be applied becomes a dead letter.
"""

from __future__ import annotations

import logging
import traceback
from typing import TYPE_CHECKING, Any

from aiokafka import TopicPartition

from detectors import UnsupportedState
from schemas.invalid import InvalidEvent
from streams.metrics import EVENT_RESULTS
from streams.received import check_header_names, traceparent
from streams.topics import TASK_EVENTS
from streams.worker.judge import SessionJudge, TaskJudge
from streams.worker.keeping import keeping
from streams.worker.outgoing import alert_record, forwarded, kind_of, refused
from streams.worker.records import UnsupportedRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiokafka.structs import ConsumerRecord

    from schemas.topics import Topic
    from streams.forwarded import Origin
    from streams.metrics import WorkerMetrics
    from streams.worker.judge import Detection, Judge, Judged
    from streams.worker.live import Live
    from streams.worker.outgoing import Outgoing
    from streams.worker.overrides import Overrides
    from streams.worker.partition import Partition
    from streams.worker.settings import WorkerSettings

logger = logging.getLogger(__name__)

STATE_ERRORS = (MemoryError, UnsupportedRecord, UnsupportedState)
"""What stops the worker, since it is no event's fault: the next one would fail likewise."""

MAX_FAILURES_LOGGED = 100
"""Failures of detectors, told apart by where they happen, whose traceback is logged; the metric counts all."""


class Applier:
    """Applies records to partitions.

    Args:
        settings: gives the topics' names and the group.
        overrides: says by which limits an event is judged.
        metrics: counts.
        detection: the detectors.
    """

    def __init__(
        self, settings: WorkerSettings, overrides: Overrides, metrics: WorkerMetrics, detection: Detection
    ) -> None:
        self._settings = settings
        self._overrides = overrides
        self._metrics = metrics
        self._sessions = SessionJudge(overrides, detection)
        self._tasks = TaskJudge(overrides, detection)
        self._failures: set[str] = set()
        self._made_anew: set[TopicPartition] = set()

    def apply(self, partition: Partition, topic: Topic, records: Sequence[ConsumerRecord]) -> None:
        """Apply records of one input partition, in their order.

        Args:
            partition: whose sessions or tasks they change.
            topic: the topic they were read from.
            records: the records; none of them was applied before.

        Raises:
            UnsupportedRecord: a session or task was stored in a form that this release does not read.
            UnsupportedState: likewise its state.
        """
        judge: Judge[Any, Any] = self._tasks if topic is TASK_EVENTS else self._sessions
        table = partition.table(topic)
        kept = keeping(topic, self._overrides.policy.common)
        expired = self._metrics.tasks_expired if topic is TASK_EVENTS else self._metrics.sessions_expired
        results = dict.fromkeys(EVENT_RESULTS, 0)
        misrouted = 0
        for record in records:
            live: Live[Any] | None = None
            try:
                check_header_names(record.headers)
                event, place = judge.read(topic, record)
                live = table.get(record.key)
                misrouted += live.misrouted
                if self._applied_before(live, topic, record):
                    continue
                if live.expired(kept, record.timestamp):
                    table.begin_anew(record.key, live)
                    expired.inc()
                judged = judge.judge(live.state, event)
                written = self._written(record, judged, place)
                table.keep(record.key, live)
                # From here on nothing fails any more: the event is applied whole.
                live.applied[topic.name] = record.offset, record.timestamp
                self._put(partition, judged, written)
                results[judged.result] += 1
            except InvalidEvent as problem:
                self.refuse(partition, record, problem)
            except STATE_ERRORS:
                raise
            except Exception as failure:  # noqa: BLE001 - told in the log, the metric and the dead letter
                self._fail(partition, live, record, failure)
        for result, count in results.items():
            if count:
                self._metrics.events.labels(records[0].topic, result).inc(count)
        if misrouted:
            self._metrics.misrouted.labels(records[0].topic).inc(misrouted)

    def _written(self, record: ConsumerRecord, judged: Judged, place: Origin) -> list[Outgoing]:
        trace = traceparent(record.headers)
        written = [alert_record(self._settings, alert, place, trace, muted=judged.muted) for alert in judged.alerts]
        if judged.task_event is not None:
            written.append(forwarded(self._settings, judged.task_event, place, trace))
        return written

    def _put(self, partition: Partition, judged: Judged, written: list[Outgoing]) -> None:
        for out in written:
            partition.put(out)
        for alert in judged.alerts:
            self._metrics.alerts.labels(alert.level, alert.detector).inc()
        if judged.task_event is not None:
            self._metrics.task_events.labels(kind_of(judged.task_event)).inc()
        if judged.score is not None:
            self._metrics.spin_score.observe(judged.score)
        if judged.action is not None:
            self._metrics.control.labels(judged.action).inc()
        for detector in judged.silenced:
            self._metrics.false_alarms.labels(detector).inc()

    def refuse(self, partition: Partition, record: ConsumerRecord, problem: InvalidEvent) -> None:
        """Have a record written to the dead letters: key, value and headers as they came, and why."""
        partition.put(refused(self._settings, record, problem))
        self._metrics.dead_letters.labels(problem.reason).inc()
        self._metrics.events.labels(record.topic, "dead").inc()

    def note_anew(self, tp: TopicPartition) -> None:
        """Say that the offsets of an input begin again, since its topic was deleted and made anew, or cut."""
        if tp not in self._made_anew:
            self._made_anew.add(tp)
            self._metrics.source_resets.inc()
            logger.warning("%s-%d was made anew (or cut): offsets begin again, and its events are applied", *tp)

    def _applied_before(self, live: Live[Any], topic: Topic, record: ConsumerRecord) -> bool:
        last = live.applied.get(topic.name)
        if last is None or record.offset > last[0]:
            return False
        if record.timestamp > last[1]:
            # The broker stamps inputs as they come, so these are no old records.
            self.note_anew(TopicPartition(record.topic, record.partition))
            return False
        self._metrics.applied_twice.inc()
        logger.error(
            "%s-%d@%d was applied already, up to %d: skipped; this must never happen, please report it",
            record.topic,
            record.partition,
            record.offset,
            last[0],
        )
        return True

    def _fail(self, partition: Partition, live: Live[Any] | None, record: ConsumerRecord, failure: Exception) -> None:
        """Set one event aside that our own code fails on; else it would stop its partition for ever."""
        if live is not None:
            live.restore()
        frames = traceback.extract_tb(failure.__traceback__)
        place = f"{type(failure).__name__} at {frames[-1].filename}:{frames[-1].lineno}"
        if place not in self._failures and len(self._failures) < MAX_FAILURES_LOGGED:
            self._failures.add(place)
            # Without the exception's text, which may quote the event.
            logger.error(
                "a detector failed on %s-%d@%d, which goes to the dead letters: %s\n%s",
                record.topic,
                record.partition,
                record.offset,
                place,
                "".join(traceback.format_list(frames)),
            )
        remedy = "report it, and replay the dead letter with a release that has it mended"
        self.refuse(partition, record, InvalidEvent("detector_error", f"a detector raised {place}", remedy))
