"""Alternation: blocks of 2 to 8 calls that repeat, each limit from both sides."""

import pytest
from msgspec import UNSET

from schemas.common import Usage
from schemas.testing import tool_call


def laps(period, calls, **fields):
    """So many calls that go round a block of the given length."""
    return [tool_call(n, arguments={"command": f"step {n % period}"}, **fields) for n in range(calls)]


def found(alerts):
    """Level, detector and position of each alert."""
    return [(alert.level, alert.detector, alert.seq) for alert in alerts]


@pytest.mark.parametrize("period", range(3, 9))
def test_warns_at_the_end_of_the_third_lap_and_terminates_at_the_fifth(play, period):
    """Each period from 3 to 8 has the same limits, in whole laps."""
    assert play(laps(period, 3 * period - 1)) == []
    assert found(play(laps(period, 3 * period))) == [("warn", "alternation", 3 * period - 1)]
    assert found(play(laps(period, 5 * period - 1))) == [("warn", "alternation", 3 * period - 1)]
    assert found(play(laps(period, 5 * period))) == [
        ("warn", "alternation", 3 * period - 1),
        ("terminate", "alternation", 5 * period - 1),
    ]


def test_period_two_is_one_loop_whoever_sees_it(play):
    """A-B-A-B reaches the window majority too; that is the same loop, warned and ended once."""
    alerts = play(laps(2, 20))
    assert found(alerts) == [("warn", "alternation", 5), ("terminate", "alternation", 9)]
    assert len({alert.loop_id for alert in alerts}) == 1


def test_blocks_longer_than_the_longest_period_are_not_seen(play):
    """Nine calls that repeat are beyond the rule; a shorter maximum narrows it."""
    assert play(laps(9, 90)) == []
    assert play(laps(5, 60), {"alternation": {"max_period": 4}}) == []


def test_equal_calls_are_not_an_alternation(play):
    """The minimal period of A-A-A is one: identical calls have a detector of their own."""
    assert {alert.detector for alert in play([tool_call(n) for n in range(30)])} == {"identical"}


def test_a_multiple_of_the_period_is_not_another_loop(play):
    """A-B is not taken for A-B-A-B: the fingerprint and the calls are those of the pair."""
    alerts = play(laps(2, 40))
    assert {len(alert.evidence.calls) for alert in alerts} == {2}


def test_the_loop_is_the_same_wherever_it_is_cut(play):
    """Starting a cycle at another of its calls gives the same fingerprint."""
    first = play(laps(3, 9))
    shifted = play([tool_call(n, arguments={"command": f"step {(n + 1) % 3}"}) for n in range(9)])
    assert first[0].loop_id == shifted[0].loop_id


def test_results_that_move_are_progress(play):
    """The same round with a new answer each time is work."""
    assert play([tool_call(n, arguments={"command": f"step {n % 3}"}, result=f"item {n}") for n in range(60)]) == []


def test_a_broken_lap_starts_over(play):
    """Laps count only while each equals the one before."""
    events = [*laps(4, 11), tool_call(11, arguments={"command": "other"})]
    events += [tool_call(12 + n, arguments={"command": f"step {n % 4}"}) for n in range(11)]
    assert play(events) == []


@pytest.mark.parametrize(("calls", "count"), [(29, 0), (30, 1)])
def test_without_results_only_a_warning_at_ten_laps(play, calls, count):
    """Rounds of calls whose results were not recorded may be work that nobody saw."""
    alerts = play(laps(3, calls, result=UNSET, status=None))
    assert [alert.level for alert in alerts] == ["warn"] * count


def test_a_block_that_polls_has_three_times_the_limits(play):
    """Wait, look, wait, look is how one waits."""
    events = [tool_call(n, arguments={"command": "sleep 5" if n % 2 else "gh run view"}) for n in range(30)]
    assert found(play(events[:17])) == []
    assert found(play(events)) == [("warn", "alternation", 17), ("terminate", "alternation", 29)]


def test_wasted_tokens_are_those_from_the_second_lap_on(play):
    """The first lap was work; what repeats it is waste."""
    (alert,) = play(laps(3, 9, usage=Usage(input_tokens=90, output_tokens=10)))
    assert (alert.tokens_wasted, alert.wasted_estimated) == (600, False)
