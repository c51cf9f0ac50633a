"""What people read: bars, the timeline in the guide's form, the answer, the summary."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.fixes import CircularFixDetector, FixOutcome
from streams.fixes.words import answer_lines, bar, summary_lines
from tests.streams.fixes_kit import FAILED, failing


@pytest.mark.parametrize(
    ("share", "drawn"),
    [
        (0.40, "[████████░░░░░░░░░░░░] 40.00%"),
        (0.30, "[██████░░░░░░░░░░░░░░] 30.00%"),
        (0.45, "[█████████░░░░░░░░░░░] 45.00%"),
        (0.0, "[░░░░░░░░░░░░░░░░░░░░] 0.00%"),
        (0.999, "[███████████████████░] 99.90%"),
        (1.0, "[████████████████████] 100.00%"),
    ],
)
def test_the_bars_are_those_of_the_guide(share, drawn):
    """Twenty cells; the last is drawn only when everything is alike. In ASCII the same."""
    assert bar(share) == drawn
    assert bar(share, ascii_only=True) == drawn.replace("█", "#").replace("░", "-")


@given(st.integers(1, 128).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_a_cell_is_a_twentieth(share):
    """Of every share of tokens that there can be, whatever floating point makes of it."""
    common, of = share
    assert bar(common / of).count("█") == 20 * common // of


@given(st.floats(0, 1))
def test_a_bar_always_has_twenty_cells(share):
    """For every share."""
    assert len(re.findall("[█░]", bar(share))) == 20


def test_the_timeline_has_the_form_of_the_guide():
    """Each attempt with its approach, files, outcome, likeness to the one before, and time."""
    with CircularFixDetector() as detector:
        assert detector.get_visualization("fix-auth") == (
            "=== Fix Attempt History for fix-auth ===\n\nTotal Attempts: 0"
        )
        failing(detector, "Fixed import statement in main.py", "src/main.py", "it\x1b[2J fails", subtask="fix-auth")
        detector.record_attempt("fix-auth", "Updated import statement in main.py", list("abcdefg"), FixOutcome.PARTIAL)
        detector.record_attempt("fix-auth", "", [], FAILED)
        shown = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", detector.get_visualization("fix-auth"))
        assert shown == (
            "=== Fix Attempt History for fix-auth ===\n"
            "\n"
            "Total Attempts: 3\n"
            "\n"
            "Attempt #1:\n"
            "  Approach: Fixed import statement in main.py\n"
            "  Files: src/main.py\n"
            "  Outcome: failed\n"
            "  Error: it [2J fails\n"
            "  Timestamp: TIME\n"
            "\n"
            "Attempt #2:\n"
            "  Approach: Updated import statement in main.py\n"
            "  Files: a, b, c, d, e and 2 more\n"
            "  Outcome: partial\n"
            "  Similarity to previous: [████████████░░░░░░░░] 60.00%\n"
            "  Timestamp: TIME\n"
            "\n"
            "Attempt #3:\n"
            "  Approach: \n"
            "  Outcome: failed\n"
            "  Timestamp: TIME"
        )
        assert "[############--------] 60.00%" in detector.get_visualization("fix-auth", ascii_only=True)


def test_the_answer_names_what_it_rests_on():
    """The strategy, the advice where there is one, and the attempts that it is like, words and changes apart."""
    diff = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-timeout = 1\n+timeout = 2\n"
    with CircularFixDetector() as detector:
        for _ in range(2):
            detector.record_attempt("task", "Raise the timeout", ["a.py"], FAILED, diff=diff)
        lines = list(answer_lines(detector.is_circular_fix("task", "Raise the timeout", diff=diff)))
        assert lines == [
            "circular: Very high similarity (100 %). Try a completely different approach.",
            "  strategy  different_method",
            "  like      attempt #1: words 100.00%, changes 100.00%",
            "  like      attempt #2: words 100.00%, changes 100.00%",
        ]
        assert list(answer_lines(detector.is_circular_fix("task", "whiskey", files=["b.py"]))) == [
            "go on: Attempts like it count 0 of the last 5 that failed; 2 make a circle."
        ]


def test_the_summary_counts_everything():
    """Each outcome by its name, what was found, and what is left."""
    with CircularFixDetector() as detector:
        failing(detector, "x")
        detector.record_attempt("other", "y", [], FixOutcome.SUCCESS)
        assert list(summary_lines(detector.get_summary())) == [
            "2 attempts of 2 subtasks, 1.00 on average",
            "  failed     1",
            "  success    1",
            "  partial    0",
            "  skipped    0",
            "found circular 0 times",
            "remembered now: 1 attempt of 1 subtask",
        ]
