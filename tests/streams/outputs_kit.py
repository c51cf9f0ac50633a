"""Records as the worker and the escalation consumer write them, and what puts them on the topics and reads answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest
from aiokafka.admin import NewTopic

from schemas import topics
from schemas.decode import decode
from schemas.encode import encode, headers, record_key
from schemas.events import Control, Override
from schemas.outputs import (
    Acknowledgement,
    Alert,
    Directive,
    Evidence,
    Fitness,
    KnownFlapping,
    LimitReached,
    Report,
    Termination,
)
from streams.kafka import KafkaSettings, admin, producer, running
from streams.reading import reading
from streams.topics import create_topics

if TYPE_CHECKING:
    import msgspec

    from schemas.topics import Topic

PARTITIONS = 2

BY_RECORD = {topic.record: topic for topic in topics.TOPICS if topic.record}


@pytest.fixture
async def kafka(bootstrap: str, prefix: str) -> KafkaSettings:
    """Give a broker with all topics, under a prefix of the test's own."""
    settings = KafkaSettings(bootstrap=bootstrap, prefix=prefix)
    await create_topics(settings, partitions=PARTITIONS, replication=1, app_id=prefix.rstrip("."))
    return settings


def now() -> datetime:
    """Give the time."""
    return datetime.now(UTC)


def soon(**delta: float) -> datetime:
    """Give a time from now, or before now."""
    return now() + timedelta(**delta)


def alert(alert_id: str = "alert-1", **fields: Any) -> Alert:
    """Make an alert: a warning in mode enforce, unless told otherwise."""
    defaults: dict[str, Any] = {
        "level": "warn", "mode": "enforce", "detector": "identical", "loop_id": "l1", "session_id": "s1",
        "task_id": "t1", "seq": 4, "occurred_at": now(), "first_seen": now(), "count": 3.0,
        "limits": (LimitReached(name="identical.warn", value=3, layer="default"),),
        "evidence": Evidence(event_ids=("e1", "e2"), calls=("read(a.py)",)),
        "reasoning": "read(a.py) was called 3 times", "guidance": "Stop reading a.py.",
    }  # fmt: skip
    return Alert(alert_id=alert_id, **{**defaults, **fields})


def directive(directive_id: str = "d1", **fields: Any) -> Directive:
    """Make a directive that holds for an hour."""
    defaults: dict[str, Any] = {
        "action": "inject_guidance", "session_id": "s1", "task_id": "t1", "alert_id": "alert-1", "loop_id": "l1",
        "detector": "identical", "text": "Stop.", "issued_at": now(), "expires_at": soon(hours=1),
        "acknowledge": _acknowledge(fields, directive_id, "obeyed", "refused"),
    }  # fmt: skip
    return Directive(directive_id=directive_id, **{**defaults, **fields})


def termination(termination_id: str = "x1", **fields: Any) -> Termination:
    """Make a termination."""
    defaults: dict[str, Any] = {
        "session_id": "s1", "task_id": "t1", "alert_id": "alert-1", "loop_id": "l1", "detector": "identical",
        "reason": "read(a.py) was called 5 times", "issued_at": now(), "report": report(),
        "acknowledge": _acknowledge(fields, termination_id, "obeyed", "refused", "ended"),
    }  # fmt: skip
    return Termination(termination_id=termination_id, **{**defaults, **fields})


def _acknowledge(fields: dict[str, Any], answers: str, *actions: str) -> Acknowledgement:
    return Acknowledgement(topic=fields.pop("control", "agent.control"), answers=answers, actions=actions)


def report() -> Report:
    """Make a report."""
    return Report(
        title="identical: 5 times in session s1",
        tried=("read(a.py)",),
        times=5,
        look_at="Begin with a.py.",
        markdown="# identical\n\nread\\(a.py\\) was **called**\n\n```text\nread(a.py)\n```\n",
    )


def known_flapping(task_id: str = "t1", **fields: Any) -> KnownFlapping:
    """Make an entry that holds for a week."""
    defaults: dict[str, Any] = {
        "session_id": "s1", "alert_id": "alert-1", "termination_id": "x1", "loop_id": "l1", "detector": "identical",
        "reason": "read(a.py) was called 5 times", "since": now(), "expires_at": soon(days=7),
    }  # fmt: skip
    return KnownFlapping(task_id=task_id, **{**defaults, **fields})


def fitness(partition: int = 0, model: str = "", **fields: Any) -> Fitness:
    """Make what one partition counted of a configuration."""
    task_type = fields.get("task_type", "")
    return Fitness(
        fitness_id=f"{model}-{task_type}:{partition}", partition=partition, model=model, updated_at=now(), **fields
    )


async def put(kafka: KafkaSettings, *records: msgspec.Struct, transactional_id: str | None = None) -> None:
    """Write records, each on its topic and under its key."""
    async with running(producer(kafka, transactional_id=transactional_id), kafka) as client:
        for record in records:
            plain = isinstance(record, Override)
            await client.send_and_wait(
                kafka.topic(BY_RECORD[type(record)]),
                encode(record),
                key=record_key(record),
                headers=[] if plain else headers(record, source="/test"),
            )


async def put_raw(kafka: KafkaSettings, name: str, key: str, value: bytes | None) -> None:
    """Write bytes, or a tombstone."""
    async with running(producer(kafka), kafka) as client:
        await client.send_and_wait(name, value, key=key.encode())


async def found(kafka: KafkaSettings, topic: Topic) -> list[Any]:
    """Read all records of a topic; None for a tombstone."""
    name = kafka.topic(topic)
    async with reading(kafka, [name]) as reader:
        return [
            None if record.value is None else decode(topic, record.value, record.headers)
            async for record in reader.read(name)
        ]


async def answers(kafka: KafkaSettings) -> list[Control]:
    """Read all control records."""
    return [cast("Control", record) for record in await found(kafka, topics.CONTROL)]


async def make(kafka: KafkaSettings, name: str, partitions: int = PARTITIONS) -> None:
    """Create a topic."""
    async with running(admin(kafka), kafka) as client:
        await client.create_topics([NewTopic(name, partitions, 1)])
