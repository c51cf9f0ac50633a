"""The whole comparison: the load is published once, and the engines run over it in turn, round after round.

So the machine's moods hit all alike, and ratios are taken within a round. It decides what runs when; nothing is printed
in here.
"""

from __future__ import annotations

import statistics
import uuid
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from streams.kafka import KafkaSettings
from tests.bench.engines.catalogue import ENGINES
from tests.bench.engines.expected import expected
from tests.bench.engines.ground import Ground
from tests.bench.engines.latency import Paced, delays
from tests.bench.engines.load import Load
from tests.bench.engines.once import measure
from tests.bench.engines.process import make_plans, ready
from tests.bench.engines.yardstick import yardsticks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.bench.engines.catalogue import Engine
    from tests.bench.engines.expected import Expected
    from tests.bench.engines.latency import Delays
    from tests.bench.engines.once import Measured
    from tests.bench.engines.process import Process

DETECTION = "all detectors"
EMPTY = "empty detector"

YARDSTICK_EVENTS = 3_000
"""Events of the load that the yardsticks are held to."""


@dataclass(frozen=True)
class Asked:
    """What is to be compared.

    Attributes:
        engines: letters of `ENGINES`.
        modes: `DETECTION`, `EMPTY` or both.
        rounds: how often.
        events: for the fast engines.
        short: for the slow ones: the first so many of the same.
        load: the events.
        partitions: of the input.
        workers: of Traction, beside one; below 2 for no such comparison.
        latency_seconds: how long events come at half of the worker's rate; 0 for no such run.
        cores: those of the engine, and those of everything else.
    """

    engines: str = "abcd"
    modes: tuple[str, ...] = (DETECTION, EMPTY)
    rounds: int = 3
    events: int = 60_000
    short: int = 60_000
    load: Load = field(default_factory=Load)
    partitions: int = 4
    workers: int = 1
    latency_seconds: float = 20.0
    cores: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

    @property
    def times_alerts(self) -> bool:
        """Whether alerts are timed, at a pace that is half of what Traction's worker takes."""
        return self.latency_seconds > 0 and DETECTION in self.modes and "a" in self.engines

    def of(self, engine: Engine) -> int:
        """Give how many events an engine gets."""
        return min(self.short, self.events) if engine.slow else self.events


@dataclass
class Results:
    """What came out, one entry a round.

    Attributes:
        measured: by mode and engine's letter.
        delays: by engine's letter, with all detectors.
        rate: at which events came for these, events a second.
        yardsticks: processor seconds for a million events, by what is done with each.
        several: of several workers of Traction, by mode.
        complete: whether this is all that was asked for; else the last round lacks entries.
    """

    measured: dict[str, dict[str, list[Measured]]] = field(default_factory=dict)
    delays: dict[str, list[Delays]] = field(default_factory=dict)
    rate: float = 0.0
    several: dict[str, list[Measured]] = field(default_factory=dict)
    yardsticks: dict[str, list[float]] = field(default_factory=dict)
    complete: bool = False


