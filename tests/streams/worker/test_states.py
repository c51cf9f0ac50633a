"""Stored states, in memory and on disk, as one and the same: what is written is there, with the offset it rests on."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec
import pytest
import rocksdict
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from streams.worker.rocks import LAYOUT, RocksStates, rocks_options
from streams.worker.rocks_stores import RocksStores
from streams.worker.settings import WorkerSettings
from streams.worker.states import MemoryStates, MemoryStores
from streams.worker.stores import StoreError, open_stores

if TYPE_CHECKING:
    from streams.worker.states import States, Stores


class Ended(Exception):
    """The process would have ended."""


def fail(message: str) -> NoReturn:
    """Stand in for the end of the process."""
    raise Ended(message)


def on_disk(path: Path) -> RocksStores:
    """Give a store below a directory."""
    return RocksStores(path, "app", fail)


@pytest.fixture(params=["memory", "rocksdb"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Stores:
    """Give an empty store of each kind."""
    return MemoryStores() if request.param == "memory" else on_disk(tmp_path)


def all_of(states: States) -> dict[bytes, bytes | None]:
    """Read everything, key by key."""
    found = {key: states.get(key) for key in states.keys()}  # noqa: SIM118 - no dict
    assert sorted(found.values(), key=str) == sorted(states.values(), key=str)
    return found


def test_new_states_are_empty(stores: Stores) -> None:
    """Nothing is known of a changelog that was never read."""
    states = stores.open("sessions", 0)
    assert (states.offset, states.topic, states.in_step_ms, all_of(states)) == (None, None, None, {})
    assert states.get(b"k") is None


def test_a_write_takes_over_all_of_it_in_order(stores: Stores) -> None:
    """The last change of a key counts; no value removes it; an offset of None leaves the one that was."""
    states = stores.open("sessions", 0)
    states.write([(b"a", b"1"), (b"b", b"1"), (b"a", None), (b"b", b"2"), (b"", b"empty key"), (b"c", b"")], 7)
    assert all_of(states) == {b"b": b"2", b"": b"empty key", b"c": b""}
    states.write([(b"c", None)], None)
    assert (states.offset, set(all_of(states))) == (7, {b"b", b""})


def test_partitions_and_tables_are_kept_apart(stores: Stores) -> None:
    """A key of one partition of one table is in no other."""
    every = {place: stores.open(*place) for place in itertools.product(("sessions", "tasks"), (0, 1))}
    for (table, number), states in every.items():
        states.write([(b"k", f"{table}{number}".encode())], number)
    assert {place: all_of(states) for place, states in every.items()} == {
        (table, number): {b"k": f"{table}{number}".encode()} for table, number in every
    }


def test_reading_while_writing(stores: Stores) -> None:
    """Who reads all keys one by one is not disturbed by writes in between, and stops when the states are closed."""
    states = stores.open("sessions", 0)
    states.write([(b"%d" % number, b"v") for number in range(10)], 1)
    keys = states.keys()
    first = next(keys)
    states.write([(first, None), (b"new", b"v")], 2)
    assert {first, *keys} >= {b"%d" % number for number in range(10)}


def test_how_much_there_is(stores: Stores) -> None:
    """About so many states of about so many bytes; nothing of what is closed."""
    states = stores.open("sessions", 0)
    assert (states.count, states.size < 3_000) == (0, True)
    states.write([(b"%04d" % number, os.urandom(1_000)) for number in range(500)], 1)
    assert 500 <= states.count <= 501
    assert 500 * 1_004 <= states.size < 500 * 1_004 + 2**20, "tables in memory grow by a mebibyte"
    states.close()
    assert (states.count, states.size) == (0, 0)


def test_discarded_states_are_gone(stores: Stores) -> None:
    """What was thrown away does not come back, nor does what it rested on."""
    states = stores.open("sessions", 0)
    states.write([(b"k", b"v")], 3)
    states.mark("topic", 5)
    states.close()
    stores.discard("sessions", 0)
    again = stores.open("sessions", 0)
    assert (again.offset, again.topic, again.in_step_ms, all_of(again)) == (None, None, None, {})


class Model(RuleBasedStateMachine):
    """Writes and reads at random, of a store on disk that is closed and opened in between, against a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.path = Path(tempfile.mkdtemp())
        self.options = rocks_options()
        self.states = RocksStates(self.path, self.options, fail)
        self.memory = MemoryStates()
        self.model: dict[bytes, bytes] = {}
        self.offset: int | None = None

    @rule(
        changes=st.lists(st.tuples(st.binary(max_size=2), st.none() | st.binary(max_size=3)), max_size=5),
        step=st.none() | st.integers(1, 9),
    )
    def write(self, changes: list[tuple[bytes, bytes | None]], step: int | None) -> None:
        """Write some changes."""
        offset = None if step is None else (self.offset or 0) + step
        for each in (self.states, self.memory):
            each.write(changes, offset)
        self.offset = self.offset if offset is None else offset
        for key, value in changes:
            self.model.pop(key, None)
            if value is not None:
                self.model[key] = value

    @rule()
    def reopen(self) -> None:
        """Close the database, and open it again."""
        self.states.close()
        self.states = RocksStates(self.path, self.options, fail)

    @invariant()
    def same(self) -> None:
        """Both are as the model is."""
        assert all_of(self.states) == all_of(self.memory) == self.model
        assert self.states.offset == self.memory.offset == self.offset
        size = sum(len(key) + len(value) for key, value in self.model.items())
        assert (self.memory.count, self.memory.size) == (len(self.model), size)

    def teardown(self) -> None:
        """Leave nothing."""
        self.states.close()
        shutil.rmtree(self.path)


