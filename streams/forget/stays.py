"""What stays of a session or task that was forgotten: records in topics that only age, and for how long.

It asks the brokers what they keep, and deletes nothing: in a partition's log the records of many sessions stand, and
the brokers can only cut it off at its beginning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from schemas import topics
from streams.reading import partition_of
from streams.topic_diff import find_topics
from streams.topics import (
    MS_PER_HOUR,
    SESSIONS_TABLE,
    TASKS_TABLE,
    changelog_name,
    ladders_name,
    plan,
    task_events_name,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streams.forget.erasing import Kind
    from streams.kafka import KafkaSettings

BY_SESSION: Final = {
    topics.TOOL_CALLS: "its calls, with arguments and results",
    topics.FIX_ATTEMPTS: "its attempts, with their changes",
    topics.REVIEWS: "reviews of its pull request",
    topics.SESSIONS: "its starts, turns and ends",
    topics.CONTROL: "decisions and answers, the word to forget it among them",
    topics.DIRECTIVES: "what was asked of it, with reports",
    topics.TERMINATIONS: "the latest order to stop it, with a report",
}
"""What has a session's key, and what it says."""

BY_TASK: Final = {
    topics.ALERTS: "alerts, with excerpts as evidence",
    topics.NOTIFICATIONS: "what people were told",
    topics.KNOWN_FLAPPING: "the task's entry, where other sessions led to it too: forget the task, or clear it",
}
"""What has a task's key."""

_FORWARDED: Final = "what sessions told the task: excerpts of attempts"
_WRITTEN_OVER: Final = "former versions and the removal, until they are compacted"
_REFUSED: Final = "records that could not be read, as they came"


@dataclass(frozen=True, slots=True)
class Stays:
    """Records that stay.

    Attributes:
        topic: their topic, on the brokers.
        partition: where they are; None where their keys may be any.
        hours: how long the brokers keep a record, or what was written over, at least; None where that has no limit.
        holds: what they say.
        known: whether the brokers said so; else they do not show us the topic, and it is as it should have been made.
    """

    topic: str
    partition: int | None
    hours: float | None
    holds: str
    known: bool = True


async def stays(kafka: KafkaSettings, app_id: str, group: str, kind: Kind, name: str) -> list[Stays]:
    """Say what stays of a session or task.

    Args:
        kafka: where and how to connect.
        app_id: the workers'.
        group: the escalation consumer's.
        kind: which of the two.
        name: its id.

    Raises:
        KafkaUnavailable: the brokers cannot be reached.
    """
    holds: dict[str, str] = {}
    if kind == "session":
        holds = {kafka.topic(topic): text for topic, text in BY_SESSION.items()}
    else:
        holds[kafka.topic(topics.CONTROL)] = "the word to forget it"
    holds |= {kafka.topic(topic): text for topic, text in BY_TASK.items()}
    if kind == "task":
        del holds[kafka.topic(topics.KNOWN_FLAPPING)]
    holds[task_events_name(app_id)] = _FORWARDED
    compacted = (changelog_name(app_id, SESSIONS_TABLE), changelog_name(app_id, TASKS_TABLE), ladders_name(group))
    holds |= dict.fromkeys(compacted, _WRITTEN_OVER)
    found = await find_topics(kafka, app_id=app_id, group=group)
    count = max((there.partitions for there in found.values() if there is not None), default=0)
    configs = {each.name: each.config for each in plan(kafka, partitions=1, app_id=app_id, group=group)}
    told = []
    for topic, text in (*holds.items(), (kafka.topic(topics.DEAD_LETTERS), _REFUSED)):
        there = found.get(topic)
        partitions = count if there is None else there.partitions
        anywhere = text is _REFUSED or not partitions
        told.append(
            Stays(
                topic,
                None if anywhere else partition_of(name.encode(), partitions),
                _hours(configs[topic] if there is None else there.config),
                text,
                known=there is not None,
            )
        )
    return told


_NO_LIMIT_MS = 2**63 - 1
"""What brokers have for `max.compaction.lag.ms` where nobody set it."""


def _hours(config: Mapping[str, str]) -> float | None:
    name = "retention.ms" if "delete" in config.get("cleanup.policy", "") else "max.compaction.lag.ms"
    kept_ms = int(config.get(name, -1))
    return kept_ms / MS_PER_HOUR if 0 <= kept_ms < _NO_LIMIT_MS else None
