"""What comes from a broker, as whoever reads it reads it: one function a kind of record, from bytes to nothing.

Each takes any bytes, and either does what the product does with them or meets the one error that says that they cannot
be taken, which it keeps to itself. Whatever else is raised is a finding.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, cast

import msgspec
from aiokafka.errors import KafkaError
from aiokafka.structs import ConsumerRecord, TopicPartition

from detectors import (
    Limits,
    SessionState,
    TaskState,
    UnsupportedState,
    decode_state,
    decode_task,
    encode_state,
    encode_task,
    observe_task,
    step,
)
from schemas import topics
from schemas.decode import decode
from schemas.encode import encode, headers, record_key
from schemas.events import SessionInput
from schemas.invalid import InvalidEvent
from schemas.outputs import Fitness, Notification
from schemas.topics import Topic
from streams.client.answers import Answer, answer_to
from streams.client.fitness import total
from streams.client.orchestrator import Orchestrator
from streams.client.tables import Table, still_flapping
from streams.escalation.batch import Rules, UnitTurn
from streams.escalation.fitness import FitnessFollower, Partial, Standing
from streams.escalation.ladders import Ladders
from streams.escalation.outgoing import Outgoing
from streams.fetching import LenientBatch, Records
from streams.forwarded import Origin, origin_header, read_forwarded
from streams.kafka import MAX_DEAD_LETTER_BYTES, KafkaSettings
from streams.policy.policy import Policy
from streams.received import check_header_names, dead_letter, traceparent
from streams.sinks import alertmanager, file, github, pagerduty, slack, webhook
from streams.sinks.choice import Choice
from streams.sinks.settings import ALL_KINDS, StdoutSettings
from streams.worker.overrides import Overrides, OverridesFollower
from streams.worker.records import UnsupportedRecord, check_stored, decode_stored, read_head

KAFKA = KafkaSettings()
LIMITS = Limits()
POLICY = Policy()
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
STRUCTURED = [("content-type", b"application/cloudevents+json")]
ATTRIBUTES = [(f"ce_{name}", value) for name, value in (("specversion", b"1.0"), ("id", b"1"), ("source", b"/s"))]
BINARY = [*ATTRIBUTES, ("ce_type", b"traction.record.v1"), ("ce_time", b"2026-01-01T00:00:00Z"), ("ce_subject", b"s")]
MAX_PROBLEM_CHARS = 2_000
"""What is said of a record is a sentence, and never the record."""

Target = Callable[[bytes], None]


def record(topic: str, value: bytes | None, key: bytes | None = b"s", more: Iterable[tuple[str, Any]] = ()) -> Any:
    """Make a record as the client of Kafka gives it."""
    size = len(value or b"")
    return ConsumerRecord(topic, 0, 7, 1_767_225_600_000, 0, key, value, None, len(key or b""), size, tuple(more))


@cache
def in_loop(kind: Callable[[KafkaSettings, Any], Any]) -> Any:
    """Make what follows a topic, once: it has a client, which wants an event loop, and is never started here."""

    async def make() -> Any:
        return kind(KAFKA, None)

    return asyncio.run(make())


def ways(data: bytes) -> Iterable[tuple[bytes, list[tuple[str, bytes]]]]:
    """Give a value with headers, for each way in which a record may come.

    Lines of the form ``name: value`` before an empty line are headers, as in HTTP.
    """
    head, _, body = data.partition(b"\n\n")
    pairs = [line.partition(b": ") for line in head.split(b"\n")] if body else []
    named = [(name.decode("utf-8", "surrogateescape"), value) for name, _, value in pairs]
    return (data, []), (data, STRUCTURED), (data, BINARY), (body, named)


def taken(topic: Topic, value: bytes, more: list[tuple[str, bytes]]) -> msgspec.Struct | None:
    """Read a record; None when it is refused, with a reason."""
    said = ""
    try:
        check_header_names(more)
        return decode(topic, value, more)
    except InvalidEvent as problem:
        said = str(problem)
    assert len(said) <= MAX_PROBLEM_CHARS, "the record is in the message"
    return None


def session_input(topic: Topic) -> Target:
    """Give what a worker does with a record of a session: the detectors look at it, and twice at the same."""

    def target(data: bytes) -> None:
        for value, more in ways(data):
            event = cast("SessionInput | None", taken(topic, value, more))
            if event is None:
                continue
            assert decode(topic, encode(event)) == event, "it reads otherwise when it is written anew"
            headers(event, source="/fuzz")
            state, task = SessionState(), TaskState()
            for number in range(4):
                again = msgspec.structs.replace(event, event_id=f"{event.event_id[:200]}{number // 2}")
                alerts, told = step(state, again, LIMITS)
                if told is not None:
                    told = decode_task(encode_task(told), type(told))
                    alerts += observe_task(task, told, LIMITS)
                for alert in alerts:
                    encode(alert)
            decode_state(encode_state(state))
            decode_task(encode_task(task), TaskState)

    return target


def override(data: bytes) -> None:
    """Keep an override and judge by it, as a worker does."""
    for value, more in ways(data):
        overrides = Overrides(POLICY)
        follower = in_loop(OverridesFollower)
        follower._overrides, follower._rejected = overrides, {}
        found = taken(topics.OVERRIDES, value, more)
        key = record_key(found) if found is not None else data[:40]
        follower._put(record("overrides", value, key, more))
        overrides.resolve(None, None, session_id="s", task_id="t", at=NOW)
        overrides.replace(POLICY)


def forwarded(data: bytes) -> None:
    """Read what a worker forwards to a task, judge the task by it, and answer it as escalation does."""
    origin = origin_header(Origin("agent.tool-calls", 0, 7, 1))
    for more in ([origin], [("traction-origin", data)]):
        for key in (b"t", None):
            came = record("task-events", data, key, more)
            with contextlib.suppress(InvalidEvent):
                event, _ = read_forwarded(came)
                observe_task(TaskState(), event, LIMITS)
            turn().take([came], "alerts")


def turn() -> UnitTurn:
    """Give a turn of escalation with nothing before it."""
    rules = Rules(POLICY.ladder, "agent.control", Standing().choose)
    return UnitTurn(0, Ladders(), Partial(0), rules=rules, outgoing=Outgoing(KAFKA, "g"), now=NOW)


def alert(data: bytes) -> None:
    """Answer an alert as escalation does, let time pass, and keep what it comes to."""
    for value, more in ways(data):
        found = taken(topics.ALERTS, value, more)
        key = record_key(found) if found is not None else b"t"
        unit = turn()
        unit.take([record("alerts", value, key, more)] * 2, "alerts")
        unit.end()
        later = UnitTurn(
            0,
            unit._ladders,
            unit._partial,
            rules=unit._rules,
            outgoing=unit._outgoing,
            now=NOW + timedelta(days=1),
        )
        later.pass_time(10)
        later.end()


def notification(data: bytes) -> None:
    """Word a notification for each kind of sink."""
    choice = Choice(StdoutSettings(name="out", kinds=ALL_KINDS))
    for value, more in ways(data):
        found = cast("Notification | None", taken(topics.NOTIFICATIONS, value, more))
        if found is None:
            continue
        if choice.wanted(found):
            choice.delivered(found)
        slack.message(found)
        pagerduty.event(found, "r" * 32)
        alertmanager.posted(found, ALL_KINDS, timedelta(hours=1))
        alertmanager.webhook_body(found, "out")
        webhook.standard_body(found)
        if github.find_target(found, None) is not None:
            github.body(found)
        file.written(found, "jsonl")
        file.written(found, "markdown")


def table(topic: Topic) -> Target:
    """Give what a client does with a record of a compacted topic."""

    def target(data: bytes) -> None:
        entries: Table[Any] = Table(cast("Any", None), topic, topic.name)
        for key in (b"t", b"", None):
            entries._put(key, data)
        if topic is topics.FITNESS:
            total((cast("Fitness", each) for each in entries._records.values()), None)
            follower = in_loop(FitnessFollower)
            follower._standing = Standing()
            for value, more in ways(data):
                found = taken(topic, value, more)
                follower._put(record(topic.name, value, None if found is None else record_key(found), more))
        else:
            for entry in entries._records.values():
                still_flapping(entry)

    return target


def asked(topic: Topic) -> Target:
    """Give what an orchestrator does with what it is asked."""

    def target(data: bytes) -> None:
        client = Orchestrator(KAFKA, group="g")
        for value, more in ways(data):
            found = client._item(record(KAFKA.topic(topic), value, b"s", more))
            for action in found.acknowledge.actions if found is not None else ():
                encode(answer_to(cast("Any", found), cast("Answer", action), actor="g", reason=None, now=NOW))

    return target


def changelog(data: bytes) -> None:
    """Read a session and a task back from their changelogs, or say that it cannot be."""
    for look in (read_head, check_stored):
        with contextlib.suppress(UnsupportedRecord):
            look(data)
    with contextlib.suppress(UnsupportedRecord, UnsupportedState):
        stored = decode_stored(data).state
        with contextlib.suppress(UnsupportedState):
            decode_task(stored, TaskState)
        decode_state(stored)


def ladder(data: bytes) -> None:
    """Read a task's ladder back, or say that it cannot be."""
    with contextlib.suppress(UnsupportedState):
        Ladders().restore("t", data)