def test_against_a_model() -> None:
    """Whatever is written in whatever order, both kinds are what a dict is, on disk also after a restart."""
    run_state_machine_as_test(Model, settings=settings(max_examples=15, stateful_step_count=12, deadline=None))


def test_what_is_on_disk_outlives_the_process(tmp_path: Path) -> None:
    """States, offset, topic and time are there again after a restart."""
    stores = on_disk(tmp_path)
    states = stores.open("sessions", 3)
    states.write([(b"k", b"v")], 41)
    states.mark("topic", 1_700_000_000_000)
    states.close()
    stores.close()
    again = on_disk(tmp_path).open("sessions", 3)
    assert (again.offset, again.topic, again.in_step_ms) == (41, "topic", 1_700_000_000_000)
    assert all_of(again) == {b"k": b"v"}


def test_a_write_that_is_not_whole_is_none(tmp_path: Path) -> None:
    """Of a log whose last write is cut off, as when the machine dies, the writes before are left, with their offset."""
    states = on_disk(tmp_path).open("sessions", 0)
    states.write([(b"a", b"1")], 1)
    states.write([(b"a", b"2"), (b"b", b"2")], 2)
    (log,) = (tmp_path / "app" / "sessions-0").glob("*.log")
    copy = tmp_path / "copy" / "app"
    shutil.copytree(tmp_path / "app", copy)
    cut = copy / "sessions-0" / log.name
    cut.write_bytes(cut.read_bytes()[:-5])
    found = on_disk(tmp_path / "copy").open("sessions", 0)
    assert (found.offset, all_of(found)) == (1, {b"a": b"1"})


