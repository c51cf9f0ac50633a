"""The processes of `traction backtest`: an interruption ends them, and none outlives its parent."""

from __future__ import annotations

import json
import os
import signal

import pytest

from tests.streams.backtest_kit import LABELS, alive, children, running, spinning, write
from tests.waiting import SOON_SECONDS, wait_until


@pytest.fixture
def long_run(tmp_path):
    """Start a run of several processes that takes long."""
    labels = write(tmp_path / "labels.jsonl", LABELS)
    many = tmp_path / "many.jsonl"
    with many.open("w") as file:
        for n in range(20_000):
            file.writelines(f"{json.dumps(call)}\n" for call in spinning(f"m{n}", times=2))
    with running("backtest", "--jobs", 2, "--labels", labels, many) as process:
        yield process


@pytest.mark.parametrize("started", [1, 2, 3])
def test_an_interruption_ends_it_at_once(long_run, started):
    """Ctrl-C, which reaches all processes, ends it with 130 and without a stack trace, also while they are starting."""
    wait_until(lambda: len(children(long_run.pid)) >= started)
    begun = children(long_run.pid)
    os.killpg(long_run.pid, signal.SIGINT)
    out, err = long_run.communicate(timeout=SOON_SECONDS)
    assert (long_run.returncode, out) == (130, b"")
    assert err.strip() == b""
    wait_until(lambda: not any(alive(child) for child in begun))


def test_processes_do_not_outlive_the_one_that_started_them(long_run):
    """Also when that one is killed, and can tell nobody."""
    wait_until(lambda: len(children(long_run.pid)) >= 3)
    begun = children(long_run.pid)
    long_run.kill()
    wait_until(lambda: not any(alive(child) for child in begun))
