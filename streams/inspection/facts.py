"""Reads what was said and done about sessions and tasks: alerts, ladders, directives, answers, exceptions.

Only the partitions that can hold what is looked for are read, where its key is known. It must not word anything.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, cast

from detectors import UnsupportedState
from schemas import topics
from schemas.decode import InvalidEvent, decode
from schemas.events import Control, Override
from streams.escalation.state import LadderState, decode_ladder
from streams.topics import ladders_name

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterable

    import msgspec

    from schemas.outputs import Alert, KnownFlapping
    from schemas.topics import Topic
    from streams.kafka import KafkaSettings
    from streams.reading import Reader

logger = logging.getLogger(__name__)

NEEDED = (topics.ALERTS, topics.DIRECTIVES, topics.TERMINATIONS, topics.CONTROL)
"""Topics without which nothing can be said of a session."""

OPTIONAL = (topics.OVERRIDES, topics.KNOWN_FLAPPING, topics.NOTIFICATIONS)
"""Topics that add to it where they are."""


BY_SESSION = (topics.DIRECTIVES, topics.TERMINATIONS, topics.CONTROL)
"""Topics whose key is the session."""


@dataclass(frozen=True, slots=True)
class Told:
    """A record, and when the brokers or its writer say that it was written."""

    at: datetime
    record: msgspec.Struct


@dataclass(slots=True)
class Facts:
    """What is known.

    Attributes:
        ladders: how far tasks and their sessions have climbed, by task.
        flapping: entries among the known-flapping tasks, by task, expired ones included.
        overrides: exceptions in force or expired, by scope.
        alerts: the alerts that were looked for, with their times, in the order of each partition.
        words: what orchestrators and persons said, by session, likewise.
        terminations: ids of the latest termination of each session.
    """

    ladders: dict[str, LadderState] = field(default_factory=dict)
    flapping: dict[str, KnownFlapping] = field(default_factory=dict)
    overrides: dict[str, Override] = field(default_factory=dict)
    alerts: list[tuple[datetime, Alert]] = field(default_factory=list)
    words: dict[str, list[tuple[datetime, Control]]] = field(default_factory=dict)
    terminations: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Subject:
    """A session or task, and everything that is told of it.

    Attributes:
        kind: which of the two.
        name: its id.
        tasks: the tasks of a session; of a task itself.
        told: records about it, oldest first.
        facts: what holds now.
        others: ids of its kind that were met on the way, to suggest when nothing is known of this one.
    """

    kind: Literal["session", "task"]
    name: str
    tasks: tuple[str, ...]
    told: tuple[Told, ...]
    facts: Facts
    others: frozenset[str]

    @property
    def known(self) -> bool:
        """Whether anything was said or done about it; a standing exception alone says nothing of it."""
        return bool(self.tasks) or not all(isinstance(each.record, Override) for each in self.told)


class Looker:
    """Looks things up.

    Args:
        kafka: gives the topics' names.
        reader: reads them; opened for `NEEDED`, `OPTIONAL` and the ladders.
        group: the escalation consumer's group, which begins the name of its ladders.
    """

    def __init__(self, kafka: KafkaSettings, reader: Reader, group: str) -> None:
        self._kafka = kafka
        self._reader = reader
        self._ladders = ladders_name(group)

    async def standing(self) -> Facts:
        """Give what holds now: ladders, known-flapping tasks, exceptions, terminations; no alerts."""
        return Facts(
            ladders=await self.ladders(),
            flapping={entry.task_id: entry for entry in await self._latest(topics.KNOWN_FLAPPING)},
            overrides={each.scope: each for each in await self._latest(topics.OVERRIDES)},
            terminations=frozenset(each.termination_id for each in await self._latest(topics.TERMINATIONS)),
        )

    async def ladders(self) -> dict[str, LadderState]:
        """Give how far tasks have climbed, by task. What another release wrote is left out."""
        latest: dict[bytes, bytes | None] = {}
        async for record in self._reader.read(self._ladders):
            latest[record.key or b""] = record.value
        found = {}
        for key, value in latest.items():
            try:
                if value is not None:
                    found[key.decode("utf-8", "replace")] = decode_ladder(value)
            except UnsupportedState as problem:
                logger.warning("a record of %s is left out: %s", self._ladders, problem)
        return found

    async def alerts(
        self, *, task_id: str | None = None, since: datetime | None = None
    ) -> list[tuple[datetime, Alert]]:
        """Give alerts with their times.

        Args:
            task_id: only this task's, of which only the partition is read; None for all.
            since: only those written then or later.
        """
        key = None if task_id is None else task_id.encode()
        found = await self._told(topics.ALERTS, key=key, since=since)
        return [(each.at, cast("Alert", each.record)) for each in found]

    async def words(self, since: datetime) -> dict[str, list[tuple[datetime, Control]]]:
        """Give what orchestrators and persons said then or later, by session."""
        return _words(await self._told(topics.CONTROL, since=since))

    async def session(self, session_id: str) -> Subject:
        """Give everything about a session: what has its key, then what its tasks have."""
        key = session_id.encode()
        facts = await self.standing()
        told = [each for topic in BY_SESSION for each in await self._told(topic, key=key)]
        facts.words = _words(told)
        tasks = {task_id for each in told if (task_id := getattr(each.record, "task_id", None))}
        tasks |= {task_id for task_id, state in facts.ladders.items() if session_id in sessions_of(state)}
        others = {name for state in facts.ladders.values() for name in sessions_of(state)}
        if tasks:
            facts.alerts = [each for task_id in tasks for each in await self.alerts(task_id=task_id)]
        else:  # nobody else says which task it worked on
            facts.alerts = await self.alerts()
            tasks = {alert.task_id for _, alert in facts.alerts if alert.session_id == session_id}
            others |= {alert.session_id for _, alert in facts.alerts}
        facts.alerts = [each for each in facts.alerts if each[1].session_id == session_id]
        told += [Told(at, alert) for at, alert in facts.alerts]
        told += [each for each in await self._of_tasks(tasks) if getattr(each.record, "session_id", "") == session_id]
        return _subject("session", session_id, tasks=tasks, told=told, facts=facts, others=others)

    async def task(self, task_id: str) -> Subject:
        """Give everything about a task, and what was done to its sessions."""
        facts = await self.standing()
        facts.alerts = await self.alerts(task_id=task_id)
        told = [Told(at, alert) for at, alert in facts.alerts] + await self._of_tasks([task_id])
        sessions = {alert.session_id for _, alert in facts.alerts} | sessions_of(facts.ladders.get(task_id))
        if task_id in facts.flapping:
            sessions.add(facts.flapping[task_id].session_id)
        for session_id in sessions:
            of_session = [each for topic in BY_SESSION for each in await self._told(topic, key=session_id.encode())]
            told += [each for each in of_session if getattr(each.record, "task_id", task_id) == task_id]
        others = {*facts.ladders, *facts.flapping}
        tasks = [task_id] if told or task_id in others else []
        return _subject("task", task_id, tasks=tasks, told=told, facts=facts, others=others)

    async def records(
        self, topic: Topic, *, key: bytes | None = None, since: datetime | None = None
    ) -> AsyncIterator[tuple[bytes, datetime, msgspec.Struct | None]]:
        """Give a topic's records with their key and time, None for one that was removed; unreadable ones are left out.

        Args:
            topic: a topic of the contract.
            key: only this key's; None for all.
            since: only those written then or later.
        """
        async for record in self._reader.read(self._kafka.topic(topic), key=key, since=since):
            at = datetime.fromtimestamp(record.timestamp / 1_000, UTC)
            try:
                found = None if record.value is None else decode(topic, record.value, record.headers)
            except InvalidEvent as problem:
                logger.debug("%s-%d@%d is left out: %s", record.topic, record.partition, record.offset, problem)
            else:
                yield record.key or b"", at, found

    async def _told(self, topic: Topic, *, key: bytes | None = None, since: datetime | None = None) -> list[Told]:
        found = self.records(topic, key=key, since=since)
        return [Told(at, record) async for _, at, record in found if record is not None]

    async def _latest(self, topic: Topic) -> list[Any]:
        latest = {key: record async for key, _, record in self.records(topic)}
        return [record for record in latest.values() if record is not None]

    async def _of_tasks(self, tasks: Iterable[str]) -> list[Told]:
        return [each for task_id in tasks for each in await self._told(topics.NOTIFICATIONS, key=task_id.encode())]


def _words(told: Iterable[Told]) -> dict[str, list[tuple[datetime, Control]]]:
    """Give the decisions and answers among records, by session."""
    words: dict[str, list[tuple[datetime, Control]]] = {}
    for each in told:
        if isinstance(each.record, Control):
            words.setdefault(each.record.session_id, []).append((each.at, each.record))
    return words


def _subject(
    kind: Literal["session", "task"],
    name: str,
    *,
    tasks: Collection[str],
    told: list[Told],
    facts: Facts,
    others: set[str],
) -> Subject:
    """Put together what was found, with the exception and the entries that concern it."""
    found = [*told]
    override = facts.overrides.get(f"{kind}:{name}")
    found += [Told(override.set_at, override)] if override else []
    entries = [facts.flapping[task] for task in tasks if task in facts.flapping]
    found += [Told(entry.since, entry) for entry in entries if name in {entry.task_id, entry.session_id}]
    found.sort(key=lambda each: each.at)
    return Subject(kind, name, tuple(sorted(tasks)), tuple(found), facts, frozenset(others - {name}))


def sessions_of(state: LadderState | None) -> set[str]:
    """Give the sessions of a task that its ladder knows."""
    return set() if state is None else {*state.active, *state.climbs} - {""}
