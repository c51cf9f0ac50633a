"""What tests of the spin score share: playing, a session that spins, and limits that any score reaches."""

from detectors import Limits, SessionState, limits_from, observe
from schemas.testing import tool_call
from tests.detectors.traces import numbered, view


def played(events, limits=None):
    """Play events; give the alerts and the state."""
    made = limits if isinstance(limits, Limits) else limits_from([("test", limits or {})])
    state = SessionState()
    return [alert for event in events for alert in observe(state, event, made)], state


def scores(events, limits=None):
    """The score after each event."""
    made, state, heard = limits_from([("test", limits or {})]), SessionState(), []
    for event in events:
        observe(state, event, made)
        heard.append(state.spin.score)
    return heard


ALONE = {
    "off": [
        "identical", "alternation", "error_streak", "same_failure", "same_write", "refused_edits", "stuck_check",
        "same_answer", "fruitless_search", "revisits", "rereads", "analysis", "category", "budget",
    ]
}  # fmt: skip
"""The score without the rules."""


def look(n):
    """A read that brings news."""
    return view(n, f"src/part_{n}.py", f"def part_{n}(): pass\nreturn {n}")


def refused(n):
    """One of ever other fixes, each refused for one reason."""
    return tool_call(
        n, "write_fix", {"path": "src/Dose.java", "line": 40 + n % 3, "code": f"if (dose > {n}) return;"},
        "Error: the fix does not compile: ';' expected before the end", status="ok",
    )  # fmt: skip


SPINNING = [*map(look, range(10)), *map(refused, range(10, 30))]

EAGER = {"spin_score.notice": 1e-6, "spin_score.warn": 2e-6}
"""Limits that any score reaches."""


def sequence(*parts):
    """Calls of several stretches, numbered through."""
    return numbered(call for part in parts for call in part)
