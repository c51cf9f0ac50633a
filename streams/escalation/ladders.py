"""The ladders of one partition, as bytes, with the time at which each has something to do.

They are kept encoded and decoded for each use: ten thousand tasks take some megabytes, and what is decided on is what
is written. It reads no clock and writes nothing; what an alert does to a ladder is not its business.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streams.escalation.ladder import next_due
from streams.escalation.state import LadderState, decode_ladder, encode_ladder

if TYPE_CHECKING:
    from collections.abc import Callable

    from schemas.common import Agent, Task
    from streams.policy.model import Ladder

    Resolve = Callable[[Agent | None, Task | None], Ladder]

SLACK = 1_000
"""Entries of the schedule that may be out of date, besides as many as there are ladders."""

RETRY_MS = 1_000
"""A ladder that is still due after it was asked is asked again that much later."""


@dataclass(slots=True)
class Totals:
    """What is held.

    Attributes:
        ladders: tasks.
        size: bytes of their ladders.
        climbs: sessions and tasks with an open loop.
        cooldowns: cooldowns that run.
        pending: terminations that wait for an answer.
    """

    ladders: int = 0
    size: int = 0
    climbs: int = 0
    cooldowns: int = 0
    pending: int = 0

    def add(self, other: Totals, sign: int = 1) -> None:
        """Add what is held elsewhere, or take it away."""
        self.ladders += sign * other.ladders
        self.size += sign * other.size
        self.climbs += sign * other.climbs
        self.cooldowns += sign * other.cooldowns
        self.pending += sign * other.pending


@dataclass(slots=True)
class Entry:
    """One ladder: its bytes, when it is due (milliseconds since 1970, None for never), and what it adds to totals."""

    value: bytes
    due_ms: int | None = 0
    totals: Totals = field(default_factory=Totals)


class Ladders:
    """The ladders of one partition.

    Attributes:
        totals: what is held.
    """

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._schedule: list[tuple[int, str]] = []
        self.totals = Totals()

    def restore(self, task_id: str, value: bytes) -> None:
        """Take over a ladder that was read back; it is due at once.

        So whatever has come due meanwhile is found, and times that lie too far ahead of the clock are corrected.

        Raises:
            UnsupportedState: it is damaged, or of another release.
        """
        self._keep(task_id, value, decode_ladder(value), 0)

    def load(self, task_id: str) -> LadderState:
        """Give a task's ladder, an empty one when there is none; changes count once they are saved."""
        entry = self._entries.get(task_id)
        return LadderState(task_id=task_id) if entry is None else decode_ladder(entry.value)

    def save(self, task_id: str, state: LadderState, resolve: Resolve, now_ms: int) -> tuple[bool, bytes | None]:
        """Take over a task's ladder as it is now.

        Args:
            task_id: the task.
            state: its ladder; an empty one is dropped.
            resolve: gives the policy for an agent and task.
            now_ms: when this is, in milliseconds since 1970.

        Returns:
            Whether it is to be written, and what: None for nothing any more.
        """
        before = self._entries.get(task_id)
        if state == LadderState() or state == LadderState(task_id=task_id):
            self._drop(task_id)
            return before is not None, None
        value = encode_ladder(state)
        due = next_due(state, resolve(state.agent, state.task))
        self._drop(task_id)
        self._keep(task_id, value, state, None if due is None else due if due > now_ms else now_ms + RETRY_MS)
        return before is None or value != before.value, value

    def due(self, now_ms: int, most: int) -> list[str]:
        """Give tasks whose ladder has something to do, longest due first; each must be saved before the next call.

        Args:
            now_ms: the time, in milliseconds since 1970.
            most: how many at most.
        """
        found: list[str] = []
        while self._schedule and self._schedule[0][0] <= now_ms and len(found) < most:
            due, task_id = heapq.heappop(self._schedule)
            entry = self._entries.get(task_id)
            if entry is not None and entry.due_ms == due:
                entry.due_ms = None  # there may be a second entry like this one in the schedule
                found.append(task_id)
        return found

    def look_at_all(self) -> None:
        """Make all ladders due: the clock was set back, or the policy changed."""
        for entry in self._entries.values():
            entry.due_ms = 0
        self._reschedule()

    def _keep(self, task_id: str, value: bytes, state: LadderState, due_ms: int | None) -> None:
        climbs = state.climbs.values()
        totals = Totals(
            ladders=1,
            size=len(value),
            climbs=sum(bool(climb.loops) for climb in climbs),
            cooldowns=sum(climb.cooldown_ms > 0 for climb in climbs),
            pending=sum(climb.pending is not None for climb in climbs),
        )
        self._entries[task_id] = Entry(value, due_ms, totals)
        self.totals.add(totals)
        if due_ms is not None:
            heapq.heappush(self._schedule, (due_ms, task_id))
        if len(self._schedule) > 2 * len(self._entries) + SLACK:
            self._reschedule()

    def _drop(self, task_id: str) -> None:
        entry = self._entries.pop(task_id, None)
        if entry is not None:
            self.totals.add(entry.totals, -1)

    def _reschedule(self) -> None:
        self._schedule = [(each.due_ms, task_id) for task_id, each in self._entries.items() if each.due_ms is not None]
        heapq.heapify(self._schedule)
