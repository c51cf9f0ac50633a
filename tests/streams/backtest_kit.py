"""Sessions and labels of the tests of `traction backtest`, and how they are written."""

from __future__ import annotations

import json

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
