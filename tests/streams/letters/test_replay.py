"""Records go back to where they came from as they were, each once, whoever else runs, is killed, or is in the way."""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from schemas import topics
from streams.kafka import producer, running
from streams.letters.letter import ATTEMPT, Choice, read_letter, receipt_headers
from streams.letters.replay import BATCH_RECORDS, Order, Outcome, Replay, ReplayStopped
from streams.reading import TooSlow
from tests.processes import TRACTION, TractionProcess
from tests.streams.letters.kit import as_read, came, own, records, refused, write

if TYPE_CHECKING:
    from aiokafka import AIOKafkaProducer

    from streams.kafka import KafkaSettings
    from streams.letters.replay import Survey
    from streams.reading import Reader

ODD: dict[str, dict[str, Any]] = {
    "plain": {"value": b'{"a": 1}', "headers": (("traceparent", b"00-1"), ("x", None), ("x", b"")), "partition": 0},
    "no key": {"key": None, "value": b"{"},
    "no value": {"value": None},
    "an empty value": {"value": b""},
    "an empty key": {"key": b"", "value": b"\x00\xff"},
    "any bytes": {"key": bytes(range(256)), "value": bytes(range(256)) * 40, "headers": (("\u00e4\x00 ", b"\xff"),)},
    "a large one": {"value": hashlib.shake_256(b"seed").digest(2**20), "headers": (("h", bytes(2**18)),)},
}


def replaying(kafka: KafkaSettings, told: list[Outcome], kind: type[Replay] = Replay, **order: Any) -> Replay:
    """Make a run of its own, which tells here what became of letters."""
    seconds = order.pop("seconds", 30.0)
    defaults: dict[str, Any] = {"choice": Choice(), "by": "dana"}
    return kind(kafka, Order(**defaults | order), seconds, lambda _: None, told.append)


async def test_records_go_back_as_they_were(kafka: KafkaSettings) -> None:
    """Key, value, headers and partition, on the topic they came from; again only what is named."""
    calls = kafka.topic(topics.TOOL_CALLS)
    names = await write(kafka, [refused(came(calls, **fields)) for fields in ODD.values()], partition=1)
    told: list[Outcome] = []
    await replaying(kafka, told).perform()
    assert [(each.letter.name, each.what) for each in told] == [(name, "replayed") for name in names]
    found = {(each.partition, each.offset): each for each in await records(kafka, topics.TOOL_CALLS)}
    assert len(found) == len(ODD)
    for outcome, fields in zip(told, ODD.values(), strict=True):
        wanted = came(calls, **fields)
        assert outcome.offset is not None
        record = found[wanted.partition, outcome.offset]
        assert (record.key, record.value, tuple(own(record))) == (wanted.key, wanted.value, tuple(wanted.headers))
        assert dict(record.headers)[ATTEMPT] == b"1"
        assert record.timestamp > wanted.timestamp

    told.clear()
    await replaying(kafka, told).perform()
    assert {each.what for each in told} == {"already"}
    told.clear()
    named = Choice(names=frozenset({(1, int(names[1].partition("@")[2]))}))
    await replaying(kafka, told, choice=named, again=True).perform()
    assert [(each.letter.name, each.what) for each in told] == [(names[1], "replayed")]
    assert len(await records(kafka, topics.TOOL_CALLS)) == len(ODD) + 1


async def test_receipts_satisfy_the_contract(kafka: KafkaSettings) -> None:
    """A receipt stands in its letter's partition, has no content, and says whose letter it is for and who decided."""
    await write(kafka, [refused(came(kafka.topic(topics.REVIEWS)))], partition=1)
    await replaying(kafka, []).perform()
    letter, receipt = await records(kafka, topics.DEAD_LETTERS)
    assert (receipt.partition, receipt.key, receipt.value) == (1, None, b"")
    said = dict(receipt.headers)
    assert (said["__traction.errors.replayed"], said["__traction.errors.replayed_by"]) == (
        str(letter.offset).encode(),
        b"dana",
    )
    assert {name for name, _ in letter.headers if name.startswith("__traction.")} < said.keys()


async def test_only_what_was_decided(kafka: KafkaSettings) -> None:
    """What is refused after the question is left, and so is what is beyond the limit or does not fit."""
    calls, reviews = kafka.topic(topics.TOOL_CALLS), kafka.topic(topics.REVIEWS)
    await write(kafka, [refused(came(calls, value=b"%d" % number)) for number in range(4)])
    await write(kafka, [refused(came(reviews))])
    told: list[Outcome] = []
    choice = Choice(topics=(calls,))
    survey = await replaying(kafka, told, choice=choice).survey()
    assert survey.counts(again=False) == (Counter({(calls, "detector_error", None): 4}), 0)
    await write(kafka, [refused(came(calls, value=b"later"))])
    await replaying(kafka, told, choice=choice, limit=3, ends=survey.ends).perform()
    await replaying(kafka, told, choice=choice, ends=survey.ends).perform()
    assert [each.what for each in told] == ["replayed"] * 3 + ["already"] * 3 + ["replayed"]
    assert [each.value for each in await records(kafka, topics.TOOL_CALLS)] == [b"0", b"1", b"2", b"3"]
    assert await records(kafka, topics.REVIEWS) == []


