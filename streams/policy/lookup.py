"""Looks up what the workers know of a session: who acts, for which task, and the standing exceptions.

Reads the workers' own topic of sessions, in the one partition that has the session, since nothing else knows every
session that was ever heard of; and the topic of overrides. Writes nothing, joins no group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from detectors import decode_state
from schemas.invalid import InvalidEvent
from schemas.topics import OVERRIDES
from streams.reading import reading
from streams.topics import changelog_name
from streams.worker.overrides import Overrides, read_override
from streams.worker.records import decode_stored

if TYPE_CHECKING:
    from datetime import datetime

    from detectors import Limits
    from schemas.common import Agent, Task
    from schemas.events import Override
    from streams.kafka import KafkaSettings
    from streams.policy.policy import Policy


class Known(NamedTuple):
    """What is known of a session: ``overrides`` are all those that are set, for it or for others."""

    session_id: str
    agent: Agent | None
    task: Task | None
    overrides: tuple[Override, ...]

    def limits(self, policy: Policy, now: datetime) -> tuple[Limits, bool]:
        """Say by which limits an event of now would be judged, and whether its alerts would be muted.

        Args:
            policy: the policy.
            now: an override that has expired by then does not hold.
        """
        overrides = Overrides(policy)
        for override in self.overrides:
            try:
                overrides.put(override)
            except InvalidEvent:  # the workers ignore it, too; it is among the dead letters
                continue
        return overrides.resolve(
            self.agent,
            self.task,
            session_id=self.session_id,
            task_id=(self.task.id if self.task else None) or self.session_id,
            at=now,
        )


async def look_up(kafka: KafkaSettings, app_id: str, session_id: str, *, seconds: float) -> Known | None:
    """Look a session up; None when no worker has heard of it.

    Args:
        kafka: where the topics are.
        app_id: the workers'.
        session_id: the session.
        seconds: how long reading one topic may take.

    Raises:
        KafkaUnavailable: the brokers cannot be reached.
        TopicsError: the workers' topic is missing.
        TooSlow: a topic could not be read in time.
        UnsupportedState: another release wrote the session's state.
        UnsupportedRecord: likewise.
    """
    sessions, overrides = changelog_name(app_id), kafka.topic(OVERRIDES)
    async with reading(kafka, [sessions], optional=[overrides], seconds=seconds) as reader:
        stored: bytes | None = None
        async for record in reader.read(sessions, key=session_id.encode()):
            stored = record.value
        if stored is None:
            return None
        latest: dict[bytes, Override | None] = {}
        async for record in reader.read(overrides):
            try:
                found = None if record.value is None else read_override(record)
            except InvalidEvent:
                found = None
            latest[record.key or b""] = found
    state = decode_state(decode_stored(stored).state)
    return Known(session_id, state.agent, state.task, tuple(filter(None, latest.values())))
