"""Which alerts name a call that may be refused when it is asked for again: where that would be right, and no other."""

from typing import Any

import pytest

from detectors import Limits
from detectors.call import print_of_call
from schemas.testing import tool_call
from tests.detectors.traces import click, edit, shell, work

TOOLS = Limits().tools


def repeats(alerts: list[Any]) -> list[tuple[str, ...]]:
    """Give what alerts name."""
    return [alert.evidence.repeats for alert in alerts]


def test_equal_calls_in_a_row_and_as_a_majority_are_named(play):
    """The loop is nothing but the call, and each alert of it says so."""
    (named,) = {print_of_call(tool_call(n), TOOLS) for n in range(5)}
    assert named
    assert repeats(play([tool_call(n) for n in range(5)])) == [(named,), (named,)]
    mixed = [tool_call(n) if n % 3 else work(n) for n in range(12)]
    found = [alert for alert in play(mixed) if alert.limits[0].name.startswith("identical.window")]
    assert set(repeats(found)) == {(named,)}


@pytest.mark.parametrize(
    "events",
    [
        [tool_call(n, result=None) for n in range(20)],
        [shell(n, "gh run watch 17; sleep 1", "in progress") for n in range(40)],
        [shell(n, "curl -s localhost:8080/health", "connection refused") for n in range(40)],
        [click(n, "Buy", "Nothing happened on this page, sorry about it.") for n in range(12)],
        [shell(n, "pytest", "1 failed") if n % 2 else edit(n, "a.py", "new") for n in range(24)],
    ],
    ids=["unrecorded", "a poll", "an outage", "an interaction", "edits and checks in turn"],
)
def test_what_may_be_right_the_next_time_is_not_named(play, events):
    """Calls that wait, whose results are not known, or that belong to a longer cycle, are not refused."""
    alerts = play(events)
    assert alerts
    assert set(repeats(alerts)) == {()}
