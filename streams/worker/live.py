"""The states of one partition in memory, of sessions or of tasks, over what the table has of them as bytes.

The same for both: a `Form` says how a state is made, encoded and decoded, and when nothing of it needs to be kept.
Nothing in here awaits, and nothing is stored before the transaction that wrote it was committed.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from detectors import SessionState, TaskState, decode_state, decode_task, encode_state, encode_task
from streams.reading import partition_of
from streams.worker.records import SESSION, TASK, decode_stored, encode_stored, latest_ms, read_head

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from aiokafka.structs import ConsumerRecord

    from streams.worker.keeping import Keeping
    from streams.worker.records import Stored
    from streams.worker.states import Changes, States

S = TypeVar("S")

FORGOTTEN: Final = "forgotten"
"""Stands among what was applied to a session that was to be forgotten: the word's offset and time. No topic has that
name. Records that are not newer than the word change nothing. As long as nothing else was applied the state is empty,
and it goes when none of them can come any more.
"""

MAX_SINCE_BYTES = 8_192
"""Of the records kept of a state between two encodings: a dozen at the usual size. The state itself takes more."""


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

    Encoding it after every event would take as long as all else that is not detection. So records are kept for a while
    instead, from which it can be made anew.

    Attributes:
        form: how it is handled.
        misrouted: whether its key belongs into another partition.
        state: the detectors' state.
        applied: for each input topic (short name) the offset applied last and its record's time.
        latest_ms: the newest of these times; 0 when nothing was applied.
        encoded: the state as it was when it was encoded last; None where there was nothing to keep.
        since: the records that were applied after that, which brought about nothing that is written.
        since_bytes: what their values and headers take.
        before: what was applied when it was encoded last.
    """

    form: Form[S]
    misrouted: bool
    state: S
    applied: dict[str, tuple[int, int]] = field(default_factory=dict)
    latest_ms: int = 0
    encoded: bytes | None = None
    since: list[ConsumerRecord] = field(default_factory=list)
    since_bytes: int = 0
    before: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def kept(self) -> bool:
        """Whether there is anything to keep."""
        return self.encoded is not None or bool(self.since)

    def read(self, stored: Stored) -> None:
        """Take over what is stored.

        Raises:
            UnsupportedState: its state is of a version that this release does not read.
        """
        self.state, self.encoded = self.form.decode(stored.state), stored.state
        self.applied, self.before = stored.applied, stored.applied.copy()
        self.latest_ms = latest_ms(stored.applied)

    @property
    def forgotten_ms(self) -> int | None:
        """Time of the word by which it was forgotten: no record from before counts. None where there was none."""
        word = self.applied.get(FORGOTTEN)
        return None if word is None else word[1]

    def note_forgotten(self, offset: int, at_ms: int) -> None:
        """Note that the state was emptied by a person's word to forget it."""
        self.latest_ms = max(at_ms, self.forgotten_ms or 0)
        self.applied = {FORGOTTEN: (offset, self.latest_ms)}

    def note(self, topic: str, offset: int, at_ms: int) -> None:
        """Note that a record of a topic (short name) was applied."""
        self.applied[topic] = offset, at_ms
        # Where a clock jumped back, what is known is no newer than what is stored, and read back, tells.
        self.latest_ms = at_ms if at_ms >= self.latest_ms else latest_ms(self.applied)

    def keep(self) -> None:
        """Keep the state as it is now.

        Raises:
            Exception: it cannot be encoded; see `restore`.
        """
        if self.form.empty(self.state):
            self.forget()
            return
        self.encoded = self.form.encode(self.state)
        self._settle()

    def keep_later(self, record: ConsumerRecord) -> None:
        """Keep the state as it is now, by the record that was applied last: it is encoded when it is written.

        That it cannot be encoded is noticed then, unless a later record has mended it.

        Raises:
            Exception: as `keep`.
        """
        size = len(record.value or b"")
        if record.headers:
            size += sum(len(name) + len(content or b"") for name, content in record.headers)
        if self.form.empty(self.state) or self.since_bytes + size > MAX_SINCE_BYTES:
            self.keep()
            return
        self.since.append(record)
        self.since_bytes += size

    def forget(self) -> None:
        """Begin anew. What was applied stays known as long as this is in memory."""
        self.state, self.encoded = self.form.new(), None
        self._settle()

    def expired(self, keeping: Keeping, next_ms: int) -> bool:
        """Tell whether a record of this time begins anew what is kept."""
        return self.kept and keeping.expired(self.latest_ms, over=self.form.over(self.state), next_ms=next_ms)

    def restore(self) -> list[ConsumerRecord]:
        """Go back to the state that was encoded last, and give the records that were applied since, without the latest.

        To be asked for when the latest record was applied in part. What is given is to be applied again.
        """
        self.state = self.form.new() if self.encoded is None else self.form.decode(self.encoded)
        since, self.applied = self.since.copy(), self.before
        self.latest_ms = latest_ms(self.applied)
        self._settle()
        return since

    def _settle(self) -> None:
        self.before = self.applied.copy()
        self.since.clear()
        self.since_bytes = 0


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
        self.forgotten: set[bytes] = set()
        """Keys of what was to be forgotten and waits to be removed, as far as its word or itself was looked at here."""

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
        if live is None:
            live = self._new(key)
            value = self._stored().get(key)
            if value is not None:
                live.read(decode_stored(value))
            self._live[key] = live
        return live

    def misrouted(self, key: bytes) -> bool:
        """Tell whether a key belongs into another partition; nothing is read or kept for it."""
        live = self._live.get(key)
        return partition_of(key, self._count) != self._number if live is None else live.misrouted

    def loaded(self, key: bytes) -> Live[S] | None:
        """Give a state if it is in memory."""
        return self._live.get(key)

    def change(self, key: bytes, live: Live[S]) -> None:
        """Have the next commit write a state, or that nothing is left of it."""
        self._changed[key] = live

    def begin_anew(self, key: bytes, live: Live[S]) -> None:
        """Forget a state and what was applied to it, as if it had been removed: the next commit says so."""
        self.forgotten.discard(key)
        live.applied, live.latest_ms = {}, 0
        live.forget()
        self._changed[key] = live

    def stored_keys(self) -> Iterator[bytes]:
        """Give the keys of all states that are stored, read as they are asked for."""
        return self._stored().keys()

    def expire(self, keys: Iterable[bytes], keeping: Keeping, now_ms: float) -> int:
        """Have those of some states removed that any further record would begin anew, and say how many they are.

        Of one that was to be forgotten that is so once all records to come are newer than the word.

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
                if not self._removable(keeping, key, head.applied, over=head.over, now_ms=now_ms):
                    continue
                live = self._live[key] = self._new(key)
            elif not live.kept or not self._removable(
                keeping, key, live.applied, over=self._form.over(live.state), now_ms=now_ms
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

    def encode(self) -> list[Live[S]]:
        """Encode what changed, and give the states of which that fails: they are to be restored, and encoded again."""
        failed = []
        for live in self._changed.values():
            if live.since:
                try:
                    live.keep()
                except MemoryError:
                    raise
                except Exception:  # noqa: BLE001 - applying its records again tells which of them it was
                    failed.append(live)
        return failed

    def take(self) -> Changes:
        """Take what changed since the last time; asked for only when what was taken then is settled.

        All of it must be encoded. A state that began and ended in between was never written, and needs no removal.
        """
        changed, self._changed = self._changed, {}
        taken: Changes = []
        for key, live in changed.items():
            self._live.move_to_end(key)  # used last, as far as `trim` goes
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
        return Live(self._form, self.misrouted(key), self._form.new())

    def _removable(
        self, keeping: Keeping, key: bytes, applied: dict[str, tuple[int, int]], *, over: bool, now_ms: float
    ) -> bool:
        newest_ms = latest_ms(applied)
        if FORGOTTEN in applied and len(applied) == 1:
            self.forgotten.add(key)  # which a former owner knew
            return now_ms > newest_ms
        self.forgotten.discard(key)  # it went on, and is kept as any other
        return keeping.removable(newest_ms, over=over, now_ms=now_ms)
