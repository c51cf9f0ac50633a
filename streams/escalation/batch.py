"""What one turn of one partition comes to: records and time that passed become records to write, without awaiting.

It hands alerts, events and time to the ladder, and keeps what was counted beside what is to be written, to be added to
the metrics once that is committed. What follows from a record is the ladder's business.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from schemas import topics
from schemas.decode import check_key, decode
from schemas.invalid import InvalidEvent
from schemas.outputs import Alert, Directive, Notification, Termination
from streams.escalation.kept import brief
from streams.escalation.ladder import Context, on_alert, on_event, on_time
from streams.escalation.savings import basis
from streams.escalation.text import line
from streams.forwarded import read_forwarded
from streams.received import check_header_names, traceparent

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from aiokafka.structs import ConsumerRecord

    from detectors import TaskEvent
    from streams.escalation.context import Choose
    from streams.escalation.fitness import Partial
    from streams.escalation.ladder import Output, Tally
    from streams.escalation.ladders import Ladders, Resolve
    from streams.escalation.metrics import EscalationMetrics
    from streams.escalation.outgoing import Outgoing
    from streams.escalation.savings import Saved
    from streams.escalation.state import LadderState
    from streams.transaction import Out

logger = logging.getLogger(__name__)

MOST_LOGGED = 120
"""Characters of an id in a log line."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a turn goes by.

    Attributes:
        resolve: gives the ladder of the policy for an agent and task.
        control_topic: where orchestrators answer.
        choose: picks where a rotation goes.
    """

    resolve: Resolve
    control_topic: str
    choose: Choose


@dataclass(slots=True)
class Batch:
    """What a turn comes to.

    Attributes:
        outputs: the records to write, in order.
        count: records read.
        answered: times of the alerts that led to outputs, in seconds since 1970.
        state_bytes: bytes of ladders among the outputs.
        counted: what to count, by metric and labels.
        lines: what is told in the log.
    """

    outputs: list[Out] = field(default_factory=list)
    count: int = 0
    answered: list[float] = field(default_factory=list)
    state_bytes: int = 0
    counted: defaultdict[tuple[str, ...], float] = field(default_factory=lambda: defaultdict(float))
    lines: list[str] = field(default_factory=list)

    def measure(self, metrics: EscalationMetrics, now: float) -> None:
        """Add what was counted to the metrics, and write the log; `now` in seconds since 1970."""
        if self.count:
            metrics.batch_records.observe(self.count)
        for (name, *labels), count in self.counted.items():
            metric = getattr(metrics, name)
            (metric.labels(*labels) if labels else metric).inc(count)
        metrics.state_bytes.inc(self.state_bytes)
        for timestamp in self.answered:
            metrics.response_seconds.observe(max(0.0, now - timestamp))
        for each in self.lines:
            logger.warning("%s", each)


class UnitTurn:
    """One turn of one partition.

    Args:
        partition: its number.
        ladders: its ladders; brought up to date.
        partial: its counts of fitness; likewise.
        rules: what it goes by.
        outgoing: makes the records.
        now: when this is decided.
    """

    def __init__(
        self, partition: int, ladders: Ladders, partial: Partial, *, rules: Rules, outgoing: Outgoing, now: datetime
    ) -> None:
        self._partition = partition
        self._ladders = ladders
        self._partial = partial
        self._rules = rules
        self._outgoing = outgoing
        self._now = now
        self._now_ms = round(now.timestamp() * 1000)
        self._touched: dict[str, LadderState] = {}
        self._timed: set[str] = set()
        self._context = Context(rules.control_topic, rules.choose, self._count, self._save)
        self._wasted: set[str] = set()
        self.batch = Batch()

    def take(self, records: Iterable[ConsumerRecord], alerts: str) -> None:
        """Answer records, in order.

        Args:
            records: alerts and forwarded events.
            alerts: name of the topic of alerts.
        """
        for record in records:
            self.batch.count += 1
            try:
                result = (self._alert if record.topic == alerts else self._event)(record)
            except InvalidEvent as problem:
                result = "dead"
                self.batch.counted["dead_letters", problem.reason] += 1
                self.batch.outputs.append(self._outgoing.refused(record, problem))
            self.batch.counted["events", record.topic, result] += 1

    def pass_time(self, most: int) -> bool:
        """Do what has come due, for so many tasks at most; tell whether there are as many, so that more may be due."""
        due = self._ladders.due(self._now_ms, most)
        for task_id in due:
            self._timed.add(task_id)
            state = self._load(task_id)
            self._put(on_time(state, self._now, self._rules.resolve(state.agent, state.task), self._context))
        return len(due) == most

    def end(self) -> Batch:
        """Give what the turn comes to, with the ladders and counts that it changed."""
        for task_id, state in self._touched.items():
            changed, value = self._ladders.save(task_id, state, self._rules.resolve, self._now_ms)
            if changed:
                self.batch.outputs.append(self._outgoing.ladder(self._partition, task_id, value))
                self.batch.state_bytes += len(value or b"")
                self.batch.counted[("timers",)] += task_id in self._timed
        self.batch.outputs += [self._outgoing.output(counts) for counts in self._partial.changed()]
        return self.batch

    def _alert(self, record: ConsumerRecord) -> str:
        check_header_names(record.headers)
        alert = cast("Alert", decode(topics.ALERTS, record.value, record.headers))
        check_key(topics.ALERTS, alert, record.key)
        state = self._load(alert.task_id)
        self.batch.counted["alerts", alert.level] += 1
        known = brief(alert.alert_id) in state.seen
        if known:
            self.batch.counted[("duplicates",)] += 1
        policy = self._rules.resolve(alert.agent or state.agent, alert.task or state.task)
        outputs = on_alert(state, alert, self._now, policy, self._context)
        self._put(outputs, traceparent(record.headers))
        if outputs:
            self.batch.answered.append(record.timestamp / 1000)
        return "duplicate" if known else "applied"

    def _event(self, record: ConsumerRecord) -> str:
        event, _ = read_forwarded(record)
        state = self._load(event.task_id)
        if event.word is not None:
            self.batch.counted["answers", event.word, answered(state, event)] += 1
        policy = self._rules.resolve(event.agent or state.agent, event.task or state.task)
        self._put(on_event(state, event, self._now, policy, self._context), traceparent(record.headers))
        return "applied"

    def _load(self, task_id: str) -> LadderState:
        state = self._touched.get(task_id)
        if state is None:
            state = self._touched[task_id] = self._ladders.load(task_id)
        return state

    def _count(self, tally: Tally) -> None:
        self._partial.add(tally, self._now)
        names = tally.repo, tally.role, tally.task_type
        if tally.tasks:
            self.batch.counted["tasks", *names] += tally.tasks
        if tally.flapped > 0:  # a false alarm takes it back in fitness; a counter only rises
            self.batch.counted["flapping", *names] += tally.flapped

    def _save(self, saved: Saved) -> None:
        self.batch.counted["saved_tokens", saved.kind, saved.by] += saved.tokens
        if saved.cost is not None:
            self.batch.counted["saved_cost", saved.by] += saved.cost

    def _put(self, outputs: list[Output], trace: bytes | None = None) -> None:
        for output in outputs:
            self.batch.outputs.append(self._outgoing.output(output, trace))
            _note(output, self.batch)
            if isinstance(output, Termination) and output.attempt == 1:
                self._waste(output)

    def _waste(self, verdict: Termination) -> None:
        """Count what a loop had spent that is to be stopped; of a task's, once for all its sessions."""
        if verdict.alert_id in self._wasted:
            return
        self._wasted.add(verdict.alert_id)
        report = verdict.report
        self.batch.counted["wasted_tokens", basis(report)] += report.tokens_wasted
        if report.cost_wasted is not None:
            self.batch.counted[("wasted_cost",)] += report.cost_wasted


