"""Flaky-test loop: checks come back though no change concerns them, each limit from both sides."""

import pytest

from schemas.testing import fix_attempt
from tests.detectors.tasks.attempt_kit import OUTAGE, UNLIKE, alone, brief, levels, new

ALONE = alone("flaky_tests")


def row(failing, first=1, **fields):
    """Return attempts after each of which one check fails, a letter each, and that touch another file each time."""
    return [
        fix_attempt(n, failing=(f"check_{letter}",), **{"files": (f"shop/{UNLIKE[n].split()[1]}.py",), **fields})
        for n, letter in enumerate(failing, first)
    ]


@pytest.mark.parametrize(
    ("failing", "wanted"),
    [
        ("xyzxy", []),
        ("xyzxyz", [("warn", 6)]),
        ("xyzxwy", []),
        ("xyzxwyvz", [("warn", 8)]),
        ("xyzxyw", []),
        ("xyxyxyxy", []),
        ("vwxyz", []),
        ("xxxxxx", []),
    ],
)
def test_the_third_return_that_nothing_concerns_is_a_warning(heard, failing, wanted):
    """Of three checks at least: two that take turns are a fix that breaks."""
    assert levels(heard(row(failing), ALONE)) == wanted


@pytest.mark.parametrize(
    ("warn", "failing", "wanted"), [(2, "xyzx", 0), (2, "xyzxy", 1), (4, "xyzxyz", 0), (4, "xyzxyzx", 1)]
)
def test_the_set_limit_is_the_one_that_counts(heard, warn, failing, wanted):
    """From both sides."""
    assert len(heard(row(failing), alone("flaky_tests", warn=warn))) == wanted


def test_it_never_terminates_alone(heard):
    """However long it goes on: warned of, and again at double the count."""
    found = levels(heard([event for at in range(0, 9, 3) for event in row("xyz", at + 1)], ALONE))
    assert found == [("warn", 6), ("warn", 9)]


def test_checks_that_come_back_with_a_change_that_concerns_them_are_not_flaky(heard):
    """By the name of the file, or since it had mended the check before."""
    by_name = [event for n, letter in enumerate("xyzxyz", 1) for event in row(letter, n, files=(f"check_{letter}.py",))]
    assert heard(by_name, ALONE) == []
    by_mending = [event for n, letter in enumerate("xyzxyz", 1) for event in row(letter, n, files=("shop/cart.py",))]
    assert heard(by_mending, ALONE) == []


def test_without_the_files_that_were_touched_nobody_knows(heard):
    """It abstains, also without names of checks."""
    assert heard(row("xyzxyz", files=()), ALONE) == []
    assert heard([fix_attempt(n, files=(f"{UNLIKE[n].split()[1]}.py",)) for n in range(9)], ALONE) == []


def test_the_alert_says_which_checks_and_what_to_do(heard):
    """The advice is to run one of them again."""
    events = [new(n, failing=(f"check_{'xyz'[n % 3]}",), files=(f"shop/{UNLIKE[n].split()[1]}.py",)) for n in range(6)]
    (alert,) = heard(events, ALONE)
    assert (alert.pattern, alert.suggested_strategy, alert.count) == ("flaky_test_loop", "analyze_root_cause", 3)
    assert "(check_y, check_z, check_x)" in alert.reasoning
    assert "without any change" in alert.guidance
    assert alert.evidence.attempt_ids == tuple(f"attempt-{n}" for n in range(1, 6))
    assert alert.limits[0].name == "flaky_tests.warn"


def test_a_success_clears(heard):
    """And what fails afterwards has not come back."""
    done = fix_attempt(4, outcome="success")
    assert heard([*row("xyz"), done, *row("xyz", 5)], ALONE) == []


def test_outages_between_neither_add_nor_clear(heard):
    """Whatever fails after them."""
    outages = row("xyz", 10, error_message=OUTAGE)
    assert heard([*row("xyzxy"), *outages], ALONE) == []
    assert levels(heard([*row("xyzxy"), *outages, *row("z", 6)], ALONE)) == [("warn", 9)]


def test_it_is_told_from_a_fix_that_breaks(heard):
    """Nor is it lost among the six attempts, which are too many as well: what tells most is said."""
    found = brief(heard(row("xyzxyz")))
    assert found == [("warn", "flaky_tests", 6)]
