"""What one owned partition holds between two commits: sessions in memory, what changed, and what is to be written.

A partition object lives as long as one ownership: after a rebalance there is a new one, even for the same partition.
It is only touched from the event loop and never awaits; talking to Kafka is the committer's business.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from aiokafka.partitioner import murmur2

from detectors import SessionState, decode_state, encode_state
from streams.worker.records import decode_session, encode_session

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aiokafka import TopicPartition


@dataclass(slots=True)
class Outgoing:
    """A record to be written with the next commit.

    Attributes:
        topic: its topic's name.
        key: its key; it decides the partition (murmur2).
        value: its value.
        headers: its headers.
        appended_ms: when the record was appended that brought it about, ms since 1970.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    appended_ms: int


@dataclass(slots=True)
class Live:
    """One session in memory.

    Attributes:
        state: the detectors' state.
        applied: for each input topic (short name) the offset applied last and its record's time.
        misrouted: whether its key belongs into another partition.
        encoded: the state as it was after the last event that was applied whole; None before the first.
    """

    state: SessionState
    applied: dict[str, tuple[int, int]]
    misrouted: bool
    encoded: bytes | None

    def keep(self) -> None:
        """Keep the state as it is now. Done for every event: it costs 2 microseconds, detection tens of them."""
        self.encoded = encode_state(self.state)

    def restore(self) -> None:
        """Go back to the state that was kept last, after an event that was applied in part."""
        self.state = SessionState() if self.encoded is None else decode_state(self.encoded)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one transaction writes: state and offsets as they were at one moment.

    Attributes:
        sessions: key and value of each changed session's changelog record.
        outgoing: alerts and dead letters.
        applied: for each input partition the offset to read next.
    """

    sessions: list[tuple[bytes, bytes]]
    outgoing: list[Outgoing]
    applied: dict[TopicPartition, int]


class Partition:
    """One partition number of all inputs, as long as it is ours.

    Args:
        number: the partition.
        count: how many partitions there are.
        stored: gives the partition's sessions in the table: changelog values by key.
        positions: for each input partition the offset that comes next: the committed one.
    """

    def __init__(
        self,
        number: int,
        count: int,
        stored: Callable[[], dict[bytes, bytes]],
        positions: dict[TopicPartition, int],
    ) -> None:
        self.number = number
        self.positions = positions
        self.committed = dict(positions)
        self.applied: dict[TopicPartition, int] = {}
        self.applied_ms: dict[TopicPartition, int] = {}
        self.fresh: set[TopicPartition] = set()
        """Inputs of which nothing was committed when this was taken over, and of which nothing was read since."""
        self.ended = False
        self._spoilt = False
        self.queued_records = 0
        self.queued_bytes = 0
        self.uncommitted = 0
        self.changed = asyncio.Event()
        self.urgent = asyncio.Event()
        self.room = asyncio.Event()
        self.room.set()
        self._count = count
        self._stored = stored
        self._live: OrderedDict[bytes, Live] = OrderedDict()
        self._dirty: dict[bytes, Live] = {}
        self._outgoing: list[Outgoing] = []

    @property
    def live_sessions(self) -> int:
        """Sessions whose state is in memory."""
        return len(self._live)

    def session(self, key: bytes) -> Live:
        """Give a session, read from the table when it is not in memory.

        Raises:
            UnsupportedRecord: its record is of a form that this release does not read.
            UnsupportedState: likewise the state in it.
        """
        live = self._live.get(key)
        if live is not None:
            self._live.move_to_end(key)
            return live
        misrouted = (murmur2(key) & 0x7FFFFFFF) % self._count != self.number
        stored = self._stored().get(key)
        if stored is None:
            live = Live(SessionState(), {}, misrouted, None)
        else:
            record = decode_session(stored)
            live = Live(decode_state(record.state), record.applied, misrouted, record.state)
        self._live[key] = live
        return live

    def begins_again(self, topic: str, offset: int, timestamp_ms: int) -> bool:
        """Tell whether a stored session knows of a record as far or further, yet older: then offsets began again.

        Looks at all sessions until one is found: only to be asked where a log begins.

        Args:
            topic: the input topic's short name.
            offset: the offset of a record of it.
            timestamp_ms: its time; the broker stamps inputs, so that times rise with offsets.

        Raises:
            UnsupportedRecord: a session is stored in a form that this release does not read.
        """
        found = (decode_session(stored).applied.get(topic) for stored in self._stored().values())
        return any(last is not None and last[0] >= offset and last[1] < timestamp_ms for last in found)

    def keep(self, key: bytes, live: Live) -> None:
        """Keep a session's state as it is now: the next commit writes it.

        Raises:
            Exception: the state cannot be encoded; it stays as it was kept before.
        """
        live.keep()
        self._dirty[key] = live

    def put(self, outgoing: Outgoing) -> None:
        """Have a record written, by a commit as soon as possible."""
        self._outgoing.append(outgoing)
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

    def spoil(self) -> None:
        """Say that applying broke off half-way: nothing of this partition may be committed any more."""
        self.ended = self._spoilt = True

    def snapshot(self) -> Snapshot | None:
        """Take what is to be committed; None when there is nothing. State and offsets agree: nothing awaits in here."""
        if self._spoilt or not (self.applied or self._outgoing):
            return None
        sessions = [(key, encode_session(live.applied, live.encoded or b"")) for key, live in self._dirty.items()]
        taken = Snapshot(sessions, self._outgoing, self.applied)
        self._dirty, self._outgoing, self.applied = {}, [], {}
        self.uncommitted = 0
        self.changed.clear()
        self.urgent.clear()
        return taken

    def settle(self, taken: Snapshot) -> None:
        """Take over a snapshot that was committed."""
        self._stored().update(taken.sessions)
        self.committed.update(taken.applied)
        self.room.set()

    def trim(self, most: int) -> None:
        """Drop the sessions not used for longest from memory until there are no more than so many.

        Sessions with changes not yet committed stay; the others are in the table.
        """
        surplus = max(0, len(self._live) - most)
        for key in list(islice((key for key in self._live if key not in self._dirty), surplus)):
            del self._live[key]
