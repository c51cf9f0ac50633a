"""Fetched bytes become the same records as aiokafka makes of them, and where these cannot be had it is told where."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import READ_COMMITTED
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from streams.fetching import Batches, LenientBatch, Records, UnreadableBatch

TP = TopicPartition("t", 3)
CODECS = st.sampled_from(range(5))
BYTES = st.none() | st.binary(max_size=300)
HEADERS = st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), BYTES), max_size=4)
RECORDS = st.lists(st.tuples(st.integers(0, 2**40), BYTES, BYTES, HEADERS), min_size=1, max_size=9)


def batch(records: list[tuple[int, bytes | None, bytes | None, list[Any]]], codec: int = 0, base: int = 0) -> bytes:
    """Pack records (time, key, value, headers) whose offsets rise by one from a base."""
    builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 2**20)
    for offset, (timestamp, key, value, headers) in enumerate(records):
        builder.append(offset, timestamp, key, value, headers)
    return base.to_bytes(8, "big") + bytes(builder.build())[8:]


def fetched(data: bytes, start: int = 0) -> Records:
    """Give the records of a fetch."""
    return Records(TP, Batches(data), None, start, None, None, True, READ_COMMITTED)  # noqa: FBT003 - aiokafka's


@given(RECORDS, CODECS)
def test_the_lenient_parser_reads_what_aiokafka_reads(records: list[Any], codec: int) -> None:
    """For batches that aiokafka can read both give the same, whatever codec they are packed by."""
    data = batch(records, codec, base=7)
    fields = ("offset", "timestamp", "timestamp_type", "key", "value", "headers")
    wanted, found = (
        [[getattr(record, field) for field in fields] for record in parser(data)]
        for parser in (DefaultRecordBatch, LenientBatch)
    )
    assert found == wanted
    assert [(each.offset, each.key, each.value) for each in fetched(data)] == [(o, k, v) for o, _, _, k, v, _ in found]


@pytest.mark.parametrize("damage", ["content", "length", "codec"])
def test_what_cannot_be_read_comes_after_what_can(damage: str) -> None:
    """A fetch ends before a damaged batch; the fetch that begins with it raises, and names its place."""
    good = batch([(1, b"k", b"v", [])] * 2)
    bad = bytearray(batch([(1, b"k", b"v" * 99, [])], base=2))
    if damage == "content":
        bad[-5] ^= 1
    elif damage == "length":
        bad = bad[:11] + bytes([20]) + bad[12:]
    else:
        bad[22] |= 7
    first = fetched(good + bytes(bad))
    assert [record.offset for record in first] == [0, 1]
    assert first.next_fetch_offset == 2
    parted = fetched(good + bytes(bad))
    assert [record.offset for record in islice(parted, 2)] == [0, 1]
    assert (list(parted), parted.next_fetch_offset) == ([], 2)
    with pytest.raises(UnreadableBatch, match="t-3 cannot be read from offset 2 on") as caught:
        list(fetched(bytes(bad), start=2))
    assert "kafka-delete-records.sh, offset 3" in str(caught.value)


def test_whoever_breaks_off_goes_on_later() -> None:
    """A fetch is handed over in parts: each begins behind the one before, one by one or as many as are wanted."""
    found = fetched(batch([(1, b"k", b"v", [])] * 7))
    parts = [[record.offset for record in islice(found, 2)], [next(found).offset], [each.offset for each in found]]
    assert parts == [[0, 1], [2], [3, 4, 5, 6]]
    assert list(found) == []
    assert next(found, None) is None
    assert found.next_fetch_offset == 7
