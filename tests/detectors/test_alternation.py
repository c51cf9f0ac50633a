"""Alternation: blocks of 2 to 8 calls that repeat, each limit from both sides."""

import pytest
from msgspec import UNSET

from schemas.common import Usage
from schemas.testing import tool_call
from tests.detectors.traces import click, edit, found, in_turn, numbered, page, reached, shell, think, view


def laps(period, calls, **fields):
    """So many calls that go round a block of the given length."""
    return [tool_call(n, arguments={"command": f"./tool {n % period}"}, **fields) for n in range(calls)]


@pytest.mark.parametrize("period", range(3, 6))
def test_warns_at_the_end_of_the_third_lap_and_terminates_at_the_fifth(play, period):
    """Each period has the same limits, in whole laps."""
    assert play(laps(period, 3 * period - 1)) == []
    assert found(play(laps(period, 3 * period))) == [("warn", "alternation", 3 * period - 1)]
    assert found(play(laps(period, 5 * period - 1))) == [("warn", "alternation", 3 * period - 1)]
    assert found(play(laps(period, 5 * period))) == [
        ("warn", "alternation", 3 * period - 1),
        ("terminate", "alternation", 5 * period - 1),
    ]


@pytest.mark.parametrize("period", range(6, 9))
def test_long_blocks_are_noticed_as_revisits_first_and_terminated_all_the_same(play, period):
    """Ten calls that bring nothing new are less than three long laps; whoever warns, it is one loop."""
    alerts = play(laps(period, 6 * period))
    assert found(alerts) == [("warn", "revisits", period + 9), ("terminate", "alternation", 5 * period - 1)]
    assert len({alert.loop_id for alert in alerts}) == 1


@pytest.mark.parametrize("period", range(2, 9))
def test_the_limits_are_in_whole_laps_for_each_period(play, period):
    """Two laps where the limit says two, not a call sooner, up to the longest period."""
    limits = {"alternation": {"warn": 2, "terminate": 3}}
    assert play(laps(period, 2 * period - 1), limits) == []
    assert found(play(laps(period, 3 * period - 1), limits)) == [("warn", "alternation", 2 * period - 1)]
    assert found(play(laps(period, 3 * period), limits))[1:] == [("terminate", "alternation", 3 * period - 1)]


def test_period_two_is_one_loop_whoever_sees_it(play):
    """A-B-A-B reaches the window majority too; that is the same loop, ended anew at double the laps."""
    alerts = play(laps(2, 20))
    ends = [("terminate", "alternation", 9), ("terminate", "alternation", 19)]
    assert found(alerts) == [("warn", "alternation", 5), *ends]
    assert len({alert.loop_id for alert in alerts}) == 1


def test_blocks_longer_than_the_longest_period_are_not_seen(play):
    """Nine calls that repeat are beyond the rule; a shorter maximum narrows it."""
    assert found(play(laps(9, 90)), "alternation") == []
    assert found(play(laps(5, 60), {"alternation": {"max_period": 4}}), "alternation") == []
    assert found(play(laps(5, 60), {"alternation": {"max_period": 5}}), "alternation")


def test_equal_calls_are_not_an_alternation(play):
    """The minimal period of A-A-A is one: identical calls have a detector of their own."""
    assert {alert.detector for alert in play([shell(n, "./tool") for n in range(30)])} == {"identical"}


def test_a_multiple_of_the_period_is_not_another_loop(play):
    """A-B is not taken for A-B-A-B: the fingerprint and the calls are those of the pair."""
    alerts = play(laps(2, 40))
    assert {len(alert.evidence.calls) for alert in alerts} == {2}


def test_the_loop_is_the_same_wherever_it_is_cut(play):
    """Starting a cycle at another of its calls gives the same fingerprint."""
    first = play(laps(3, 9))
    shifted = play([tool_call(n, arguments={"command": f"./tool {(n + 1) % 3}"}) for n in range(9)])
    assert first[0].loop_id == shifted[0].loop_id


def test_results_that_move_are_progress(play):
    """The same round with a new answer each time is work."""
    assert play([shell(n, f"./tool {n % 3}", f"item {n}") for n in range(60)]) == []


def test_a_broken_lap_starts_over(play):
    """Laps count only while each equals the one before."""
    assert found(play(laps(4, 12))) == [("warn", "alternation", 11)]
    assert play(numbered([*laps(4, 6), shell(6, "./other"), *laps(4, 7)])) == []
    assert play(numbered([*laps(4, 11), shell(11, "./tool 3", "another answer")])) == []


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