def set_aside(data: bytes) -> None:
    """Make a dead letter of whatever came: it fits into its topic, and its headers are text."""
    for value, more in ways(data):
        traceparent(more)
        for key in (None, data):
            letter = dead_letter(record("in", value, key, more), InvalidEvent("empty", "no", "do"), "g")
            size = len(letter.key or b"") + len(letter.value or b"")
            for name, content in letter.headers:
                size += len(name.encode()) + len(content or b"")
            assert size <= MAX_DEAD_LETTER_BYTES, "it does not fit"


def batch(data: bytes) -> None:
    """Take a fetched batch of records apart, or say that it cannot be read.

    aiokafka's parser in C trusts what its checksum vouches for, as brokers check what they are sent; it must not see
    anything else, as the client never lets it. Ours takes the rest, and whatever it raises is told as unreadable.
    """
    with contextlib.suppress(KafkaError):
        found = Records(TopicPartition("in", 0), _memory(data), [], 0, None, None, check_crcs=True, isolation_level=0)
        for _ in found:
            pass
    with contextlib.suppress(Exception):
        for _ in LenientBatch(memoryview(data)):
            pass


def _memory(data: bytes) -> Any:
    from aiokafka.consumer import fetcher  # noqa: PLC0415 - the class that `streams.fetching` puts there

    return fetcher.MemoryRecords(data)


TARGETS: dict[str, Target] = {
    **{each.name: session_input(each) for each in topics.SESSION_INPUTS},
    "override": override,
    "task-event": forwarded,
    "alert": alert,
    "notification": notification,
    "known-flapping": table(topics.KNOWN_FLAPPING),
    "fitness": table(topics.FITNESS),
    "directive": asked(topics.DIRECTIVES),
    "termination": asked(topics.TERMINATIONS),
    "changelog": changelog,
    "ladder": ladder,
    "dead-letter": set_aside,
    "batch": batch,
}
"""The targets of what comes from a broker."""
