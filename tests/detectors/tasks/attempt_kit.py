"""What tests of the attempt detectors share: attempts that are alike in one way only, and what is said of them."""

from schemas.testing import fix_attempt
from tests.detectors.tasks.diff_kit import written

ATTEMPT_DETECTORS = (
    "fix_break",
    "flaky_tests",
    "approach_churn",
    "diff_reversal",
    "state_cycle",
    "circular_fix",
    "too_many_attempts",
)

UNLIKE = (
    "rewrite cache layer",
    "patch database driver",
    "extend network timeout",
    "replace parser grammar",
    "migrate user sessions",
    "rename template blocks",
    "split router module",
    "drop legacy column",
    "lock shared counter",
    "shorten retry delay",
    "sort invoice rows",
    "quote shell words",
    "widen index key",
    "trim log output",
)
"""Approaches that have no word in common."""

KEY_ERROR = "KeyError: 'customer'"
TYPE_ERROR = "TypeError: unsupported operand for this"
OUTAGE = "503 Service Unavailable"


def alone(detector, **limits):
    """Return limits under which only this detector looks, with some of its own."""
    off = [name for name in ATTEMPT_DETECTORS if name != detector]
    return {"off": off, **{f"{detector}.{name}": value for name, value in limits.items()}}


def new(n, words="", **fields):
    """Return an attempt that has no word in common with those of other numbers, beside ``words``."""
    return fix_attempt(n, f"{UNLIKE[n % len(UNLIKE)]} {words}", **fields)


def swap(old, new_line, path="shop/cart.py", gap=9, more=()):
    """Return a diff that replaces one line of a file by another, and puts in more."""
    return written({path: [(gap, [old], [new_line, *more])]})


def levels(alerts):
    """Return which levels were reached by which attempt, by its position from 1."""
    return [(alert.level, alert.seq + 1) for alert in alerts]


def brief(alerts):
    """Return the same with the detectors."""
    return [(alert.level, alert.detector, alert.seq + 1) for alert in alerts]
