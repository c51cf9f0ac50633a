"""How long it takes from an event's append to the alert that it brings about, as a reader of alerts sees it.

Events come at an even rate, half of what Traction's worker can take, while the engine runs. Fewer sessions than in the
other runs, of which more loop, so that there are enough alerts to speak of a 99th percentile.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from schemas.outputs import Alert
from streams.kafka import KafkaSettings, consumer, running
from tests.bench.engines.expected import expected
from tests.bench.engines.ground import Ground
from tests.bench.engines.load import Load
from tests.bench.engines.once import check_alerts
from tests.bench.engines.process import BenchError, applied, make_plans, started

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from aiokafka import AIOKafkaConsumer

    from schemas.events import ToolCall
    from tests.bench.engines.catalogue import Engine
    from tests.bench.engines.expected import Expected

LOAD = Load(seed=2, sessions=300, looping=0.1)
"""What is published."""

WARM_EVENTS = 300
"""Events that are applied before the others come, and not looked at: the process has started then."""

FEWEST_EVENTS = 1_000
"""Events that are looked at, at least: however few a second a machine takes, there are alerts among them."""

LATE_SECONDS = 60.0
"""How long is waited for alerts after the last event."""


@dataclass(frozen=True, slots=True)
class Delays:
    """What a run gave, in milliseconds.

    Attributes:
        p50: of half of the alerts, none was later.
        p99: likewise of 99 in a hundred.
        behind: between the last event's append and its application: large when the engine cannot keep up.
        alerts: how many were looked at.
    """

    p50: float
    p99: float
    behind: float
    alerts: int


@dataclass(frozen=True)
class Paced:
    """Events to be published at a rate.

    Attributes:
        rate: events a second.
        events: the events.
        wanted: what must come out.
        burst: numbers of those among them that come all at once.
    """

    rate: float
    events: list[ToolCall]
    wanted: Expected
    burst: range = range(WARM_EVENTS, WARM_EVENTS)

    @classmethod
    def make(cls, rate: float, seconds: float, burst: Sequence[ToolCall] = ()) -> Paced:
        """Make as many as such a rate takes, for such a time or until there are alerts; half-way come more at once."""
        events = list(LOAD.events(WARM_EVENTS + max(FEWEST_EVENTS, round(rate * seconds))))
        middle = (WARM_EVENTS + len(events)) // 2
        events[middle:middle] = burst
        wanted = expected(events, [len(events)], empty=False)[len(events)]
        return cls(rate, events, wanted, range(middle, middle + len(burst)))

    async def publish(self, ground: Ground) -> None:
        """Publish those that are measured."""
        await ground.publish(self.events[WARM_EVENTS : self.burst.start], rate=self.rate)
        if self.burst:
            await ground.publish(self.events[self.burst.start : self.burst.stop])
        await ground.publish(self.events[self.burst.stop :], rate=self.rate)


@dataclass(frozen=True, slots=True)
class Took:
    """How long one alert took.

    Attributes:
        event: number of the event that brought it about.
        partition: where that stands.
        milliseconds: from the event's append to the alert's being read.
    """

    event: int
    partition: int
    milliseconds: float


async def delays(
    engine: Engine, paced: Paced, *, bootstrap: str, partitions: int, directory: Path, cores: Sequence[int]
) -> Delays:
    """Run an engine while events come.

    Raises:
        BenchError: it failed, or gave other alerts than the detectors.
    """
    took, behind = await timed(
        engine, paced, bootstrap=bootstrap, partitions=partitions, directory=directory, cores=cores
    )
    found = [each.milliseconds for each in took]
    return Delays(percentile(found, 50), percentile(found, 99), behind, len(found))


def percentile(numbers: Sequence[float], percent: int) -> float:
    """Give the number that so many in a hundred do not exceed; there must be some."""
    return sorted(numbers)[min(len(numbers) - 1, len(numbers) * percent // 100)]


async def timed(
    engine: Engine, paced: Paced, *, bootstrap: str, partitions: int, directory: Path, cores: Sequence[int]
) -> tuple[list[Took], float]:
    """Run an engine while events come, and tell of each alert how long it took, and how far it was behind at the end.

    Raises:
        BenchError: it failed, or gave other alerts than the detectors.
    """
    ground = Ground(KafkaSettings(bootstrap, f"paced-{uuid.uuid4().hex[:8]}."), partitions)
    plan = make_plans(engine, ground, directory, empty=False, cores=[cores])[0]
    await ground.prepare(plan.app_id, engine.own(plan))
    reader = consumer(ground.kafka)
    reader.subscribe([ground.alerts])
    try:
        async with running(reader, ground.kafka):
            with started(engine, [plan]) as processes:
                await ground.publish(paced.events[:WARM_EVENTS])
                await applied(processes, WARM_EVENTS)
                reading = asyncio.create_task(_read(reader, len(paced.wanted.alerts)))
                await paced.publish(ground)
                await applied(processes, paced.wanted.events, paced.wanted.told)
                found = await _in_time(engine, reading)
                last = processes[0].told("last")
                await processes[0].end()
    finally:
        await ground.clear(ground.kafka.prefix, plan.app_id, *engine.changelogs(plan))
    check_alerts(engine, paced.wanted.values(ground.places), [value for _, value in found])
    return _took(ground, found), last * 1_000 - ground.places[-1].appended_ms


async def _in_time(engine: Engine, reading: asyncio.Task[list[tuple[float, bytes]]]) -> list[tuple[float, bytes]]:
    try:
        async with asyncio.timeout(LATE_SECONDS):
            return await reading
    except TimeoutError:
        raise BenchError(f"{engine.name}: alerts are missing {LATE_SECONDS:.0f} s after the last event") from None


async def _read(reader: AIOKafkaConsumer, count: int) -> list[tuple[float, bytes]]:
    """Read alerts until there are so many, each with the time at which it came, seconds since 1970."""
    found = list[tuple[float, bytes]]()
    while len(found) < count:
        batches = await reader.getmany(timeout_ms=500)
        now = time.time()
        found += ((now, record.value) for batch in batches.values() for record in batch)
    return found


def _took(ground: Ground, found: Sequence[tuple[float, bytes]]) -> list[Took]:
    numbers = {(place.partition, place.offset): number for number, place in enumerate(ground.places)}
    took = list[Took]()
    for came, value in found:
        position = msgspec.json.decode(value, type=Alert).evidence.position
        number = numbers[position.partition, position.offset] if position else -1
        if number >= WARM_EVENTS:
            place = ground.places[number]
            took.append(Took(number, place.partition, came * 1_000 - place.appended_ms))
    return took