def test_a_damaged_database_is_read_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A database with a damaged file is thrown away, and the log says which and that it is read anew."""
    stores = on_disk(tmp_path)
    states = stores.open("sessions", 0)
    states.write([(b"k", b"v")], 1)
    states.close()
    (manifest,) = (tmp_path / "app" / "sessions-0").glob("MANIFEST-*")
    manifest.write_bytes(b"\x00" * 50)
    again = stores.open("sessions", 0)
    assert (again.offset, all_of(again)) == (None, {})
    assert f"{tmp_path / 'app' / 'sessions-0'} is thrown away, and read anew from the changelog" in caplog.text


def test_damage_found_while_reading(tmp_path: Path) -> None:
    """It ends the process, which says what to do; the next start throws the database away."""
    stores = on_disk(tmp_path)
    states = stores.open("sessions", 0)
    states.write([(b"%d" % number, b"v" * 100) for number in range(5_000)], 1)
    states.close()
    states = stores.open("sessions", 0)  # what was in its log is sorted into a file now
    states.close()
    for file in (tmp_path / "app" / "sessions-0").glob("*.sst"):
        data = bytearray(file.read_bytes())
        data[-100_000:-99_000] = bytes(1_000)  # far from what is read at the start
        file.write_bytes(data)
    states = stores.open("sessions", 0)
    with pytest.raises(Ended, match=r"cannot be read .*start again"):
        all_of(states)
    states.close()
    assert stores.open("sessions", 0).offset is None


def test_damage_found_while_merging(tmp_path: Path) -> None:
    """It ends the process with the next write, or the end, and is noted: the next start would go on until it merges."""
    stores = on_disk(tmp_path)
    for part in range(2):
        states = stores.open("sessions", 0)
        states.write([(b"%d" % number, b"%d" % part * 100) for number in range(5_000)], 1)
        states.close()
    for file in (tmp_path / "app" / "sessions-0").glob("*.sst"):
        data = bytearray(file.read_bytes())
        data[100_000:101_000] = bytes(1_000)
        file.write_bytes(data)
    states = stores.open("sessions", 0)
    assert isinstance(states, RocksStates)
    states._database.compact_range(None, None)  # as it does by itself when there are more files
    with pytest.raises(Ended, match="Corruption"):
        states.write([(b"k", b"v")], 2)
    with pytest.raises(Ended, match="Corruption"):
        states.close()
    assert (tmp_path / "app" / "sessions-0" / "DAMAGED").exists()


@pytest.mark.parametrize(
    "basis",
    [
        [LAYOUT + 1, [0, 0, 0], 5, None, None],
        [LAYOUT, [99, 0, 0], 5, None, None],
        [LAYOUT, [0, 0, 99], 5, None, None],
        [LAYOUT, [0, 0], 5, None, None],
        [],
        "no list",
    ],
)
def test_what_another_release_wrote_is_read_anew(tmp_path: Path, basis: object) -> None:
    """A database of another layout, or that a newer release had open, is not used: the changelog decides."""
    stores = on_disk(tmp_path)
    states = stores.open("sessions", 0)
    states.write([(b"k", b"v")], 5)
    states.close()
    database = rocksdict.Rdict(str(tmp_path / "app" / "sessions-0"), options=rocks_options())
    database.put(b"m", msgspec.msgpack.encode(basis))
    database.close()
    assert stores.open("sessions", 0).offset is None


def test_what_an_older_release_wrote_is_used(tmp_path: Path) -> None:
    """A database of a release with older versions of states is read on, as its states are."""
    stores = on_disk(tmp_path)
    stores.open("sessions", 0).close()
    database = rocksdict.Rdict(str(tmp_path / "app" / "sessions-0"), options=rocks_options())
    database.put(b"m", msgspec.msgpack.encode([LAYOUT, [1, 1, 1], 5, "topic", 9]))
    database.close()
    assert stores.open("sessions", 0).offset == 5


def test_a_directory_has_one_user(tmp_path: Path) -> None:
    """A second one is told so, and what to do; with the first gone it may have it."""
    first = on_disk(tmp_path)
    with pytest.raises(StoreError, match=r"does another worker use it.*a --state-dir of its own"):
        on_disk(tmp_path)
    first.close()
    on_disk(tmp_path)


def test_a_directory_that_cannot_be(tmp_path: Path) -> None:
    """What stands in the way is named, with the remedy."""
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"Not a directory.*--state-dir"):
        on_disk(tmp_path / "file")
    with pytest.raises(StoreError, match="app id"):
        RocksStores(tmp_path, "..", fail)


def test_databases_too_old_to_be_of_use_are_removed(tmp_path: Path) -> None:
    """What is left of partitions that went elsewhere long ago is removed at the start; what is younger stays."""
    stores = on_disk(tmp_path)
    for number in range(2):
        stores.open("sessions", number).close()
    stores.close()
    for file in (tmp_path / "app" / "sessions-0").iterdir():
        _age(file, hours=25)
    for file in (tmp_path / "app" / "sessions-1").iterdir():
        _age(file, hours=23)
    on_disk(tmp_path)
    assert [path.name for path in (tmp_path / "app").glob("sessions-*")] == ["sessions-1"]


def test_what_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    """Directories that hold no database of a partition of ours stay, whatever their age, and whoever put them there."""
    others = [tmp_path / "app" / name for name in ("backups", "sessions-1", "sessions", "tasks-1-old")]
    for path in others:
        path.mkdir(parents=True)
        (path / ("notes" if path.name == "sessions-1" else "CURRENT")).touch()
        _age(next(path.iterdir()), hours=1_000)
    on_disk(tmp_path)
    assert all(list(path.iterdir()) for path in others)


def test_what_cannot_be_looked_at_is_left_alone(tmp_path: Path) -> None:
    """A database with something in it of which the age is not known is no reason not to start."""
    path = tmp_path / "app" / "sessions-0"
    path.mkdir(parents=True)
    (path / "CURRENT").touch()
    (path / "link").symlink_to(tmp_path / "nowhere")
    on_disk(tmp_path)
    assert (path / "CURRENT").exists()


def _age(file: Path, hours: int) -> None:
    then = time.time() - hours * 3_600
    os.utime(file, (then, then))


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the command that installs what is missing."""
    named = WorkerSettings(state_store="rocksdb", state_dir=tmp_path)
    assert isinstance(open_stores(named, fail), RocksStores)
    monkeypatch.setitem(sys.modules, "streams.worker.rocks_stores", None)
    with pytest.raises(StoreError, match=r'pip install "traction\[rocksdb\]"'):
        open_stores(named, fail)


def test_without_a_directory() -> None:
    """A store on disk needs to be told where."""
    with pytest.raises(StoreError, match="give --state-dir"):
        open_stores(WorkerSettings(state_store="rocksdb"), fail)
