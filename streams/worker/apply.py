"""Applies records to a partition: read, check the key, let the detectors look, collect what is to be written.

Synchronous from beginning to end, so that a commit never sees half of a record. It knows nothing of transactions or
assignments, and no record stops it: what cannot be applied becomes a dead letter, and leaves its state as it was.
"""

from __future__ import annotations

import logging
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aiokafka import TopicPartition

from detectors import UnsupportedState
from schemas.events import Control
from schemas.invalid import InvalidEvent
from streams.forwarded import origin
from streams.received import check_header_names, traceparent
from streams.topics import TASK_EVENTS
from streams.worker.judge import NOTHING, SessionJudge, TaskJudge
from streams.worker.keeping import keeping
from streams.worker.metrics import EVENT_RESULTS
from streams.worker.outgoing import MAX_REKEYED_BYTES, alert_record, forwarded, kind_of, refused, rekeyed
from streams.worker.records import UnsupportedRecord

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiokafka.structs import ConsumerRecord

    from detectors import TaskEvent
    from schemas.events import SessionInput
    from schemas.topics import Topic
    from streams.forwarded import Origin
    from streams.worker.judge import Detection, Judge, Judged
    from streams.worker.keeping import Keeping
    from streams.worker.live import LiveTable
    from streams.worker.metrics import WorkerMetrics
    from streams.worker.outgoing import Outgoing
    from streams.worker.overrides import Overrides
    from streams.worker.partition import Partition
    from streams.worker.settings import WorkerSettings
    from streams.worker.tally import Tally

logger = logging.getLogger(__name__)

STATE_ERRORS = (MemoryError, UnsupportedRecord, UnsupportedState)
"""What stops the worker, since it is no event's fault: the next one would fail likewise."""

MAX_FAILURES_LOGGED = 100
"""Failures of detectors, told apart by where they happen, whose traceback is logged; the metric counts all."""


