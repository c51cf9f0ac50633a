"""Tries until a notification is taken, refused, or given up: pauses between tries, their pace, and when to end.

It decides by the errors of `streams.sinks.errors` alone. Time and chance are handed in.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streams.sinks.errors import Refused, Unavailable, Undelivered

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

FIRST_PAUSE_SECONDS = 1.0
MOST_PAUSE_SECONDS = 60.0
"""Bounds of the pause before the second try and before later ones. They double, and the pause is drawn at random from 0
to the bound ("Exponential Backoff And Jitter", AWS Architecture Blog, full jitter)."""

MOST_RETRY_AFTER_SECONDS = 900.0
"""Longest a receiver is left alone because it says so: a wrong header must not silence it for a day."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Where time and chance come from.

    Attributes:
        clock: seconds, monotonic.
        sleep: waits for some seconds.
        chance: a number between 0 and its argument.
    """

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    chance: Callable[[float], float] = field(default=lambda most: random.uniform(0, most))  # noqa: S311 - no secret


class Bucket:
    """A token bucket: so many tries a second on average, as many at once.

    Args:
        per_second: how many.
        timing: see `Timing`.
    """

    def __init__(self, per_second: float, timing: Timing) -> None:
        self._rate = per_second
        self._most = max(1.0, per_second)
        self._tokens = self._most
        self._timing = timing
        self._at = timing.clock()

    async def take(self) -> None:
        """Wait for a token, and take it."""
        now = self._timing.clock()
        self._tokens = min(self._most, self._tokens + (now - self._at) * self._rate) - 1
        self._at = now
        if self._tokens < 0:
            await self._timing.sleep(-self._tokens / self._rate)


class Abandoned(Exception):
    """The delivery was left to whoever reads the record next."""


async def deliver(
    attempt: Callable[[], Awaitable[None]],
    *,
    give_up_seconds: float,
    bucket: Bucket,
    timing: Timing,
    retried: Callable[[Unavailable, float], None],
    ours: Callable[[], bool],
) -> None:
    """Try until a notification is taken.

    Args:
        attempt: makes one try.
        give_up_seconds: for how long; a last try is made at the end.
        bucket: gives leave for each try.
        timing: see `Timing`.
        retried: is told why a try failed after which there is another one, and in how many seconds.
        ours: tells before each further try whether it is still ours to deliver.

    Raises:
        Unavailable: it was not taken in that time.
        Refused: it is not taken, and another try would not mend it.
        Abandoned: it is no longer ours.
    """
    end = timing.clock() + give_up_seconds
    bound = FIRST_PAUSE_SECONDS
    while True:
        await bucket.take()
        if not ours():
            raise Abandoned
        try:
            await attempt()
        except Unavailable as problem:
            left = end - timing.clock()
            if left <= 0:
                raise
            asked = min(problem.retry_after or 0.0, MOST_RETRY_AFTER_SECONDS)
            pause = min(max(timing.chance(bound), asked), left)
            bound = min(2 * bound, MOST_PAUSE_SECONDS)
            retried(problem, pause)
            await timing.sleep(pause)
        except Undelivered:
            raise
        except Exception as problem:
            # A defect of ours must not stop the sink for good: this one goes to the dead letters, the next is tried.
            raise Refused(f"{type(problem).__name__} in the sink itself: a defect, please report it") from problem
        else:
            return
