"""State cycle: approach, files and failure as they were, exactly or nearly, each limit from both sides."""

from typing import Any

import pytest

from schemas.testing import fix_attempt
from tests.detectors.tasks.attempt_kit import KEY_ERROR, OUTAGE, TYPE_ERROR, UNLIKE, alone, levels, new, swap

ALONE = alone("state_cycle")
HERE: dict[str, Any] = {"files": ("shop/cart.py",), "error_message": KEY_ERROR}


def row(letters, first=1, **fields):
    """Return attempts in these states: approaches A, B, C and so on."""
    return [
        fix_attempt(n, UNLIKE["ABCDEFG".index(letter)], **{**HERE, **fields}) for n, letter in enumerate(letters, first)
    ]


@pytest.mark.parametrize(
    ("letters", "wanted"),
    [
        ("ABCDEF", []),
        ("A", []),
        ("AA", [("warn", 2)]),
        ("ABA", [("warn", 3)]),
        ("ABCA", [("warn", 4)]),
        ("ABCDA", []),
        ("AAA", [("warn", 2), ("terminate", 3)]),
        ("ABAB", [("warn", 3), ("terminate", 4)]),
        ("ABAC", [("warn", 3)]),
        ("ABACA", [("warn", 3)]),
    ],
)
def test_a_state_within_the_last_three_is_a_warning_and_two_returns_in_a_row_the_end(heard, letters, wanted):
    """Flapping and convergence: 3 iterations."""
    assert levels(heard(row(letters), ALONE)) == wanted


@pytest.mark.parametrize(
    ("limits", "letters", "wanted"),
    [
        ({"window": 4}, "ABCDA", ["warn"]),
        ({"window": 4}, "ABCDEA", []),
        ({"window": 1}, "ABA", []),
        ({"window": 1}, "AA", ["warn"]),
        ({"warn": 2.0, "terminate": 3.0}, "ABA", []),
        ({"warn": 2.0, "terminate": 3.0}, "ABAB", ["warn"]),
        ({"terminate": 3.0}, "ABAB", ["warn", "warn"]),
        ({"terminate": 3.0}, "ABABA", ["warn", "warn", "terminate"]),
    ],
)
def test_set_limits_are_the_ones_that_count(heard, limits, letters, wanted):
    """The window, and the weights of both levels."""
    assert [level for level, _ in levels(heard(row(letters), alone("state_cycle", **limits)))] == wanted


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        ({}, 1),
        ({"error_message": TYPE_ERROR}, 0),
        ({"error_message": None}, 0),
        ({"files": ("shop/tax.py",)}, 0),
        ({"files": ()}, 0),
        ({"failing": ("test_total",)}, 0),
        ({"error_message": "KeyError: 'supplier'"}, 0),
    ],
)
def test_the_same_state_is_the_same_approach_files_and_failure(heard, changed, wanted):
    """Another of these, or none, is another state."""
    assert len(heard([*row("A"), *row("A", 2, **changed)], ALONE)) == wanted


def test_named_checks_decide_where_there_are_any(heard):
    """Unless they fail by another error than before."""
    one = row("A", failing=("test_total", "test_tax"))
    assert len(heard([*one, *row("A", 2, failing=("test_tax", "test_total"))], ALONE)) == 1
    assert heard([*one, *row("A", 2, failing=("test_tax", "test_total"), error_message=TYPE_ERROR)], ALONE) == []
    assert heard([*one, *row("A", 2, failing=("test_total", "test_sum"))], ALONE) == []


@pytest.mark.parametrize(("count", "wanted"), [(2, []), (3, [("warn", 3)]), (4, [("warn", 3)]), (5, ["", ""])])
def test_nearly_the_same_counts_half(heard, count, wanted):
    """Eleven words of twelve in common, or nearly the same change: two such returns are one, four are two."""
    words = " ".join(f"word{letter}" for letter in "bcdfghjklmnpqrstvwxz")
    lines = tuple(f"line {n}" for n in range(30))
    by_words = [fix_attempt(n, f"{words} own{'abcdef'[n] * 3}", **HERE) for n in range(count)]
    by_change = [fix_attempt(n, diff=swap("a", "b", more=(*lines, f"own {n}")), **HERE) for n in range(count)]
    for events in (by_words, by_change):
        found = levels(heard(events, ALONE))
        assert found == wanted if count < 5 else found == [("warn", 3), ("terminate", 5)]


def test_less_than_nearly_the_same_does_not_count(heard):
    """Three words of five, half the lines."""
    words = [fix_attempt(n, f"guard basket totals {UNLIKE[n].split()[0]}", **HERE) for n in range(5)]
    assert heard(words, ALONE) == []
    changes = [fix_attempt(n, diff=swap(f"a{n}", "b", more=("c",)), **HERE) for n in range(5)]
    assert heard(changes, ALONE) == []


def test_a_tree_that_is_as_it_was_counts_half_while_nothing_else_is_known(heard):
    """Its digest alone: A, B, A, B, A, B are four returns, of which the second warns."""
    events = [fix_attempt(n, state_digest="AB"[n % 2]) for n in range(7)]
    assert levels(heard(events[:3], ALONE)) == []
    assert levels(heard(events, ALONE)) == [("warn", 4), ("terminate", 6)]
    assert len({alert.loop_id for alert in heard(events, ALONE)}) == 1
    assert heard([fix_attempt(n, state_digest=str(n)) for n in range(7)], ALONE) == []


def test_the_alert_compares_with_the_state_that_was_returned_to(heard):
    """Not with the first of the cycle: the second time in B it is B that is wholly alike."""
    first, end = heard(row("ABAB"), ALONE)
    assert (first.evidence.word_similarity, end.evidence.word_similarity) == (1.0, 1.0)
    assert (end.suggested_strategy, end.pattern) == ("different_method", "approach_churn")
    assert end.evidence.attempt_ids == ("attempt-1", "attempt-2", "attempt-3", "attempt-4")
    assert (first.count, end.count) == (1, 2)
    assert end.limits[0].name == "state_cycle.terminate"
    assert "within the last 3 attempts" in first.reasoning
    assert first.evidence.error == "KeyError: <~>"


def test_outages_between_neither_add_nor_clear(heard):
    """They are no iterations at all."""
    outages = [new(n, error_message=OUTAGE) for n in range(10, 14)]
    assert levels(heard([*row("A"), *outages, *row("A", 2)], ALONE)) == [("warn", 6)]
    assert heard(row("AAAA", error_message=OUTAGE), ALONE) == []


def test_a_success_clears(heard):
    """The same state afterwards is a new one."""
    done = fix_attempt(3, outcome="success")
    assert heard([*row("A"), done, *row("A", 4)], ALONE) == []


@pytest.mark.parametrize(
    "fields", [{}, {"approach": "guard totals"}, {"files": ("a.py",)}, {"error_message": KEY_ERROR}]
)
def test_states_of_which_too_little_is_known_are_not_the_same(heard, fields):
    """One of the three says nothing by itself."""
    assert heard([fix_attempt(n, **fields) for n in range(6)], ALONE) == []
