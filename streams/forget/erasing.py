"""What is written so that a session or task is forgotten, and what tells that it was.

It writes nothing itself. What a word does is the detectors' and the ladder's business; here it is only looked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from detectors import TaskState, UnsupportedState, decode_task
from detectors.tasks.attempt import session_digest
from schemas import topics
from schemas.common import Task
from streams.escalation.state import decode_ladder
from streams.inspection.acts import decision
from streams.inspection.facts import sessions_of
from streams.topics import SESSIONS_TABLE, TASKS_TABLE, changelog_name, ladders_name
from streams.worker.live import FORGOTTEN
from streams.worker.records import UnsupportedRecord, decode_stored, read_head

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from schemas.events import Control
    from streams.inspection.facts import Subject
    from streams.kafka import KafkaSettings

Kind = Literal["session", "task"]


class Trace(NamedTuple):
    """Where something of a session or task may be kept: a compacted topic and a key.

    ``gone`` tells of the key's latest record, None for none or an empty one, whether nothing of it is left.
    """

    topic: str
    key: str
    gone: Callable[[bytes | None], bool]


def words(
    kind: Kind, name: str, *, tasks: Iterable[str] = (), actor: str, reason: str | None = None
) -> tuple[Control, ...]:
    """Make the control records by which a session or task is forgotten.

    Args:
        kind: which of the two.
        name: its id. The word for a task stands under the task's id, as if that were a session's.
        tasks: tasks that a session is known to have worked for; the worker knows of the latest itself.
        actor: who wants it.
        reason: why.
    """
    whole = decision("forget", name, actor=actor, reason=reason, task=Task(id=name))
    if kind == "task":
        return (whole,)
    named = [Task(id=task) for task in sorted({*tasks} - {name})]
    # First without a task: what the worker knows of the session's own is lost with the first word.
    parts = [decision("forget", name, actor=actor, reason=reason, task=task) for task in (None, *named)]
    return (*parts, whole)


def traces(
    kafka: KafkaSettings, app_id: str, group: str, kind: Kind, name: str, *, tasks: Iterable[str] = ()
) -> tuple[Trace, ...]:
    """Say where something of a session or task may be kept that the words erase.

    Args:
        kafka: gives the topics' names.
        app_id: the workers'.
        group: the escalation consumer's.
        kind: which of the two.
        name: its id.
        tasks: tasks that a session is known to have worked for.
    """
    sessions, of_tasks = changelog_name(app_id, SESSIONS_TABLE), changelog_name(app_id, TASKS_TABLE)
    ladders, flapping = ladders_name(group), kafka.topic(topics.KNOWN_FLAPPING)
    found = [
        Trace(sessions, name, _begun_anew),
        Trace(of_tasks, name, _nothing),
        Trace(ladders, name, _nothing),
        Trace(flapping, name, _nothing),
    ]
    for task in sorted({*tasks} - {name}) if kind == "session" else ():
        found += [
            Trace(of_tasks, task, lambda value: not _tried(value, name)),
            Trace(ladders, task, lambda value: not _climbed(value, name)),
        ]
    return tuple(found)


def sessions_named(subject: Subject) -> list[str]:
    """Give the sessions that are known to have worked for a task."""
    facts, task = subject.facts, subject.name
    found = {alert.session_id for _, alert in facts.alerts} | sessions_of(facts.ladders.get(task))
    if task in facts.flapping:
        found.add(facts.flapping[task].session_id)
    return sorted(found - {task})


def _nothing(value: bytes | None) -> bool:
    return value is None


def _begun_anew(value: bytes | None) -> bool:
    """Tell whether nothing is left of a session, or only what it did after the word."""
    try:
        applied = {} if value is None else read_head(value).applied
    except UnsupportedRecord:
        return False
    return value is None or (FORGOTTEN in applied and len(applied) > 1)


def _tried(value: bytes | None, session_id: str) -> bool:
    try:
        state = TaskState() if value is None else decode_task(decode_stored(value).state, TaskState)
    except (UnsupportedRecord, UnsupportedState):
        return True
    return any(attempt.session == session_digest(session_id) for attempt in state.attempts)


def _climbed(value: bytes | None, session_id: str) -> bool:
    try:
        return value is not None and session_id in sessions_of(decode_ladder(value))
    except UnsupportedState:
        return True
