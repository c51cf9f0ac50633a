"""Calls that were not made on our own word: a pause counts for nothing, asking again for what repeats does."""

import pytest
from msgspec import UNSET

from detectors.denial import CLASSES, own_denial
from schemas.common import ErrorInfo
from schemas.testing import tool_call

MAKE = {"command": "make test"}
REPEAT, PAUSE = ErrorInfo(type=CLASSES["repeat"]), ErrorInfo(type=CLASSES["other"])


def failing(n):
    """The same check with the same failure."""
    return tool_call(n, arguments=MAKE, result="FAILED tests/test_a.py::test_b - AssertionError", status="error")


def denied(n, error, arguments=None):
    """A call that was denied on our word."""
    return tool_call(n, arguments=arguments or MAKE, result=UNSET, error=error, status="denied")


def levels(alerts):
    """What was alerted, and at which call."""
    return [(alert.level, alert.detector, alert.seq) for alert in alerts]


def test_no_word_of_a_result_is_taken_for_a_denial(play):
    """Only whoever had the call denied says so, by its class: what tools and agents write hides nothing."""
    text = "[Traction] This call was not made: the session is paused."
    events = [tool_call(n, arguments=MAKE, result=text, status="error") for n in range(5)]
    assert {own_denial(event) for event in events} == {None}
    assert levels(play(events))[-1] == ("terminate", "identical", 4)
    assert own_denial(denied(0, REPEAT)) == "repeat"
    assert own_denial(denied(0, PAUSE)) == "other"
    assert own_denial(denied(0, ErrorInfo(type="PermissionError"))) is None


@pytest.mark.parametrize("count", [1, 60])
@pytest.mark.parametrize("arguments", [lambda _: MAKE, lambda n: {"command": f"ls d{n}"}], ids=["same", "others"])
def test_a_pause_alone_leads_to_nothing(play, count, arguments):
    """However many calls are denied in it, a pause neither warns nor adds to the loop that led to it, nor clears it."""
    pause = [denied(n, PAUSE, arguments(n)) for n in range(3, 3 + count)]
    alerts = play([*(failing(n) for n in range(3)), *pause, failing(100), failing(101)])
    assert levels(alerts)[:1] == [("warn", "identical", 2)]
    assert levels(alerts)[-1][:2] == ("terminate", "identical")
    assert {alert.count for alert in alerts} == {3, 5}
    assert play([*pause, *pause]) == []


@pytest.mark.parametrize(("count", "reached"), [(1, 0), (2, 1)])
def test_who_goes_on_asking_for_what_was_denied_as_a_repetition_is_terminated(play, count, reached):
    """Each time counts as one more of the call that it repeats, with the result that this one had."""
    alerts = play([*(failing(n) for n in range(3)), *(denied(3 + n, REPEAT) for n in range(count))])
    assert levels(alerts)[0] == ("warn", "identical", 2)
    assert len([alert for alert in alerts if alert.level == "terminate"]) == reached


def test_what_is_denied_as_a_repetition_of_nothing_that_is_known_does_not_count(play):
    """As when the worker has forgotten the session, or the call's arguments were not told."""
    assert play([denied(n, REPEAT) for n in range(30)]) == []
    assert play([*(failing(n) for n in range(2)), *(denied(2 + n, REPEAT, {"command": "ls"}) for n in range(30))]) == []


def test_what_others_deny_counts_as_before(play):
    """A tool that policy or a person refuses ten times is a loop, whatever was denied on our word in between."""
    refused = [tool_call(2 * n, "deploy", {"n": n}, "not allowed", status="denied") for n in range(10)]
    ours = [denied(2 * n + 1, PAUSE, {"n": n}) for n in range(10)]
    mixed = [event for pair in zip(refused, ours, strict=True) for event in pair]
    assert ("terminate", "error_streak") in {each[:2] for each in levels(play(mixed))}
