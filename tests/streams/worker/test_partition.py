"""What a partition holds between commits: snapshots agree in themselves, and memory is bounded without a loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from detectors import SessionState, decode_state
from streams.worker.live import SESSIONS, LiveTable
from streams.worker.records import UnsupportedRecord, decode_stored
from streams.worker.states import MemoryStates
from tests.kit import outcome, tool_call, traffic
from tests.streams.worker.conftest import TOOL_CALLS

if TYPE_CHECKING:
    from tests.streams.worker.conftest import Bench, MakeRecord


def test_a_snapshot_is_taken_once(bench: Bench, record: MakeRecord) -> None:
    """It has the sessions changed and the offsets applied since the one before, and nothing twice."""
    bench.apply([record(tool_call("a", 0)), record(tool_call("b", 0))])
    taken = bench.commit()
    assert {key for key, _ in taken.sessions} == {b"a", b"b"}
    assert taken.applied == {TOOL_CALLS: 2}
    assert bench.partition.snapshot() is None
    bench.apply([record(tool_call("b", 1))])
    taken = bench.commit()
    assert [key for key, _ in taken.sessions] == [b"b"]
    assert taken.applied == {TOOL_CALLS: 3}


def test_a_snapshot_does_not_change(bench: Bench, record: MakeRecord) -> None:
    """What is applied while it is being committed goes into the next one."""
    bench.apply([record(tool_call("a", 0))])
    taken = bench.partition.snapshot()
    assert taken is not None
    bench.apply([record(tool_call("a", 1)), record(tool_call("c", 0))])
    assert decode_state(decode_stored(dict(taken.sessions)[b"a"] or b"").state).calls == 1
    assert taken.applied == {TOOL_CALLS: 1}
    bench.partition.settle(taken)
    assert {key for key, _ in bench.commit().sessions} == {b"a", b"c"}


def test_the_table_has_only_what_was_committed(bench: Bench, record: MakeRecord) -> None:
    """An ownership that ends uncommitted leaves no trace: the next one begins with what the changelog has."""
    bench.apply([record(tool_call("a", 0))])
    bench.commit()
    bench.apply([record(tool_call("a", 1))])
    bench.partition.snapshot()
    assert bench.own().sessions.get(b"a").state.calls == 1


def test_a_spoilt_partition_commits_nothing(bench: Bench, record: MakeRecord) -> None:
    """When applying broke off half-way, state and offsets may not agree: nothing of it may get out."""
    bench.apply([record(tool_call("a", 0))])
    bench.partition.spoil()
    assert bench.partition.snapshot() is None


@pytest.mark.parametrize("most", [0, 1, 7])
def test_memory_is_bounded(bench: Bench, record: MakeRecord, most: int) -> None:
    """After a commit no more sessions are in memory than may be, and the answers are the same as without the bound."""
    events = traffic(sessions=20, episodes=2)
    for begin in range(0, len(events), 50):
        bench.apply(record(event, offset=begin + number) for number, event in enumerate(events[begin : begin + 50]))
        bench.commit()
        bench.partition.trim(most)
        assert len(bench.partition.sessions) <= most
    states = {key.decode(): decode_state(decode_stored(value).state) for key, value in bench.stored.items()}
    assert states == outcome(events).states


def test_changed_sessions_stay_in_memory(bench: Bench, record: MakeRecord) -> None:
    """A session with changes not yet committed is not dropped, and the one used last stays longest."""
    bench.apply(record(tool_call(name, 0)) for name in "abc")
    bench.commit()
    bench.apply([record(tool_call("a", 1))])
    bench.partition.trim(0)
    assert len(bench.partition.sessions) == 1
    assert bench.partition.sessions.get(b"a").state.calls == 2
    bench.commit()
    assert bench.partition.sessions.get(b"b").state.calls == 1
    bench.partition.trim(1)
    assert bench.partition.sessions.get(b"b").state.calls == 1
    assert len(bench.partition.sessions) == 1


@pytest.mark.parametrize(
    ("key", "murmur2"),
    [(b"21", -973932308), (b"foobar", -790332482), (b"a-little-bit-long-string", -985981536), (b"abc", 479470107)],
)
def test_misrouted_keys(key: bytes, murmur2: int) -> None:
    """A session is at home where murmur2 of its key puts it (values of UtilsTest of the Apache Kafka sources)."""
    found = [LiveTable(SESSIONS, number, 4, MemoryStates).get(key) for number in range(4)]
    assert [not live.misrouted for live in found] == [(murmur2 & 0x7FFFFFFF) % 4 == number for number in range(4)]


def test_a_stored_session_that_cannot_be_read(bench: Bench) -> None:
    """It stops the worker instead of being begun anew: its loops would be forgotten."""
    bench.stored[b"a"] = b"\x00"
    with pytest.raises(UnsupportedRecord):
        bench.partition.sessions.get(b"a")


def test_a_session_not_seen_before(bench: Bench) -> None:
    """It begins empty, and asking for it changes nothing."""
    assert bench.partition.sessions.get(b"new").state == SessionState()
    assert bench.partition.snapshot() is None


def test_where_offsets_began_again(bench: Bench, record: MakeRecord) -> None:
    """Older records at the same offset or later tell it; what was read already, and is read once more, does not."""
    bench.apply([record(tool_call("s", 0), offset=5, timestamp=1_000)])
    bench.commit()
    sessions = bench.own().sessions
    assert any(sessions.begins_again("tool-calls", 0, 2_000))
    assert any(sessions.begins_again("tool-calls", 5, 1_001))
    assert not any(sessions.begins_again("tool-calls", 5, 1_000))
    assert not any(sessions.begins_again("tool-calls", 0, 900))
    assert not any(sessions.begins_again("tool-calls", 6, 2_000))
    assert not any(sessions.begins_again("reviews", 0, 2_000))
