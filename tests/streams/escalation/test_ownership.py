"""What ownership decides without a broker: that both inputs come together, and where reading goes on."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from aiokafka import TopicPartition

from streams.escalation.ownership import Ownerships, PartitionsApart, Place, start
from streams.kafka import KafkaSettings

TP = TopicPartition("agent.alerts", 0)


@pytest.mark.parametrize(
    ("committed", "beginning", "end", "expected", "complains"),
    [
        (None, 5, 90, 5, False),
        (30, 5, 90, 30, False),
        (90, 5, 90, 90, False),
        (3, 5, 90, 5, True),
        (91, 0, 90, 0, True),
    ],
    ids=["first start", "goes on", "at the end", "retention was quicker", "topic made anew"],
)
def test_where_reading_goes_on(
    *,
    caplog: pytest.LogCaptureFixture,
    committed: int | None,
    beginning: int,
    end: int,
    expected: int,
    complains: bool,
) -> None:
    """At the committed offset; where that cannot be, at the earliest, and what was lost is logged as an error."""
    assert start(TP, committed, beginning, end) == expected
    assert [record.levelname for record in caplog.records] == (["ERROR"] if complains else [])


@pytest.mark.parametrize("apart", [["alerts"], ["events"]])
def test_inputs_that_come_apart_end_the_process(apart: list[str]) -> None:
    """A partition of one input alone is never taken: what was answered to its alerts would be heard elsewhere."""
    place = Place(KafkaSettings(), "g", "alerts", "events", 1_000)
    ownerships = Ownerships(place, cast("Any", None), cast("Any", None))
    ownerships.on_partitions_assigned([TopicPartition(name, 7) for name in apart])
    with pytest.raises(PartitionsApart, match=r"partition 7 of .*traction topics check"):
        ownerships.check()
    assert not ownerships.current()


async def test_letting_go_shows_as_long_as_it_takes() -> None:
    """While a transaction is under way, a partition is being let go of: whoever looks at health is told."""
    place = Place(KafkaSettings(), "g", "alerts", "events", 1_000)
    ownerships = Ownerships(place, cast("Any", None), cast("Any", None))
    ownerships.on_partitions_assigned([TopicPartition(name, 7) for name in ("alerts", "events")])
    unit = ownerships.current()[7]
    assert not ownerships.letting_go
    async with unit.lock:
        going = asyncio.create_task(ownerships.release_all())
        await asyncio.sleep(0)  # it begins, and waits for the transaction's end
        assert ownerships.letting_go
    await going
    assert not ownerships.letting_go
