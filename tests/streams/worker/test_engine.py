"""Batches are applied under the ownership they were fetched under, each behind the one before it, or not at all."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from aiokafka import TopicPartition

from detectors import SessionState, encode_state
from schemas import topics
from schemas.events import Control
from streams.topics import TASK_EVENTS
from streams.worker import engine as module
from streams.worker.engine import Engine, Fetched
from streams.worker.faults import EXIT_GAP
from streams.worker.live import SESSIONS, LiveTable
from streams.worker.outgoing import Outgoing
from streams.worker.records import SESSION, encode_stored
from streams.worker.settings import MAX_QUEUED_BYTES
from tests.kit import BEGIN, tool_call
from tests.streams.worker.conftest import SETTINGS, TOOL_CALLS, Bench

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aiokafka.structs import ConsumerRecord

    from streams.worker.partition import Partition
    from tests.streams.worker.conftest import MakeRecord


class Ended(Exception):
    """The process would have ended."""


class Log:
    """A partition's log: its bounds, and how often they were asked for."""

    def __init__(self, earliest: int = 0, end: int = 1_000) -> None:
        self.answer = earliest, end
        self.asked = 0

    async def bounds(self, tp: TopicPartition) -> tuple[int, int]:
        """Give the bounds."""
        assert tp == TOOL_CALLS
        self.asked += 1
        await asyncio.sleep(0)
        return self.answer


class Owned:
    """What an engine asks of ownerships and overrides."""

    def __init__(self, partition: Partition) -> None:
        self.current = {0: partition}
        self.positions = {TopicPartition("agent.overrides", 0): 7}
        self.refused: list[tuple[Any, Any]] = []

    def rejected(self, since: dict[TopicPartition, int]) -> list[tuple[Any, Any]]:
        """Give what is to be written to the dead letters."""
        return [pair for pair in self.refused if pair[0].offset >= since.get(TopicPartition("agent.overrides", 0), 0)]


@pytest.fixture
def owned(bench: Bench) -> Owned:
    """Give the partition of the bench as what is ours."""
    return Owned(bench.partition)


@pytest.fixture
def engine(bench: Bench, owned: Owned) -> Engine:
    """Give an engine on the bench; ending the process raises."""

    def abandon(code: int, message: str) -> NoReturn:
        raise Ended(code, message)

    parts: dict[str, Any] = {"ownerships": owned, "applier": bench.applier, "follower": owned}
    return Engine(SETTINGS, metrics=bench.metrics, abandon=abandon, **parts)


@pytest.fixture
def batch(bench: Bench, record: MakeRecord) -> Callable[..., Fetched]:
    """Give a builder of batches: records of one session at some offsets, fetched from one position to another."""

    def make(start: int, end: int, offsets: list[int] | None = None, owner: Partition | None = None) -> Fetched:
        wanted = list(range(start, end)) if offsets is None else offsets
        records: list[ConsumerRecord] = [record(tool_call("s", offset), offset=offset) for offset in wanted]
        return Fetched(owner or bench.partition, TOOL_CALLS, start, end, records, 100 * len(records))

    return make


async def test_batches_follow_each_other(bench: Bench, engine: Engine, batch: Callable[..., Fetched]) -> None:
    """Gaps within and at the end of batches are none: positions are compared, and the log is not asked."""
    log = Log()
    await engine.handle(batch(0, 5, [0, 3]), log)
    await engine.handle(batch(5, 9, []), log)  # aborted records and markers only
    await engine.handle(batch(9, 12, [11]), log)
    assert bench.partition.sessions.get(b"s").state.calls == 3
    assert bench.partition.positions[TOOL_CALLS] == 12
    taken = bench.commit()
    assert taken.applied == {TOOL_CALLS: 12}
    assert log.asked == 0


async def test_a_lost_batch(bench: Bench, engine: Engine, batch: Callable[..., Fetched]) -> None:
    """A batch that begins behind a gap that is in the log ends the process, and nothing of it is applied."""
    await engine.handle(batch(0, 5), Log())
    with pytest.raises(Ended) as ended:
        await engine.handle(batch(6, 8), Log())
    assert ended.value.args[0] == EXIT_GAP
    assert bench.partition.positions[TOOL_CALLS] == 5