def _note(output: Output, batch: Batch) -> None:
    """Count an output, and tell people who read the log of terminations."""
    if isinstance(output, Directive):
        batch.counted["directives", output.action] += 1
    elif isinstance(output, Notification):
        batch.counted["notifications", output.kind] += 1
        if output.kind == "unanswered":
            batch.counted[("unanswered",)] += 1
            batch.lines.append(
                f"nobody answers the termination of session {line(output.session_id, MOST_LOGGED)}: stop it by hand "
                f"(termination {output.answers}, task {line(output.task_id, MOST_LOGGED)})"
            )
    elif isinstance(output, Termination):
        batch.counted["terminations", "first" if output.attempt == 1 else "repeated", output.detector] += 1
        again = "" if output.attempt == 1 else f", attempt {output.attempt}"
        batch.lines.append(
            f"session {line(output.session_id, MOST_LOGGED)} is to be terminated: {line(output.report.title, 200)} "
            f"(termination {output.termination_id}{again}, alert {line(output.alert_id, MOST_LOGGED)}, "
            f"task {line(output.task_id, MOST_LOGGED)})"
        )


def answered(state: LadderState, event: TaskEvent) -> str:
    """Tell what a word answers, of what a task's ladder knows: see `streams.escalation.metrics.ANSWERED`."""
    if not event.answers:
        return "nothing"
    climbs = [climb for key in (event.session_id, "") if (climb := state.climbs.get(key)) is not None]
    asked = [each for climb in climbs for each in (climb.pending, climb.unstopped) if each]
    if any(each.termination_id == event.answers for each in asked):
        return "termination"
    if any(climb.directive_id == event.answers for climb in climbs):
        return "directive"
    return "alert" if brief(event.answers) in state.seen else "nothing"
