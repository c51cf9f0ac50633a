"""The command's words and ends: wrong settings are told before anything is connected, and faults end it at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from streams.worker.faults import EXIT_LOST
from tests.waiting import SOON_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the `traction` command."""
    program = Path(sys.executable).parent / "traction"
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_help_has_examples() -> None:
    """The help shows how it is called, the ready line and the exit codes."""
    found = command("worker", "--help")
    assert found.returncode == 0
    for words in ("traction worker --bootstrap kafka:9092", "worker ready: partitions", "Exit codes:"):
        assert words in found.stdout


def test_wrong_limits(tmp_path: Path) -> None:
    """A limit that does not exist is told with the file's name, and exit code 2."""
    config = tmp_path / "traction.toml"
    config.write_text("[limits.identical]\nwran = 4\n", "utf-8")
    found = command("--config", str(config), "worker")
    assert found.returncode == 2
    assert "there is no limit 'identical.wran'" in found.stderr
    assert str(config) in found.stderr


def test_no_broker() -> None:
    """Brokers that cannot be reached are told in a sentence, with exit code 1."""
    found = command("worker", "--bootstrap", "127.0.0.1:1", "--port", "0")
    assert found.returncode == 1
    assert "127.0.0.1:1 cannot be used" in found.stderr
    assert "Traceback" not in found.stderr


ABANDON = """
import logging, threading, time
from streams.worker.faults import abandon
logging.basicConfig()
threading.Thread(target=time.sleep, args=(600,)).start()
print("told", end="")
abandon(3, "why")
"""


@pytest.fixture
def abandoned() -> Iterator[subprocess.Popen[str]]:
    """Give a process that abandons its work while a thread of it goes on for ever."""
    with subprocess.Popen([sys.executable, "-c", ABANDON], stdout=-1, stderr=-1, text=True) as process:
        yield process
        process.kill()


def test_abandoning_waits_for_nothing(abandoned: subprocess.Popen[str]) -> None:
    """The process ends though a thread runs, with its code, what it had printed, and why."""
    out, err = abandoned.communicate(timeout=SOON_SECONDS)
    assert (abandoned.returncode, out) == (EXIT_LOST, "told")
    assert "why" in err


def test_a_second_signal_ends_it_at_once() -> None:
    """Whoever presses Ctrl-C twice does not wait for brokers that are away."""
    code = (
        "import asyncio, os, signal\n"
        "from streams.worker.run import stop_signals\n"
        "async def main():\n"
        "    with stop_signals() as stop:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        await stop.wait()\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    found = subprocess.run([sys.executable, "-c", code], timeout=30, check=False, env=dict(os.environ))
    assert found.returncode == 128 + signal.SIGINT


def test_a_store_on_disk_needs_a_directory() -> None:
    """Without --state-dir it is wrong use, and the message names the flag; a store of another name is refused too."""
    found = command("worker", "--state-store", "rocksdb")
    assert found.returncode == 2
    assert "give --state-dir" in found.stderr
    assert command("worker", "--state-store", "paper").returncode == 2


def test_a_directory_needs_a_store_on_disk(tmp_path: Path) -> None:
    """Without --state-store rocksdb --state-dir would do nothing: it is wrong use, and the message names both."""
    found = command("worker", "--state-dir", str(tmp_path))
    assert found.returncode == 2
    assert "give --state-store rocksdb, or leave --state-dir out" in " ".join(found.stderr.split())
