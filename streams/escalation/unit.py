"""One partition number as one process owns it: both inputs, the ladders, the counts, the producer that fences.

It puts the records of both inputs into one order. It fetches nothing and decides nothing.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streams.escalation.fitness import Partial
from streams.escalation.ladders import Ladders
from streams.ownership import Unit as BaseUnit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aiokafka import TopicPartition
    from aiokafka.structs import ConsumerRecord

WAIT_SECONDS = 5.0
"""How long records of one input wait for earlier ones of the other: longer than a fetch takes, and short enough that an
input whose leader is away does not stop the other one."""


@dataclass(slots=True, eq=False)
class Feed:
    """One input of a unit.

    Attributes:
        tp: the partition.
        position: where the consumer reads next; changes only by what was read under this ownership.
        done: the offset after what was answered and committed.
        end: where it ended when it was taken.
        deleted: records that were deleted unread and are not committed as passed over yet.
        timestamp: time of the record answered last, in seconds since 1970.
        queue: what was fetched and not answered yet.
    """

    tp: TopicPartition
    position: int = 0
    done: int = 0
    end: int = 0
    deleted: int = 0
    timestamp: float | None = None
    queue: deque[ConsumerRecord] = field(default_factory=deque)

    @property
    def next(self) -> int:
        """The offset after what was answered."""
        return self.queue[0].offset if self.queue else self.position

    def fetched(self, records: Iterable[ConsumerRecord], position: int) -> None:
        """Take over what was fetched, and where reading goes on."""
        self.queue.extend(records)
        self.position = position


@dataclass(slots=True, eq=False)
class Unit(BaseUnit):
    """One ownership of one partition number.

    Attributes:
        number: of the partition.
        alerts: the first input.
        events: the second: what workers forward to tasks.
        ladders: the tasks' ladders.
        partial: the counts of fitness.
        waiting: since when records of one input wait for the other, by the monotonic clock; None when none does.
        behind: whether more may have come due than was done in the last turn.
    """

    number: int
    alerts: Feed
    events: Feed
    ladders: Ladders = field(default_factory=Ladders)
    partial: Partial = field(default_factory=lambda: Partial(0))
    waiting: float | None = None
    behind: bool = False

    @property
    def name(self) -> str:
        """The number, in words."""
        return f"partition {self.number}"

    @property
    def feeds(self) -> tuple[Feed, Feed]:
        """Both inputs."""
        return self.alerts, self.events

    @property
    def caught_up(self) -> bool:
        """Whether all is answered that was there when it was taken: answers to what is timed may be among that."""
        return all(feed.next >= feed.end for feed in self.feeds)

    def take(self, most: int, drained: Callable[[Feed], bool], now: float) -> list[ConsumerRecord]:
        """Take records from the queues, in the order in which they were written.

        Each input keeps its order; between them the records' times decide. Where one has nothing yet but may have, the
        other waits for it: after a stop, an alert must not overtake what was said before it.

        Args:
            most: how many at most.
            drained: tells whether an input has nothing more now.
            now: the monotonic clock, in seconds.
        """
        found: list[ConsumerRecord] = []
        apart = False
        while len(found) < most:
            filled = [feed for feed in self.feeds if feed.queue]
            apart = len(filled) == 1 and not all(drained(feed) for feed in self.feeds if not feed.queue)
            if apart and not self._waited(now):
                return found
            if not filled:
                break
            first = min(filled, key=lambda feed: feed.queue[0].timestamp)
            found.append(first.queue.popleft())
        if not apart:
            self.waiting = None  # else those behind them need not wait as long again
        return found

    def _waited(self, now: float) -> bool:
        if self.waiting is None:
            self.waiting = now
        return now - self.waiting >= WAIT_SECONDS
