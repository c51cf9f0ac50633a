"""Each input partition has a lane: its batches in their order, one after the other, whatever the others do."""

from __future__ import annotations

import asyncio
from collections import defaultdict

import pytest
from aiokafka import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from streams.worker.engine import Fetched
from streams.worker.lanes import Lanes

PARTITIONS = [TopicPartition("agent.tool-calls", number) for number in range(3)]


def batch(number: int, start: int) -> Fetched:
    """Make a batch of a partition."""
    return Fetched(None, PARTITIONS[number], start, start + 1, [], 0)


class Handler:
    """Notes what it is given; takes as many turns of the event loop for a batch as it is told to."""

    def __init__(self, turns: int = 0) -> None:
        self.turns = turns
        self.done: dict[TopicPartition, list[int]] = defaultdict(list)
        self.at_work: set[TopicPartition] = set()
        self.held: dict[TopicPartition, asyncio.Event] = {}

    async def __call__(self, fetched: Fetched) -> None:
        """Take a batch."""
        assert fetched.tp not in self.at_work, "two batches of one partition at once"
        self.at_work.add(fetched.tp)
        for _ in range(self.turns):
            await asyncio.sleep(0)
        if fetched.tp in self.held:
            await self.held[fetched.tp].wait()
        self.at_work.remove(fetched.tp)
        self.done[fetched.tp].append(fetched.start)


async def turns(count: int = 50) -> None:
    """Let the event loop turn."""
    for _ in range(count):
        await asyncio.sleep(0)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=40), st.integers(0, 3))
def test_order_is_kept(puts: list[tuple[int, int]], taken: int) -> None:
    """However batches come and the loop turns between them, each partition's are handled in order, all and once."""

    async def play() -> None:
        handler = Handler(taken)
        lanes = Lanes(handler)
        for start, (number, pause) in enumerate(puts):
            lanes.put(batch(number, start))
            await turns(pause)
        await turns(50 + len(puts) * (taken + 2))
        wanted: dict[TopicPartition, list[int]] = defaultdict(list)
        for start, (number, _) in enumerate(puts):
            wanted[PARTITIONS[number]].append(start)
        assert handler.done == wanted

    asyncio.run(play())


async def test_a_partition_that_waits_holds_up_no_other() -> None:
    """While a batch of one cannot be applied, those of the others are; the one behind it waits for it."""
    handler = Handler()
    lanes = Lanes(handler)
    handler.held[PARTITIONS[0]] = asyncio.Event()
    for start in range(3):
        lanes.put(batch(0, start))
        lanes.put(batch(1, start))
    await turns()
    assert handler.done == {PARTITIONS[1]: [0, 1, 2]}
    handler.held[PARTITIONS[0]].set()
    await turns()
    assert handler.done[PARTITIONS[0]] == [0, 1, 2]


async def test_a_failure_is_raised_and_its_lane_goes_no_further() -> None:
    """What a batch fails for ends the watch, whether it comes before or after; nothing behind it is applied."""
    done = list[int]()

    async def handle(fetched: Fetched) -> None:
        await asyncio.sleep(0)
        if fetched.start == 1:
            raise ValueError("damaged")
        done.append(fetched.start)

    lanes = Lanes(handle)
    watching = asyncio.create_task(lanes.run())
    for start in range(3):
        lanes.put(batch(0, start))
    with pytest.raises(ValueError, match="damaged"):
        await watching
    assert done == [0]
    lanes.put(batch(0, 3))
    await turns()
    assert done == [0]
    with pytest.raises(ValueError, match="damaged"):
        await lanes.run()


async def test_a_lane_that_is_given_up_is_a_failure() -> None:
    """What a batch waits for may be given up by others: its partition does not stand still unnoticed."""

    async def handle(fetched: Fetched) -> None:
        raise asyncio.CancelledError(fetched)

    lanes = Lanes(handle)
    lanes.put(batch(0, 0))
    with pytest.raises(RuntimeError, match="tool-calls-0: given up"):
        await lanes.run()


async def test_lanes_end_with_their_watch() -> None:
    """When it is cancelled nothing goes on, and what it waited for is given up."""
    handler = Handler()
    lanes = Lanes(handler)
    handler.held[PARTITIONS[0]] = asyncio.Event()
    watching = asyncio.create_task(lanes.run())
    lanes.put(batch(0, 0))
    await turns()
    watching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watching
    handler.held[PARTITIONS[0]].set()
    await turns()
    assert handler.done == {}
