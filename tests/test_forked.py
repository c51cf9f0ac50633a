"""What is forked off is as what is started: tests that use it show what people get."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from functools import partial

from tests.processes import TRACTION, TractionProcess


async def test_a_forked_command_is_a_started_one() -> None:
    """The same output and exit code, with the arguments and environment of its own; a signal ends it, and says so."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TRACTION_")}
    for words in (("worker", "--help"), ("worker", "--fast"), ("settings", "worker")):
        start = partial(subprocess.run, [TRACTION, *words], check=False, capture_output=True, text=True, env=clean)
        started = await asyncio.to_thread(start)
        forked = TractionProcess(TRACTION, *words)
        assert await forked.exit() == started.returncode
        assert (forked.lines, forked.log) == (started.stdout.splitlines(), started.stderr.rstrip("\n"))
    killed = TractionProcess(TRACTION, "ingest", "--bootstrap", "127.0.0.1:1", "--port", "0")
    assert await killed.end(signal.SIGKILL, 60) == -signal.SIGKILL
