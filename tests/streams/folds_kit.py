"""Sessions of several sources, and their labels, of the tests of `traction backtest --folds source`."""

from __future__ import annotations

from tests.streams.backtest_kit import label, line, spinning

ONSET = 8
"""The first of the same calls in `spinning`."""


def busy(session, again=(15,)):
    """Give a session that works: in each call something is new, but at some it looks again at what it read before."""
    read = [seq - 4 if seq in again else seq for seq in range(20)]
    return [line(session, seq, f"cat {session}/{of}", f"text {of} of {session}") for seq, of in enumerate(read)]


def turning(session):
    """Give a loop of two calls."""
    start = [line(session, seq, f"cat {session}/{seq}", f"text {seq} of {session}") for seq in range(ONSET)]
    return start + [line(session, seq, f"ls {seq % 2}", str(seq % 2)) for seq in range(ONSET, ONSET + 12)]


LOOPS = {f"{source}/loop-{n}": make for source in "abc" for n, make in enumerate((spinning, turning))}
WELL = {f"{source}/well-{n}": (15,) for source in "abc" for n in range(3)}
HARD = {f"{source}/hard": (9, 15, 18) for source in "abc"}
FREE = ("a/free", "d/free")
"""Loops without a label; nothing of source d has one."""

LABELS = [
    *(label(name, "loop", first_loop_seq=ONSET, pattern="round") for name in LOOPS),
    *(label(name, "healthy") for name in WELL),
    *(label(name, "healthy", why="hard: looks again") for name in HARD),
    label("c/unclear", "ambiguous"),
]


def recorded():
    """Give the lines of all sessions."""
    loops = [call for name, make in LOOPS.items() for call in (make(name, 12) if make is spinning else make(name))]
    work = [call for name, again in (WELL | HARD).items() for call in busy(name, again)]
    return loops + work + [call for name in FREE for call in spinning(name, 12)] + busy("c/unclear")
