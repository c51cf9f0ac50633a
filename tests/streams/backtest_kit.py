"""What the tests of `traction backtest` and `traction train` share: sessions, labels, and how the commands are run."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from streams.cli import traction

ALERT = 10
"""The call at which `spinning` is warned: the third of the same."""


def line(session, seq, command, result="a"):
    """Give a line of the neutral form."""
    return {
        "session_id": session,
        "seq": seq,
        "tool": "bash",
        "args": {"command": command},
        "result": result,
        "error": False,
    }


def spinning(session, times=6):
    """Give a session of eight different calls and then one call again and again: warned at #10, terminated at #12."""
    start = [line(session, seq, f"cat {seq}", f"text {seq}") for seq in range(ALERT - 2)]
    return start + [line(session, seq, "ls") for seq in range(ALERT - 2, ALERT - 2 + times)]


def working(session):
    """Give a session in which nothing repeats."""
    return [line(session, seq, f"cat {seq}", f"text {seq}") for seq in range(6)]


def write(path, values):
    """Write JSON lines."""
    path.write_text("".join(f"{json.dumps(value)}\n" for value in values), "utf-8")
    return path


def label(session, kind, **fields):
    """Give a label."""
    return {"session_id": session, "label": kind} | fields


LABELS = [
    label("x/at-five", "loop", first_loop_seq=ALERT - 5, pattern="exact_repeat"),
    label("x/at-six", "loop", first_loop_seq=ALERT - 6, pattern="exact_repeat"),
    label("x/missed", "loop", first_loop_seq=2, pattern="subtle", why="says the same in other words"),
    label("x/false", "healthy", why="waits for a build"),
    label("x/hard", "healthy", why="hard: polls"),
    label("x/well", "healthy"),
    label("x/unclear", "ambiguous"),
]


def run(command, *arguments, before=()):
    """Run a command in this process, with one job unless `--jobs` is among the arguments."""
    words = [*before, command, "--jobs", "1", *arguments]
    return CliRunner().invoke(traction, [str(word) for word in words], standalone_mode=False)


def code(result):
    """Give the exit code: what the command returned, or the error's."""
    problem = result.exception
    return getattr(problem, "exit_code", None) if problem else result.return_value


@contextlib.contextmanager
def running(*words):
    """Run a command in a process and a group of its own, as a shell does; in the end nothing of the group is left."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "traction", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def children(pid):
    """Give the processes that a process started."""
    every = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [each for each in every if _stat(each)[1:2] == [str(pid)]]


def alive(pid):
    """Tell whether a process lives."""
    return _stat(pid)[:1] not in ([], ["Z"])


def _stat(pid):
    """Give what the system says of a process: its state, its parent, and more; nothing when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
