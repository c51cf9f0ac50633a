"""Diff reversal: a change takes back the one before it, each limit from both sides. Shares are `reversal`'s own."""

import pytest

from schemas.events import Replacement
from schemas.testing import fix_attempt
from tests.detectors.tasks.attempt_kit import OUTAGE, alone, brief, levels, new, swap
from tests.detectors.tasks.diff_kit import written

ALONE = alone("diff_reversal")
THERE, BACK = swap("return 1", "return 2"), swap("return 2", "return 1")
ELSEWHERE = swap("port = 1", "port = 2", "shop/settings.py")


def told(*diffs, **fields):
    """Return failed attempts with these changes, from number 1."""
    return [fix_attempt(n, diff=diff, **fields) for n, diff in enumerate(diffs, 1)]


def to_and_fro(count, **fields):
    """Return attempts each of which takes back the one before it."""
    return told(*((THERE, BACK)[n % 2] for n in range(count)), **fields)


@pytest.mark.parametrize(
    ("count", "wanted"),
    [
        (1, []),
        (2, [("notice", 2)]),
        (3, [("notice", 2), ("warn", 3)]),
        (4, [("notice", 2), ("warn", 3)]),
        (5, [("notice", 2), ("warn", 3), ("terminate", 5)]),
        (8, [("notice", 2), ("warn", 3), ("terminate", 5)]),
        (9, [("notice", 2), ("warn", 3), ("terminate", 5), ("terminate", 9)]),
    ],
)
def test_one_reversal_is_a_notice_two_are_a_warning_and_four_the_end(heard, count, wanted):
    """Of the same lines."""
    assert levels(heard(to_and_fro(count), ALONE)) == wanted


@pytest.mark.parametrize(
    ("limits", "count", "wanted"),
    [
        ({"notice": 2}, 2, []),
        ({"notice": 2, "warn": 3}, 3, ["notice"]),
        ({"warn": 3}, 3, ["notice", "notice"]),  # twice as often as at the first
        ({"warn": 3}, 4, ["notice", "notice", "warn"]),
        ({"terminate": 3}, 3, ["notice", "warn"]),
        ({"terminate": 3}, 4, ["notice", "warn", "terminate"]),
    ],
)
def test_set_limits_are_the_ones_that_count(heard, limits, count, wanted):
    """Each from both sides."""
    assert [level for level, _ in levels(heard(to_and_fro(count), alone("diff_reversal", **limits)))] == wanted


@pytest.mark.parametrize(
    ("share", "back", "wanted"), [(0.7, 7, 1), (0.7, 6, 0), (0.6, 6, 1), (0.61, 6, 0), (1.0, 10, 1), (1.0, 9, 0)]
)
def test_so_much_of_the_change_before_is_taken_back(heard, share, back, wanted):
    """Of ten lines that were put in: seven are 70 %, or as much as is set."""
    lines = [f"line {n}" for n in range(10)]
    first = written({"shop/cart.py": [(9, [], lines)]})
    second = written({"shop/cart.py": [(9, lines[:back], [])]})
    assert len(heard(told(first, second), alone("diff_reversal", share=share))) == wanted


def test_what_a_later_attempt_takes_back_is_compared_past_attempts_at_other_files(heard):
    """The change before it in the same files, whatever lies between."""
    assert levels(heard(told(THERE, ELSEWHERE, BACK), ALONE)) == [("notice", 3)]


def test_reversals_of_different_lines_are_different_loops(heard):
    """One notice each, no warning."""
    other = swap("port = 2", "port = 1", "shop/settings.py")
    alerts = heard(told(THERE, BACK, ELSEWHERE, other), ALONE)
    assert levels(alerts) == [("notice", 2), ("notice", 4)]
    assert len({alert.loop_id for alert in alerts}) == 2


def test_the_same_change_again_takes_nothing_back(heard):
    """The direction counts."""
    assert heard(told(THERE, THERE, THERE), ALONE) == []


def test_texts_in_place_of_a_diff_are_taken_back_likewise(heard):
    """Old and new texts say the same."""
    sides = (
        Replacement(path="a.py", old="return 1", new="return 2"),
        Replacement(path="a.py", old="return 2", new="return 1"),
    )
    events = [fix_attempt(n, replacements=(sides[n % 2],)) for n in range(3)]
    assert levels(heard(events, ALONE)) == [("notice", 2), ("warn", 3)]


def test_whole_contents_in_turn_are_taken_back_likewise(heard):
    """Of a file that is sent whole each time, the third content takes back what the second made of the first."""
    texts = ("total = sum(rows)\nreturn total", "total = 0\nreturn total")
    events = [fix_attempt(n, replacements=(Replacement(path="a.py", new=texts[n % 2]),)) for n in range(4)]
    assert [level for level, _ in levels(heard(events, ALONE))] == ["notice", "warn"]


@pytest.mark.parametrize("fields", [{"outcome": "skipped"}, {"error_message": OUTAGE}])
def test_what_was_not_judged_neither_adds_nor_is_taken_back(heard, fields):
    """Given up untried, or stopped by an outage."""
    assert heard([*told(THERE), fix_attempt(2, diff=BACK, **fields)], ALONE) == []
    events = [*told(THERE), fix_attempt(2, diff=THERE, **fields), fix_attempt(3, diff=BACK)]
    assert levels(heard(events, ALONE)) == [("notice", 3)]


def test_a_success_clears(heard):
    """The next change of these lines takes nothing back that is still open."""
    done = fix_attempt(3, diff=ELSEWHERE, outcome="success")
    assert levels(heard([*to_and_fro(2), done, fix_attempt(4, diff=THERE)], ALONE)) == [("notice", 2)]


def test_the_alert_says_how_much_was_taken_back_and_by_whom(heard):
    """The share, how often, and the attempts of either side."""
    events = [new(n, diff=(THERE, BACK)[n % 2], files=("shop/cart.py",)) for n in range(1, 4)]
    alert = heard(events, ALONE)[-1]
    assert (alert.level, alert.count, alert.limits[0].name) == ("warn", 2, "diff_reversal.warn")
    assert "takes back 100 % of the one before it, as 1 did before in the same lines" in alert.reasoning
    assert alert.evidence.attempt_ids == ("attempt-1", "attempt-2", "attempt-3")
    assert (alert.pattern, alert.suggested_strategy) == ("fix_break_oscillation", "different_files")
    assert (alert.evidence.word_similarity, alert.evidence.diff_similarity) == (0.0, 0.0)


def test_one_loop_is_warned_of_once_and_ended_as_one_whoever_sees_it(heard):
    """Reversals, returns and churn at once."""
    alerts = heard(to_and_fro(9, files=("shop/cart.py",), error_message="KeyError: 'customer'"))
    loud = [level for level, _, _ in brief(alerts) if level in {"warn", "terminate"}]
    assert loud[:2] == ["warn", "terminate"]
    assert set(loud[2:]) <= {"terminate"}
    assert len({alert.loop_id for alert in alerts if alert.level != "notice"}) == 1


@pytest.mark.parametrize("diff", [None, "", "no diff at all", "+++ b/only/a/name.py"])
def test_without_a_change_nothing_is_taken_back(heard, diff):
    """Files, words and failures say nothing of it."""
    events = [fix_attempt(n, "guard totals", diff=diff, files=("a.py",), error_message="oops") for n in range(5)]
    assert heard(events, ALONE) == []
