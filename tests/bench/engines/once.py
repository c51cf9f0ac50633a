"""One run of one engine over a load that lies ready: start its process, wait until all is applied, end it, look.

What is measured is between the first event that it applies and the last record that it writes. Its start is in none of
the figures, and no wait for an interval either: it is told to end when all is applied, and then writes what is left.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from detectors import TaskState, decode_state, decode_task
from streams.worker.records import decode_stored
from tests.bench.engines.process import BenchError, applied, started

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from tests.bench.engines.catalogue import Engine
    from tests.bench.engines.expected import Expected
    from tests.bench.engines.ground import Ground
    from tests.bench.engines.job import Plan
    from tests.bench.engines.process import Process


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run gave.

    Attributes:
        events: how many were applied.
        seconds: from the first event applied to the last record written.
        cpu_seconds: that the engine's processes used from the first event applied to their end.
        peak_bytes: most memory of them, added up.
        changelog_bytes: keys and values of all states that were written.
        changelog_records: how many these are.
        alerts: how many there are.
    """

    events: int
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    changelog_bytes: int
    changelog_records: int
    alerts: int

    @property
    def rate(self) -> float:
        """Events a second."""
        return self.events / self.seconds


async def measure(
    engine: Engine,
    ground: Ground,
    wanted: Expected,
    plans: Sequence[Plan],
    *,
    tell: Callable[[int], None] = lambda _: None,
    publish: Callable[[Sequence[Process]], Awaitable[None]] | None = None,
) -> Measured:
    """Run an engine over a load, and compare what it gave with what is wanted.

    Args:
        engine: which.
        ground: where the load is.
        wanted: what must come out of it.
        plans: of its processes.
        tell: is told how many events are applied.
        publish: publishes the load once the processes are started; None where it lies ready.

    Raises:
        BenchError: it failed, or gave something else.
    """
    plan = plans[0]
    await ground.prepare(plan.app_id, engine.own(plan))
    starts = await ground.ends(ground.alerts)
    with started(engine, plans) as processes:
        if publish is not None:
            await publish(processes)
        await applied(processes, wanted.events, wanted.told, tell)
        cpu_seconds = sum(await asyncio.gather(*(process.end() for process in processes)))
        began = min(process.told("began") for process in processes)
        last = max(process.told("last") for process in processes)
        peak_bytes = sum(process.peak_bytes for process in processes)
    found = [record.value async for record in ground.records(starts)]
    check_alerts(engine, wanted.values(ground.places), found)
    names = engine.changelogs(plan)
    changelogs = {name: await ground.folded(name) for name in names}
    for name, tasks in zip(names, (False, True), strict=True):
        stored = engine.states(changelogs[name].values, tasks=tasks)
        check_states(engine, wanted.tasks if tasks else wanted.sessions, stored, tasks=tasks)
    await ground.clear(plan.app_id, *names)
    written = list(changelogs.values())
    return Measured(
        events=wanted.events,
        seconds=max(last, max(each.last_ms for each in written) / 1_000) - began,
        cpu_seconds=cpu_seconds,
        peak_bytes=peak_bytes,
        changelog_bytes=sum(each.size for each in written),
        changelog_records=sum(each.records for each in written),
        alerts=len(found),
    )


def check_alerts(engine: Engine, wanted: dict[str, bytes], found: Sequence[bytes]) -> None:
    """See that an engine wrote each alert once, byte for byte.

    Raises:
        BenchError: it did not.
    """
    values = sorted(wanted.values())
    if sorted(found) == values:
        return
    missing, more = len(set(values) - set(found)), len(set(found) - set(values))
    raise BenchError(
        f"{engine.name}: the alerts differ from the detectors' own: {len(found):,} were written and {len(values):,} "
        f"wanted; {missing:,} of these are missing, and {more:,} others were written"
    )


def check_states(engine: Engine, wanted: dict[bytes, bytes], stored: dict[bytes, bytes], *, tasks: bool) -> None:
    """See that what an engine stored last of each session, or task, is its state after all events.

    Raises:
        BenchError: it is not.
    """
    what = "tasks" if tasks else "sessions"
    if stored.keys() != wanted.keys():
        raise BenchError(f"{engine.name}: {len(stored):,} {what} are stored, and {len(wanted):,} should be")
    differing = sum(not _same(decode_stored(value).state, wanted[key], tasks=tasks) for key, value in stored.items())
    if differing:
        raise BenchError(f"{engine.name}: {differing:,} of {len(wanted):,} {what} are stored in another state")


def _same(stored: bytes, wanted: bytes, *, tasks: bool) -> bool:
    if stored == wanted:
        return True
    read: Callable[[bytes], Any] = (lambda data: decode_task(data, TaskState)) if tasks else decode_state
    return bool(read(stored) == read(wanted))
