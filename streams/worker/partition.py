"""What one owned partition holds between two commits: states in memory, what changed, and what is to be written.

A partition object lives as long as one ownership: after a rebalance there is a new one, even for the same partition.
It is only touched from the event loop and never awaits; talking to Kafka is the committer's business.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streams.topics import TASK_EVENTS
from streams.worker.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiokafka import TopicPartition
    from aiokafka.structs import ConsumerRecord

    from detectors import SessionState, TaskState
    from schemas.topics import Topic
    from streams.worker.keeping import Keeping
    from streams.worker.live import LiveTable
    from streams.worker.outgoing import Outgoing
    from streams.worker.states import Changes


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one transaction writes: states and offsets as they were at one moment.

    Attributes:
        sessions: the changelog records of the sessions that changed.
        tasks: likewise of the tasks.
        outgoing: what else is written: alerts, dead letters, what is forwarded to tasks.
        applied: for each input partition the offset to read next.
        tally: what is counted of it.
    """

    sessions: Changes
    tasks: Changes
    outgoing: list[Outgoing]
    applied: dict[TopicPartition, int]
    tally: Tally


class Partition:
    """One partition number of all inputs, as long as it is ours.

    Args:
        number: the partition.
        sessions: its sessions.
        tasks: its tasks.
        positions: for each input partition the offset that comes next: the committed one.
        redo: applies records again, of a state that was restored.
    """

    def __init__(
        self,
        number: int,
        *,
        sessions: LiveTable[SessionState],
        tasks: LiveTable[TaskState],
        positions: dict[TopicPartition, int],
        redo: Callable[[Partition, list[ConsumerRecord]], None],
    ) -> None:
        self.number = number
        self.sessions = sessions
        self.tasks = tasks
        self.positions = positions
        self._redo = redo
        self.committed = dict(positions)
        self.applied: dict[TopicPartition, int] = {}
        self.applied_ms: dict[TopicPartition, int] = {}
        self.fresh: set[TopicPartition] = set()
        """Inputs of which nothing was committed when this was taken over, and of which nothing was read since."""
        self.ended = False
        self._spoilt = False
        self.queued_records = 0
        self.queued_of: Counter[TopicPartition] = Counter()
        """Records that wait, by input."""
        self.queued_bytes = 0
        self.uncommitted = 0
        self.changed = asyncio.Event()
        self.urgent = asyncio.Event()
        self.room = asyncio.Event()
        self.room.set()
        self.tally = Tally()
        """What is counted of that which the next commit holds."""
        self._outgoing: list[Outgoing] = []
        self.outgoing_bytes = 0
        """Of the values and headers of what is to be written besides the states."""

    def table(self, topic: Topic) -> LiveTable[Any]:
        """Give the states that the records of an input change."""
        return self.tasks if topic is TASK_EVENTS else self.sessions

    def put(self, outgoing: Outgoing) -> None:
        """Have a record written: by a commit as soon as possible, or by the next one where it is not urgent."""
        self._outgoing.append(outgoing)
        self.outgoing_bytes += len(outgoing.value or b"") + sum(len(content or b"") for _, content in outgoing.headers)
        if outgoing.urgent:
            self.urgent.set()

    def advance(self, tp: TopicPartition, position: int, records: int, applied_ms: int) -> None:
        """Say that an input was applied up to a position.

        Args:
            tp: the input partition.
            position: the offset that comes next.
            records: how many records that were.
            applied_ms: time of the last of them; that of the one before is kept when it is negative.
        """
        self.positions[tp] = self.applied[tp] = position
        if applied_ms >= 0:
            self.applied_ms[tp] = applied_ms
        self.uncommitted += records
        self.changed.set()

    def expire(self, table: LiveTable[Any], keys: list[bytes], keeping: Keeping, now_ms: float) -> int:
        """Have sessions or tasks removed that nothing was heard of for long; see `LiveTable.expire`."""
        expired = table.expire(keys, keeping, now_ms)
        if expired:
            self.changed.set()
        return expired

    def spoil(self) -> None:
        """Say that applying broke off half-way: nothing of this partition may be committed any more."""
        self.ended = self._spoilt = True

    def snapshot(self) -> Snapshot | None:
        """Take what is to be committed; None when there is nothing. State and offsets agree: nothing awaits in here."""
        if self._spoilt or not (self.applied or self._outgoing or self.sessions.changed or self.tasks.changed):
            return None
        for table in (self.sessions, self.tasks):
            for live in table.encode():
                self._redo(self, live.restore())
        taken = Snapshot(self.sessions.take(), self.tasks.take(), self._outgoing, self.applied, self.tally)
        self._outgoing, self.applied, self.tally = [], {}, Tally()
        self.uncommitted = self.outgoing_bytes = 0
        self.changed.clear()
        self.urgent.clear()
        return taken

    def settle(self, taken: Snapshot, *, sessions: int | None = None, tasks: int | None = None) -> None:
        """Take over a snapshot that was committed.

        Args:
            taken: the snapshot.
            sessions: offset of the last record that was written for it to the sessions' changelog; None for none.
            tasks: likewise to the tasks'.
        """
        self.sessions.settle(taken.sessions, sessions)
        self.tasks.settle(taken.tasks, tasks)
        self.committed.update(taken.applied)
        self.room.set()

    def trim(self, most: int) -> None:
        """Drop the sessions and tasks not used for longest from memory until there are no more than so many together.

        Tasks may have half of the room; what they leave of it is the sessions'.
        """
        self.tasks.trim(most // 2)
        self.sessions.trim(max(0, most - len(self.tasks)))