UNDO = [edit(0, "retry.py", "limit = 5"), edit(1, "retry.py", "limit = 3"), shell(2, "./bench", "41 ms")]
"""A lap in which something is changed, changed back, and measured to no effect."""


@pytest.mark.parametrize(("limit", "laps_of_it"), [("edited_warn", 4), ("edited_terminate", 6)])
def test_laps_with_an_accepted_edit_have_limits_of_their_own(play, limit, laps_of_it):
    """An edit moved something, though it was undone: four laps warn, six terminate."""
    assert limit not in {alert.limits[0].name.partition(".")[2] for alert in play(numbered(UNDO * laps_of_it)[:-1])}
    alerts = play(numbered(UNDO * laps_of_it))
    level = limit.removeprefix("edited_")
    assert reached(alerts, "alternation")[-1] == (level, f"alternation.{limit}", 3 * laps_of_it - 1)


def test_laps_with_a_refused_edit_have_the_common_limits(play):
    """What was refused moved nothing."""
    refused = edit(0, "retry.py", "limit = 5", "no such text in the file", error="no_match")
    alone = {"error_streak.same_call_warn": 50, "error_streak.same_call_terminate": 99, "same_write.warn": 12}
    alone |= {"same_write.terminate": 12}
    assert reached(play(numbered([refused, view(1, "other.py")] * 3), alone), "alternation.warn")


def test_an_edit_and_its_undoing_are_one_loop(play):
    """The rules for equal edits see the same calls go round: whoever speaks first, people hear of one loop."""
    alerts = play(numbered(UNDO[:2] * 8))
    assert {alert.level for alert in alerts} == {"warn", "terminate"}
    assert len({alert.loop_id for alert in alerts}) == 1


def test_reading_two_files_in_turn_is_one_loop(play):
    """The rules for rereads see the same calls go round: it is warned about once and ended once."""
    alerts = play(in_turn([view(n, "a.py", "text of a") for n in range(9)], [view(n, "b.py", "b") for n in range(9)]))
    assert [alert.level for alert in alerts if alert.level != "notice"] == ["warn", "terminate"]


@pytest.mark.parametrize("buttons", [("Open menu", "Close menu"), ("Next page", "Scroll up")])
def test_unrecorded_interactions_warn_at_five_laps(play, buttons):
    """Open, close, open, close: answered by nothing but a word, fewer laps are enough, and none terminates."""
    events = in_turn(*([click(n, button) for n in range(30)] for button in buttons))
    limit = "alternation.unrecorded_interaction_warn"
    assert play(events[:9]) == []
    assert reached(play(events[:10]), "") == [("warn", limit, 9)]
    assert {alert.level for alert in play(events)} == {"warn"}


def test_an_interaction_and_another_unrecorded_call_keep_ten_laps(play):
    """Only where all of the block presses or types is the picture the reason that nothing was recorded."""
    waits = [tool_call(n, "fetch_metrics", {"host": "a"}, UNSET, status=None) for n in range(10)]
    assert play(in_turn([click(n, "Refresh") for n in range(10)], waits)[:19]) == []


def test_two_pages_in_turn_terminate_at_five_laps(play):
    """Where pages are shown, going back and forth between two of them is a loop like any other."""
    there = [click(n, "Details", page("https://shop.example/7")) for n in range(5)]
    back = [click(n, "Back", page("https://shop.example/list")) for n in range(5)]
    assert found(play(in_turn(there, back))) == [("warn", "alternation", 5), ("terminate", "alternation", 9)]


def test_an_outage_met_by_two_calls_in_turn_terminates_nobody(play):
    """It passes by itself: a warning tells the agent to wait, and that is all."""
    events = [tool_call(n, "search_docs", {"q": f"topic {n % 2}"}, "503 service unavailable") for n in range(20)]
    assert {alert.level for alert in play(events)} == {"warn"}


def test_thoughts_in_between_do_not_hide_a_loop(play):
    """Talk neither adds nor clears: A and B in turn are a loop though a new thought goes before each."""
    rounds = [shell(n, f"./tool {n % 2}", "no change") for n in range(20)]
    alerts = play(in_turn([think(n, f"perhaps the other one, {n}") for n in range(20)], rounds))
    assert {alert.level for alert in alerts} & {"warn", "terminate"}
