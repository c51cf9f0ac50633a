"""How long a state is kept: counted from the newest record applied to it to the next one, by the brokers' clock.

The decision is made from these two times alone, when the next record is applied, so that what comes out does not depend
on when a sweep looks: the sweep removes only what the next record would begin anew. Nothing in here reads a clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streams.topics import MS_PER_HOUR, TASK_EVENTS

if TYPE_CHECKING:
    from detectors import Limits
    from schemas.topics import Topic

MS_PER_DAY: Final = 24 * MS_PER_HOUR

SLACK_MS: Final = MS_PER_HOUR
"""What a sweep waits beyond the time: by so much clocks of brokers and workers may differ, or jump back.

A machine without any time service is out by some seconds a day. Records of a transaction that is still open are not
seen to wait: brokers let one last for 15 minutes, unless they are told otherwise (`transaction.max.timeout.ms`).
"""

SLACK_PARTS: Final = 20
"""It waits no longer than one part of so many of the time, so that short times are short."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """How long the states of one table are kept, in milliseconds.

    Attributes:
        idle_ms: after the newest record.
        over_ms: the same where nothing more is expected; the shorter one holds.
    """

    idle_ms: float
    over_ms: float

    @property
    def shortest_ms(self) -> float:
        """The shorter of the two: nothing expires within it."""
        return min(self.idle_ms, self.over_ms)

    def expired(self, latest_ms: int, *, over: bool, next_ms: float) -> bool:
        """Tell whether a record begins a state anew.

        Args:
            latest_ms: time of the newest record applied to the state; 0 for none.
            over: whether nothing more was expected after it.
            next_ms: the record's time. One that is older than the newest, as after a jump of the clock, begins nothing.
        """
        return latest_ms > 0 and next_ms - latest_ms > self._kept_ms(over=over)

    def removable(self, latest_ms: int, *, over: bool, now_ms: float) -> bool:
        """Tell whether any record that may still come begins a state anew, even where clocks differ somewhat.

        Args:
            latest_ms: likewise.
            over: likewise.
            now_ms: the time that all records to come have reached.
        """
        slack_ms = min(SLACK_MS, self._kept_ms(over=over) / SLACK_PARTS)
        return self.expired(latest_ms, over=over, next_ms=now_ms - slack_ms)

    def _kept_ms(self, *, over: bool) -> float:
        return min(self.idle_ms, self.over_ms) if over else self.idle_ms


def keeping(topic: Topic, limits: Limits) -> Keeping:
    """Give how long those states are kept that the records of an input change.

    Args:
        topic: the input.
        limits: those for all; neither rules nor overrides change how long something is kept.
    """
    if topic is TASK_EVENTS:
        kept_ms = limits.tasks.retention_days * MS_PER_DAY
        return Keeping(kept_ms, kept_ms)
    return Keeping(limits.sessions.idle_days * MS_PER_DAY, limits.sessions.ended_hours * MS_PER_HOUR)