async def test_a_gap_that_retention_made(
    bench: Bench, engine: Engine, batch: Callable[..., Fetched], caplog: pytest.LogCaptureFixture
) -> None:
    """What was deleted before it was read is told and counted, and what comes after is applied."""
    await engine.handle(batch(6, 8), Log(earliest=6))
    assert bench.partition.sessions.get(b"s").state.calls == 2
    assert bench.value("traction_deleted_unread_records_total") == 6
    assert "offsets 0 to 5 were deleted before they were read" in caplog.text


async def test_what_comes_again_is_not_applied_again(
    bench: Bench, engine: Engine, batch: Callable[..., Fetched]
) -> None:
    """A fetch that begins too early repeats; only what is new of it is applied."""
    await engine.handle(batch(0, 5), Log())
    await engine.handle(batch(2, 4), Log())
    await engine.handle(batch(3, 7), Log())
    assert bench.partition.sessions.get(b"s").state.calls == 7
    assert bench.partition.positions[TOOL_CALLS] == 7
    assert bench.value("traction_applied_twice_total") == 0


async def test_a_log_that_begins_again(bench: Bench, engine: Engine, batch: Callable[..., Fetched]) -> None:
    """When the log ends before what was applied it is read from its beginning; the records' times decide."""
    bench.partition.positions[TOOL_CALLS] = 500
    await engine.handle(batch(0, 3), Log(end=3))
    assert bench.partition.sessions.get(b"s").state.calls == 3
    assert bench.commit().applied == {TOOL_CALLS: 3}
    assert bench.value("traction_source_resets_total") == 1


@pytest.mark.parametrize("lost", [False, True])
async def test_a_look_at_all_states_has_breaks(
    bench: Bench,
    engine: Engine,
    batch: Callable[..., Fetched],
    monkeypatch: pytest.MonkeyPatch,
    lost: bool,  # noqa: FBT001
) -> None:
    """Where a log begins all states are looked at, and others have their turn; when the partition is lost it ends."""
    for number in range(5):
        bench.stored[b"%d" % number] = encode_stored(SESSION, {}, encode_state(SessionState()))
    bench.partition.fresh.add(TOOL_CALLS)
    monkeypatch.setattr(module, "SLICE_RECORDS", 2)
    work = asyncio.create_task(engine.handle(batch(0, 1), Log()))
    for _ in range(3):
        await asyncio.sleep(0)
    assert not bench.partition.applied
    bench.partition.ended = lost
    await work
    assert bench.partition.applied == ({} if lost else {TOOL_CALLS: 1})


