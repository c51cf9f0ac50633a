"""What ownership decides without a broker: that both inputs come together, and where reading goes on."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from aiokafka import TopicPartition
from prometheus_client import CollectorRegistry

from streams.escalation.metrics import EscalationMetrics
from streams.escalation.ownership import Ownerships, PartitionsApart, Place
from streams.health import Health
from streams.kafka import KafkaSettings
from streams.ownership import ASSIGNED, CONDITIONS, TAKEN, Start, start
from tests.waiting import SOON_SECONDS

TP = TopicPartition("agent.alerts", 0)


@pytest.mark.parametrize(
    ("committed", "beginning", "end", "expected", "complains"),
    [
        (None, 5, 90, Start(5), False),
        (30, 5, 90, Start(30), False),
        (90, 5, 90, Start(90), False),
        (5, 5, 90, Start(5), False),
        (3, 5, 90, Start(5, deleted=2), True),
        (91, 0, 90, Start(0), True),
    ],
    ids=["first start", "goes on", "at the end", "at the beginning", "retention was quicker", "topic made anew"],
)
def test_where_reading_goes_on(
    *,
    caplog: pytest.LogCaptureFixture,
    committed: int | None,
    beginning: int,
    end: int,
    expected: Start,
    complains: bool,
) -> None:
    """At the committed offset; where that cannot be, at the earliest, and what was lost is told and logged."""
    assert start(TP, committed, beginning, end) == expected
    assert [record.levelname for record in caplog.records] == (["ERROR"] if complains else [])


@pytest.fixture
def health() -> Health:
    """Give what is told of readiness."""
    return Health(CONDITIONS)


@pytest.fixture
def ownerships(health: Health) -> Ownerships:
    """Give a process's ownerships; nobody runs their clients."""
    place = Place(KafkaSettings(), "g", "alerts", "events", 1_000)
    return Ownerships(place, cast("Any", None), EscalationMetrics(CollectorRegistry()), health)


def both(number: int) -> list[TopicPartition]:
    """Give the partitions of one number."""
    return [TopicPartition(name, number) for name in ("alerts", "events")]


@pytest.mark.parametrize("apart", [["alerts"], ["events"]])
def test_inputs_that_come_apart_end_the_process(ownerships: Ownerships, apart: list[str]) -> None:
    """A partition of one input alone is never taken: what was answered to its alerts would be heard elsewhere."""
    ownerships.on_partitions_assigned([TopicPartition(name, 7) for name in apart])
    with pytest.raises(PartitionsApart, match=r"partition 7 of .*traction topics check"):
        ownerships.check()
    assert not ownerships.current()


async def test_letting_go_shows_as_long_as_it_takes(ownerships: Ownerships) -> None:
    """While a transaction is under way, a partition is being let go of; each that was let go of counts as a step."""
    ownerships.on_partitions_assigned(both(7) + both(8))
    units = ownerships.current()
    assert ownerships.under_way() == {"taking partition 7": 0, "taking partition 8": 0}
    async with units[7].lock:
        going = asyncio.create_task(ownerships.release_all())
        async with asyncio.timeout(SOON_SECONDS):
            while ownerships.under_way() != {"letting go of partitions": 1}:  # noqa: ASYNC110 - nobody is told
                await asyncio.sleep(0)
    await going
    assert ownerships.under_way() == {}


async def test_readiness_is_withdrawn_with_the_partitions(ownerships: Ownerships, health: Health) -> None:
    """Not ready before the group has spoken, nor from a revocation on, whatever the loop does; ready with none."""

    def unready() -> set[str]:
        return {name for name, state in health.ready().checks.items() if state != "ok"} & {ASSIGNED, TAKEN}

    assert unready() == {ASSIGNED, TAKEN}
    ownerships.on_partitions_assigned([])
    assert unready() == set()
    assert ownerships.news()
    assert not ownerships.news()
    await ownerships.on_partitions_revoked([])
    assert unready() == {ASSIGNED, TAKEN}
    ownerships.on_partitions_assigned(both(7))
    assert unready() == {TAKEN}
    assert not ownerships.news()
    await ownerships.on_partitions_revoked(both(7))
    assert unready() == {ASSIGNED, TAKEN}
