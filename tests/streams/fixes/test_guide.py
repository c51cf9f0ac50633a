"""What the circular-fix detection guide says, where it does not contradict itself: figures, strategies, scenarios."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.events import FixAttempt as FixAttemptEvent
from schemas.outputs import Strategy
from streams.fixes import AlternativeStrategy, CircularFixDetector, FixOutcome
from tests.streams.fixes_kit import APART, FAILED, configured, failing

MISSING = "ModuleNotFoundError: No module named 'requests'"
REFUSED = "AuthError: token of session 4711 is invalid"


@pytest.fixture
def detector():
    """Give a detector whose history is in memory."""
    with CircularFixDetector() as detector:
        yield detector


@pytest.mark.parametrize(
    ("one", "other", "share"),
    [
        ("Fixed import statement in main.py", "Updated import statement in main.py", 3 / 5),
        ("Fixed the bug", "Updated the bug fix", 1 / 3),
        ("Fixed the import statement", "Updated import statement", 1 / 2),
    ],
)
def test_the_worked_figures_come_out(detector, one, other, share):
    """60 %, 33 % and 50 %, as the guide works them out."""
    assert detector.calculate_jaccard_similarity(one, other) == pytest.approx(share)


@given(one=st.text(), other=st.text())
def test_similarity_is_symmetrical_and_a_share(one, other):
    """Of whatever texts, and 1 for a text and itself, unless nothing of it counts."""
    with CircularFixDetector() as detector:
        share = detector.calculate_jaccard_similarity(one, other)
        assert 0 <= share <= 1
        assert share == detector.calculate_jaccard_similarity(other, one)
        assert detector.calculate_jaccard_similarity(one, one) in {0, 1}


def test_names_are_those_of_the_contract():
    """Outcomes and strategies are spelt as in the records on the topics."""
    (outcomes,) = [get_args(kind)[0] for kind in [FixAttemptEvent.__annotations__["outcome"]]]
    assert {each.value for each in FixOutcome} == set(get_args(outcomes))
    assert {each.value for each in AlternativeStrategy} == set(get_args(Strategy))


def test_the_manual_test_is_circular(detector):
    """Three attempts that are worded alike, and a fourth."""
    for number in range(3):
        detector.record_attempt("test-task", f"Fix attempt {number + 1} for the bug", ["bug.py"], FixOutcome.FAILED)

    assert detector.is_circular_fix("test-task", "Another fix for the bug").is_circular


def test_two_similar_attempts_make_a_circle_and_one_does_not(detector):
    """The least number of similar attempts; they are named with what they have in common."""
    failing(detector, "Raise the timeout of the client")
    once = detector.is_circular_fix("task", "Raise the timeout of the server")
    failing(detector, "Raise the timeout of the pool")
    twice = detector.is_circular_fix("task", "Raise the timeout of the server")

    assert (once.is_circular, once.suggested_strategy) == (False, None)
    assert once.reasoning == "Attempts like it count 1 of the last 5 that failed; 2 make a circle."
    assert twice.is_circular
    assert [each.number for each in twice.similar_attempts] == [1, 2]
    assert {each.word_similarity for each in twice.similar_attempts} == {0.5}
    assert {each.diff_similarity for each in twice.similar_attempts} == {None}


@pytest.mark.parametrize(
    ("approach", "circular"),
    [
        ("alpha bravo charlie delta echo foxtrot", True),  # 3 of 10
        ("alpha bravo charlie delta echo foxtrot golf", False),  # 3 of 11
    ],
)
def test_the_threshold_itself_counts(detector, approach, circular):
    """30 % of the words in common are enough, less is not."""
    for _ in range(2):
        failing(detector, "alpha bravo charlie november oscar papa quebec")

    assert detector.is_circular_fix("task", approach).is_circular == circular


@pytest.mark.parametrize(("window", "circular"), [(3, False), (4, True)])
def test_only_the_latest_attempts_are_looked_at(tmp_path, window, circular):
    """Two similar attempts count while both are in the window."""
    with configured(tmp_path, {"history_management": {"lookback_window": window}}) as detector:
        for approach in ("Raise the timeout", "Raise the timeout", *APART[:2]):
            failing(detector, approach)

        assert detector.is_circular_fix("task", "Raise the timeout").is_circular == circular


@pytest.mark.parametrize("attempts", [5, 6, 7])
def test_more_than_five_attempts_go_to_a_person(detector, attempts):
    """Scenario 3: approaches that have nothing in common, and all failed."""
    for number in range(attempts):
        failing(detector, APART[number], f"{number}.py")
    result = detector.is_circular_fix("task", "whiskey")

    assert result.is_circular == (attempts > 5)
    if attempts > 5:
        assert result.suggested_strategy is AlternativeStrategy.ESCALATE_HUMAN
        assert result.reasoning == f"Already tried {attempts} times. Human intervention recommended."


def test_too_many_attempts_come_before_similarity(detector):
    """The first strategy of the table that fits is suggested."""
    for _ in range(6):
        failing(detector, "Raise the timeout", "client.py")
    result = detector.is_circular_fix("task", "Raise the timeout")
    assert result.suggested_strategy is AlternativeStrategy.ESCALATE_HUMAN


@pytest.mark.parametrize(
    ("approach", "strategy"),
    [
        ("alpha bravo charlie delta echo foxtrot golf hotel xray", AlternativeStrategy.DIFFERENT_METHOD),  # 8 of 11
        ("alpha bravo charlie delta echo foxtrot golf", AlternativeStrategy.DIFFERENT_FILES),  # 7 of 10: not more
    ],
)
def test_more_than_seventy_percent_call_for_another_method(detector, approach, strategy):
    """70 % are not more than 70 %; then the next row of the table fits."""
    for _ in range(2):
        failing(detector, "alpha bravo charlie delta echo foxtrot golf hotel india juliet", "auth.py")

    assert detector.is_circular_fix("task", approach).suggested_strategy is strategy


@pytest.mark.parametrize(
    ("files", "strategy"),
    [
        (("auth.py", "auth.py", "auth.py"), AlternativeStrategy.DIFFERENT_FILES),
        (("auth.py", "auth.py", "user.py"), AlternativeStrategy.DIFFERENT_FILES),
        (("auth.py", "user.py", "data.py"), AlternativeStrategy.ANALYZE_ROOT_CAUSE),
        (("", "", ""), AlternativeStrategy.ANALYZE_ROOT_CAUSE),
    ],
)
def test_the_same_one_or_two_files_call_for_others(detector, files, strategy):
    """Three are too many for that; where none is named nothing is said of files."""
    for number, file in enumerate(files):
        failing(detector, f"Raise the timeout {APART[number]}", file)
    result = detector.is_circular_fix("task", "Raise the timeout whiskey")

    assert result.suggested_strategy is strategy
    if strategy is AlternativeStrategy.DIFFERENT_FILES:
        assert "Repeatedly modifying auth.py" in result.reasoning


@pytest.mark.parametrize("files", [None, ["main.py"]])
def test_scenario_1_a_missing_package_is_not_mended_by_imports(detector, files):
    """The third import edit with the same error of the same file; its words have next to nothing in common."""
    asked = []
    for approach in (
        "Added 'import requests' to file",
        "Changed to 'from requests import *'",
        "Modified import to use absolute path",
    ):
        asked.append(detector.is_circular_fix("task", approach, files=files))
        failing(detector, approach, "main.py", MISSING)

    assert [each.is_circular for each in asked] == [False, False, True]
    assert asked[-1].suggested_strategy is AlternativeStrategy.ANALYZE_ROOT_CAUSE
    assert "is installed" in asked[-1].advice
    assert "Check that the package that provides requests is installed" in asked[-1].advice
    assert len(asked[-1].similar_attempts) == 2


@pytest.mark.parametrize(
    ("error", "circular"),
    [
        (None, [False, False, False, True]),
        ("Authentication still failing", [False, False, False, True]),
        (REFUSED, [False, False, True, True]),  # an error that names what went wrong says more
    ],
)
def test_scenario_2_one_file_again_and_again(detector, error, circular):
    """The fourth attempt at one file, of which the guide says no more than that it failed."""
    asked = []
    for approach in (
        "Fixed authentication in auth.py",
        "Updated login logic in auth.py",
        "Modified auth validation in auth.py",
        "Changed authentication flow in auth.py",
    ):
        asked.append(detector.is_circular_fix("task", approach))
        failing(detector, approach, "auth.py", error)

    assert [each.is_circular for each in asked] == circular
    assert asked[-1].suggested_strategy is AlternativeStrategy.DIFFERENT_FILES
    assert "Repeatedly modifying auth.py" in asked[-1].reasoning


def test_changes_are_reported_apart_from_words(detector):
    """The same change in other words: the words say nothing, the changes all."""
    change = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n context\n-timeout = 1\n+timeout = 2\n"
    for approach in APART[:2]:
        detector.record_attempt("task", approach, ["a.py"], FAILED, diff=change)
    result = detector.is_circular_fix("task", "whiskey", diff=change)

    assert result.is_circular
    assert [(each.word_similarity, each.diff_similarity) for each in result.similar_attempts] == [(0, 1), (0, 1)]


def test_what_got_further_is_no_circle(detector):
    """A partial success in between: what failed before it counts no more."""
    for outcome in (FAILED, FAILED, FixOutcome.PARTIAL, FAILED):
        detector.record_attempt("task", "Raise the timeout", ["client.py"], outcome)
    assert not detector.is_circular_fix("task", "Raise the timeout").is_circular


def test_skipped_attempts_do_not_count(detector):
    """What was not tried did not fail."""
    for _ in range(6):
        detector.record_attempt("task", "Raise the timeout", ["client.py"], FixOutcome.SKIPPED)
    assert not detector.is_circular_fix("task", "Raise the timeout").is_circular
