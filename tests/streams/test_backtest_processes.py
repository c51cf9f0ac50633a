"""The processes of `traction backtest`: an interruption ends them, and none outlives its parent."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.streams.backtest_kit import LABELS, spinning, write

COMMAND = [sys.executable, "-P", "-m", "traction", "backtest"]


def stat(pid):
    """Give what the system says of a process: its state, its parent, and more; nothing when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def children(pid):
    """Give the processes that a process started."""
    every = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [each for each in every if stat(each)[1:2] == [str(pid)]]


def alive(pid):
    """Tell whether a process lives."""
    return stat(pid)[:1] not in ([], ["Z"])


def until(condition):
    """Wait for a condition."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture
def long_run(tmp_path):
    """Start a run of several processes that takes long, in a group of its own as a shell does."""
    labels = write(tmp_path / "labels.jsonl", LABELS)
    many = tmp_path / "many.jsonl"
    with many.open("w") as file:
        for n in range(20_000):
            file.writelines(f"{json.dumps(call)}\n" for call in spinning(f"m{n}", times=2))
    process = subprocess.Popen(
        [*COMMAND, "--jobs", "2", "--labels", str(labels), str(many)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    yield process
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.parametrize("started", [1, 2, 3])
def test_an_interruption_ends_it_at_once(long_run, started):
    """Ctrl-C, which reaches all processes, ends it with 130 and without a stack trace, also while they are starting."""
    until(lambda: len(children(long_run.pid)) >= started)
    begun = children(long_run.pid)
    os.killpg(long_run.pid, signal.SIGINT)
    out, err = long_run.communicate(timeout=30)
    assert (long_run.returncode, out) == (130, b"")
    assert err.strip() == b""
    until(lambda: not any(alive(child) for child in begun))


def test_processes_do_not_outlive_the_one_that_started_them(long_run):
    """Also when that one is killed, and can tell nobody."""
    until(lambda: len(children(long_run.pid)) >= 3)
    begun = children(long_run.pid)
    long_run.kill()
    until(lambda: not any(alive(child) for child in begun))
