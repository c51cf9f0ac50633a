"""Watches how far the verdicts of a process are behind their topics, and whether these are followed at all.

The ends are asked of the brokers: what follows the topics would take silence for having nothing to read. It only looks;
verdicts go on to be told as they are known.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from streams.lag import Applied, EndsWatch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiokafka import TopicPartition

    from streams.health import Health
    from streams.kafka import KafkaSettings
    from streams.verdicts.live import LiveVerdicts

VERDICTS: Final = "verdicts"
"""Condition of readiness: the topics of verdicts can be read. A process that reads them late is at work all the same:
taken out of service, it could not take events either."""

FOLLOWING: Final = "following verdicts"
"""What must always go on, for the process to be alive."""


class VerdictsWatch(EndsWatch):
    """Looks how far what is known of verdicts is behind.

    Args:
        kafka: where and how to connect.
        live: is watched; it has been read to its end.
        health: takes the condition `VERDICTS`, and progress.
    """

    def __init__(self, kafka: KafkaSettings, live: LiveVerdicts, health: Health) -> None:
        super().__init__(kafka, health)
        self._live = live
        self._known = self._looked = time.monotonic()

    def behind(self) -> float:
        """Give since when something may be unknown that is on the topics, in seconds; grows while nobody can look."""
        return max(0.0, time.monotonic() - self._known)

    async def positions(self) -> Mapping[TopicPartition, Applied]:
        """Give how far each partition is."""
        self._looked = time.monotonic()
        return {tp: Applied(position, None) for tp, position in (await self._live.positions()).items()}

    def away(self, problem: str) -> None:
        """Take in that the brokers do not answer."""
        self._health.fail(VERDICTS, f"the brokers do not answer: {problem}")

    def seen(self, applied: Mapping[TopicPartition, Applied], ends: Mapping[TopicPartition, int]) -> None:
        """Take in a look."""
        refused, waiting = self._live.refused, 0.0
        self._health.progress(FOLLOWING, self._live.turns, self._live.turns + 1)
        for tp, each in applied.items():
            name = f"{tp.topic}-{tp.partition}"
            if refused:
                self._health.forget(name)  # a restart would not help
            else:
                self._health.progress(name, each.position, ends[tp])
            waiting = max(waiting, self.waits(tp, each, ends[tp], self._looked))
        self._known = self._looked - waiting
        if refused:
            self._health.fail(VERDICTS, f"they are not read on: {refused}")
        else:
            self._health.hold(VERDICTS)
