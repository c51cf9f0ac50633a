"""Who holds a partition: a newer owner fences an older one at once, and recovery gives what the changelog says."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka.errors import KafkaError

from streams.kafka import producer, running
from streams.worker import app
from streams.worker.faults import EXIT_LOST
from streams.worker.records import HEARTBEAT_VALUE
from streams.worker.transport import BatchConsumer
from tests.bench.recovery import write
from tests.kit import WorkerInside, assert_same, outcome, traffic
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.kit import Wire, WorkerProcess


async def test_a_fenced_worker_ends(wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """When somebody else begins transactions for a partition its worker ends at its next commit, with a clear word."""
    events = traffic(sessions=20, episodes=2)
    worker = start()
    await worker.ready(4)
    async with running(producer(wire.settings, transactional_id=f"{wire.app_id}-2"), wire.settings):
        await wire.send(events)
        assert await worker.exit() == EXIT_LOST
    assert "fenced: another worker owns partition 2 now" in worker.log
    assert "Traceback" not in worker.log
    await start().ready(4)
    await wire.until_applied()
    await assert_same(wire, outcome(events))


async def test_the_former_owner_is_fenced_before_positions_are_read(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a former owner still commits, when its successor asks for positions, is refused: it would be read again."""
    committed, refused = BatchConsumer.committed, list[KafkaError]()
    async with running(producer(wire.settings, transactional_id=f"{wire.app_id}-2"), wire.settings) as former:
        await former.begin_transaction()
        await former.send_and_wait(wire.changelog, key=b"s", value=HEARTBEAT_VALUE, partition=2)

        async def asked(self: BatchConsumer, tps: Any) -> Any:
            try:
                await former.commit_transaction()
            except KafkaError as problem:
                refused.append(problem)
            return await committed(self, tps)

        monkeypatch.setattr(BatchConsumer, "committed", asked)
        async with WorkerInside(wire):
            pass
    assert refused


async def test_recovery_is_a_fold_of_the_changelog(wire: Wire) -> None:
    """After a restart a worker has exactly what the last records of the changelog say, removed sessions left out."""
    events = traffic(sessions=50, episodes=2)
    async with WorkerInside(wire):
        await wire.send(events)
        await wire.until_applied()
    stored = await wire.stored()
    assert {key for _, key in stored} == {event.session_id.encode() for event in events}
    (gone, *_) = stored
    await wire.put(wire.changelog, None, key=gone[1], partition=gone[0])
    async with WorkerInside(wire) as second:
        stored_by = {number: second.worker.ownerships.changelogs.states(wire.changelog, number) for number in range(4)}
        keys = [(number, key) for number, states in stored_by.items() for key in list(states.keys())]
        found = {(number, key): stored_by[number].get(key) for number, key in keys}
    assert found == {place: value for place, value in stored.items() if place != gone}


SLOW = """
import asyncio
from streams.cli import main
from streams.worker import app
from streams.worker.transport import BatchConsumer

getmany = BatchConsumer._getmany

async def slowly(*asked, **named):
    await asyncio.sleep(0.02)
    return await getmany(*asked, **named)

BatchConsumer._getmany = slowly
app.POLL_RECORDS = 20
main()
"""
"""A worker that reads little at a time."""


@pytest.mark.parametrize("store", ["memory", "rocksdb"])
async def test_rebalances_in_the_middle_of_recovery(
    wire: Wire, start: Callable[..., WorkerProcess], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, store: Any
) -> None:
    """Half of what is read back is lost to another worker, won back when that stops as it reads too, and is whole."""
    getmany, pause = BatchConsumer._getmany, 0.1

    async def slowly(*asked: Any, **named: Any) -> Any:
        await asyncio.sleep(pause)
        return await getmany(*asked, **named)

    monkeypatch.setattr(BatchConsumer, "_getmany", slowly)
    monkeypatch.setattr(app, "POLL_RECORDS", 20)
    await write(wire, 8_000, 4)
    inside = WorkerInside(wire, state_store=store, state_dir=tmp_path)
    owns = inside.worker.ownerships
    ready = asyncio.create_task(inside.__aenter__())

    async def reads(numbers: int) -> bool:
        if ready.done():
            ready.result()
        assert not ready.done()
        return len(owns.current) == numbers and len([tp for tp, count in owns.changelogs.read.items() if count]) > 1

    await until(lambda: reads(4))
    other = start(program=SLOW)
    await until(lambda: reads(2))
    assert await other.end() == 0
    await until(lambda: reads(4))
    pause = 0.0
    await ready
    try:
        found = {
            (number, key): states.get(key)
            for number in range(wire.partitions)
            for states in [owns.changelogs.states(wire.changelog, number)]
            for key in list(states.keys())
        }
        assert found == await wire.stored()
    finally:
        await inside.__aexit__()
