"""What is read of changelogs is applied whole and in order or not at all; old copies are used while they may be."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn, cast

import pytest
from aiokafka import TopicPartition
from faust.types import TP
from prometheus_client import CollectorRegistry

from streams.topics import MS_PER_HOUR
from streams.worker import changelogs
from streams.worker.changelogs import USABLE_MS, Changelogs, Read
from streams.worker.faults import EXIT_FAILED, EXIT_LOST
from streams.worker.metrics import WorkerMetrics
from streams.worker.records import HEARTBEAT_KEY, SESSION, encode_stored
from streams.worker.rocks_stores import RocksStores
from streams.worker.settings import WorkerSettings
from streams.worker.states import MemoryStores
from streams.worker.store import NOTHING, StateStore
from streams.worker.transport import BatchConsumer

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from streams.worker.states import States, Stores

SETTINGS = WorkerSettings()
OURS, COPY = (TopicPartition(SETTINGS.sessions_changelog, number) for number in (0, 1))
NEWER = b"\x96\x7f\x00\x01\x90\x80\x90"
"""A record of format 127."""


class Ended(Exception):
    """The process would have ended."""


def abandon(code: int, message: str) -> NoReturn:
    """Stand in for the end of the process."""
    raise Ended(code, message)


def value(number: int) -> bytes:
    """Give a changelog value."""
    return encode_stored(SESSION, {"t": (number, number)}, b"state")


class Bench:
    """Changelogs of a process that owns partition 0 and has a copy of partition 1; their ends and ids are as told."""

    def __init__(self, stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
        self.registry = CollectorRegistry()
        metrics = WorkerMetrics(self.registry)
        self.changelogs = Changelogs(SETTINGS, stores=stores, metrics=metrics, abandon=abandon)
        self.topic, self.begin, self.end = "id", 0, 100
        self.now_ms = 1_000 * MS_PER_HOUR
        self.during: dict[int, Any] = {}
        monkeypatch.setattr(changelogs, "topic_ids", self._topic_ids)
        monkeypatch.setattr(changelogs, "_now_ms", lambda: self.now_ms)

    async def _topic_ids(self, _: object, names: Collection[str]) -> dict[str, str]:
        return dict.fromkeys(names, self.topic)

    async def beginnings(self, tps: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Give the beginning of every changelog."""
        return dict.fromkeys(tps, self.begin)

    async def ends(self, tps: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Give the end of every changelog."""
        return dict.fromkeys(tps, self.end)

    async def take(self, *assigned: TopicPartition, ours: Collection[int] = (0,)) -> None:
        """Have partitions assigned."""
        self.during = dict.fromkeys(ours)
        await self.changelogs.take(assigned or (OURS, COPY), self.during, self)

    def read(
        self,
        tp: TopicPartition,
        start: int,
        end: int,
        records: Mapping[int, tuple[bytes | None, bytes | None]],
        during: Any = None,
    ) -> bool:
        """Apply what a fetch brought: key and value by offset."""
        found: Any = [SimpleNamespace(offset=at, key=key, value=value) for at, (key, value) in records.items()]
        return self.changelogs.apply(Read(self.during if during is None else during, tp, start, end, found))

    def states(self, tp: TopicPartition) -> States:
        """Give what is stored, whether it may be used yet or not."""
        return self.changelogs._states[tp]

    async def look(self, after_ms: int) -> None:
        """Look at what is in step, so much later."""
        self.now_ms += after_ms
        await self.changelogs._look(self)

    def count(self, copy: str) -> float:
        """Give how many records were read back."""
        return self.registry.get_sample_value("traction_recovered_records_total", {"copy": copy}) or 0.0


@pytest.fixture(params=["memory", "rocksdb"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Give changelogs whose states are kept in memory and on disk in turn, with both partitions assigned."""

    def fail(message: str) -> NoReturn:
        raise Ended(message)

    stores = MemoryStores() if request.param == "memory" else RocksStores(tmp_path, "app", fail)
    made = Bench(stores, monkeypatch)
    await made.take()
    return made


@pytest.mark.parametrize("tp", [OURS, COPY])
def test_records_are_applied_up_to_where_was_read(bench: Bench, tp: TopicPartition) -> None:
    """The last value of a key counts, a removed one is gone, heartbeats are none, and markers at the end are read."""
    assert bench.changelogs.offset(tp) is None
    bench.read(tp, 0, 10, {3: (b"a", value(1)), 4: (b"b", value(1)), 5: (HEARTBEAT_KEY, b"heartbeat"), 8: (b"a", None)})
    assert (list(bench.states(tp).keys()), bench.changelogs.offset(tp)) == ([b"b"], 9)
    bench.read(tp, 10, 12, {})
    assert bench.changelogs.offset(tp) == 11
    assert (bench.count("own"), bench.count("standby")) == ((4, 0) if tp == OURS else (0, 4))


def test_what_was_applied_is_not_applied_again(bench: Bench) -> None:
    """Faust has the last record read again: records up to the offset that the states rest on change nothing."""
    bench.read(OURS, 0, 6, {5: (b"a", value(5))})
    bench.states(OURS).write([(b"a", value(7))], 7)
    bench.read(OURS, 5, 9, {5: (b"a", value(5)), 7: (b"a", value(6)), 8: (b"b", value(8))})
    assert (bench.states(OURS).get(b"a"), bench.states(OURS).get(b"b")) == (value(7), value(8))
    bench.read(OURS, 5, 6, {5: (b"a", value(5))})
    assert bench.changelogs.offset(OURS) == 8


def test_what_was_fetched_before_a_rebalance_is_dropped(bench: Bench) -> None:
    """A fetch of an ownership that has ended changes nothing, nor does one of a partition that is not assigned."""
    assert not bench.read(OURS, 0, 1, {0: (b"a", value(0))}, during={0: None})
    assert not bench.read(TopicPartition(OURS.topic, 2), 0, 1, {0: (b"a", value(0))})
    assert (list(bench.states(OURS).keys()), bench.changelogs.offset(OURS)) == ([], None)


async def test_what_is_fetched_while_it_is_taken_over_is_dropped(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several fetches the first would be dropped, since nothing is open yet, and the next begin behind it."""
    known = bench.ends

    async def ends(tps: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        assert not bench.read(OURS, 0, 50, {4: (b"a", value(4))})
        return await known(tps)

    monkeypatch.setattr(bench, "ends", ends)
    await bench.take()
    assert bench.changelogs.offset(OURS) is None


def test_a_gap_in_what_is_ours_ends_the_process(bench: Bench) -> None:
    """Records that were not read are never passed over, nor the first; the next one, and any before it, are no gap."""
    with pytest.raises(Ended):
        bench.read(OURS, 1, 6, {})
    assert bench.changelogs.offset(OURS) is None
    bench.read(OURS, 0, 6, {})
    bench.read(OURS, 6, 7, {})
    with pytest.raises(Ended) as ended:
        bench.read(OURS, 8, 9, {8: (b"a", value(8))})
    code, message = ended.value.args
    assert (code, "between 6 and 8" in message) == (EXIT_FAILED, True)
    assert bench.changelogs.offset(OURS) == 6


def test_a_newer_record_in_what_is_ours_ends_the_process(bench: Bench) -> None:
    """Nothing of its batch is applied, and the message says where it is, which version it has, and what to do."""
    with pytest.raises(Ended) as ended:
        bench.read(OURS, 0, 6, {4: (b"a", value(4)), 5: (b"b", NEWER)})
    code, message = ended.value.args
    assert code == EXIT_FAILED
    assert all(
        part in message for part in (f"{OURS.topic}-0 at offset 5", "format 127", "run the release that wrote it")
    )
    assert (list(bench.states(OURS).keys()), bench.changelogs.offset(OURS)) == ([], None)


@pytest.mark.parametrize("start", [6, 8])
async def test_a_copy_that_cannot_go_on_is_given_up(bench: Bench, start: int) -> None:
    """A gap or a newer record in another's partition ends the copy, not the process; promoted, it is read anew."""
    bench.read(COPY, 0, 6, {4: (b"a", value(4))})
    bench.read(COPY, start, 9, {8: (b"b", NEWER if start == 6 else value(8))})
    bench.read(COPY, 0, 9, {4: (b"a", value(4))})
    assert (list(bench.states(COPY).keys()), bench.changelogs.offset(COPY)) == ([], None)
    await bench.take(ours=(0, 1))
    bench.read(COPY, 0, 9, {4: (b"a", value(4))})
    assert bench.changelogs.offset(COPY) == 8


async def test_a_promoted_copy_is_kept(bench: Bench) -> None:
    """It is read on from where it stands, as is what stays ours; what is not assigned any more is closed."""
    for tp in (OURS, COPY):
        bench.read(tp, 0, 6, {4: (b"a", value(4))})
    await bench.take(COPY, ours=(1,))
    assert (bench.changelogs.offset(COPY), bench.states(COPY).get(b"a")) == (5, value(4))
    with pytest.raises(KeyError):
        bench.states(OURS)


@pytest.mark.parametrize(("end", "kept"), [(6, True), (5, False)])
async def test_a_changelog_that_ends_earlier(bench: Bench, end: int, kept: bool) -> None:  # noqa: FBT001
    """What was read further than the topic goes is of another topic: it is thrown away."""
    bench.read(OURS, 0, 6, {4: (b"a", value(4))})
    bench.end = end
    await bench.take()
    assert (bench.states(OURS).get(b"a") is not None) == kept


async def test_a_changelog_with_another_id(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """What was read of a topic that was deleted is thrown away, however long the new one is; the log tells."""
    bench.read(OURS, 0, 6, {4: (b"a", value(4))})
    bench.topic = "another id"
    await bench.take()
    assert (bench.states(OURS).get(b"a"), bench.changelogs.offset(OURS)) == (None, None)
    assert f"{OURS.topic}-0 is read anew: the topic was deleted and made anew" in caplog.text


@pytest.mark.parametrize(
    ("ago_ms", "kept"),
    [(0, True), (USABLE_MS - 60_000, True), (USABLE_MS + 1, False), (-3_500_000, True), (-3_700_000, False)],
)
async def test_a_copy_that_may_have_missed_tombstones(bench: Bench, ago_ms: int, kept: bool) -> None:  # noqa: FBT001
    """A copy is used as long as the topic surely tells what was removed since, and the clock did not go far back."""
    bench.read(OURS, 0, 6, {4: (b"a", value(4))})
    bench.states(OURS).mark("id", bench.now_ms - ago_ms)
    await bench.take()
    assert (bench.states(OURS).get(b"a") is not None) == kept


async def test_what_is_not_read_back_is_not_used(bench: Bench) -> None:
    """What is ours may be used when it was read up to where it ended as it was taken over; else the process ends."""
    bench.read(OURS, 0, 99, {4: (b"a", value(4))})
    with pytest.raises(Ended) as ended:
        bench.changelogs.states(*OURS)
    assert ended.value.args == (EXIT_FAILED, f"{OURS[0]}-0 was to be used before it was read back; please report it")
    bench.now_ms += 5
    bench.read(OURS, 99, 100, {99: (HEARTBEAT_KEY, b"heartbeat")})
    assert bench.changelogs.states(*OURS).get(b"a") == value(4)
    assert bench.states(OURS).in_step_ms == bench.now_ms - 5  # nothing is known of what came since
    await bench.take()
    assert bench.changelogs.states(*OURS).get(b"a") == value(4)
    bench.end = 101
    await bench.take()
    with pytest.raises(Ended):
        bench.changelogs.states(*OURS)


@pytest.mark.parametrize(("tp", "behind"), [(OURS, 2), (COPY, 1)])
async def test_what_is_in_step_is_marked(bench: Bench, tp: TopicPartition, behind: int) -> None:
    """A look marks what has all that there was at the look before, with its time, however much came since."""
    began = bench.now_ms
    bench.read(tp, 0, 100, {4: (b"a", value(4))})
    bench.end = 99 + behind
    await bench.look(10)
    assert bench.states(tp).in_step_ms == began
    bench.end += 1
    await bench.look(10)
    assert bench.states(tp).in_step_ms == began + 10
    bench.end += 1_000
    await bench.look(10)
    assert bench.states(tp).in_step_ms == began + 10
    bench.read(tp, 100, 101, {100: (b"a", value(5))})
    await bench.look(10)
    assert bench.states(tp).in_step_ms == began + 10
    bench.read(tp, 101, 99 + behind + 1_001, {})
    await bench.look(10)
    assert bench.states(tp).in_step_ms == began + 40


async def test_a_frozen_process_marks_nothing_as_new(bench: Bench) -> None:
    """One that wakes after a day takes its partitions for its own still: what it has is of no use all the same."""
    bench.read(OURS, 0, 100, {4: (b"a", value(4))})
    bench.now_ms += 25 * MS_PER_HOUR
    bench.end = 500
    await bench.look(0)
    await bench.take()
    assert (bench.states(OURS).get(b"a"), bench.changelogs.offset(OURS)) == (None, None)


async def test_a_copy_that_lags_for_long_is_given_up(bench: Bench) -> None:
    """What it catches up with after a day does not tell it any more what was removed."""
    bench.read(COPY, 0, 50, {4: (b"a", value(4))})
    await bench.look(USABLE_MS)
    assert bench.states(COPY).get(b"a") == value(4)
    await bench.look(1)
    assert bench.states(COPY).get(b"a") is None
    assert not bench.read(COPY, 50, 100, {60: (b"b", value(60))})


@pytest.mark.parametrize(("begin", "kept"), [(6, True), (7, False)])
async def test_a_changelog_that_was_cut(bench: Bench, begin: int, kept: bool) -> None:  # noqa: FBT001
    """Where records were removed that were not read yet, what is stored is thrown away, since nothing can follow it."""
    bench.read(OURS, 0, 6, {4: (b"a", value(4))})
    bench.begin = begin
    await bench.take()
    assert (bench.states(OURS).get(b"a") is not None) == kept
    assert bench.read(OURS, begin, 100, {90: (b"b", value(90))})


def test_faust_is_told_of_what_was_applied_only(bench: Bench) -> None:
    """A fetch that was dropped moves no offset of Faust's: it would take the state for recovered."""
    recovery = SimpleNamespace(active_offsets={OURS: -1}, standby_offsets={COPY: -1})
    consumer = BatchConsumer.__new__(BatchConsumer)
    engine = SimpleNamespace(ownerships=SimpleNamespace(changelogs=bench.changelogs))
    consumer.app = cast("Any", SimpleNamespace(tables=SimpleNamespace(recovery=recovery)))
    consumer.transport = cast("Any", SimpleNamespace(engine=engine))
    for tp in (OURS, COPY):
        assert not consumer._applied(Read({0: cast("Any", None)}, tp, 0, 100, []))
    assert (recovery.active_offsets, recovery.standby_offsets) == ({OURS: -1}, {COPY: -1})
    for tp in (OURS, COPY):
        assert consumer._applied(Read(bench.during, tp, 0, 100, []))
    assert (recovery.active_offsets, recovery.standby_offsets) == ({OURS: 99}, {COPY: 99})


async def test_brokers_that_do_not_answer(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the topics' ends it is not known what may be used: the process ends."""

    async def ends(_: object) -> NoReturn:
        raise TimeoutError

    monkeypatch.setattr(bench, "ends", ends)
    with pytest.raises(Ended) as ended:
        await bench.take()
    assert ended.value.args[0] == EXIT_LOST


def test_faust_is_never_told_none(bench: Bench) -> None:
    """It would go on from where it was before with a copy that was thrown away since, or seek None and fail."""
    store = StateStore.__new__(StateStore)
    store.table = cast("Any", SimpleNamespace(changelogs=bench.changelogs))
    assert store.persisted_offset(TP(*OURS)) == NOTHING == -1
    bench.read(OURS, 0, 6, {})
    assert store.persisted_offset(TP(*OURS)) == 5
