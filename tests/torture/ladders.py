"""What one uninterrupted pass over alerts and answers gives: the pure ladder, without Kafka or a clock.

Escalation reads two topics, and nobody can tell afterwards how the records of a task lay between each other. So each
task is folded in several orders, which have to give the same; the load is made so that they do. Times are left out
of what is compared. The rungs have no cooldown, and answers are waited for without an end until the last policy says
otherwise: then all that is due comes, in this order.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import msgspec

from detectors import TaskEvent
from schemas import topics
from schemas.decode import decode
from schemas.outputs import Alert, Fitness, KnownFlapping
from streams.escalation.fitness import Names, names_of
from streams.escalation.ladder import Cleared, Context, Output, Tally, on_alert, on_event, on_time
from streams.escalation.outgoing import TOPICS
from streams.escalation.state import LadderState, decode_ladder
from streams.forwarded import read_forwarded
from streams.topics import ladders_name
from tests.torture.oracle import unequal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.policy.model import Ladder
    from tests.torture.ledger import Ledger

ANSWER = "answer:"
"""Begins the ids of answers, which are sent when all alerts are answered."""

NOW = datetime(2026, 6, 1, tzinfo=UTC)
"""When the fold takes place; outputs do not depend on it."""

TIMES = frozenset(("issued_at", "expires_at", "since", "updated_at", "ce_time"))

_INSTANT = re.compile(rb"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)")

Said = Alert | TaskEvent

Tallied = Counter[tuple[Names, str]]


@dataclass
class Told:
    """What is said of one task.

    Attributes:
        alerts: its alerts, with their times, in order.
        words: what was forwarded to it, likewise.
        answers: what was forwarded when all alerts were answered: answers, and what was to be forgotten.
    """

    alerts: list[tuple[int, Alert]] = field(default_factory=list)
    words: list[tuple[int, TaskEvent]] = field(default_factory=list)
    answers: list[TaskEvent] = field(default_factory=list)

    @property
    def orders(self) -> Iterator[list[Said]]:
        """Orders in which alerts and words may have been read: by time, and the one before the other."""
        alerts, words = [alert for _, alert in self.alerts], [word for _, word in self.words]
        timed: tuple[list[tuple[int, Said]], ...] = ([*self.alerts], [*self.words])
        yield [each for _, each in heapq.merge(*timed, key=lambda each: each[0])]
        yield [*alerts, *words]
        yield [*words, *alerts]


@dataclass
class Folded:
    """What comes of one task.

    Attributes:
        outputs: how often each output comes, by topic, without times.
        listed: the entry among the known-flapping tasks.
        ladder: the final ladder, without times.
        counted: what is added to fitness.
    """

    outputs: Counter[tuple[str, bytes]] = field(default_factory=Counter)
    listed: bytes | None = None
    ladder: Any = None
    counted: Tallied = field(default_factory=Counter)


def timeless(value: Any) -> Any:
    """Give a record without times; of those that a ladder keeps, whether they are set."""
    if isinstance(value, LadderState):
        value.active = dict.fromkeys(sorted(value.active), 0)
    if isinstance(value, msgspec.Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        return {
            name: bool(each) if name.endswith("_ms") else timeless(each)
            for name, each in fields.items()
            if name not in TIMES
        }
    if isinstance(value, dict):
        return {name: timeless(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [timeless(each) for each in value]
    return value


def written(output: Any) -> bytes:
    """Give an output as it is compared: what a person decided is dated by when that was read."""
    return _INSTANT.sub(b"some time", msgspec.json.encode(timeless(output), order="sorted"))


def told(ledger: Ledger) -> dict[tuple[int, str], Told]:
    """Sort alerts and forwarded events by partition and task; each topic keeps its order."""
    found: defaultdict[tuple[int, str], Told] = defaultdict(Told)
    for record in ledger.records[ledger.place.alerts]:
        alert = cast("Alert", decode(topics.ALERTS, record.value, record.headers))
        found[record.partition, alert.task_id].alerts.append((record.timestamp, alert))
    for record in ledger.records[ledger.place.task_events]:
        event, _ = read_forwarded(record)
        task = found[record.partition, event.task_id]
        if event.word == "forget" or event.event_id.startswith(ANSWER):
            task.answers.append(event)
        else:
            task.words.append((record.timestamp, event))
    return found


def fold(records: list[Said], answers: list[TaskEvent], policy: Ladder, last: Ladder, control: str) -> Folded:
    """Fold one task.

    Args:
        records: alerts and words, in order.
        answers: what comes after them.
        policy: what holds until then.
        last: what holds in the end, until nothing is waited for any more.
        control: name of the topic where orchestrators answer.
    """
    folded, state, now = Folded(), LadderState(), NOW
    context = Context(control, lambda *_: None, partial(_tally, folded.counted), lambda _: None)
    for each in (*records, *answers):
        if isinstance(each, TaskEvent):
            _put(folded, on_event(state, each, now, policy, context))
        else:
            _put(folded, on_alert(state, each, now, policy, context))
    while any(climb.pending for climb in state.climbs.values()):
        now += timedelta(seconds=last.answer_seconds)
        _put(folded, on_time(state, now, last, context))
        now += timedelta(seconds=last.answer_seconds)
    folded.ladder = timeless(state)
    return folded


def _tally(counted: Tallied, tally: Tally) -> None:
    for name in ("tasks", "attempts", "converged", "flapped", "tokens", "cost"):
        counted[names_of(tally), name] += getattr(tally, name)


def _put(folded: Folded, outputs: list[Output]) -> None:
    for output in outputs:
        if isinstance(output, (Cleared, KnownFlapping)):
            folded.listed = None if isinstance(output, Cleared) else written(output)
        else:
            folded.outputs[TOPICS[type(output)].name, written(output)] += 1


def differences(ledger: Ledger, policy: Ladder, last: Ladder) -> Iterator[str]:
    """Compare what escalation wrote with what it should have, and name each difference."""
    kafka, control = ledger.place.kafka, ledger.place.kafka.topic(topics.CONTROL)
    outputs: Counter[tuple[str, bytes]] = Counter()
    listed: dict[str, bytes] = {}
    ladders: dict[str, Any] = {}
    counted: defaultdict[int, Tallied] = defaultdict(Counter)
    for (partition, task), said in told(ledger).items():
        first, *others = (fold(order, said.answers, policy, last, control) for order in said.orders)
        for other in others:
            yield from unequal(f"(in another order of records) of task {task},", vars(other), vars(first))
        outputs += first.outputs
        ladders[task] = first.ladder
        counted[partition].update(first.counted)
        if first.listed is not None:
            listed[task] = first.listed
    kinds = (topics.DIRECTIVES, topics.TERMINATIONS, topics.NOTIFICATIONS)
    found = Counter(
        (topic.name, written(decode(topic, record.value, record.headers)))
        for topic in kinds
        for record in ledger.records[kafka.topic(topic)]
    )
    yield from unequal("output", found, outputs)
    entries = {
        key.decode(): written(decode(topics.KNOWN_FLAPPING, record.value, record.headers))
        for (_, key), record in ledger.latest[kafka.topic(topics.KNOWN_FLAPPING)].items()
        if record.value is not None
    }
    yield from unequal("the entry of", entries, listed)
    stored = {
        key.decode(): timeless(decode_ladder(record.value))
        for (_, key), record in ledger.latest[ladders_name(ledger.place.group)].items()
        if record.value is not None
    }
    yield from unequal("the ladder of", stored, {task: each for task, each in ladders.items() if each["task_id"]})
    yield from unequal(
        "the fitness in partition", dict(_fitness(ledger)), {n: +each for n, each in counted.items() if +each}
    )


def _fitness(ledger: Ledger) -> dict[int, Tallied]:
    found: defaultdict[int, Tallied] = defaultdict(Counter)
    for record in ledger.latest[ledger.place.kafka.topic(topics.FITNESS)].values():
        fitness = cast("Fitness", decode(topics.FITNESS, record.value, record.headers))
        counts: dict[str, Any] = {
            "tasks": fitness.tasks,
            "attempts": fitness.attempts,
            "converged": fitness.converged,
            "flapped": fitness.flapped,
            "tokens": fitness.tokens,
            "cost": fitness.cost_usd,
        }
        for name, count in counts.items():
            if count:
                found[fitness.partition][names_of(fitness), name] += count
    return found
