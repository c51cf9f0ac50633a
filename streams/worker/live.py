"""The states of one partition in memory, of sessions or of tasks, over what the table has of them as bytes.

The same for both: a `Form` says how a state is made, encoded and decoded, and when nothing of it needs to be kept.
Nothing in here awaits, and nothing is stored before the transaction that wrote it was committed.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Generic, TypeVar

from detectors import SessionState, TaskState, decode_state, decode_task, encode_state, encode_task
from streams.reading import partition_of
from streams.worker.records import SESSION, TASK, decode_stored, encode_stored, latest_ms, read_head

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from streams.worker.keeping import Keeping
    from streams.worker.states import Changes, States

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Form(Generic[S]):
    """How one kind of state is handled.

    Attributes:
        kind: what it is in the changelog.
        new: gives the state before the first event.
        encode: gives its bytes.
        decode: reads them; raises UnsupportedState.
        empty: tells whether nothing of it needs to be kept.
        over: tells whether nothing more is expected.
    """

    kind: int
    new: Callable[[], S]
    encode: Callable[[S], bytes]
    decode: Callable[[bytes], S]
    empty: Callable[[S], bool]
    over: Callable[[S], bool]


SESSIONS = Form(
    SESSION,
    SessionState,
    encode_state,
    decode_state,
    empty=lambda _: False,
    over=lambda state: state.ended,
)
TASKS = Form(
    TASK,
    TaskState,
    encode_task,
    partial(decode_task, kind=TaskState),
    empty=lambda state: state.empty,
    over=lambda _: False,
)


@dataclass(slots=True)
class Live(Generic[S]):
    """One state in memory.

    Attributes:
        form: how it is handled.
        misrouted: whether its key belongs into another partition.
        state: the detectors' state.
        applied: for each input topic (short name) the offset applied last and its record's time.
        encoded: the state as it was after the last event that was applied whole; None where there is nothing to keep.
    """

    form: Form[S]
    misrouted: bool
    state: S
    applied: dict[str, tuple[int, int]] = field(default_factory=dict)
    encoded: bytes | None = None

    def keep(self) -> None:
        """Keep the state as it is now. Done for every event: it costs some ten microseconds, a tenth of detection."""
        if self.form.empty(self.state):
            self.forget()
        else:
            self.encoded = self.form.encode(self.state)

    def forget(self) -> None:
        """Begin anew. What was applied stays known as long as this is in memory."""
        self.state, self.encoded = self.form.new(), None

    def expired(self, keeping: Keeping, next_ms: int) -> bool:
        """Tell whether a record of this time begins anew what is kept."""
        return self.encoded is not None and keeping.expired(
            latest_ms(self.applied), over=self.form.over(self.state), next_ms=next_ms
        )

    def restore(self) -> None:
        """Go back to the state that was kept last, after an event that was applied in part."""
        self.state = self.form.new() if self.encoded is None else self.form.decode(self.encoded)


class LiveTable(Generic[S]):
    """The states of one kind in one partition.

    Args:
        form: how they are handled.
        number: the partition.
        count: how many partitions there are.
        stored: gives what the table has of the partition.
    """

    def __init__(self, form: Form[S], number: int, count: int, stored: Callable[[], States]) -> None:
        self._form = form
        self._number = number
        self._count = count
        self._stored = stored
        self._live: OrderedDict[bytes, Live[S]] = OrderedDict()
        self._changed: dict[bytes, Live[S]] = {}

    def __len__(self) -> int:
        """Give how many states are in memory."""
        return len(self._live)

    @property
    def changed(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self._changed)

    def get(self, key: bytes) -> Live[S]:
        """Give a state, read from the table when it is not in memory.

        Raises:
            UnsupportedRecord: its record is of a form that this release does not read.
            UnsupportedState: likewise the state in it.
        """
        live = self._live.get(key)
        if live is not None:
            self._live.move_to_end(key)
            return live
        live = self._new(key)
        value = self._stored().get(key)
        if value is not None:
            stored = decode_stored(value)
            live.state, live.applied, live.encoded = self._form.decode(stored.state), stored.applied, stored.state
        self._live[key] = live
        return live

    def keep(self, key: bytes, live: Live[S]) -> None:
        """Keep a state as it is now, or that nothing is left of it: the next commit writes it.

        Raises:
            Exception: the state cannot be encoded; it stays as it was kept before.
        """
        live.keep()
        self._changed[key] = live

    def begin_anew(self, key: bytes, live: Live[S]) -> None:
        """Forget a state and what was applied to it, as if it had been removed: the next commit says so."""
        live.forget()
        live.applied.clear()
        self._changed[key] = live

    def stored_keys(self) -> Iterator[bytes]:
        """Give the keys of all states that are stored, read as they are asked for."""
        return self._stored().keys()

    def expire(self, keys: Iterable[bytes], keeping: Keeping, now_ms: float) -> int:
        """Have those of some states removed that any further record would begin anew, and say how many they are.

        Args:
            keys: of the states that are looked at.
            keeping: how long they are kept.
            now_ms: the time that all records to come have reached, ms since 1970.

        Raises:
            UnsupportedRecord: a state is stored in a form that this release does not read.
        """
        stored, expired = self._stored(), 0
        for key in keys:
            live = self._live.get(key)  # newer than what is stored, which may still be on its way
            if live is None:
                value = stored.get(key)
                if value is None:
                    continue
                head = read_head(value)
                if not keeping.removable(latest_ms(head.applied), over=head.over, now_ms=now_ms):
                    continue
                live = self._live[key] = self._new(key)
            elif live.encoded is None or not keeping.removable(
                latest_ms(live.applied), over=self._form.over(live.state), now_ms=now_ms
            ):
                continue
            self.begin_anew(key, live)
            expired += 1
        return expired

    def begins_again(self, topic: str, offset: int, timestamp_ms: int) -> Iterator[bool]:
        """Tell of each stored state whether it knows of a record as far or further, yet older: offsets began again.

        Only to be asked where a log begins, and with breaks: it takes up to 10 microseconds each.

        Args:
            topic: the input topic's short name.
            offset: the offset of a record of it.
            timestamp_ms: its time; the broker stamps inputs, so that times rise with offsets.

        Raises:
            UnsupportedRecord: a state is stored in a form that this release does not read.
        """
        found = (read_head(stored).applied.get(topic) for stored in self._stored().values())
        return (last is not None and last[0] >= offset and last[1] < timestamp_ms for last in found)

    def take(self) -> Changes:
        """Take what changed since the last time; asked for only when what was taken then is settled.

        A state that began and ended in between was never written, and needs no removal.
        """
        changed, self._changed = self._changed, {}
        taken: Changes = []
        for key, live in changed.items():
            if live.encoded is not None:
                over = self._form.over(live.state)
                taken.append((key, encode_stored(self._form.kind, live.applied, live.encoded, over=over)))
            elif self._stored().get(key) is not None:
                taken.append((key, None))
            else:
                del self._live[key]
        return taken

    def settle(self, changes: Changes, offset: int | None) -> None:
        """Take over changes that were committed.

        Args:
            changes: what was committed.
            offset: of the last changelog record among them; None where there is none.
        """
        if not changes:
            return  # it may not be open yet: overrides are committed while partitions are being taken over
        self._stored().write(changes, offset)
        for key, value in changes:
            if value is None and key not in self._changed:
                self._live.pop(key, None)

    def trim(self, most: int) -> None:
        """Drop the states not used for longest from memory until there are no more than so many.

        Those with changes not yet committed stay; the others are in the table.
        """
        surplus = max(0, len(self._live) - most)
        for key in list(islice((key for key in self._live if key not in self._changed), surplus)):
            del self._live[key]

    def _new(self, key: bytes) -> Live[S]:
        misrouted = partition_of(key, self._count) != self._number
        return Live(self._form, misrouted, self._form.new())
