"""Stored states of one partition of one table on disk, in a RocksDB database.

What is written is what Kafka has committed already, in one atomic batch with the offset that it rests on: after a
crash a database is behind the changelog, never ahead, and none of it is worth more than the time to read it back. So
what cannot be used is refused, to be thrown away, and what cannot be written ends the process. Nothing talks to Kafka.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

import msgspec
import rocksdict

from detectors.state import VERSIONS as SESSION_VERSIONS
from detectors.tasks.state import VERSIONS as TASK_VERSIONS
from streams.worker.records import FORMAT
from streams.worker.stores import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import NoReturn

    from streams.worker.states import Changes

LAYOUT: Final = 1
"""Version of how a database is laid out: prefixes of keys, and what `_Basis` holds."""

CACHE_BYTES = 64 * 2**20
"""Blocks, indexes and filters read from disk, together for all partitions. What the operating system caches of the
files comes on top, and is given back when memory is short."""

WRITE_BUFFERS_BYTES = 32 * 2**20
"""What was written and is not sorted into files yet, likewise; it is counted against the cache."""

WRITE_BUFFER_BYTES = 8 * 2**20
"""That of one partition and table: what a start after a crash reads back of the write-ahead log."""

OPEN_FILES = 32
"""Most data files that a database keeps open; each holds up to 64 MB."""

INFO_LOG_BYTES = 2**20
"""After so much RocksDB begins a new log of its own doings, in the database's directory; it keeps two."""

BLOOM_BITS = 10
"""Of a filter per key: one look in a hundred for a key that is not there reads the file in vain."""

_STATE: Final = b"s"
_BASIS: Final = b"m"
_DAMAGED: Final = "DAMAGED"
_VERSIONS: Final = (FORMAT, SESSION_VERSIONS.current, TASK_VERSIONS.current)


class _Basis(msgspec.Struct, array_like=True):
    """What a database tells of itself.

    Attributes:
        layout: see `LAYOUT`.
        versions: of records and states, as the newest release counts them that had the database open.
        offset: see `States`.
        topic: likewise.
        in_step_ms: likewise.
    """

    layout: int = LAYOUT
    versions: tuple[int, ...] = _VERSIONS
    offset: int | None = None
    topic: str | None = None
    in_step_ms: int | None = None


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Basis)


