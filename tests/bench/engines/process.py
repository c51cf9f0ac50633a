"""The process of an engine: started with its plan, watched by what it notes in a shared file, ended, never left behind.

Nothing in here knows what an engine does.
"""

from __future__ import annotations

import asyncio
import contextlib
import mmap
import os
import resource
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tests.bench.engines.job import FIELDS, Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.bench.engines.catalogue import Engine
    from tests.bench.engines.ground import Ground

STALLED_SECONDS = 120.0
"""So long without any event applied means that none will be."""

END_SECONDS = 120.0
"""So long an engine may take to write what is left: Faust may have much."""

LOOK_SECONDS = 0.01


class BenchError(Exception):
    """An engine failed, or gave something else than the detectors: the message says which and what."""


class Process:
    """The process of an engine.

    Args:
        engine: which.
        plan: what it is told.
    """

    def __init__(self, engine: Engine, plan: Plan) -> None:
        self._name = engine.name
        self._log = Path(f"{plan.progress}.log")
        Path(plan.progress).write_bytes(bytes(8 * len(FIELDS)))
        with Path(plan.progress).open("r+b") as file:
            self._told = memoryview(mmap.mmap(file.fileno(), 8 * len(FIELDS))).cast("d")
        with self._log.open("wb") as log:
            self._popen = subprocess.Popen(
                [sys.executable, "-m", engine.module, msgspec.json.encode(plan).decode()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=plan.directory,
                env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
                start_new_session=True,  # Ctrl-C is ours to handle
            )
        self.peak_bytes = 0

    def told(self, field: str) -> float:
        """Give what it says of itself; see `FIELDS`."""
        return self._told[FIELDS.index(field)]

    def check(self) -> None:
        """See that it runs.

        Raises:
            BenchError: it ended.
        """
        if self._popen.poll() is not None:
            raise self.problem(f"ended by itself (exit code {self._popen.returncode})")

    def problem(self, what: str) -> BenchError:
        """Give an error with the end of the log."""
        tail = "\n".join(self._log.read_text("utf-8", "replace").splitlines()[-30:])
        return BenchError(f"{self._name} {what}; the end of its log:\n{tail}")

    async def end(self) -> float:
        """End it, and give the processor time that it used since the first event.

        Raises:
            BenchError: it does not end.
        """
        self.peak_bytes = _peak_bytes(self._popen.pid)
        self._popen.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(END_SECONDS):
                used = await self._ended()
        except TimeoutError:
            raise self.problem(f"does not end within {END_SECONDS:.0f} s") from None
        return used.ru_utime + used.ru_stime - self.told("cpu_seconds")

    async def _ended(self) -> resource.struct_rusage:
        while True:
            pid, status, used = os.wait4(self._popen.pid, os.WNOHANG)  # noqa: ASYNC222 - it does not wait
            if pid:
                self._popen.returncode = os.waitstatus_to_exitcode(status)
                return used
            await asyncio.sleep(LOOK_SECONDS)

    def kill(self) -> None:
        """End it at once, if it still runs."""
        if self._popen.returncode is None:
            self._popen.kill()
            self._popen.wait()


@contextlib.contextmanager
def started(engine: Engine, plans: Sequence[Plan]) -> Iterator[list[Process]]:
    """Start processes; none is left at the end."""
    processes = list[Process]()
    try:
        processes += (Process(engine, plan) for plan in plans)
        yield processes
    finally:
        for process in processes:
            process.kill()


def make_plans(
    engine: Engine, ground: Ground, directory: Path, *, empty: bool, cores: Sequence[Sequence[int]]
) -> list[Plan]:
    """Give the plans of a run that nothing else has names in common with: one process for each group of cores."""
    name = f"bench-{engine.letter}-{uuid.uuid4().hex[:8]}"
    own = directory / name
    own.mkdir()
    return [
        Plan(
            engine=engine.letter,
            bootstrap=ground.kafka.bootstrap,
            prefix=ground.kafka.prefix,
            app_id=name,
            partitions=ground.partitions,
            empty=empty,
            progress=str(own / f"progress{number}"),
            directory=str(own),
            cores=tuple(each),
        )
        for number, each in enumerate(cores)
    ]


async def ready(processes: Sequence[Process], partitions: int) -> None:
    """Wait until workers of Traction share the partitions evenly, and each is ready.

    Raises:
        BenchError: one ended, or it does not come about.
    """
    deadline = time.monotonic() + STALLED_SECONDS
    while any(process.told("owned") * len(processes) != partitions for process in processes):
        for process in processes:
            process.check()
        if time.monotonic() > deadline:
            raise processes[0].problem("does not become ready")
        await asyncio.sleep(LOOK_SECONDS)


async def applied(
    processes: Sequence[Process], events: int, told: int = 0, tell: Callable[[int], None] = lambda _: None
) -> None:
    """Wait until so many events are applied to sessions, and so many to tasks.

    Raises:
        BenchError: an engine ended, or nothing happens any more.
    """
    last, since = -1.0, time.monotonic()
    while True:
        now = sum(process.told("applied") for process in processes)
        of_tasks = sum(process.told("told") for process in processes)
        if now >= events and of_tasks >= told:
            return
        if now + of_tasks != last:
            last, since = now + of_tasks, time.monotonic()
            tell(int(now))
        elif time.monotonic() - since > STALLED_SECONDS:
            raise processes[0].problem(f"has applied {now:,.0f} of {events:,} events and goes no further")
        for process in processes:
            process.check()
        await asyncio.sleep(LOOK_SECONDS)


def _peak_bytes(pid: int) -> int:
    """Give the most memory that a process had resident; 0 where the system does not tell."""
    # Not by wait4: what it tells begins with the memory of the process that started it.
    try:
        status = Path(f"/proc/{pid}/status").read_text("ascii", "replace")
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1_024 for line in status.splitlines() if line.startswith("VmHWM:")), 0)
