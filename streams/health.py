"""Whether a process is alive and ready, from what it tells of its work: `/healthz` and `/readyz` show it.

It asks nobody and remembers no more than where each piece of work stood when it was last looked at.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

STALL_SECONDS = 120.0
"""How long work may lie waiting untouched before the process counts as stuck. Longer than a rebalance (60 s at most)
and than the election of a broker's leader: to restart a process for nothing costs a rebalance."""

STALL_BOUNDS = (1.0, 3_600.0)
"""What may be set in its place, in seconds. Looks are so much closer together that the brokers are asked sixteen
times a second at the least; beyond an hour nobody would be told of a process that hangs."""


@dataclass(slots=True)
class _Progress:
    position: int
    end: int
    since: float  # when the position was first seen to be this one, with work waiting
    seen: float  # when it was last looked at


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a health page says.

    Attributes:
        ok: whether the answer is 200.
        checks: for each thing looked at, "ok" or what is wrong with it.
    """

    ok: bool
    checks: dict[str, str]


class Health:
    """Knows whether a process is ready, and whether it is alive: whether what it has to do makes progress.

    Alive is everything but this: for `stall_seconds` work was seen to be waiting (an end beyond a position), and the
    position did not move. Time in which nobody could look does not count: while the broker is away, or the process
    was frozen, nothing is known to be waiting. A long recovery is alive as long as its position moves.

    Args:
        conditions: what must hold for the process to be ready; none does at first.
        clock: seconds, monotonic.
        stall_seconds: see above.
    """

    def __init__(
        self,
        conditions: Iterable[str],
        *,
        clock: Callable[[], float] = time.monotonic,
        stall_seconds: float = STALL_SECONDS,
    ) -> None:
        self._clock = clock
        self.stall_seconds = stall_seconds
        """How long work may lie waiting untouched, in seconds."""
        self._conditions: dict[str, str] = dict.fromkeys(conditions, "not yet")
        self._progress: dict[str, _Progress] = {}

    def hold(self, condition: str) -> None:
        """Say that a condition of readiness holds now."""
        self._set(condition, "ok")

    def fail(self, condition: str, reason: str) -> None:
        """Say that a condition of readiness does not hold (any more), and why."""
        self._set(condition, reason)

    def _set(self, condition: str, state: str) -> None:
        if condition not in self._conditions:
            raise KeyError(condition)
        self._conditions[condition] = state

    def progress(self, name: str, position: int, end: int) -> None:
        """Tell how far some work is; to be called every few seconds, as long as the end can be learnt.

        Args:
            name: what is worked on, for example a partition.
            position: how far it is.
            end: how far it has to go, learnt from the broker just now.
        """
        now = self._clock()
        last = self._progress.get(name)
        if last is None or position != last.position or end <= position or self._blind(last, now):
            self._progress[name] = _Progress(position, end, now, now)
        else:
            last.end, last.seen = end, now

    def forget(self, name: str) -> None:
        """Say that something is no longer ours to work on."""
        self._progress.pop(name, None)

    def _blind(self, last: _Progress, now: float) -> bool:
        return now - last.seen > self.stall_seconds / 4

    def live(self) -> Verdict:
        """Say whether the process is alive."""
        checks = {"event loop": "ok"}  # whoever reads this on a page was answered by it
        for name, last in self._progress.items():
            waiting = last.end - last.position
            still = last.seen - last.since
            stuck = waiting > 0 and still >= self.stall_seconds
            checks[name] = f"stuck at {last.position} for {still:.0f} s with {waiting} waiting" if stuck else "ok"
        return _verdict(checks)

    def ready(self) -> Verdict:
        """Say whether the process is ready: whether all conditions hold, and what it has to do makes progress."""
        # What hangs may be what keeps the conditions: they would say for ever what held when it began.
        stuck = {name: state for name, state in self.live().checks.items() if state != "ok"}
        return _verdict(self._conditions | stuck)


def _verdict(checks: dict[str, str]) -> Verdict:
    return Verdict(all(state == "ok" for state in checks.values()), checks)