class Overtaken(Replay):
    """A run that another one overtakes after it has looked."""

    other: Replay

    async def _survey(self, reader: Reader) -> Survey:
        found = await super()._survey(reader)
        await self.other.perform()
        return found


async def test_two_runs_at_once(kafka: KafkaSettings) -> None:
    """The later one fences the one before it, which ends in words: no record comes twice."""
    await write(kafka, [refused(came(kafka.topic(topics.TOOL_CALLS), value=b"%d" % number)) for number in range(3)])
    first: list[Outcome] = []
    second: list[Outcome] = []
    run = replaying(kafka, first, Overtaken)
    Overtaken.other = replaying(kafka, second)
    with pytest.raises(ReplayStopped, match="another run began"):
        await run.perform()
    assert (first, len(second)) == ([], 3)
    assert [each.value for each in await records(kafka, topics.TOOL_CALLS)] == [b"0", b"1", b"2"]


async def test_receipts_behind_an_open_transaction(kafka: KafkaSettings) -> None:
    """A run waits for a worker's transaction, behind which there may be receipts, and puts nothing back before."""
    name = kafka.topic(topics.DEAD_LETTERS)
    letter = refused(came(kafka.topic(topics.TOOL_CALLS)))
    (there,) = await write(kafka, [letter])
    read = read_letter(as_read(letter, partition=0, offset=int(there.partition("@")[2])))
    assert read is not None
    async with running(producer(kafka, transactional_id=f"{name}-worker"), kafka) as worker:
        await worker.begin_transaction()
        await worker.send_and_wait(name, b"open", partition=0)
        async with running(producer(kafka), kafka) as client:
            await client.send_and_wait(name, b"", partition=0, headers=receipt_headers(read, "dana"))
        with pytest.raises(TooSlow):
            await replaying(kafka, [], seconds=3.0).perform()
        await worker.commit_transaction()
    told: list[Outcome] = []
    await replaying(kafka, told).perform()
    assert [each.what for each in told] == ["already"]
    assert await records(kafka, topics.TOOL_CALLS) == []


DYING = """
import os, signal, sys
from aiokafka import AIOKafkaProducer
when, count = sys.argv.pop(1), 0
real = AIOKafkaProducer.commit_transaction
async def commit(producer):
    global count
    count += 1
    if when == "after":
        await real(producer)
    if count == 2:
        os.kill(os.getpid(), signal.SIGINT if when == "interrupted" else signal.SIGKILL)
    if when != "after":
        await real(producer)
AIOKafkaProducer.commit_transaction = commit
from streams.cli import main
main()
"""
"""The command, which dies with its second transaction: when all is sent and nothing committed, or right afterwards."""


async def test_nothing_is_lost_or_doubled_by_dying(kafka: KafkaSettings) -> None:
    """Killed before and after a commit, then interrupted, and run until it is through: each record is back once."""
    calls, count = kafka.topic(topics.TOOL_CALLS), 4 * BATCH_RECORDS
    for partition in range(2):
        numbers = range(partition, 2 * count, 2)
        await write(kafka, [refused(came(calls, b"%d" % number)) for number in numbers], partition=partition)
    words = ["dead-letters", "replay", "--all", "--yes", "--json"]
    words += ["--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix]
    told = Counter[str]()
    for when, code in (("before", -9), ("after", -9), ("interrupted", 130), ("", 0)):
        process = TractionProcess(*((sys.executable, "-c", DYING, when) if when else (TRACTION,)), *words)
        try:
            assert await process.exit() == code, process.log
        finally:
            process.kill()
        assert "Traceback" not in process.log
        if code == 130:
            assert f"put back so far: {BATCH_RECORDS}; run it again" in process.log
        outcomes = [json.loads(line) for line in process.lines]
        told.update(each["letter"] for each in outcomes if each["outcome"] == "replayed")
    assert max(told.values()) == 1
    values = Counter(int(each.value) for each in await records(kafka, topics.TOOL_CALLS))
    assert values == Counter(range(2 * count))
    receipts = [each for each in await records(kafka, topics.DEAD_LETTERS) if each.value == b""]
    assert len(receipts) == 2 * count


class Counted(Replay):
    """A run that notes how many records each transaction has."""

    batches: list[int]

    async def _put(self, client: AIOKafkaProducer) -> None:
        self.batches.append(len(self._batch))
        await super()._put(client)


@pytest.mark.parametrize(
    ("records", "size", "batches"),
    [(3, 10**6, [3, 3, 1]), (7, 10**6, [7]), (100, 200, [2, 2, 2, 1]), (100, 201, [3, 3, 1])],
)
async def test_transactions_are_bounded(
    kafka: KafkaSettings, monkeypatch: pytest.MonkeyPatch, records: int, size: int, batches: list[int]
) -> None:
    """By records and by bytes, whichever comes first."""
    monkeypatch.setattr("streams.letters.replay.BATCH_RECORDS", records)
    monkeypatch.setattr("streams.letters.replay.BATCH_BYTES", size)
    await write(kafka, [refused(came(kafka.topic(topics.TOOL_CALLS), bytes(99))) for _ in range(7)])
    Counted.batches = []
    await replaying(kafka, [], Counted).perform()
    assert Counted.batches == batches
