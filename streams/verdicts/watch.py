"""Watches how far the verdicts of a process are behind their topics, and whether these are followed at all.

The ends are asked of the brokers: what follows the topics would take silence for having nothing to read. It only looks;
verdicts go on to be told as they are known.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

from aiokafka.errors import KafkaError

from streams.lag import Applied, Waiting, answer_seconds, interval_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiokafka import TopicPartition

    from streams.health import Health
    from streams.verdicts.live import LiveVerdicts

logger = logging.getLogger(__name__)

VERDICTS: Final = "verdicts"
"""Condition of readiness: the topics of verdicts can be read. A process that reads them late is at work all the same:
taken out of service, it could not take events either."""

FOLLOWING: Final = "following verdicts"
"""What must always go on, for the process to be alive."""


class VerdictsWatch:
    """Looks every few seconds.

    Args:
        live: is watched; it has been read to its end.
        health: takes the condition `VERDICTS`, and progress; looks are as close together as its stall limit asks for.
        clock: seconds, monotonic.
    """

    def __init__(self, live: LiveVerdicts, health: Health, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._live = live
        self._health = health
        self._clock = clock
        self._known = clock()
        self._interval = interval_seconds(health.stall_seconds)
        self._answer = answer_seconds(health.stall_seconds)
        self._waiting: dict[TopicPartition, Waiting] = {}

    def behind(self) -> float:
        """Give since when something may be unknown that is on the topics, in seconds; grows while nobody can look."""
        return max(0.0, self._clock() - self._known)

    async def run(self) -> None:
        """Watch until cancelled. The brokers' absence is waited out."""
        self._health.hold(VERDICTS)
        while True:
            await self._look()
            await asyncio.sleep(self._interval)

    async def _look(self) -> None:
        now = self._clock()
        try:
            async with asyncio.timeout(self._answer):
                standing = await self._live.standing()
        except (KafkaError, TimeoutError) as problem:
            self._health.fail(VERDICTS, f"the brokers do not answer: {type(problem).__name__}")
            logger.debug("the ends of the topics of verdicts cannot be learnt: %s", problem)
            return
        self._health.progress(FOLLOWING, self._live.turns, self._live.turns + 1)
        refused, waiting = self._live.refused, 0.0
        for tp, (position, end) in standing.items():
            name = f"{tp.topic}-{tp.partition}"
            if refused:
                self._health.forget(name)  # a restart would not help
            else:
                self._health.progress(name, position, end)
            seconds = self._waiting.setdefault(tp, Waiting()).seconds(Applied(position, None), end, now)
            waiting = max(waiting, seconds)
        self._known = now - waiting
        if refused:
            self._health.fail(VERDICTS, f"they are not read on: {refused}")
        else:
            self._health.hold(VERDICTS)
