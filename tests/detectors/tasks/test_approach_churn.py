"""Approach churn: what was left is taken up again, from both sides of each limit."""

from typing import Any

import pytest

from schemas.testing import fix_attempt
from tests.detectors.tasks.attempt_kit import KEY_ERROR, OUTAGE, TYPE_ERROR, UNLIKE, alone, brief, levels, swap

ALONE = alone("approach_churn")
STRONG: dict[str, Any] = {"files": ("shop/cart.py",), "error_message": KEY_ERROR}


def row(letters, first=1, **fields):
    """Return attempts of the approaches A, B, C and so on, in this order."""
    return [fix_attempt(n, UNLIKE["ABCDEF".index(letter)], **fields) for n, letter in enumerate(letters, first)]


@pytest.mark.parametrize(
    ("letters", "wanted"),
    [
        ("AB", []),
        ("ABC", []),
        ("AAAAA", []),
        ("AABBCC", []),
        ("ABA", [("warn", 3)]),
        ("ABBA", [("warn", 4)]),
        ("ABCA", [("warn", 4)]),
        ("ABAA", [("warn", 3)]),
        ("ABCDA", [("warn", 5)]),
        ("ABAB", [("warn", 3), ("terminate", 4)]),
        ("ABCAB", [("warn", 4), ("warn", 5)]),
        ("ABCABC", [("warn", 4), ("warn", 5), ("terminate", 6)]),
        ("CABAB", [("warn", 4), ("terminate", 5)]),
        ("ABACA", [("warn", 3)]),
    ],
)
def test_the_first_return_is_a_warning_and_the_second_full_round_ends_it(heard, letters, wanted):
    """A, B, A; then the same approaches in the same order once more. Going on with one is no return."""
    assert levels(heard(row(letters, **STRONG), ALONE)) == wanted


@pytest.mark.parametrize(
    ("limits", "letters", "wanted"),
    [
        ({"warn": 2}, "ABA", []),
        ({"warn": 2, "terminate": 3}, "ABCAB", ["warn"]),
        ({"terminate": 3}, "ABABA", ["warn", "warn"]),
        ({"terminate": 3}, "ABABAB", ["warn", "warn", "terminate"]),
    ],
)
def test_set_limits_are_the_ones_that_count(heard, limits, letters, wanted):
    """Returns to a warning, and full rounds to the end."""
    assert [level for level, _ in levels(heard(row(letters, **STRONG), alone("approach_churn", **limits)))] == wanted


@pytest.mark.parametrize(("similarity", "wanted"), [(0.59, 1), (0.60, 1), (0.61, 0), (0.70, 0)])
def test_so_many_words_in_common_make_one_approach(heard, similarity, wanted):
    """3 of 5, against what is set; 70 % by itself, since attempts of one task have words in common anyway."""
    words = ("guard basket totals upfront", UNLIKE[0], "guard basket totals afterwards")
    events = [fix_attempt(n, text, **STRONG) for n, text in enumerate(words)]
    assert len(heard(events, alone("approach_churn", similarity=similarity))) == wanted


def test_words_alone_never_terminate_and_do_with_a_second_kind_of_evidence(heard):
    """The same change, or the same failure of the same files."""
    assert {level for level, _ in levels(heard(row("ABABABAB"), ALONE))} == {"warn"}
    diffs = [swap("a", "b"), swap("c", "d")]
    changes = [fix_attempt(n, UNLIKE[n % 2], diff=diffs[n % 2]) for n in range(4)]
    assert levels(heard(changes, ALONE)) == [("warn", 3), ("terminate", 4)]


def test_without_words_nearly_the_same_change_is_one_approach(heard):
    """Ten lines in common and one that is not."""
    lines = tuple(f"line {n}" for n in range(20))
    diffs = (swap("a", "b", more=lines), swap("c", "d", "shop/tax.py"), swap("a", "b", more=(*lines, "another")))
    assert levels(heard([fix_attempt(n, diff=diff) for n, diff in enumerate(diffs)], ALONE)) == [("warn", 3)]
    other = (*diffs[:2], swap("a", "b", more=lines[:10]))
    assert heard([fix_attempt(n, diff=diff) for n, diff in enumerate(other)], ALONE) == []


