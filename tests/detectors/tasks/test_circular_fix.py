"""Circular fix: attempts like failed ones, each limit from both sides, and which evidence may terminate."""

import pytest

from detectors import Limits
from detectors.tasks.attempt import read_attempt
from detectors.tasks.circular_fix import judge
from schemas.testing import fix_attempt
from tests.detectors.tasks.attempt_kit import KEY_ERROR, OUTAGE, TYPE_ERROR, UNLIKE, alone, brief, levels, new, swap

ALONE = alone("circular_fix")
IMPORTS = (
    "Added 'import requests' to file",
    "Changed to 'from requests import *'",
    "Modified import to use absolute path",
)
LOGIN = (
    "Fixed authentication in auth.py",
    "Updated login logic in auth.py",
    "Modified auth validation in auth.py",
    "Changed authentication flow in auth.py",
)
SAME = "guard empty basket totals"


def told(approaches, **fields):
    """Return failed attempts of these approaches, from number 1."""
    return [fix_attempt(n, approach, **fields) for n, approach in enumerate(approaches, 1)]


def same(count, first=1, **fields):
    """Return attempts in the same words."""
    return [fix_attempt(n, SAME, **fields) for n in range(first, first + count)]


def test_the_guides_import_loop_is_found_at_the_third_attempt_with_the_advice_to_install(heard):
    """Scenario 1: one word in common, the same missing module from the same file."""
    events = told(IMPORTS, files=("main.py",), error_message="ModuleNotFoundError: No module named 'requests'")
    assert heard(events[:2]) == []
    (alert,) = heard(events)
    assert (alert.level, alert.detector, alert.seq) == ("warn", "circular_fix", 2)
    assert (alert.suggested_strategy, alert.pattern) == ("analyze_root_cause", "approach_churn")
    assert "Check that the package that provides requests is installed" in alert.reasoning
    assert "Check that the package that provides requests is installed" in alert.guidance
    assert alert.evidence.attempt_ids == ("attempt-1", "attempt-2", "attempt-3")
    assert alert.evidence.error is not None
    assert "ModuleNotFoundError" in alert.evidence.error


@pytest.mark.parametrize("error", [None, "Authentication still failing"])
def test_the_guides_authentication_loop_is_found_at_the_fourth_attempt(heard, error):
    """Scenario 2: two thirds in common with none, but the same vague failure in the same file."""
    events = told(LOGIN, files=("src/auth.py",), error_message=error)
    assert heard(events[:3]) == []
    (alert,) = heard(events)
    assert (alert.level, alert.detector, alert.count) == ("warn", "circular_fix", 2)
    assert alert.suggested_strategy == "different_files"
    assert "auth.py" in alert.reasoning


def test_the_guides_seven_different_attempts_are_handed_to_a_person(heard):
    """Scenario 3: more than five, and the seventh is told how often it was."""
    events = [new(n, files=(f"src/{n}.py",)) for n in range(1, 8)]
    (alert,) = heard(events)
    assert (alert.detector, alert.seq, alert.suggested_strategy) == ("too_many_attempts", 5, "escalate_human")
    candidate = read_attempt(fix_attempt(8, UNLIKE[8], outcome="skipped"), Limits())
    verdict = judge([read_attempt(event, Limits()) for event in events], candidate, Limits())
    assert verdict.circular
    assert verdict.suggestion is not None
    assert verdict.suggestion.strategy == "escalate_human"
    assert "Already tried 7 times" in verdict.suggestion.reasoning


def test_the_guides_own_test_is_circular():
    """Three attempts told apart by a number, and another one that is about to be made."""
    limits = Limits()
    approaches = [f"Fix attempt {n} for the bug" for n in (1, 2, 3)]
    history = [read_attempt(event, limits) for event in told(approaches, files=("bug.py",))]
    candidate = read_attempt(fix_attempt(9, "Another fix for the bug", outcome="skipped"), limits)
    assert judge(history, candidate, limits).circular
    assert not judge(history[:1], candidate, limits).circular
    assert not judge([], candidate, limits).circular