@dataclass(slots=True)
class Run:
    """What is the same for the records that are applied in one go, and what is counted of them.

    Attributes:
        partition: whose sessions or tasks they change.
        topic: the topic they were read from.
        name: its short name.
        table: the states that they change.
        judge: how they are read and judged.
        kept: how long the states are kept.
        shortest_ms: nothing expires within it.
        again: see `Applier.apply`.
        results: how many came to which result.
        misrouted: how many are in a partition that is not theirs, of those that were applied or written again.
        expired: how many states were begun anew.
    """

    partition: Partition
    topic: Topic
    name: str
    table: LiveTable[Any]
    judge: Judge[Any, Any]
    kept: Keeping
    shortest_ms: float
    again: bool
    results: dict[str, int] = field(default_factory=lambda: dict.fromkeys(EVENT_RESULTS, 0))
    misrouted: int = 0
    expired: int = 0


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
        self._names = {topic.name: name for name, topic in settings.inputs.items()}
        self._overrides = overrides
        self._metrics = metrics
        self._sessions = SessionJudge(overrides, detection)
        self._tasks = TaskJudge(overrides, detection)
        self._failures: set[str] = set()
        self._made_anew: set[TopicPartition] = set()

    def apply(
        self, partition: Partition, topic: Topic, records: Iterable[ConsumerRecord], *, again: bool = False
    ) -> None:
        """Apply records of one input partition, in their order.

        Args:
            partition: whose sessions or tasks they change.
            topic: the topic they were read from.
            records: the records; none of them was applied before.
            again: whether they were, and that is undone: they are not counted another time. States are then encoded
                after each, which tells of which record one cannot be.

        Raises:
            UnsupportedRecord: a session or task was stored in a form that this release does not read.
            UnsupportedState: likewise its state.
        """
        table: LiveTable[Any] = partition.table(topic)
        judge: Judge[Any, Any] = self._tasks if topic is TASK_EVENTS else self._sessions
        kept = keeping(topic, self._overrides.policy.common)
        run = Run(partition, topic, topic.name, table, judge, kept, kept.shortest_ms, again)
        apply = self._apply
        for record in records:
            try:
                apply(run, record)
            except InvalidEvent as problem:
                self.refuse(partition, record, problem)
            except STATE_ERRORS:
                raise
            except Exception as failure:  # noqa: BLE001 - told in the log, the metric and the dead letter
                live = table.loaded(record.key)
                since = [] if live is None else live.restore()
                if since:
                    # It may be due to one of those before, which could not be told as long as nothing was encoded.
                    self.redo(partition, since)
                    self.apply(partition, topic, [record])
                else:
                    self._fail(partition, record, failure)
        if not again:
            self._count_all(run)

    def _apply(self, run: Run, record: ConsumerRecord) -> None:
        """Apply one record whole, or raise."""
        if record.headers:
            check_header_names(record.headers)
        event, place = run.judge.read(run.topic, record)
        key, offset, at_ms, name = record.key, record.offset, record.timestamp, run.name
        if self._settings.rekey and run.table.misrouted(key) and (copy := self._copy(record)) is not None:
            # With the commit that says this one was read: whatever crashes, its copy is there once.
            run.partition.put(copy)
            run.results["rekeyed"] += 1
            run.misrouted += 1
            return
        live = run.table.get(key)
        last = live.applied.get(name)
        if last is not None and offset <= last[0] and self._applied_before(last, record):
            return
        forgotten_ms = live.forgotten_ms
        if forgotten_ms is not None and at_ms <= forgotten_ms and not _forgets(event):
            run.results["late"] += 1
            return
        if at_ms - live.latest_ms > run.shortest_ms and live.expired(run.kept, at_ms):
            live.keep()  # of what cannot be encoded the records that are at fault are to be known
            run.table.begin_anew(key, live)
            run.expired += 1
        judged = run.judge.judge(live.state, event)
        if judged.action == "forget":
            live.note_forgotten(offset, at_ms)
            run.table.forgotten.add(key)
        else:
            live.note(name, offset, at_ms)
        if run.again or judged.alerts or judged.task_event is not None:
            written = self._written(record, judged, place or origin(record))
            live.keep()
            # From here on nothing fails any more: the event is applied whole.
            for out in written:
                run.partition.put(out)
        else:
            live.keep_later(record)
        run.table.change(key, live)
        run.results[judged.result] += 1
        run.misrouted += live.misrouted
        if judged is not NOTHING:
            self._count(run.partition.tally, judged, again=run.again)

    def redo(self, partition: Partition, records: Iterable[ConsumerRecord]) -> None:
        """Apply the records of a state again that was restored, each as far as it can be.

        Args:
            partition: whose state it is.
            records: what `Live.restore` gave.
        """
        for record in records:
            self.apply(partition, self._settings.inputs[record.topic], [record], again=True)

    def _copy(self, record: ConsumerRecord) -> Outgoing | None:
        return rekeyed(record, self._settings.message_bytes.get(record.topic, MAX_REKEYED_BYTES))

    def _written(self, record: ConsumerRecord, judged: Judged, place: Origin) -> list[Outgoing]:
        trace = traceparent(record.headers)
        written = [alert_record(self._settings, alert, place, trace, muted=judged.muted) for alert in judged.alerts]
        if judged.task_event is not None:
            written.append(forwarded(self._settings, judged.task_event, place, trace))
        return written

    def _count(self, tally: Tally, judged: Judged, *, again: bool) -> None:
        metrics = self._metrics
        for alert in judged.alerts:
            tally.count(metrics.alerts.labels(alert.level, alert.detector))
        if judged.task_event is not None:
            tally.count(metrics.task_events.labels(kind_of(judged.task_event)))
        if again:
            return  # the first time nothing was written, and the rest was counted
        if judged.score is not None:
            tally.scores.append(judged.score)
        if judged.action is not None:
            tally.count(metrics.control.labels(judged.action))
        for detector in judged.silenced:
            tally.count(metrics.false_alarms.labels(detector))

    def _count_all(self, run: Run) -> None:
        metrics, source, tally = self._metrics, self._names[run.name], run.partition.tally
        for result, count in run.results.items():
            if count:
                tally.count(metrics.events.labels(source, result), count)
        if run.misrouted:
            tally.count(metrics.misrouted.labels(source), run.misrouted)
        if run.expired:
            of_tasks = run.topic is TASK_EVENTS
            tally.count(metrics.tasks_expired if of_tasks else metrics.sessions_expired, run.expired)

    def refuse(self, partition: Partition, record: ConsumerRecord, problem: InvalidEvent) -> None:
        """Have a record written to the dead letters: key, value and headers as they came, and why."""
        partition.put(refused(self._settings, record, problem))
        partition.tally.count(self._metrics.dead_letters.labels(problem.reason))
        partition.tally.count(self._metrics.events.labels(record.topic, "dead"))

    def note_anew(self, tp: TopicPartition) -> None:
        """Say that the offsets of an input begin again, since its topic was deleted and made anew, or cut."""
        if tp not in self._made_anew:
            self._made_anew.add(tp)
            self._metrics.source_resets.inc()
            logger.warning("%s-%d was made anew (or cut): offsets begin again, and its events are applied", *tp)

    def _applied_before(self, last: tuple[int, int], record: ConsumerRecord) -> bool:
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

    def _fail(self, partition: Partition, record: ConsumerRecord, failure: Exception) -> None:
        """Set one event aside that our own code fails on; else it would stop its partition for ever."""
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


def _forgets(event: SessionInput | TaskEvent) -> bool:
    return isinstance(event, Control) and event.action == "forget"