async def test_looks_at_all_states_take_turns(
    bench: Bench, engine: Engine, batch: Callable[..., Fetched], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many inputs look through all states at once, as after an upgrade, others wait for one slice of them."""
    for number in range(6):
        bench.stored[b"%d" % number] = encode_stored(SESSION, {}, encode_state(SessionState()))
    begins_again, looks = bench.partition.sessions.begins_again, 0

    def counted(*asked: Any) -> Iterator[bool]:
        nonlocal looks
        for each in begins_again(*asked):
            looks += 1
            yield each

    monkeypatch.setattr(bench.partition.sessions, "begins_again", counted)
    monkeypatch.setattr(module, "SLICE_RECORDS", 2)
    names = [name for name, topic in SETTINGS.inputs.items() if topic is not TASK_EVENTS]
    work = []
    for name in names:
        tp = TopicPartition(name, 0)
        bench.partition.fresh.add(tp)
        first = Fetched(bench.partition, tp, 0, 1, batch(0, 1).records, 1)
        work.append(asyncio.create_task(engine.handle(first, Log())))
    most = 0
    while looks < 6 * len(names):
        before = looks
        await asyncio.sleep(0)
        most = max(most, looks - before)
    assert most == 2
    await asyncio.gather(*work)


async def test_a_batch_of_an_ended_ownership(
    bench: Bench, engine: Engine, batch: Callable[..., Fetched], owned: Owned
) -> None:
    """A batch that was still queued when its partition was lost and won back is dropped."""
    queued = batch(0, 5)
    queued_owner = bench.partition
    queued_owner.ended = True
    owned.current = {0: bench.own()}
    await engine.handle(queued, Log())
    await engine.handle(Fetched(None, TOOL_CALLS, 0, 5, queued.records, 0), Log())
    assert bench.partition.snapshot() is None
    assert queued_owner.snapshot() is None


async def test_an_ownership_that_ends_in_a_batch(
    bench: Bench, engine: Engine, batch: Callable[..., Fetched], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slice under way is finished and nothing more is applied; the offset says exactly how far it came."""
    monkeypatch.setattr(module, "SLICE_RECORDS", 2)
    monkeypatch.setattr(module, "SLICE_SECONDS", 60)  # however busy the machine is
    work = asyncio.create_task(engine.handle(batch(0, 10), Log()))
    while bench.partition.positions[TOOL_CALLS] < 4:  # noqa: ASYNC110 - turn by turn is the point
        await asyncio.sleep(0)
    bench.partition.ended = True
    await work
    assert bench.commit().applied == {TOOL_CALLS: 4}
    assert bench.partition.sessions.get(b"s").state.calls == 4


@pytest.mark.parametrize("earliest", [0, 6])
async def test_an_ownership_that_ends_while_the_log_is_asked(
    bench: Bench, engine: Engine, batch: Callable[..., Fetched], earliest: int
) -> None:
    """Nothing is said of a gap that the next owner finds too, and nothing stored is looked at: it is another's."""

    def stored() -> NoReturn:
        raise AssertionError("the process would end")

    bench.partition.sessions = LiveTable(SESSIONS, 0, 1, stored)
    bench.partition.fresh.add(TOOL_CALLS)
    work = asyncio.create_task(engine.handle(batch(6, 8), Log(earliest)))
    await asyncio.sleep(0)
    bench.partition.ended = True
    await work
    assert bench.partition.positions[TOOL_CALLS] == 0
    assert bench.value("traction_deleted_unread_records_total") == 0


async def test_slices_give_way(
    bench: Bench, engine: Engine, batch: Callable[..., Fetched], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others get their turn within a large batch."""
    monkeypatch.setattr(module, "SLICE_RECORDS", 10)
    work = asyncio.create_task(engine.handle(batch(0, 95), Log()))
    turns = 0
    while not work.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns >= 10
    assert bench.partition.positions[TOOL_CALLS] == 95


async def test_no_more_than_a_slice_is_applied_without_a_break(
    bench: Bench, engine: Engine, batch: Callable[..., Fetched], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many inputs are busy: commits, which take some turns of the event loop, wait for one slice in each."""
    monkeypatch.setattr(module, "SLICE_RECORDS", 10)
    monkeypatch.setattr(module, "SLICE_SECONDS", 60)  # however busy the machine is
    names = [name for name, topic in SETTINGS.inputs.items() if topic is not TASK_EVENTS]
    records = batch(0, 50).records
    tps = [TopicPartition(name, 0) for name in names]
    work = [asyncio.create_task(engine.handle(Fetched(bench.partition, tp, 0, 50, records, 1), Log())) for tp in tps]
    applied = list[int]()
    while not all(task.done() for task in work):
        before = sum(bench.partition.positions[tp] for tp in tps)
        await asyncio.sleep(0)
        applied.append(sum(bench.partition.positions[tp] for tp in tps) - before)
    assert max(applied) == 10
    assert {bench.partition.positions[tp] for tp in tps} == {50}


async def test_inputs_take_turns(
    bench: Bench, engine: Engine, batch: Callable[..., Fetched], record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes while a large batch of another input is worked off waits for one slice of it, not for all."""
    monkeypatch.setattr(module, "SLICE_RECORDS", 10)
    monkeypatch.setattr(module, "SLICE_SECONDS", 60)  # however busy the machine is
    control = TopicPartition(SETTINGS.kafka.topic(topics.CONTROL), 0)
    bench.partition.positions[control] = 0
    busy = asyncio.create_task(engine.handle(batch(0, 1_000), Log()))
    await asyncio.sleep(0)
    word = Control(event_id="c", session_id="t", occurred_at=BEGIN, action="reset", actor="a")
    await engine.handle(Fetched(bench.partition, control, 0, 1, [record(word, offset=0)], 1), Log())
    assert 10 <= bench.partition.positions[TOOL_CALLS] <= 30
    await busy
    assert bench.partition.positions[TOOL_CALLS] == 1_000


@pytest.mark.parametrize(("each", "slices"), [(0, 1), (1, 10), (4, 25), (6, 50)])
async def test_slices_are_bounded_by_time(
    engine: Engine, batch: Callable[..., Fetched], monkeypatch: pytest.MonkeyPatch, each: int, slices: int
) -> None:
    """Cheap events go on without a break; of others as many as are begun within the time, if it is only one."""
    clock = itertools.count(step=each)
    monkeypatch.setattr(module, "SLICE_SECONDS", 5)
    monkeypatch.setattr(module, "monotonic", lambda: next(clock))
    seen = set[int]()
    work = asyncio.create_task(engine.handle(batch(0, 50), Log()))
    while not work.done():
        await asyncio.sleep(0)
        seen.add(engine.ownerships.current[0].positions[TOOL_CALLS])
    assert seen - {0} == set(range(50 // slices, 51, 50 // slices))


async def test_a_partition_waits_for_its_commits(
    bench: Bench, engine: Engine, batch: Callable[..., Fetched], monkeypatch: pytest.MonkeyPatch
) -> None:
    """When commits stall no more than so much is applied, and it goes on when one came through."""
    monkeypatch.setattr(module, "SLICE_RECORDS", 5)
    monkeypatch.setattr(module, "SLICE_SECONDS", 60)  # however busy the machine is
    monkeypatch.setattr(module, "MAX_UNCOMMITTED_RECORDS", 10)
    work = asyncio.create_task(engine.handle(batch(0, 30), Log()))
    for _ in range(3):
        before = bench.partition.positions[TOOL_CALLS]
        for _ in range(20):
            await asyncio.sleep(0)
        assert bench.partition.positions[TOOL_CALLS] - before == 10
        bench.commit()
    await work


@pytest.mark.parametrize("size", [100, 99])
async def test_a_partition_waits_for_the_bytes_of_its_commits(
    bench: Bench,
    engine: Engine,
    batch: Callable[..., Fetched],
    monkeypatch: pytest.MonkeyPatch,
    size: int,
) -> None:
    """Large records to be written hold up what follows, headers counted, until a commit took them; a byte less not."""
    monkeypatch.setattr(module, "MAX_UNCOMMITTED_BYTES", 100)
    bench.partition.put(Outgoing(SETTINGS.dead_letters, b"s", b"v" * (size - 10), [("h", b"x" * 10), ("n", None)], 0))
    work = asyncio.create_task(engine.handle(batch(0, 5), Log()))
    for _ in range(20):
        await asyncio.sleep(0)
    assert bench.partition.positions[TOOL_CALLS] == (0 if size == 100 else 5)
    bench.commit()
    await work
    assert bench.partition.positions[TOOL_CALLS] == 5


async def test_the_queue_is_bounded(bench: Bench, engine: Engine, batch: Callable[..., Fetched]) -> None:
    """An input with enough waiting is not fetched, but the others of its number are, while nothing waits of them."""
    other = TopicPartition("agent.control", 0)
    waiting = batch(0, 1)
    big = Fetched(waiting.owner, TOOL_CALLS, 0, 1, waiting.records, MAX_QUEUED_BYTES)
    engine.queue(big)
    assert engine.full(TOOL_CALLS)
    assert not engine.full(other)
    little = Fetched(waiting.owner, other, 0, 1, waiting.records, 1)
    engine.queue(little)
    assert engine.full(other)
    assert not engine.full(TopicPartition("agent.control", 1))
    assert not engine.full(TopicPartition(SETTINGS.sessions_changelog, 0))
    await engine.handle(big, Log())
    assert not engine.full(TOOL_CALLS)
    assert not engine.full(other)
    assert bench.partition.queued_records == 1


async def test_a_fault_in_the_middle_spoils_the_partition(
    bench: Bench, engine: Engine, batch: Callable[..., Fetched]
) -> None:
    """When a slice breaks off, what it did so far can never be committed without its offset."""
    bench.stored[b"s"] = b"\x00"
    with pytest.raises(ValueError, match="cannot be read"):
        await engine.handle(batch(0, 5), Log())
    assert bench.partition.snapshot() is None
    assert bench.partition.ended