@pytest.mark.parametrize(("warn", "before", "wanted"), [(2, 1, []), (2, 2, [3]), (3, 2, []), (3, 3, [4]), (1, 1, [2])])
def test_so_many_similar_attempts_are_a_warning(heard, warn, before, wanted):
    """At least two of those that failed (circular-fix guide), or as many as is set."""
    alerts = heard(same(before + 1), {**ALONE, "circular_fix.warn": warn, "circular_fix.terminate": 9})
    assert levels(alerts) == [("warn", n) for n in wanted]


@pytest.mark.parametrize(
    ("similarity", "common", "own", "wanted"),
    [(0.30, 3, 3, 1), (0.30, 3, 4, 0), (0.60, 3, 1, 1), (0.61, 3, 1, 0), (0.20, 2, 4, 1), (0.21, 2, 4, 0)],
)
def test_so_many_words_in_common_are_similar(heard, similarity, common, own, wanted):
    """3 of 9 are a third, 3 of 11 are 0.27, 3 of 5 are 0.60, 2 of 10 are 0.20: the limit itself is reached."""
    shared = ("basket", "voucher", "rounding")[:common]
    approaches = [" ".join((*shared, *(f"{letter * 3}{k}" for k in range(own)))) for letter in "xyz"]
    assert len(heard(told(approaches), {**ALONE, "circular_fix.similarity": similarity})) == wanted


@pytest.mark.parametrize(("lookback", "between", "wanted"), [(5, 3, 1), (5, 4, 0), (6, 4, 1), (2, 0, 1), (2, 1, 0)])
def test_only_the_latest_failed_attempts_count(heard, lookback, between, wanted):
    """Two like it, with others in between: as many as fit into the last five, or as is set."""
    others = [new(n) for n in range(10, 10 + between)]
    events = [*same(2), *others, *same(1, first=30)]
    assert len(heard(events, alone("circular_fix", lookback=lookback))) == wanted


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({}, False),
        ({"files": ("a.py",)}, False),
        ({"error_message": KEY_ERROR}, False),
        ({"files": ("a.py",), "error_message": KEY_ERROR}, True),
        ({"files": ("a.py",), "failing": ("test_total",), "error_message": KEY_ERROR}, True),
        ({"diff": swap("a", "b")}, True),
    ],
)
def test_words_alone_never_terminate_and_do_with_a_second_kind_of_evidence(heard, fields, wanted):
    """The same files and the same specific error, or the same change."""
    found = levels(heard(same(8, **fields), ALONE))
    assert ("warn", 3) in found
    assert ("terminate" in {level for level, _ in found}) == wanted


def test_three_attempts_with_two_kinds_of_evidence_terminate_the_fourth(heard):
    """The warning first, at the third; then the limit for a terminate, from both sides."""
    both = {"files": ("a.py",), "error_message": KEY_ERROR}
    assert levels(heard(same(3, **both), ALONE)) == [("warn", 3)]
    assert levels(heard(same(4, **both), ALONE)) == [("warn", 3), ("terminate", 4)]
    later = {**ALONE, "circular_fix.terminate": 4}
    assert levels(heard(same(4, **both), later)) == [("warn", 3)]
    assert levels(heard(same(5, **both), later)) == [("warn", 3), ("terminate", 5)]


def test_words_that_another_detector_bears_out_terminate(heard):
    """The same change again is a kind of evidence of its own; that there were many attempts is none."""
    limits = {"off": ["approach_churn", "fix_break"]}
    assert "terminate" not in {level for level, *_ in brief(heard(same(9), limits))}
    both = same(6, files=("a.py",), error_message="the check fails")
    assert "terminate" in {level for level, *_ in brief(heard(both, limits))}


