"""What is read is what is committed, up to the end as it was, of the partitions that can hold it, and in time."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from aiokafka.partitioner import DefaultPartitioner

from schemas import topics
from schemas.encode import encode, record_key
from streams.kafka import KafkaSettings, consumer, producer, running
from streams.reading import Reader, TooSlow, partition_of, reading
from streams.topics import TopicsError
from tests.streams.outputs_kit import PARTITIONS, alert, make, put, put_raw, soon
from tests.waiting import SOON_SECONDS

if TYPE_CHECKING:
    from streams.reading import Positions

TASKS = tuple(f"t{n}" for n in range(6))


def test_keys_are_where_producers_put_them() -> None:
    """The partition of a key is the one that aiokafka's own partitioner chooses."""
    for count in (1, 2, 8, 12):
        numbers = list(range(count))
        for name in ("s1", "SHOP-412", "é", "x" * 200):
            assert partition_of(name.encode(), count) == DefaultPartitioner()(name.encode(), numbers, numbers)


async def read(reader: Reader, name: str, **how: object) -> list[str]:
    """Read keys."""
    return [record.key.decode() async for record in reader.read(name, **how)]  # type: ignore[arg-type]


async def test_a_topic_of_any_length(kafka: KafkaSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for it may take as long as records come; everybody else has so many seconds for all of them."""
    name, late = kafka.topic(topics.ALERTS), 0.0
    for _ in range(4):  # more than one fetch brings
        await put_raw(kafka, name, "t1", bytes(900_000))
    monkeypatch.setattr("streams.reading.time", SimpleNamespace(monotonic=lambda: time.monotonic() + late))

    async def slowly(*, long: bool) -> int:
        nonlocal late
        found = 0
        async with reading(kafka, [name], seconds=60.0) as reader:
            async for _ in reader.read(name, long=long):
                late += 61.0
                found += 1
        return found

    assert await slowly(long=True) == 4
    with pytest.raises(TooSlow):
        await slowly(long=False)


async def test_all_or_one_key_or_since_then(kafka: KafkaSettings) -> None:
    """The whole topic, one key of one partition, what was written since a moment, and what comes afterwards."""
    name = kafka.topic(topics.ALERTS)
    await put(kafka, *(alert(f"a-{task}", task_id=task) for task in TASKS))
    moment = soon(milliseconds=1)
    await asyncio.sleep(0.01)
    await put(kafka, alert("later", task_id="t1"))
    async with reading(kafka, [name], optional=["nowhere"]) as reader:
        assert sorted(await read(reader, name)) == sorted([*TASKS, "t1"])
        assert await read(reader, name, key=b"t1") == ["t1", "t1"]
        assert len(await reader.ends(name, key=b"t1")) == 1
        assert await read(reader, name, since=moment) == ["t1"]
        assert await read(reader, name, since=soon(hours=1)) == []
        assert not reader.has("nowhere")
        assert await read(reader, "nowhere") == []

        ends = await reader.ends(name)
        await put(kafka, alert("new", task_id="t2"), alert("newer", task_id="t3"))
        assert await read(reader, name, start=ends, until=ends) == []
        assert "t3" not in await read(
            reader, name, key=b"t3", since=moment, until={tp: ends[tp] for tp in _of(ends, "t3")}
        )
        assert sorted(await read(reader, name, until=ends)) == sorted([*TASKS, "t1"])
        assert sorted(await read(reader, name, start=ends)) == ["t2", "t3"]
        async with asyncio.timeout(SOON_SECONDS):
            assert (await anext(reader.follow(ends, key=b"t3"))).key == b"t3"


def _of(ends: Positions, key: str) -> Positions:
    return {tp: end for tp, end in ends.items() if tp.partition == partition_of(key.encode(), PARTITIONS)}


async def test_only_what_is_committed(kafka: KafkaSettings) -> None:
    """What a transaction was aborted with is not there, and what one is still open with ends the topic."""
    name = kafka.topic(topics.ALERTS)
    async with running(producer(kafka, transactional_id=kafka.prefix), kafka) as client:
        for last in ("abort_transaction", "commit_transaction", None):
            await client.begin_transaction()
            record = alert(str(last), task_id="t1")
            await client.send_and_wait(name, encode(record), key=record_key(record))
            if last is not None:
                await getattr(client, last)()
        async with reading(kafka, [name], seconds=20) as reader:
            found = [record.value async for record in reader.read(name)]
        await client.abort_transaction()
    assert [b"commit_transaction" in value for value in found] == [True]


async def test_what_takes_too_long_is_given_up(kafka: KafkaSettings) -> None:
    """The topic is named and what to do; with a little time it works."""
    name = kafka.topic(topics.ALERTS)
    await put(kafka, alert())
    async with running(consumer(kafka), kafka) as client:
        reader = Reader(kafka, client, {name: 1}, 1e-6)
        with pytest.raises(TooSlow, match=rf"{name} could not be read to its end within 1e-06 s.*give more time"):
            await read(reader, name)
    async with reading(kafka, [name], seconds=20) as reader:
        assert await read(reader, name) == ["t1"]


async def test_a_topic_that_is_needed_and_missing(kafka: KafkaSettings) -> None:
    """Both that it is missing and that it may be hidden is said; nothing is created by looking."""
    with pytest.raises(TopicsError, match=r"hidden-one. Create what is missing: traction topics create"):
        async with reading(kafka, [f"{kafka.prefix}hidden-one"]):
            pass
    with pytest.raises(TopicsError):
        async with reading(kafka, [f"{kafka.prefix}hidden-one"]):
            pass


async def test_a_topic_with_more_partitions_than_records(kafka: KafkaSettings) -> None:
    """Empty partitions hold nobody up; a value may be missing."""
    name = f"{kafka.prefix}wide"
    await make(kafka, name, 12)
    await put_raw(kafka, name, "k", None)
    async with reading(kafka, [name]) as reader:
        assert await read(reader, name) == ["k"]
