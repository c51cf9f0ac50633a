"""Commands of ours in processes of their own, as people start them, for tests to signal and to listen to."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.forked import Forked, nursery
from tests.waiting import SOON_SECONDS

TRACTION = str(Path(sys.executable).parent / "traction")
"""The command, of the environment that runs the tests."""


class TractionProcess:
    """A running command that prints a ready line with its partitions.

    Args:
        command: program and arguments.
    """

    def __init__(self, *command: str) -> None:
        # Only what tells Python where it is: settings in the tester's environment must not reach the process.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TRACTION_")}
        ours = command[0] == TRACTION or command[:2] == (sys.executable, "-m")
        self.popen: Forked | subprocess.Popen[str] = (
            nursery().start(command, environment)
            if ours
            else subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        )
        self.lines: list[str] = []
        self.errors: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=(stream, kept), daemon=True)
            for stream, kept in ((self.popen.stdout, self.lines), (self.popen.stderr, self.errors))
        ]
        for reader in self._readers:
            reader.start()

    @staticmethod
    def _read(stream: Any, kept: list[str]) -> None:
        kept.extend(line.rstrip("\n") for line in stream)

    @property
    def partitions(self) -> set[int]:
        """The partitions of the latest ready line."""
        named = self.lines[-1].partition("partitions ")[2].partition(" of ")[0] if self.lines else ""
        return {int(number) for number in named.split(", ") if number.isdigit()}

    @property
    def log(self) -> str:
        """What it wrote to standard error."""
        return "\n".join(self.errors)

    async def ready(self, partitions: int | None = None, *, after: int = 0, seconds: float = SOON_SECONDS) -> str:
        """Wait for a ready line, with so many partitions or any, and give the pages' address.

        Args:
            partitions: how many it should have; None for any number.
            after: how many ready lines to leave out.
            seconds: how long to wait.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.popen.poll() is None:
            if len(self.lines) > after and partitions in {None, len(self.partitions)}:
                return self.lines[-1].rpartition(" ")[2]
            await asyncio.sleep(0.05)
        raise AssertionError(f"not ready: exit {self.popen.poll()}, {self.lines}, {self.log}")

    def send(self, number: int) -> None:
        """Send a signal."""
        self.popen.send_signal(number)

    async def end(self, number: int = signal.SIGTERM, seconds: float = SOON_SECONDS) -> int:
        """End it with a signal, and give its exit code."""
        self.send(number)
        return await self.exit(seconds)

    async def exit(self, seconds: float = SOON_SECONDS) -> int:
        """Wait until it has ended and all that it wrote was read, and give its exit code."""
        code = await asyncio.to_thread(self.popen.wait, seconds)
        for reader in self._readers:
            await asyncio.to_thread(reader.join, seconds)
        return code

    def kill(self) -> None:
        """End it at once, frozen or not."""
        self.popen.kill()
        self.popen.wait()
