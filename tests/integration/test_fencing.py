"""Who holds a partition: a newer owner fences an older one at once, and recovery gives what the changelog says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streams.kafka import producer, running
from streams.worker.faults import EXIT_LOST
from tests.kit import WorkerInside, assert_same, outcome, traffic

if TYPE_CHECKING:
    from collections.abc import Callable

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
