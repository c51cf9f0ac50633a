"""Judges the topics as they are, with their configuration: what would lose records or stop a partition.

For `traction topics check`; the processes themselves only need what `streams.topics.check_topics` looks at. It asks no
broker and changes nothing.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from schemas import topics as contract
from streams.kafka import MAX_DEAD_LETTER_BYTES
from streams.topics import DEFAULT_APP_ID, missing_topics, plan, task_events_name, unequal_partitions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streams.kafka import KafkaSettings
    from streams.topics import Found


def judge(
    settings: KafkaSettings,
    found: Mapping[str, Found | None],
    app_id: str = DEFAULT_APP_ID,
    group: str | None = None,
) -> list[str]:
    """Say what is wrong with the topics as they are, a sentence each; nothing when all is well.

    Partition counts, cleanup where it decides what is lost or read back, and sizes of dead letters are judged;
    retention is left to whoever runs the brokers.

    Args:
        settings: gives the prefix.
        found: the topics by name, None for missing ones, with their configuration.
        app_id: the worker's.
        group: the escalation consumer's; None for the one that belongs to the worker.
    """
    there = {name: topic for name, topic in found.items() if topic is not None}
    plans = {each.name: each for each in plan(settings, partitions=1, app_id=app_id, group=group)}
    problems = missing_topics(settings, found.keys() - there.keys(), app_id, group)
    problems += unequal_partitions(
        {name: topic.partitions for name, topic in there.items() if plans[name].same_partitions}
    )
    for name, topic in there.items():
        wanted, is_ = plans[name].config["cleanup.policy"], topic.config.get("cleanup.policy", "")
        if ("compact" in wanted) != ("compact" in is_) or (wanted == "compact" and "delete" in is_):
            problems.append(
                f"topic {name} has cleanup.policy={is_}, not {wanted}: records are lost or kept against the contract. "
                f"Set it: kafka-configs.sh --alter --topic {name} "
                f"--add-config {shlex.quote(f'cleanup.policy={_bracketed(wanted)}')}"
            )
        problems += _uncompacted(name, plans[name].config, topic.config)
    return problems + _small_dead_letters(settings, there, app_id)


def _uncompacted(name: str, wanted: Mapping[str, str], is_: Mapping[str, str]) -> list[str]:
    """Say where a topic of states forgets removals too soon, or what was written over too late."""
    problems = []
    for key, too, effect in (
        ("delete.retention.ms", "less", "a worker's copy on disk may miss what was removed"),
        ("max.compaction.lag.ms", "more", "it grows, and is read for long when a worker takes a partition over"),
    ):
        if key not in wanted:
            continue
        found = int(is_.get(key, wanted[key]))
        if found < int(wanted[key]) if too == "less" else found > int(wanted[key]):
            problems.append(
                f"topic {name} has {key}={found}, {too} than {wanted[key]}: {effect}. "
                f"Set it: kafka-configs.sh --alter --topic {name} --add-config {key}={wanted[key]}"
            )
    return problems


def _bracketed(value: str) -> str:
    return f"[{value}]" if "," in value else value


def _small_dead_letters(settings: KafkaSettings, there: Mapping[str, Found], app_id: str) -> list[str]:
    def most(name: str) -> int:
        return int(there[name].config.get("max.message.bytes", 0)) if name in there else 0

    dead = settings.topic(contract.DEAD_LETTERS)
    read = (*contract.SESSION_INPUTS, contract.OVERRIDES, contract.ALERTS)
    largest = max(map(most, (*map(settings.topic, read), task_events_name(app_id))))
    if dead not in there or most(dead) > largest:
        return []
    problem = (
        f"topic {dead} takes {most(dead)} bytes, and an input {largest}: a large one that cannot be read would not fit "
        f"with its headers. Set it: kafka-configs.sh --alter --topic {dead} "
        f"--add-config max.message.bytes={max(MAX_DEAD_LETTER_BYTES, 2 * largest)}"
    )
    return [problem]