class RocksStates:
    """States of one partition of one table on disk.

    Args:
        path: the database's directory; made when it is not there.
        options: RocksDB's.
        fail: ends the process.

    Raises:
        Unusable: what is there cannot be used by this release.
        StoreError: the directory cannot be used.
    """

    def __init__(self, path: Path, options: rocksdict.Options, fail: Callable[[str], NoReturn]) -> None:
        self._path = path
        self._fail = fail
        self._closed = False
        if (path / _DAMAGED).exists():
            raise Unusable("it was found damaged when it was read last")
        try:
            self._database = rocksdict.Rdict(str(path), options=options)
            try:
                found = self._database.get(_BASIS)
                self._basis = _Basis() if found is None else _read(found)
            except BaseException:
                self._database.close()
                raise
        except Unusable:
            raise
        except Exception as problem:
            if _damage(problem):
                raise Unusable(f"it is damaged ({_line(problem)})") from problem
            raise StoreError(
                f"the state directory {path} cannot be used ({_line(problem)}): is the disk full, and may this user "
                "write there?"
            ) from problem
        self._basis.versions = _VERSIONS

    @property
    def offset(self) -> int | None:
        """Offset of the last changelog record that the states rest on."""
        return self._basis.offset

    @property
    def topic(self) -> str | None:
        """Id of the changelog."""
        return self._basis.topic

    @property
    def in_step_ms(self) -> int | None:
        """When they were in step with it, ms since 1970."""
        return self._basis.in_step_ms

    @property
    def count(self) -> int:
        """How many states there are, by RocksDB's estimate.

        One written again counts twice until files are merged, one removed that was not there as one less.
        """
        return self._told("rocksdb.estimate-num-keys")

    @property
    def size(self) -> int:
        """Bytes that they take, likewise: of files without what was written anew since, and of tables in memory."""
        return self._told("rocksdb.estimate-live-data-size") + self._told("rocksdb.cur-size-all-mem-tables")

    def _told(self, of: str) -> int:
        return 0 if self._closed else self._database.property_int_value(of) or 0

    def get(self, key: bytes) -> bytes | None:
        """Give a state."""
        try:
            value: bytes | None = self._database.get(_STATE + key)
        except Exception as problem:  # noqa: BLE001 - rocksdict raises nothing narrower
            self._unreadable(problem)
        return value

    def keys(self) -> Iterator[bytes]:
        """Give the keys of all states, as they were when the first was asked for; ends early when this is closed."""
        for found in self._all():
            yield found.key()[len(_STATE) :]

    def values(self) -> Iterator[bytes]:
        """Give all states likewise."""
        for found in self._all():
            yield found.value()

    def _all(self) -> Iterator[rocksdict.RdictIter]:
        # rocksdict's own iterators end at damage as if there were nothing behind it.
        found = self._database.iter()
        found.seek(_STATE)
        while not self._closed:
            if not found.valid():
                try:
                    found.status()
                except Exception as problem:  # noqa: BLE001 - see above
                    self._unreadable(problem)
                return
            yield found
            found.next()

    def write(self, changes: Changes, offset: int | None) -> None:
        """Take over changes that were committed. It blocks: 10 ms for 4,000 states of 1 kB."""
        batch = rocksdict.WriteBatch(raw_mode=True)
        for key, value in changes:
            if value is None:
                batch.delete(_STATE + key)
            else:
                batch.put(_STATE + key, value)
        if offset is not None:
            self._basis.offset = offset
        self._write(batch)

    def mark(self, topic: str, in_step_ms: int) -> None:
        """Note which changelog the states were read from, and when they were in step with it."""
        self._basis.topic, self._basis.in_step_ms = topic, in_step_ms
        self._write(rocksdict.WriteBatch(raw_mode=True))

    def close(self) -> None:
        """Close the database; what is not in files yet is written."""
        self._closed = True
        try:
            self._database.close()
        except Exception as problem:  # noqa: BLE001 - see above
            self._unwritable(problem)

    def _write(self, batch: rocksdict.WriteBatch) -> None:
        batch.put(_BASIS, _ENCODER.encode(self._basis))
        try:
            # Not waited for until it is on the disk: when the machine dies, the log's beginning is what is left.
            self._database.write(batch)
        except Exception as problem:  # noqa: BLE001 - see above
            self._unwritable(problem)

    def _unwritable(self, problem: Exception) -> NoReturn:
        self._note_damage(problem)  # found while files were merged: the next start would not see it at once
        self._fail(
            f"the state directory {self._path} cannot be written ({_line(problem)}): is the disk full? "
            "Nothing is lost, it is all in the changelog: make room, or give another --state-dir, and start again"
        )

    def _unreadable(self, problem: Exception) -> NoReturn:
        self._note_damage(problem)
        self._fail(
            f"the state directory {self._path} cannot be read ({_line(problem)}). Nothing is lost, it is all in the "
            "changelog: start again; what is damaged is then thrown away and read anew. Is the disk in order?"
        )

    def _note_damage(self, problem: Exception) -> None:
        if _damage(problem):
            with contextlib.suppress(OSError):  # the directory itself may be gone
                (self._path / _DAMAGED).touch()


class Unusable(Exception):
    """What is stored of a partition cannot be used: the message says why."""


def _read(data: bytes) -> _Basis:
    try:
        layout, versions, *_ = msgspec.msgpack.decode(data, type=list[Any])
        if layout != LAYOUT or any(found > ours for found, ours in zip(versions, _VERSIONS, strict=True)):
            raise Unusable(f"a newer or older release wrote it (layout {layout}, this one's is {LAYOUT})")
        return _DECODER.decode(data)
    except (msgspec.MsgspecError, ValueError, TypeError) as problem:
        raise Unusable(f"what it tells of itself cannot be read ({problem})") from None


def _damage(problem: Exception) -> bool:
    """Tell by RocksDB's words, since rocksdict has one class for all, whether files are damaged or missing."""
    text = str(problem)
    return text.startswith("Corruption") or "No such file or directory" in text or "does not exist" in text


def _line(problem: Exception) -> str:
    return str(problem).partition("\n")[0]


def rocks_options() -> rocksdict.Options:
    """Give the options of all databases of this process, which bound what they take of memory together."""
    cache = rocksdict.Cache(CACHE_BYTES)
    table = rocksdict.BlockBasedOptions()
    table.set_block_cache(cache)
    table.set_cache_index_and_filter_blocks(True)
    table.set_pin_l0_filter_and_index_blocks_in_cache(True)
    table.set_bloom_filter(BLOOM_BITS, block_based=False)
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)  # noqa: FBT003 - takes no names
    options.set_block_based_table_factory(table)
    options.set_write_buffer_size(WRITE_BUFFER_BYTES)
    options.set_write_buffer_manager(
        rocksdict.WriteBufferManager.new_write_buffer_manager_with_cache(
            WRITE_BUFFERS_BYTES, allow_stall=False, cache=cache
        )
    )
    options.set_max_open_files(OPEN_FILES)
    options.set_compression_type(rocksdict.DBCompressionType.none())  # states are compressed already
    options.set_wal_recovery_mode(rocksdict.DBRecoveryMode.point_in_time())
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(INFO_LOG_BYTES)
    return options
