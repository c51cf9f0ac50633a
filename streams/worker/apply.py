"""Applies records to a partition: read, check the key, let the detectors look, collect what is to be written.

Synchronous from beginning to end, so that a commit never sees half of a record. It knows nothing of transactions or
assignments, and no record stops it: what cannot be applied becomes a dead letter.
"""

from __future__ import annotations

import logging
import traceback
from typing import TYPE_CHECKING, cast

import msgspec
from aiokafka import TopicPartition

from detectors import UnsupportedState
from schemas.decode import InvalidEvent, check_key, decode
from schemas.encode import encode, headers, record_key
from schemas.outputs import Position
from streams.metrics import EVENT_RESULTS
from streams.received import check_header_names, dead_letter, traceparent
from streams.worker.partition import Outgoing
from streams.worker.records import UnsupportedRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aiokafka.structs import ConsumerRecord

    from detectors import Limits, SessionState
    from schemas.events import SessionInput
    from schemas.outputs import Alert
    from schemas.topics import Topic
    from streams.metrics import WorkerMetrics
    from streams.worker.overrides import Overrides
    from streams.worker.partition import Live, Partition
    from streams.worker.settings import WorkerSettings

    Observe = Callable[[SessionState, SessionInput, Limits], list[Alert]]

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
        observe: the detectors.
    """

    def __init__(
        self, settings: WorkerSettings, overrides: Overrides, metrics: WorkerMetrics, observe: Observe
    ) -> None:
        self._alerts = settings.alerts
        self._dead_letters = settings.dead_letters
        self._group = settings.app_id
        self._source = f"/traction/worker/{settings.app_id}"
        self._overrides = overrides
        self._metrics = metrics
        self._observe = observe
        self._failures: set[str] = set()
        self._made_anew: set[TopicPartition] = set()

    def apply(self, partition: Partition, topic: Topic, records: Sequence[ConsumerRecord]) -> None:
        """Apply records of one input partition, in their order.

        Args:
            partition: whose sessions they change.
            topic: the topic they were read from.
            records: the records; none of them was applied before.

        Raises:
            UnsupportedRecord: a session was stored in a form that this release does not read.
            UnsupportedState: likewise its state.
        """
        results = dict.fromkeys(EVENT_RESULTS, 0)
        misrouted = 0
        for record in records:
            live: Live | None = None
            try:
                check_header_names(record.headers)
                event = cast("SessionInput", decode(topic, record.value, record.headers))
                check_key(topic, event, record.key)
                live = partition.session(record.key)
                misrouted += live.misrouted
                if self._applied_before(live, topic, record):
                    continue
                results[self._apply(partition, topic, record, event, live)] += 1
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

    def _apply(
        self, partition: Partition, topic: Topic, record: ConsumerRecord, event: SessionInput, live: Live
    ) -> str:
        state = live.state
        limits, muted = self._overrides.resolve(event, state)
        duplicates, late, calls = state.duplicates, state.late, state.calls
        alerts = self._observe(state, event, limits)
        written = [self._alert(record, alert, muted=muted) for alert in alerts]
        partition.keep(record.key, live)
        # From here on nothing fails any more: the event is applied whole.
        live.applied[topic.name] = record.offset, record.timestamp
        for out in written:
            partition.put(out)
        for alert in alerts:
            self._metrics.alerts.labels(alert.level, alert.detector).inc()
        if state.calls != calls and state.latest_score is not None:
            self._metrics.spin_score.observe(state.latest_score)
        if state.late != late:
            return "late"
        return "duplicate" if state.duplicates != duplicates else "applied"

    def refuse(self, partition: Partition, record: ConsumerRecord, problem: InvalidEvent) -> None:
        """Have a record written to the dead letters: key, value and headers as they came, and why."""
        letter = dead_letter(record, problem, self._group)
        partition.put(Outgoing(self._dead_letters, letter.key, letter.value, letter.headers, record.timestamp))
        self._metrics.dead_letters.labels(problem.reason).inc()
        self._metrics.events.labels(record.topic, "dead").inc()

    def note_anew(self, tp: TopicPartition) -> None:
        """Say that the offsets of an input begin again, since its topic was deleted and made anew, or cut."""
        if tp not in self._made_anew:
            self._made_anew.add(tp)
            self._metrics.source_resets.inc()
            logger.warning("%s-%d was made anew (or cut): offsets begin again, and its events are applied", *tp)

    def _applied_before(self, live: Live, topic: Topic, record: ConsumerRecord) -> bool:
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

    def _alert(self, record: ConsumerRecord, found: Alert, *, muted: bool) -> Outgoing:
        position = Position(topic=record.topic, partition=record.partition, offset=record.offset)
        evidence = msgspec.structs.replace(found.evidence, position=position)
        alert = msgspec.structs.replace(found, evidence=evidence, muted=muted or found.muted)
        return Outgoing(
            self._alerts,
            record_key(alert),
            encode(alert),
            headers(alert, source=self._source, traceparent=traceparent(record.headers)),
            record.timestamp,
        )

    def _fail(self, partition: Partition, live: Live | None, record: ConsumerRecord, failure: Exception) -> None:
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
