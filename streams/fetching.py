"""How fetched bytes become records, where aiokafka 0.14 would let one record stop its partition for good.

Header names need not be UTF-8, since no broker checks them; aiokafka raises on one, at every fetch anew. Here such a
batch is parsed again with the bytes kept in the name. What cannot be read at all (damaged, or packed by a codec that
is not installed) raises `UnreadableBatch`, after the records before it. It must not decide what records mean.

Importing this module puts its classes in place of aiokafka's, for every consumer of the process, Faust's included.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from aiokafka.consumer import fetcher
from aiokafka.errors import CorruptRecordException, KafkaError, UnsupportedCodecError
from aiokafka.record.default_records import _DefaultRecordBatchPy, _DefaultRecordPy
from aiokafka.record.memory_records import _MemoryRecordsPy
from aiokafka.record.util import decode_varint_py as decode_varint  # the one in C reads beyond the end

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiokafka import TopicPartition

FIRST_MAGIC_WITH_HEADERS = 2
"""Format of record batches since Kafka 0.11; older ones have no headers."""

MIN_BATCH_BYTES = 61
"""Of a batch's header (Kafka protocol guide, "Record Batch")."""


class UnreadableBatch(KafkaError):  # type: ignore[misc]  # published without types
    """A batch of records cannot be read: the message says where it is, why, and what to do.

    Args:
        tp: the partition.
        offset: the first offset that could not be read.
        problem: what was raised.
    """

    def __init__(self, tp: TopicPartition, offset: int, problem: Exception) -> None:
        if isinstance(problem, UnsupportedCodecError):
            remedy = "install that codec beside Traction (snappy, lz4 and zstd come with it), then start again"
        else:
            remedy = (
                "if starting again does not help, the log is damaged: restore that replica, or have the brokers drop "
                f"the log up to here (kafka-delete-records.sh, offset {offset + 1} or the end of that batch); what was "
                "read before it is committed"
            )
        name = type(problem).__name__
        super().__init__(
            f"{tp.topic}-{tp.partition} cannot be read from offset {offset} on ({name}: {problem}): {remedy}"
        )


class LenientBatch(_DefaultRecordBatchPy):  # type: ignore[misc]  # published without types
    """A batch parsed with whatever bytes are in header names: those that are not UTF-8 become lone surrogates.

    Layout: Kafka protocol guide, "Record Batch".
    """

    _pos: int

    def _read_msg(self, decode_varint: Any = decode_varint) -> _DefaultRecordPy:
        buffer = self._buffer
        length, pos = decode_varint(buffer, self._pos)
        end = pos + length
        _, pos = decode_varint(buffer, pos)  # attributes: none are defined
        delta, pos = decode_varint(buffer, pos)
        appended = self.timestamp_type == self.LOG_APPEND_TIME
        timestamp = self.max_timestamp if appended else self.first_timestamp + delta
        offset, pos = decode_varint(buffer, pos)
        key, pos = self._bytes(pos)
        value, pos = self._bytes(pos)
        count, pos = decode_varint(buffer, pos)
        headers = []
        for _ in range(count):
            name, pos = self._bytes(pos)
            content, pos = self._bytes(pos)
            headers.append(((name or b"").decode("utf-8", "surrogateescape"), content))
        if pos != end:
            raise CorruptRecordException(f"a record of {length} bytes does not end where it should")
        self._pos = pos
        return _DefaultRecordPy(self.base_offset + offset, timestamp, self.timestamp_type, key, value, headers)

    def _bytes(self, pos: int) -> tuple[bytes | None, int]:
        length, pos = decode_varint(self._buffer, pos)
        return (None, pos) if length < 0 else (bytes(self._buffer[pos : pos + length]), pos + length)


class Batch:
    """A batch parsed by aiokafka, and leniently from the record on that it fails at.

    Args:
        batch: aiokafka's.
        raw: its bytes.
    """

    __slots__ = ("_batch", "_raw")

    def __init__(self, batch: Any, raw: memoryview) -> None:
        self._batch = batch
        self._raw = raw

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __next__(self) -> Any:
        return next(self._batch)

    def __iter__(self) -> Iterator[Any]:
        done = 0
        try:
            for record in self._batch:
                yield record
                done += 1
        except (UnicodeDecodeError, CorruptRecordException):  # the latter from aiokafka's parser in plain Python
            yield from islice(LenientBatch(self._raw), done, None)


class Batches(_MemoryRecordsPy):  # type: ignore[misc]  # published without types
    """The batches of one fetch, each with its bytes at hand."""

    def next_batch(self) -> Any:
        """Give the next batch; None behind the last.

        Raises:
            CorruptRecordException: its length is not what it says, or not one that a batch can have: aiokafka's parser
                in C would read beyond its end.
        """
        raw = self._next_slice
        if raw is not None and len(raw) > self.MAGIC_OFFSET and raw[self.MAGIC_OFFSET] >= FIRST_MAGIC_WITH_HEADERS:
            said = int.from_bytes(raw[self.LENGTH_OFFSET : self.LOG_OVERHEAD], signed=True)
            if said != len(raw) - self.LOG_OVERHEAD or len(raw) < MIN_BATCH_BYTES:
                raise CorruptRecordException(f"a batch of {len(raw)} bytes says that {said} follow")
        batch = super().next_batch()
        return Batch(batch, raw) if batch is not None and batch.magic >= FIRST_MAGIC_WITH_HEADERS else batch


class Records(fetcher.PartitionRecords):  # type: ignore[misc]  # published without types
    """The records of one fetch of one partition.

    What cannot be read ends them when there were records before it: these are taken over first, and the fetch that then
    begins with the unreadable batch raises.
    """

    _given = False
    _records_iterator: Iterator[Any] | None

    def __iter__(self) -> Iterator[Any]:
        """Give those that are left; whoever breaks off may go on later."""
        # A generator of its own: aiokafka's two calls a record cost a fifth of what reading one does.
        try:
            for record in self._records_iterator or ():
                self._given = True
                yield record
        except Exception as problem:
            if not self._given:
                raise UnreadableBatch(self._tp, self.next_fetch_offset, problem) from problem
        self._records_iterator = None

    def __next__(self) -> Any:
        """Give the next one."""
        return next(iter(self))


fetcher.MemoryRecords = Batches
fetcher.PartitionRecords = Records