def test_the_alert_shows_both_sides_and_how_alike_they_are(heard):
    """From the first attempt of the approach to its return; then the rounds."""
    first, end = heard(row("CABAB", **STRONG), ALONE)
    assert first.evidence.attempt_ids == ("attempt-2", "attempt-3", "attempt-4")
    assert (first.count, end.count, first.limits[0].value, end.limits[0].value) == (1, 2, 1, 2)
    assert end.evidence.attempt_ids == ("attempt-2", "attempt-3", "attempt-4", "attempt-5")
    assert (first.pattern, first.suggested_strategy) == ("approach_churn", "different_method")
    assert (first.evidence.word_similarity, first.evidence.diff_similarity) == (1.0, None)
    assert first.loop_id == end.loop_id
    assert first.first_seen == row("CABAB", **STRONG)[1].occurred_at
    assert "tried before and given up" in first.reasoning
    assert "2 full rounds of the same 2 approaches" in end.reasoning


@pytest.mark.parametrize("fields", [{"outcome": "partial"}, {"failing": ("t1",)}])
def test_progress_makes_what_was_tried_before_worth_trying_again(heard, fields):
    """Something has changed since: a partial success, and fewer failing checks than ever."""
    before = {"failing": ("t1", "t2")}
    further = row("C", 3, **{**before, **fields})
    after = {**before, **fields, "outcome": "failed"}
    assert heard([*row("AB", **before), *further, *row("A", 4, **after)], ALONE) == []
    assert len(heard([*row("AB", **before), *further, *row("ABA", 4, **after)], ALONE)) == 1


def test_a_return_that_gets_further_is_no_churn(heard):
    """Back to A, and fewer checks fail than ever: it was right to go back."""
    counts = [("t1", "t2"), ("t1", "t2"), ("t1",)]
    events = [fix_attempt(n, UNLIKE[n % 2], failing=failing) for n, failing in enumerate(counts)]
    assert heard(events, ALONE) == []
    worse = [*events[:2], fix_attempt(2, UNLIKE[0], failing=("t1", "t2"))]
    assert len(heard(worse, ALONE)) == 1


def test_a_success_clears(heard):
    """Both sides of it begin anew."""
    done = fix_attempt(3, UNLIKE[5], outcome="success")
    assert heard([*row("AB"), done, *row("AB", 4)], ALONE) == []
    assert len(heard([*row("AB"), done, *row("ABA", 4)], ALONE)) == 1


def test_outages_between_neither_add_nor_clear(heard):
    """B was never tried to its end; A was, and then B."""
    outage = {"error_message": OUTAGE}
    assert heard([*row("A"), *row("B", 2, **outage), *row("A", 3)], ALONE) == []
    assert len(heard([*row("AB"), *row("CD", 3, **outage), *row("A", 5)], ALONE)) == 1


def test_one_loop_that_several_detectors_see_is_warned_of_once_and_ended_as_one(heard):
    """Words, changes, failures and states go to and fro together."""
    sides = (
        {"approach": UNLIKE[0], "files": ("a.py",), "diff": swap("a", "b"), "failing": ("test_one",)},
        {"approach": UNLIKE[1], "files": ("a.py",), "diff": swap("b", "a"), "failing": ("test_two",)},
    )
    alerts = heard([fix_attempt(n, error_message=TYPE_ERROR, **sides[n % 2]) for n in range(9)])
    loud = [(level, at) for level, _, at in brief(alerts) if level in {"warn", "terminate"}]
    assert loud[:2] == [("warn", 3), ("terminate", 4)]
    assert {level for level, _ in loud[2:]} <= {"terminate"}, "at double the count, since it goes on"
    assert len({alert.loop_id for alert in alerts}) == 1


@pytest.mark.parametrize("fields", [{}, {"files": ("a.py",)}, {"error_message": KEY_ERROR}, {"failing": ("t",)}])
def test_attempts_without_words_or_changes_are_of_no_approach(heard, fields):
    """Nothing is known to have come back."""
    assert heard([fix_attempt(n, **fields) for n in range(6)], ALONE) == []
