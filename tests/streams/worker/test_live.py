"""States in memory over what is stored: removed ones do not come back, and only what is old is removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detectors import TaskState, decode_task, encode_task
from detectors.tasks.facts import Spent
from streams.worker.keeping import Keeping
from streams.worker.live import MAX_SINCE_BYTES, TASKS, LiveTable
from streams.worker.records import TASK, UnsupportedRecord, decode_stored, encode_stored
from streams.worker.states import MemoryStates
from tests.streams.worker.conftest import task_event

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streams.worker.states import Changes
    from tests.streams.worker.conftest import MakeRecord

TOPIC = "task-events"

Headers = tuple[tuple[str, bytes | None], ...]

KEPT = Keeping(2_000, 2_000)
"""Two seconds; with what a sweep waits beyond them, 2.1."""


class Table:
    """A table of tasks, of whose states the calls spent are what is looked at."""

    def __init__(self) -> None:
        self.stored: dict[bytes, bytes] = {}
        self.live = self.own()
        self.offset = 0

    def own(self) -> LiveTable[TaskState]:
        """Begin an ownership: nothing is in memory."""
        self.live = LiveTable(TASKS, 0, 1, lambda: MemoryStates(self.stored))
        return self.live

    def spend(self, key: bytes, at_ms: int = 0) -> None:
        """Apply an event: one more call was spent."""
        live = self.live.get(key)
        live.state.spent = live.state.spent.plus(Spent(calls=1))
        self._applied(key, at_ms)

    def solve(self, key: bytes, at_ms: int = 0) -> None:
        """Apply an event after which nothing needs to be kept."""
        self.live.get(key).state.spent = Spent()
        self._applied(key, at_ms)

    def _applied(self, key: bytes, at_ms: int) -> None:
        live = self.live.get(key)
        self.offset += 1
        live.note(TOPIC, self.offset, at_ms)
        live.keep()
        self.live.change(key, live)

    def commit(self) -> Changes:
        """Commit what changed, and give it."""
        taken = self.live.take()
        self.live.settle(taken, None)
        return taken

    def calls(self, key: bytes) -> int:
        """Give the calls spent on a task."""
        return self.live.get(key).state.spent.calls


def test_a_commit_without_states_asks_for_none() -> None:
    """Overrides are committed while partitions are being taken over: what is stored of them may not be open yet."""

    def stored() -> NoReturn:
        raise KeyError

    LiveTable(TASKS, 0, 1, stored).settle([], None)


@pytest.fixture
def table() -> Table:
    """Give an empty table."""
    return Table()


def test_what_is_solved_is_removed_by_a_tombstone(table: Table) -> None:
    """From the changelog, the table and memory; what comes after begins anew."""
    table.spend(b"t")
    table.commit()
    table.solve(b"t")
    assert table.commit() == [(b"t", None)]
    assert (table.stored, len(table.live)) == ({}, 0)
    table.spend(b"t")
    assert table.calls(b"t") == 1


def test_what_was_never_stored_needs_no_tombstone(table: Table) -> None:
    """A task solved at the first try leaves no record behind."""
    table.spend(b"t")
    table.solve(b"t")
    assert table.live.changed
    assert table.commit() == []
    assert len(table.live) == 0


def test_a_removed_state_does_not_come_back_while_its_tombstone_is_on_its_way(table: Table) -> None:
    """What is stored is the old state until the commit is through; events in between begin anew, and are not lost."""
    table.spend(b"t")
    table.spend(b"t")
    table.commit()
    table.solve(b"t")
    taken = table.live.take()
    table.spend(b"t")
    assert table.calls(b"t") == 1
    table.live.settle(taken, None)
    assert table.calls(b"t") == 1
    ((key, value),) = table.commit()
    assert value is not None
    assert decode_task(decode_stored(value).state, TaskState).spent.calls == 1
    assert table.stored == {key: value}


@pytest.mark.parametrize(("now_ms", "expired"), [(3_100, 0), (3_101, 1)])
@pytest.mark.parametrize("in_memory", [True, False])
def test_a_state_expires_by_its_last_record(table: Table, *, now_ms: int, expired: int, in_memory: bool) -> None:
    """One kept for exactly the time stays, one a millisecond older goes, whether it is in memory or not."""
    table.spend(b"t", 500)
    table.spend(b"t", 1_000)
    table.commit()
    if not in_memory:
        table.own()
    assert table.live.expire(table.live.stored_keys(), KEPT, now_ms) == expired
    assert table.commit() == [(b"t", None)] * expired
    assert len(table.stored) == 1 - expired


def test_what_is_on_its_way_is_not_taken_for_old(table: Table) -> None:
    """An old state that an event has just reached stays, though the table still has it as it was."""
    table.spend(b"t", 1)
    table.commit()
    table.spend(b"t", 2_500)
    taken = table.live.take()
    assert table.live.expire([b"t"], KEPT, 4_000) == 0
    table.live.settle(taken, None)
    assert table.live.expire([b"t"], KEPT, 4_000) == 0
    assert table.calls(b"t") == 2


def test_an_expired_state_expires_once(table: Table) -> None:
    """Neither while its tombstone is on its way nor after it; keys that are gone are passed over."""
    table.spend(b"t", 1)
    table.commit()
    keys = list(table.live.stored_keys())
    assert table.live.expire(keys, KEPT, 4_000) == 1
    assert table.live.expire(keys, KEPT, 4_000) == 0
    taken = table.live.take()
    assert table.live.expire(keys, KEPT, 4_000) == 0
    table.live.settle(taken, None)
    assert table.live.expire(keys, KEPT, 4_000) == 0
    assert not table.live.changed


def test_a_state_of_another_release_expires_unread(table: Table) -> None:
    """What is removed need not be understood; a record of another form has no time to go by, and stops the worker."""
    table.stored[b"t"] = encode_stored(TASK, {TOPIC: (1, 1)}, b"of another release")
    assert table.live.expire([b"t"], KEPT, 4_000) == 1
    table.stored[b"u"] = b"\x00"
    with pytest.raises(UnsupportedRecord):
        table.live.expire([b"u"], KEPT, 4_000)


KEYS = [b"a", b"b", b"c"]
STEPS = st.one_of(
    st.tuples(st.sampled_from(["spend", "solve"]), st.sampled_from(KEYS), st.just(0)),
    st.tuples(st.sampled_from(["take", "settle", "trim"]), st.just(b""), st.integers(0, 3)),
    st.tuples(st.just("expire"), st.just(b""), st.integers(0, 70)),
)


@given(steps=st.lists(STEPS, max_size=60))
def test_memory_and_table_agree_with_a_plain_account(steps: list[tuple[str, bytes, int]]) -> None:
    """Whatever is applied, removed, committed and dropped from memory, in any order: nothing is lost or revived."""
    table = Table()
    wanted: dict[bytes, tuple[int, int]] = {}  # calls and the last record's time
    on_its_way: Changes | None = None
    for now, (what, key, number) in enumerate(steps):
        if what == "spend":
            table.spend(key, now)
            wanted[key] = wanted.get(key, (0, 0))[0] + 1, now
        elif what == "solve":
            table.solve(key, now)
            wanted.pop(key, None)
        elif what == "take" and on_its_way is None:
            on_its_way = table.live.take()
        elif what == "settle" and on_its_way is not None:
            table.live.settle(on_its_way, None)
            on_its_way = None
            table.live.trim(number)
        elif what == "expire":
            # Those that were never committed are not stored, and wait for the next sweep.
            old = {each for each in table.live.stored_keys() if each in wanted and 0 < wanted[each][1] < number - 10.5}
            assert table.live.expire(table.live.stored_keys(), Keeping(10, 10), number) == len(old)
            wanted = {each: value for each, value in wanted.items() if each not in old}
        assert {each: table.calls(each) for each in KEYS} == counts(wanted)
    table.live.settle(on_its_way or [], None)
    table.commit()
    assert {each: table.own().get(each).state.spent.calls for each in KEYS} == counts(wanted)
    assert table.stored.keys() == wanted.keys()


def counts(wanted: Mapping[bytes, tuple[int, int]]) -> dict[bytes, int]:
    """Give the calls of each key."""
    return {each: wanted.get(each, (0, 0))[0] for each in KEYS}


@pytest.mark.parametrize(("more", "encoded"), [(0, False), (1, True)])
def test_so_much_is_kept_of_a_state_until_it_is_encoded(record: MakeRecord, *, more: int, encoded: bool) -> None:
    """Up to the limit, with headers, its records are at hand for what fails later; a byte more, and it is encoded."""
    live = LiveTable(TASKS, 0, 1, MemoryStates).get(b"t")
    live.state.spent = Spent(calls=1)
    left = MAX_SINCE_BYTES - 1_000 - len("name") - 500 + more
    sizes: list[tuple[int, Headers]] = [(1_000, ()), (left, (("name", bytes(500)), ("", None)))]
    records = [record(task_event(), value=bytes(size), headers=headers) for size, headers in sizes]
    for each in records:
        live.keep_later(each)
    assert live.kept
    assert (live.encoded is not None) == encoded
    assert live.restore() == ([] if encoded else records)
    assert live.state.spent.calls == encoded


def test_the_kept_state_is_what_is_restored(table: Table) -> None:
    """An event applied in part leaves the state as it was, or as new when there is none."""
    table.spend(b"t")
    live = table.live.get(b"t")
    live.state.spent = Spent(calls=99)
    live.restore()
    assert encode_task(live.state) == live.encoded
    table.solve(b"t")
    live.state.spent = Spent(calls=99)
    live.restore()
    assert live.state == TaskState()
