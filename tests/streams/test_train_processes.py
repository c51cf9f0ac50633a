"""The processes of `traction train`: interruptions while it measures and while it learns."""

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

from tests.streams.backtest_kit import label, spinning, write

COMMAND = [sys.executable, "-P", "-m", "traction", "train", "--jobs", "2"]


def children(pid):
    """Give the processes that a process started."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid):
    """Tell whether a process lives."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(condition):
    """Wait for a condition."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture
def long_run(tmp_path):
    """Start a run that measures for long, in a group of its own as a shell does."""
    names = [f"s/{n}" for n in range(4_000)]
    labels = [label(name, "loop", first_loop_seq=8) for name in names]
    many = tmp_path / "many.jsonl"
    with many.open("w") as file:
        for name in names:
            file.writelines(f"{json.dumps(call)}\n" for call in spinning(name, times=8))
    process = subprocess.Popen(
        [
            *COMMAND, "--labels", str(write(tmp_path / "labels.jsonl", labels)),
            "--output", str(tmp_path / "weights.json"), str(many),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    yield process
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def test_an_interruption_ends_it_at_once(long_run, tmp_path):
    """Ctrl-C, which reaches all processes, ends it with 130, without a stack trace, a file, or a process left."""
    until(lambda: len(children(long_run.pid)) >= 3)
    begun = children(long_run.pid)
    os.killpg(long_run.pid, signal.SIGINT)
    out, err = long_run.communicate(timeout=30)
    assert (long_run.returncode, out, err.strip()) == (130, b"", b"")
    until(lambda: not any(alive(child) for child in begun))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels.jsonl", "many.jsonl"]
