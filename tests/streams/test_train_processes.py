"""The processes of `traction train`: interruptions while it measures and while it learns."""

from __future__ import annotations

import json
import os
import signal

import pytest

from tests.streams.backtest_kit import alive, children, label, running, spinning, write
from tests.waiting import SOON_SECONDS, wait_until


@pytest.fixture
def long_run(tmp_path):
    """Start a run that measures for long."""
    names = [f"s/{n}" for n in range(4_000)]
    labels = write(tmp_path / "labels.jsonl", [label(name, "loop", first_loop_seq=8) for name in names])
    many = tmp_path / "many.jsonl"
    with many.open("w") as file:
        for name in names:
            file.writelines(f"{json.dumps(call)}\n" for call in spinning(name, times=8))
    output = tmp_path / "weights.json"
    with running("train", "--jobs", 2, "--labels", labels, "--output", output, many) as process:
        yield process


def test_an_interruption_ends_it_at_once(long_run, tmp_path):
    """Ctrl-C, which reaches all processes, ends it with 130, without a stack trace, a file, or a process left."""
    wait_until(lambda: len(children(long_run.pid)) >= 3)
    begun = children(long_run.pid)
    os.killpg(long_run.pid, signal.SIGINT)
    out, err = long_run.communicate(timeout=SOON_SECONDS)
    assert (long_run.returncode, out, err.strip()) == (130, b"", b"")
    wait_until(lambda: not any(alive(child) for child in begun))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels.jsonl", "many.jsonl"]