@pytest.mark.parametrize("last", [{"outcome": "partial"}, {"failing": ("t1",)}])
def test_progress_makes_what_failed_before_no_longer_count(heard, last):
    """A partial success, and fewer failing checks: two like those after it are needed again."""
    before = same(2, failing=("t1", "t2"))
    after = same(2, first=4, failing=("t1",))
    assert heard([*before, *same(1, first=3, **last), *after[:1]], ALONE) == []
    without = [*before, *same(1, first=3, failing=("t1", "t2"))]
    assert levels(heard(without, ALONE)) == [("warn", 3)]


def test_a_success_clears(heard):
    """The same words afterwards begin anew."""
    done = fix_attempt(3, SAME, outcome="success")
    assert heard([*same(2), done, *same(2, first=4)], ALONE) == []
    assert len(heard([*same(2), done, *same(3, first=4)], ALONE)) == 1


@pytest.mark.parametrize("fields", [{"error_message": OUTAGE}, {"outcome": "skipped"}, {"outcome": "partial"}])
def test_what_did_not_fail_for_good_is_not_counted(heard, fields):
    """An outage passes by itself, who skips tried nothing, and a part is progress."""
    assert heard(same(5, **fields), ALONE) == []


def test_outages_between_neither_add_nor_clear(heard):
    """Two failures and any number of outages are two failures."""
    outages = same(3, first=10, error_message=OUTAGE, failing=("t1",))
    failed = {"failing": ("t1", "t2")}
    assert heard([*same(1, **failed), *outages, *same(1, first=2, **failed)], ALONE) == []
    assert levels(heard([*same(2, **failed), *outages, *same(1, first=3, **failed)], ALONE)) == [("warn", 6)]


def test_changes_without_a_common_line_that_fail_in_other_ways_are_not_alike(heard):
    """Half the words in common is how any two attempts of one task are worded."""
    words = ("guard basket totals upfront", "guard basket totals instead", "guard basket totals afterwards")
    errors = (KEY_ERROR, TYPE_ERROR, "ValueError: no such thing here")
    apart = [
        fix_attempt(n, text, diff=swap(f"x{n}", f"y{n}"), error_message=error)
        for n, (text, error) in enumerate(zip(words, errors, strict=True))
    ]
    assert heard(apart, ALONE) == []
    alike = [fix_attempt(n, text, diff=swap(f"x{n}", f"y{n}"), error_message=KEY_ERROR) for n, text in enumerate(words)]
    assert levels(heard(alike, ALONE)) == [("warn", 3)]


def test_the_alert_says_how_alike_words_and_changes_are(heard):
    """The highest of each, apart."""
    words = ("guard basket totals upfront", "guard basket totals instead", "guard basket totals afterwards")
    diffs = (swap("a", "b"), swap("a", "b", more=("c",)), swap("a", "b", more=("d",)))
    events = [fix_attempt(n, text, diff=diff) for n, (text, diff) in enumerate(zip(words, diffs, strict=True), 1)]
    (alert,) = heard(events, ALONE)
    assert alert.evidence.word_similarity == pytest.approx(3 / 5)
    assert alert.evidence.diff_similarity == pytest.approx(2 / 3, abs=0.001)
    assert "alike by 0.60 in words and 0.67 in changes" in alert.reasoning
    assert "circular_fix.warn = 2, set by default" in alert.reasoning
    assert alert.evidence.attempt_ids == ("attempt-1", "attempt-2", "attempt-3")
    assert alert.evidence.calls == words


@pytest.mark.parametrize("fields", [{}, {"files": ("a.py",)}, {"error_message": KEY_ERROR}, {"failing": ("t",)}])
def test_attempts_without_words_or_changes_are_not_alike_by_one_thing_alone(heard, fields):
    """The same file is where a task is solved, and the same failure is what it is about; vague ones count half."""
    alerts = heard([fix_attempt(n, **fields) for n in range(5)], ALONE)
    assert "terminate" not in {alert.level for alert in alerts}
    assert not [alert for alert in alerts if not alert.evidence.attempt_ids]
    assert alerts == []
