"""Workers are frozen and killed under load, and what they leave is what the detectors make of the same events.

The short form takes about a minute. `TRACTION_CRASH_ROUNDS=20` makes it twenty rounds of freezing, killing and
stopping, some 25 s each, and `TRACTION_CRASH_SEED` gives other times and victims.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import subprocess
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from streams.worker.faults import EXIT_LOST
from tests.kit import Wire, WorkerProcess, assert_same, outcome, traffic, until

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = int(os.environ.get("TRACTION_CRASH_ROUNDS", "1"))
SEED = int(os.environ.get("TRACTION_CRASH_SEED", "1"))

EVENTS_PER_SECOND = 500
SESSIONS = 100
SECONDS_OF_ROUND = 45
FROZEN_SECONDS = 12.0
"""Twice the session timeout of the workers: the group gives a frozen one up, and its partitions go to the other."""

FREEZES = 3
"""How often a freeze is tried until it hits a worker that has something to commit."""

LIMIT_SECONDS = 180 + 60 * ROUNDS


class Fleet:
    """Two workers, of which one that ended is started again, as a supervisor would."""

    def __init__(self, start: Callable[..., WorkerProcess]) -> None:
        self._start = start
        self.workers = [start(), start()]
        self.ends: Counter[int] = Counter()

    async def shared(self, partitions: int) -> None:
        """Wait until both are at work, each on its half; one that was killed keeps its place for a session timeout."""

        async def halves() -> bool:
            found = [worker.partitions for worker in self.workers]
            return set.union(*found) == set(range(partitions)) and {len(owned) for owned in found} == {partitions // 2}

        await until(halves, 60)

    async def restart(self, number: int, seconds: float = 60.0) -> int:
        """Wait until a worker has ended, start it again, and give its exit code."""
        code = await self.workers[number].exit(seconds)
        self.ends[code] += 1
        self.workers[number] = self._start()
        return code

    def restart_ended(self) -> None:
        """Start again what has ended meanwhile."""
        for number, worker in enumerate(self.workers):
            code = worker.popen.poll()
            if code is not None:
                self.ends[code] += 1
                self.workers[number] = self._start()


@pytest.mark.timeout(LIMIT_SECONDS)
async def test_frozen_and_killed_workers(wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """Each alert is on the topic once for readers of committed records, and every state is right."""
    chance = random.Random(SEED)  # noqa: S311 - no secret
    events = traffic(SESSIONS, ROUNDS * SECONDS_OF_ROUND * EVENTS_PER_SECOND // (7 * SESSIONS) + 1)
    fleet = Fleet(start)
    await fleet.shared(wire.partitions)
    load = asyncio.create_task(wire.send(events, rate=EVENTS_PER_SECOND))
    for _ in range(ROUNDS):
        await asyncio.sleep(chance.uniform(0, 2))
        await _freeze(fleet, wire, load, chance.randrange(2))
        await fleet.shared(wire.partitions)
        await asyncio.sleep(chance.uniform(1, 3))
        await _kill(fleet, load, chance.randrange(2))
        await fleet.shared(wire.partitions)
        await _stop(fleet, chance.randrange(2))
    await load

    async def applied() -> bool:
        fleet.restart_ended()
        return await wire.lag() == 0

    await until(applied, 90)
    # The faults did bite: each freeze ended with the frozen worker fenced, each kill was one.
    assert fleet.ends[EXIT_LOST] >= ROUNDS
    assert fleet.ends[-signal.SIGKILL] >= ROUNDS
    assert fleet.ends.keys() <= {0, EXIT_LOST, -signal.SIGKILL}
    await assert_same(wire, outcome(events))
    await fleet.shared(wire.partitions)
    for worker in fleet.workers:
        metrics = await worker.metrics()
        assert metrics["traction_applied_twice_total",] == 0
        assert metrics["traction_deleted_unread_records_total",] == 0
        assert await worker.end() == 0


async def _freeze(fleet: Fleet, wire: Wire, load: asyncio.Task[None], number: int) -> None:
    logs: list[str] = []
    while len(logs) < FREEZES:
        await fleet.shared(wire.partitions)
        await asyncio.sleep(2)  # at work, with something to commit
        frozen, other = fleet.workers[number], fleet.workers[1 - number]
        before = len(other.lines), len(frozen.lines)
        frozen.send(signal.SIGSTOP)
        await asyncio.sleep(FROZEN_SECONDS)
        assert not load.done(), "there should be load all the time"
        assert len(other.lines) > before[0]
        assert other.partitions == set(range(wire.partitions)), "the other one should have taken everything over"
        frozen.send(signal.SIGCONT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            assert await fleet.restart(number, 10) == EXIT_LOST
            assert "fenced: another worker owns partition" in frozen.log
            return
        # It was frozen in the middle of a rebalance, when it had nothing to commit: then it just joins again.
        await frozen.ready(after=before[1])
        logs.append(frozen.log)
    raise AssertionError(f"the frozen worker was never fenced: {logs}")


async def _kill(fleet: Fleet, load: asyncio.Task[None], number: int) -> None:
    assert not load.done(), "there should be load all the time"
    fleet.workers[number].send(signal.SIGKILL)
    assert await fleet.restart(number) == -signal.SIGKILL


async def _stop(fleet: Fleet, number: int) -> None:
    fleet.workers[number].send(signal.SIGTERM)
    assert await fleet.restart(number, 10) == 0
