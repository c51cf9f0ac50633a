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
    """

    rate: float
    events: list[ToolCall]
    wanted: Expected

    @classmethod
    def make(cls, rate: float, seconds: float) -> Paced:
        """Make as many as such a rate takes, for such a time."""
        events = list(LOAD.events(WARM_EVENTS + round(rate * seconds)))
        return cls(rate, events, expected(events, [len(events)], empty=False)[len(events)])


async def delays(
    engine: Engine, paced: Paced, *, bootstrap: str, partitions: int, directory: Path, cores: Sequence[int]
) -> Delays:
    """Run an engine while events come.

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
                await ground.publish(paced.events[WARM_EVENTS:], rate=paced.rate)
                await applied(processes, paced.wanted.events, paced.wanted.told)
                found = await _in_time(engine, reading)
                last = processes[0].told("last")
                await processes[0].end()
    finally:
        await ground.clear(ground.kafka.prefix, plan.app_id, *engine.changelogs(plan))
    check_alerts(engine, paced.wanted.values(ground.places), [value for _, value in found])
    return _figures(ground, found, last)


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


def _figures(ground: Ground, found: Sequence[tuple[float, bytes]], last: float) -> Delays:
    warm = {(place.partition, place.offset) for place in ground.places[:WARM_EVENTS]}
    appended = {(place.partition, place.offset): place.appended_ms for place in ground.places}
    took = list[float]()
    for came, value in found:
        position = msgspec.json.decode(value, type=Alert).evidence.position
        place = (position.partition, position.offset) if position else (-1, -1)
        if place not in warm:
            took.append(came * 1_000 - appended[place])
    if not took:
        raise BenchError("there are no alerts to measure: the rate, or the time, is too small")
    took.sort()
    behind = last * 1_000 - ground.places[-1].appended_ms
    return Delays(took[len(took) // 2], took[min(len(took) - 1, len(took) * 99 // 100)], behind, len(took))
