"""With fencing switched off the oracle must find differences: otherwise it would not notice that something is wrong.

A process is frozen when it has decided what to write and said nothing of it to the brokers. Another one takes its
partitions over and does the same work. Then the first one goes on, with transactional ids that nobody fenced.
"""

from __future__ import annotations

import asyncio
import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.torture import ladders, oracle
from tests.torture.fleet import Fleet, Kind
from tests.torture.ledger import Ledger
from tests.torture.load import Load
from tests.torture.publisher import Publisher
from tests.torture.rig import LONG_SECONDS, prepare, running

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster import Cluster

EVENTS_PER_SECOND = 150.0

KINDS: tuple[Kind, ...] = ("worker", "escalation")

WARM_SECONDS = 2.0
"""Under load before the freeze."""

TAKEN_SECONDS = 60.0


@pytest.mark.timeout(240)
async def test_without_fencing_the_oracle_finds_differences(cluster: Cluster, tmp_path: Path) -> None:
    """Frozen processes that nobody fences write again what their successors wrote, and the oracle sees it of both."""
    rig = await prepare(cluster, tmp_path)
    policy = rig.set_policy(LONG_SECONDS)
    fleet = Fleet(rig.place, tmp_path, point="decided", unfenced=True)
    async with Ledger(rig.place) as ledger, running(fleet):
        pairs = [(fleet.add(kind), fleet.add(kind)) for kind in KINDS]
        assert all([await fleet.shared(kind) for kind in KINDS])
        load, over = Load(1, rig.place.partitions), asyncio.Event()
        sending = asyncio.create_task(Publisher(rig.place.kafka).send(load.items(over.is_set), EVENTS_PER_SECOND))
        await asyncio.sleep(WARM_SECONDS)
        for first, _ in pairs:
            first.process.send(signal.SIGUSR2)
        deadline = time.monotonic() + TAKEN_SECONDS
        while any(len(other.process.partitions) < rig.place.partitions for _, other in pairs):
            assert time.monotonic() < deadline, "the others should have taken everything over"
            await asyncio.sleep(0.1)
        await asyncio.sleep(WARM_SECONDS)
        assert all(first.frozen for first, _ in pairs)
        for first, _ in pairs:
            first.process.send(signal.SIGCONT)
        over.set()
        await sending
        await ledger.settle(60)
    found = [*oracle.differences(ledger, rig.limits), *ladders.differences(ledger, policy, policy)]
    # By chance a worker's last decision was one without alerts: then what it tells of tasks is there twice.
    for what in (("alert", "what is forwarded"), ("output",)):
        assert [each for each in found if each.startswith(what)], found[:5]
