"""Runs the demo's processes: each starts, says that it is ready, and is ended, whatever happens to the demo.

A process that ends by itself is a failure, told with the last lines of its log. Knows nothing of Kafka.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections import deque
from typing import TYPE_CHECKING

from streams.kafka_broker.java import TETHER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

READY_SECONDS = 45.0
"""How long a process may take until it is ready; a worker takes 3 on an idle machine."""

STOP_SECONDS = 12.0
"""How long a process may take to end when it is told to, before it is killed."""

TAIL_LINES = 20
"""Lines of a log that are kept, to be shown when its process fails."""

_READY = " ready: "


class ProcessFailed(Exception):
    """A process did not start or did not last: the message says which, how, and what it said last."""


class Process:
    """A command of Traction's own that runs as a process of this interpreter; `start` makes one.

    Attributes:
        name: what it is called.
        ready: the line in which it said that it is ready; empty until then.
    """

    def __init__(self, name: str, process: asyncio.subprocess.Process, output: asyncio.StreamReader) -> None:
        self.name = name
        self.ready = ""
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._process = process
        self._output = output
        self._is_ready = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        """Read the process's output to its end, since a pipe that nobody reads would hold it up."""
        while True:
            try:
                text = await self._output.readline()
            except ValueError:  # a line longer than the reader's limit
                continue
            if not text:
                return
            line = text.decode("utf-8", "replace").rstrip()
            self._tail.append(line)
            if not self.ready and _READY in line:
                self.ready = line
                self._is_ready.set()

    async def until_ready(self) -> None:
        """Wait until the process says that it is ready.

        Raises:
            ProcessFailed: it ends before, or does not come to it.
        """
        waiting = asyncio.create_task(self._is_ready.wait())
        ending = asyncio.create_task(self.lasts())
        try:
            done, _ = await asyncio.wait({waiting, ending}, timeout=READY_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if ending in done:
                ending.result()
            if not done:
                raise ProcessFailed(self._words(f"was not ready after {READY_SECONDS:.0f} seconds"))
        finally:
            waiting.cancel()
            ending.cancel()

    async def lasts(self) -> None:
        """Wait as long as the process runs, which should be for ever.

        Raises:
            ProcessFailed: it ended.
        """
        code = await self._process.wait()
        await asyncio.shield(self._reading)
        raise ProcessFailed(self._words(f"ended by itself with exit code {code}"))

    async def stop(self) -> None:
        """End the process: politely, then not."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        await self._reading

    def _words(self, what: str) -> str:
        said = "\n".join(f"  | {line}" for line in self._tail) or "  | (nothing)"
        return f"the {self.name} {what}; the last it said:\n{said}"


@contextlib.asynccontextmanager
async def start(name: str, *arguments: str) -> AsyncIterator[Process]:
    """Start a command of Traction's own, and end it on the way out.

    Args:
        name: what it is called.
        arguments: the command and its options.
    """
    command = [sys.executable, "-P", "-m", "traction", *arguments]
    if sys.platform != "win32":  # it dies with us, even when we are killed
        command = [sys.executable, "-I", "-S", "-c", TETHER, str(os.getpid()), *command]
    started = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        process_group=None if sys.platform == "win32" else 0,  # Ctrl-C reaches us alone, and we end it in order
    )
    process = Process(name, started, started.stdout or asyncio.StreamReader())
    try:
        yield process
    finally:
        await asyncio.shield(process.stop())
