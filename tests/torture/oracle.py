"""What one uninterrupted pass over the topics as they stand gives: the pure detectors, without Kafka or a clock.

Sessions are folded from the inputs, tasks from what was forwarded. Where a session has events on several topics, the
order between these is chance; its final state tells which it was by the events that it remembers, and everything else
has to follow from that order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import msgspec

from detectors import Limits, SessionState, TaskState, decode_state, decode_task, encode_task, observe_task, step
from detectors.canonical import digest
from detectors.state import MAX_SEEN
from schemas import topics
from schemas.decode import check_key, decode
from schemas.events import Control
from schemas.invalid import InvalidEvent
from schemas.outputs import Alert, Position
from streams.forwarded import Origin, origin, read_forwarded
from streams.received import check_header_names
from streams.topics import SESSIONS_TABLE, TASK_EVENTS, TASKS_TABLE, changelog_name
from streams.worker.live import FORGOTTEN
from streams.worker.records import decode_stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from aiokafka.structs import ConsumerRecord

    from schemas.events import SessionInput
    from tests.torture.ledger import Ledger

Key = tuple[int, bytes]
Read = tuple[str, "ConsumerRecord", "SessionInput"]


@dataclass
class Expected:
    """What there should be.

    Attributes:
        alerts: by id, with the place of what brought them about.
        forwarded: how often each event is forwarded to its task, with its place.
        sessions: states by partition and key.
        tasks: likewise.
        applied: for each state the offset applied last, by topic.
        refused: places of the records that cannot be read, and why they cannot.
    """

    alerts: dict[str, Alert] = field(default_factory=dict)
    forwarded: Counter[tuple[bytes, Origin]] = field(default_factory=Counter)
    sessions: dict[Key, SessionState] = field(default_factory=dict)
    tasks: dict[Key, TaskState] = field(default_factory=dict)
    applied: dict[tuple[str, Key], dict[str, int]] = field(default_factory=dict)
    refused: Counter[tuple[str, int, int, str]] = field(default_factory=Counter)


@dataclass
class Kept:
    """The states of one table as they are stored: by partition and key, with the offsets applied last."""

    states: dict[Key, Any]
    applied: dict[Key, dict[str, int]]


def kept(ledger: Ledger, table: str) -> Kept:
    """Read the states of one table off its changelog."""
    found = Kept({}, {})
    for key, record in ledger.latest[changelog_name(ledger.place.app_id, table)].items():
        if record.value is not None:
            stored = decode_stored(record.value)
            state = decode_state(stored.state) if table == SESSIONS_TABLE else decode_task(stored.state, TaskState)
            found.states[key] = state
            found.applied[key] = {name: at for name, (at, _) in stored.applied.items() if name != FORGOTTEN}
    return found


def expect(ledger: Ledger, limits: Limits, sessions: Kept) -> Expected:
    """Fold the topics as they stand.

    Args:
        ledger: what is on them.
        limits: what detectors go by.
        sessions: the sessions as they were stored, for the order between topics.
    """
    expected = Expected()
    for key, read in _sessions(ledger, expected).items():
        seen = sessions.states[key].seen if key in sessions.states else []
        state = expected.sessions[key] = SessionState()
        applied: dict[str, int] = {}
        for topic, record, event in merged(read, seen):
            alerts, told = step(state, event, limits)
            if isinstance(event, Control) and event.action == "forget":
                applied.clear()
            else:
                applied[topic] = record.offset
            place = origin(record)
            _alert(expected, alerts, place)
            if told is not None:
                expected.forwarded[encode_task(told), place] += 1
        expected.applied[SESSIONS_TABLE, key] = applied
        if not applied:  # it was forgotten, and heard of no more
            del expected.sessions[key], expected.applied[SESSIONS_TABLE, key]
    _tasks(ledger, limits, expected)
    return expected


def merged(read: dict[str, list[Read]], seen: list[int]) -> Iterator[Read]:
    """Put the events of one session into the order in which a state remembers them; each topic keeps its own."""
    if len(read) > 1:
        assert len({event.event_id for each in read.values() for _, _, event in each}) <= MAX_SEEN
    place = {each: number for number, each in enumerate(seen)}
    queues = [list(reversed(each)) for each in read.values()]
    while queues := [queue for queue in queues if queue]:
        # What is remembered no more, or was taken already, repeats an event that came before.
        first = min(queues, key=lambda queue: place.get(_digest(queue[-1]), -1))
        read_next = first.pop()
        place.pop(_digest(read_next), None)
        yield read_next


def _digest(read: Read) -> int:
    return digest("event", read[2].event_id)


def _sessions(ledger: Ledger, expected: Expected) -> dict[Key, dict[str, list[Read]]]:
    found: defaultdict[Key, dict[str, list[Read]]] = defaultdict(dict)
    for topic in topics.SESSION_INPUTS:
        for record in ledger.records[ledger.place.kafka.topic(topic)]:
            try:
                check_header_names(record.headers)
                event = cast("SessionInput", decode(topic, record.value, record.headers))
                check_key(topic, event, record.key)
            except InvalidEvent as problem:
                expected.refused[record.topic, record.partition, record.offset, problem.reason] += 1
            else:
                found[record.partition, record.key].setdefault(topic.name, []).append((topic.name, record, event))
    return found


def _tasks(ledger: Ledger, limits: Limits, expected: Expected) -> None:
    for record in ledger.records[ledger.place.task_events]:
        key = record.partition, record.key
        event, place = read_forwarded(record)
        state = expected.tasks.setdefault(key, TaskState())
        _alert(expected, observe_task(state, event, limits), place)
        expected.applied[TASKS_TABLE, key] = {TASK_EVENTS.name: record.offset}
        if state.empty:
            del expected.tasks[key], expected.applied[TASKS_TABLE, key]


def _alert(expected: Expected, alerts: Iterable[Alert], place: Origin) -> None:
    position = Position(topic=place.topic, partition=place.partition, offset=place.offset)
    for alert in alerts:
        evidence = msgspec.structs.replace(alert.evidence, position=position)
        assert alert.alert_id not in expected.alerts, "the load should bring no alert twice"
        expected.alerts[alert.alert_id] = msgspec.structs.replace(alert, evidence=evidence)


def differences(ledger: Ledger, limits: Limits) -> Iterator[str]:
    """Compare what workers wrote with what they should have, and name each difference."""
    found = {table: kept(ledger, table) for table in (SESSIONS_TABLE, TASKS_TABLE)}
    expected = expect(ledger, limits, found[SESSIONS_TABLE])
    written = [
        cast("Alert", decode(topics.ALERTS, each.value, each.headers)) for each in ledger.records[ledger.place.alerts]
    ]
    times = Counter(alert.alert_id for alert in written)
    yield from (f"alert {name} is there {count} times" for name, count in times.items() if count > 1)
    yield from unequal("alert", {alert.alert_id: alert for alert in written}, expected.alerts)
    told: Counter[tuple[bytes, Origin]] = Counter()
    for record in ledger.records[ledger.place.task_events]:
        event, place = read_forwarded(record)
        told[encode_task(event), place] += 1
    yield from unequal("what is forwarded from", told, expected.forwarded)
    states: dict[str, dict[Key, Any]] = {SESSIONS_TABLE: expected.sessions, TASKS_TABLE: expected.tasks}
    for table, those in states.items():
        yield from unequal(f"the state in {table} of", found[table].states, those)
        applied = {key: expected.applied[table, key] for key in those}
        yield from unequal(f"what is applied in {table} of", found[table].applied, applied)
    refused = Counter(
        (*_source(record), reason(record)) for record in ledger.records[ledger.place.kafka.topic(topics.DEAD_LETTERS)]
    )
    yield from unequal("the dead letter of", refused, expected.refused)


def unequal(what: str, found: dict[Any, Any], wanted: dict[Any, Any]) -> Iterator[str]:
    """Name what is missing, what nobody asked for, and what differs."""
    yield from (f"{what} {key!s:.600} is missing" for key in wanted if key not in found)
    yield from (f"{what} {key!s:.600} is one that nobody asked for" for key in found if key not in wanted)
    for key, value in wanted.items():
        if key in found and found[key] != value:
            yield f"{what} {key!s:.600} differs: {_first(found[key], value)}"


def _first(found: Any, wanted: Any, place: str = "") -> str:
    """Say where two values differ first."""
    if isinstance(wanted, msgspec.Struct) and type(found) is type(wanted):
        names = wanted.__struct_fields__
        found, wanted = ({name: getattr(each, name) for name in names} for each in (found, wanted))
    if isinstance(wanted, dict) and isinstance(found, dict):
        for name in {**wanted, **found}:
            if found.get(name) != wanted.get(name):
                return _first(found.get(name), wanted.get(name), f"{place} {name}")
    return f"{place[:600]} is {found!r:.300} in place of {wanted!r:.300}"


def reason(letter: ConsumerRecord) -> str:
    """Give the reason of a dead letter."""
    said = dict(letter.headers)["__streams.errors.exception"] or b""
    return said.decode().partition(":")[2]


def _source(record: ConsumerRecord) -> tuple[str, int, int]:
    head = {name: (value or b"").decode() for name, value in record.headers}
    return head["__streams.errors.topic"], int(head["__streams.errors.partition"]), int(head["__streams.errors.offset"])
