"""A commit says why it failed: that somebody else owns the partition now, also where only the sender knows it."""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING, NoReturn

import pytest

from detectors import Limits, SessionState, Step
from schemas import topics
from streams.kafka import KafkaSettings, producer, running
from streams.topics import create_topics
from streams.worker.commit import Committer
from streams.worker.faults import EXIT_LOST
from streams.worker.judge import Detection
from streams.worker.live import SESSIONS, LiveTable
from streams.worker.settings import WorkerSettings
from streams.worker.states import MemoryStates
from tests.kit import Wire, tool_call
from tests.streams.worker.conftest import Bench
from tests.waiting import until

if TYPE_CHECKING:
    from schemas.events import SessionInput
    from tests.streams.worker.conftest import MakeRecord


class Ended(Exception):
    """The process would have ended."""


def abandon(code: int, message: str) -> NoReturn:
    """Stand in for the end of the process."""
    raise Ended(code, message)


MAX_BATCH_BYTES = 2_000
CALLS = KafkaSettings().topic(topics.TOOL_CALLS)


def enlarge(state: SessionState, event: SessionInput, _: Limits) -> Step:
    """Do as detectors might that remember more than one batch takes of a session."""
    state.calls += 1
    state.mode = secrets.token_hex(MAX_BATCH_BYTES) if event.session_id == "large" else ""
    return Step([])


async def test_states_go_in_batches(record: MakeRecord, bootstrap: str, prefix: str) -> None:
    """More than one takes, and one that is larger than any: changelog and store have each, once and in order."""
    kafka = KafkaSettings(bootstrap=bootstrap, prefix=prefix)
    settings = WorkerSettings(kafka=kafka, app_id=prefix.rstrip("."))
    await create_topics(kafka, partitions=1, replication=1, app_id=settings.app_id)
    bench, stored = Bench(Detection(enlarge)), dict[bytes, bytes]()
    states = MemoryStates(stored)
    bench.partition.sessions = LiveTable(SESSIONS, 0, 1, lambda: states)
    client = producer(kafka, transactional_id=settings.transactional_id(0), max_batch_size=MAX_BATCH_BYTES)
    apply = partial(bench.applier.apply, bench.partition, topics.TOOL_CALLS)
    wire = Wire(kafka, settings.app_id, 1)
    # Brokers answer a commit before its markers are written, so committed records may be seen a moment later only.
    written = partial(wire.records, wire.changelog, level="read_uncommitted")
    async with running(client, kafka):
        committer = Committer(
            bench.partition, client, settings=settings, metrics=bench.metrics, live_limit=lambda: 99, abandon=abandon
        )
        names = [f"s{number}" for number in range(40)]
        applied = {"topic": CALLS, "result": "applied"}
        apply(record(tool_call(name, 0)) for name in names)
        apply([record(tool_call("large", 0))])
        assert bench.shown("traction_events_total", **applied) == 0, "nothing is counted before it is committed"
        await committer.commit()
        assert bench.shown("traction_events_total", **applied) == len(names) + 1
        first = await written()
        apply([record(tool_call("s7", 1))])
        await committer.close()
    assert [each.key.decode() for each in first] == [*names, "large"]
    assert sum(len(each.value) for each in first[:-1]) > MAX_BATCH_BYTES < len(first[-1].value)
    found = await written()
    assert [each.key for each in found[len(first) :]] == [b"s7"]
    assert states.offset == found[-1].offset
    assert {each.key: each.value for each in found} == stored


async def test_a_producer_that_was_fenced_before(bench: Bench, record: MakeRecord, bootstrap: str, prefix: str) -> None:
    """The next commit is refused by aiokafka in words that say nothing of it; it is told as what it is all the same."""
    kafka = KafkaSettings(bootstrap=bootstrap, prefix=prefix)
    settings = WorkerSettings(kafka=kafka, app_id=prefix.rstrip("."))
    await create_topics(kafka, partitions=1, replication=1, app_id=settings.app_id)
    client = producer(kafka, transactional_id=settings.transactional_id(0))
    await client.start()
    try:
        await client.begin_transaction()
        async with running(producer(kafka, transactional_id=settings.transactional_id(0)), kafka):
            sent = await client.send(settings.alerts, b"v")

            async def dead() -> bool:
                return bool(client._sender.sender_task.done())

            await until(dead)
            assert sent.done()
        committer = Committer(
            bench.partition,
            client,
            settings=settings,
            metrics=bench.metrics,
            live_limit=lambda: 10,
            abandon=abandon,
        )
        bench.apply([record(tool_call("s", 0))])
        with pytest.raises(Ended) as ended:
            await committer.commit()
    finally:
        committer._task.cancel()
        await client.stop()
    code, message = ended.value.args
    assert code == EXIT_LOST
    assert "fenced: another worker owns partition 0 now" in message
    assert bench.shown("traction_transaction_failures_total", reason="fenced") == 1
    assert bench.shown("traction_events_total", topic=CALLS, result="applied") == 0
