"""Writes what a person decides: control records and exceptions; and waits until the effect can be seen.

Each decision is a record like any other orchestrator's, with who decided and why. It must not ask whether that is wise.
"""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, TypeVar, cast

import msgspec

from detectors import UnsupportedState
from schemas import topics
from schemas.decode import InvalidEvent, decode
from schemas.encode import encode, headers, record_key
from schemas.events import Control, Override
from streams.escalation.state import decode_ladder
from streams.kafka import producer, running
from streams.topics import ladders_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiokafka.structs import ConsumerRecord

    from schemas.common import Task
    from schemas.outputs import Termination
    from streams.escalation.state import LadderState
    from streams.kafka import KafkaSettings
    from streams.reading import Positions, Reader

T = TypeVar("T")

Decision = Literal["resume", "terminate", "clear", "false_alarm", "forget"]
"""What a person may decide: actions of control records."""

SOURCE = "/traction/cli"
"""Who publishes, in the CloudEvents attribute `source`."""


def decision(
    action: Decision,
    session_id: str,
    *,
    actor: str,
    reason: str | None,
    answers: str | None = None,
    expires_at: datetime | None = None,
    task: Task | None = None,
) -> Control:
    """Make the control record of a person's decision, with an identifier of its own.

    Args:
        action: what is decided.
        session_id: for which session.
        actor: who decides.
        reason: why, for others.
        answers: the alert, directive or termination that it answers.
        expires_at: until when it holds.
        task: the task, where the worker might not know it any more.
    """
    return Control(
        event_id=f"cli-{action}-{uuid.uuid4()}",
        session_id=session_id,
        occurred_at=datetime.now(UTC),
        action=action,
        actor=actor,
        reason=reason,
        answers=answers,
        expires_at=expires_at,
        task=task,
    )


def muted(
    held: Override | None, session_id: str, *, until: datetime | None, actor: str, reason: str | None
) -> Override:
    """Make the exception that silences a session, beside what an exception in force says of it already.

    Args:
        held: the session's exception; None when there is none. What has expired is not kept.
        session_id: the session.
        until: until when it holds, and all else in it; None for good.
        actor: who decides.
        reason: why.
    """
    now = datetime.now(UTC)
    scope = f"session:{session_id}"
    base = Override(scope=scope, set_at=now) if held is None or _expired(held, now) else held
    return msgspec.structs.replace(base, set_at=now, mute=True, set_by=actor, reason=reason, expires_at=until)


def unmuted(held: Override, *, actor: str, reason: str | None) -> Override | None:
    """Make the exception of a session that is silenced no longer; None when nothing is left that it says.

    Args:
        held: the session's exception.
        actor: who decides.
        reason: why.
    """
    now = datetime.now(UTC)
    if _expired(held, now) or not (held.limits or held.mode):
        return None
    return msgspec.structs.replace(held, set_at=now, mute=False, set_by=actor, reason=reason)


def _expired(held: Override, now: datetime) -> bool:
    return held.expires_at is not None and held.expires_at <= now


async def write(kafka: KafkaSettings, record: Control | Override) -> None:
    """Write a decision; returns when all in-sync replicas have it.

    Raises:
        KafkaUnavailable: the brokers cannot be reached.
        KafkaError: they refuse it.
    """
    topic = topics.CONTROL if isinstance(record, Control) else topics.OVERRIDES
    head = headers(record, source=SOURCE) if isinstance(record, Control) else None
    await _send(kafka, kafka.topic(topic), record_key(record), encode(record), head)


async def remove_override(kafka: KafkaSettings, scope: str) -> None:
    """Remove an exception.

    Raises:
        KafkaUnavailable: the brokers cannot be reached.
        KafkaError: they refuse it.
    """
    await _send(kafka, kafka.topic(topics.OVERRIDES), scope.encode(), None, None)


async def remove_termination(kafka: KafkaSettings, session_id: str) -> None:
    """Have compaction remove the termination of a session: readers are told by an empty record.

    Raises:
        KafkaUnavailable: the brokers cannot be reached.
        KafkaError: they refuse it.
    """
    await _send(kafka, kafka.topic(topics.TERMINATIONS), session_id.encode(), None, None)


async def _send(
    kafka: KafkaSettings, name: str, key: bytes, value: bytes | None, head: list[tuple[str, bytes]] | None
) -> None:
    async with running(producer(kafka), kafka) as client:
        await client.send_and_wait(name, value, key=key, headers=head)


class Effect:
    """Waits for what a decision brings about. `ends` is asked before it is written, so that nothing is missed.

    Args:
        kafka: gives the topics' names.
        reader: reads them; nothing else may be read with it meanwhile.
        group: the escalation consumer's group.
    """

    def __init__(self, kafka: KafkaSettings, reader: Reader, group: str) -> None:
        self._kafka = kafka
        self._reader = reader
        self._ladders = ladders_name(group)

    async def ends(self, topic: topics.Topic, key: str) -> Positions:
        """Give where the partition of a key ends now."""
        return await self._reader.ends(self._kafka.topic(topic), key=key.encode())

    async def termination(self, start: Positions, session_id: str, seconds: float) -> Termination | None:
        """Wait for a session's termination; None when there is none in time.

        Args:
            start: where to read from, as `ends` gave it for the terminations.
            session_id: the session.
            seconds: how long to wait.
        """

        def read(record: ConsumerRecord) -> Termination | None:
            try:
                return cast("Termination", decode(topics.TERMINATIONS, record.value, record.headers))
            except InvalidEvent:
                return None

        return await self._first(start, session_id, read, seconds)

    async def cleared(self, start: Positions, task_id: str, seconds: float) -> bool:
        """Wait until a task is no longer among the known-flapping ones; False when it still is.

        Args:
            start: where to read from, as `ends` gave it for the known-flapping tasks.
            task_id: the task.
            seconds: how long to wait.
        """
        return bool(await self._first(start, task_id, lambda record: record.value is None, seconds))

    async def settled(self, task_id: str, done: Callable[[LadderState | None], bool], seconds: float) -> bool:
        """Wait until a task's ladder is as it should be; False when it still is not, or there are no ladders.

        Args:
            task_id: the task.
            done: tells of a ladder, None for none, whether that is it.
            seconds: how long to wait.
        """

        def fits(value: bytes | None) -> bool:
            try:
                return done(None if value is None else decode_ladder(value))
            except UnsupportedState:
                return False

        return self._reader.has(self._ladders) and await self.stands(self._ladders, task_id, fits, seconds)

    async def stands(self, name: str, key: str, fits: Callable[[bytes | None], bool], seconds: float) -> bool:
        """Wait until the latest record of a compacted topic's key is as it should be; False when it still is not.

        Args:
            name: the topic, on the brokers; it must be there.
            key: the key.
            fits: tells of a value, None for none, whether that is it.
            seconds: how long to wait.
        """
        ends = await self._reader.ends(name, key=key.encode())
        latest = None
        async for record in self._reader.read(name, key=key.encode(), until=ends):
            latest = record.value
        return fits(latest) or bool(await self._first(ends, key, lambda record: fits(record.value), seconds))

    async def _first(
        self, start: Positions, key: str, take: Callable[[ConsumerRecord], T | None], seconds: float
    ) -> T | None:
        """Give the first thing that is taken of a key's records; None when there is none in time."""
        try:
            async with asyncio.timeout(seconds):
                async for record in self._reader.follow(start, key=key.encode()):
                    found = take(record)
                    if found:
                        return found
        except TimeoutError:
            pass
        return None