class Rounds:
    """Runs the comparison.

    Args:
        asked: what is compared.
        bootstrap: the broker.
        directory: for the engines' files.
        tell: is told what is going on.

    Attributes:
        results: what was measured until now, also when `run` fails.
    """

    def __init__(self, asked: Asked, bootstrap: str, directory: Path, tell: Callable[[str], None]) -> None:
        self._asked = asked
        self._bootstrap = bootstrap
        self._directory = directory
        self._tell = tell
        self._grounds: dict[int, Ground] = {}
        self._wanted: dict[str, dict[int, Expected]] = {}
        self.results = Results()

    async def run(self) -> Results:
        """Run everything.

        Raises:
            BenchError: an engine failed, or gave something else than the detectors.
        """
        asked = self._asked
        engines = [ENGINES[letter] for letter in asked.engines]
        counts = sorted({asked.of(engine) for engine in engines})
        for mode in asked.modes:
            told = f"what must come out, {mode}"
            self._wanted[mode] = expected(
                asked.load.events(counts[-1]), counts, empty=mode == EMPTY, tell=partial(self._count, told)
            )
        try:
            for number in counts:
                self._grounds[number] = await self._published(number)
            for number in range(asked.rounds):
                await self._round(f"round {number + 1} of {asked.rounds}", engines)
            if asked.times_alerts:
                await self._latency(engines)
        finally:
            for ground in self._grounds.values():
                await ground.clear(ground.kafka.prefix)
        self.results.complete = True
        return self.results

    async def _round(self, what: str, engines: Sequence[Engine]) -> None:
        for name, seconds in yardsticks(list(self._asked.load.events(YARDSTICK_EVENTS))).items():
            self.results.yardsticks.setdefault(name, []).append(seconds)
        for mode in self._asked.modes:
            for engine in engines:
                await self._measure(f"{what}, {mode}", mode, engine)
            if self._asked.workers > 1:
                await self._several(f"{what}, {mode}", mode)

    def _count(self, what: str, done: int) -> None:
        self._tell(f"{what}: {done:,}")

    async def _published(self, count: int) -> Ground:
        ground = Ground(KafkaSettings(self._bootstrap, f"load-{uuid.uuid4().hex[:8]}."), self._asked.partitions)
        await ground.prepare(ground.kafka.prefix)
        await ground.publish(self._asked.load.events(count), tell=partial(self._count, f"published of {count:,}"))
        return ground

    async def _measure(self, what: str, mode: str, engine: Engine) -> None:
        count = self._asked.of(engine)
        ground, empty = self._grounds[count], mode == EMPTY
        plans = make_plans(engine, ground, self._directory, empty=empty, cores=self._asked.cores[:1])
        told = f"{what}: {engine.name}"
        found = await measure(
            engine,
            ground,
            self._wanted[mode][count],
            plans,
            tell=partial(self._count, told),
        )
        self._tell(f"{told}: {found.rate:,.0f} events/s, {found.cpu_seconds / found.events * 1e6:,.0f} CPU s/million")
        self.results.measured.setdefault(mode, {}).setdefault(engine.letter, []).append(found)

    async def _several(self, what: str, mode: str) -> None:
        """Run several workers on a core each, on a load that becomes readable when all of them are ready."""
        engine, workers = ENGINES["a"], self._asked.workers
        wanted = self._wanted[mode][self._asked.of(engine)]
        ground = Ground(KafkaSettings(self._bootstrap, f"several-{uuid.uuid4().hex[:8]}."), self._asked.partitions)
        all_cores = sorted(core for cores in self._asked.cores for core in cores)
        cores: list[Sequence[int]] = [all_cores[number : number + 1] for number in range(workers)]
        plans = make_plans(engine, ground, self._directory, empty=mode == EMPTY, cores=cores)
        told = f"{what}: {workers} workers of {engine.name}"

        async def publish(processes: Sequence[Process]) -> None:
            await ground.publish(
                self._asked.load.events(wanted.events), hold=lambda: ready(processes, ground.partitions)
            )

        found = await measure(
            engine,
            ground,
            wanted,
            plans,
            tell=partial(self._count, told),
            publish=publish,
        )
        await ground.clear(ground.kafka.prefix)
        self._tell(f"{told}: {found.rate:,.0f} events/s")
        self.results.several.setdefault(mode, []).append(found)

    async def _latency(self, engines: Sequence[Engine]) -> None:
        rates = [each.rate for each in self.results.measured[DETECTION]["a"]]
        self.results.rate = statistics.median(rates) / 2
        paced = Paced.make(self.results.rate, self._asked.latency_seconds)
        for number in range(self._asked.rounds):
            for engine in engines:
                self._tell(f"round {number + 1} of {self._asked.rounds}, latency at {paced.rate:,.0f}/s: {engine.name}")
                found = await delays(
                    engine,
                    paced,
                    bootstrap=self._bootstrap,
                    partitions=self._asked.partitions,
                    directory=self._directory,
                    cores=self._asked.cores[0],
                )
                self.results.delays.setdefault(engine.letter, []).append(found)
