"""Fix-break oscillation: what was fixed fails again, each limit from both sides, by checks, errors and files."""

import pytest

from schemas.testing import fix_attempt, tool_call
from tests.detectors.tasks.attempt_kit import KEY_ERROR, OUTAGE, TYPE_ERROR, UNLIKE, alone, levels, new

ALONE = alone("fix_break")


def row(failing, first=1, **fields):
    """Return attempts after each of which these checks fail, a letter each."""
    return [
        fix_attempt(n, failing=tuple(f"test_{each}" for each in one), **fields) for n, one in enumerate(failing, first)
    ]


@pytest.mark.parametrize(
    ("failing", "wanted"),
    [
        (["a", "b"], []),
        (["a", "b", "c", "d"], []),
        (["a", "a", "a"], []),
        (["a", "b", "a"], [("warn", 3)]),
        (["a", "b", "c", "a"], [("warn", 4)]),
        (["a", "b", "a", "b"], [("warn", 3), ("terminate", 4)]),
        (["a", "b", "a", "c"], [("warn", 3)]),
        (["ac", "bc", "ac"], [("warn", 3)]),
        (["a", "ab", "a"], []),
        (["ab", "b", "ab"], []),
        (["a", "b", "ab"], []),
        (["a", "b", "b", "a"], []),
        (["a", "b", "c", "a", "b"], [("warn", 4), ("warn", 5)]),
        (["a", "b", "c", "a", "b", "c"], [("warn", 4), ("warn", 5), ("terminate", 6)]),
    ],
)
def test_the_first_return_is_a_warning_and_the_second_full_round_ends_it(heard, failing, wanted):
    """What failed first fails again, and what that had broken is fixed; what goes on failing says nothing."""
    assert levels(heard(row(failing), ALONE)) == wanted


@pytest.mark.parametrize(
    ("limits", "failing", "wanted"),
    [
        ({"warn": 2}, "aba", []),
        ({"warn": 2, "terminate": 3}, "abab", ["warn"]),
        ({"terminate": 3}, "ababa", ["warn", "warn"]),
        ({"terminate": 3}, "ababab", ["warn", "warn", "terminate"]),
    ],
)
def test_set_limits_are_the_ones_that_count(heard, limits, failing, wanted):
    """Returns to a warning, and full rounds to the end."""
    assert [level for level, _ in levels(heard(row(failing), alone("fix_break", **limits)))] == wanted


def test_kinds_of_error_in_turn_are_weak_and_end_with_a_second_kind_of_evidence(heard):
    """Where no check has a name; the second kind is that the approaches are taken up again."""
    events = [fix_attempt(n, error_message=(KEY_ERROR, TYPE_ERROR)[n % 2]) for n in range(8)]
    assert {level for level, _ in levels(heard(events, ALONE))} == {"warn"}
    assert levels(heard(events[:3], ALONE)) == [("warn", 3)]
    both = [
        fix_attempt(n, UNLIKE[n % 2], files=(f"{n % 2}.py",), error_message=(KEY_ERROR, TYPE_ERROR)[n % 2])
        for n in range(4)
    ]
    assert levels(heard(both)) == [("warn", 3), ("terminate", 4)]


@pytest.mark.parametrize("errors", [("oops", "it failed"), ("E1001: a", "E2002: b"), (None, None)])
def test_errors_that_say_too_little_do_not_take_turns(heard, errors):
    """That something failed is no kind of error."""
    assert heard([fix_attempt(n, error_message=errors[n % 2]) for n in range(8)], ALONE) == []
    around = (errors[0], KEY_ERROR, errors[1])
    assert heard([fix_attempt(n, error_message=around[n]) for n in range(3)], ALONE) == []


def test_files_in_turn_count_half_and_are_weak(heard):
    """X is fixed, Y is fixed, X again, Y again: a return each, two of which make one."""
    events = [fix_attempt(n, files=(f"{'xy'[n % 2]}.py",)) for n in range(9)]
    assert heard(events[:3], ALONE) == []
    assert levels(heard(events[:4], ALONE)) == [("warn", 4)]
    assert {level for level, _ in levels(heard(events, ALONE))} == {"warn"}
    assert heard([fix_attempt(n, files=("x.py",)) for n in range(9)], ALONE) == []


def test_checks_that_no_change_concerns_are_not_fixed_and_broken(heard):
    """Three that take turns, whatever is touched, are flaky; two are not told apart from a fix that breaks."""
    files = [(f"shop/{UNLIKE[n].split()[1]}.py",) for n in range(9)]
    apart = [fix_attempt(n, failing=(f"check_{'xyz'[n % 3]}",), files=files[n]) for n in range(9)]
    assert heard(apart, ALONE) == []
    concerned = [fix_attempt(n, failing=(f"check_{'xyz'[n % 3]}",), files=files[n % 3]) for n in range(6)]
    assert levels(heard(concerned, ALONE)) == [("warn", 4), ("warn", 5), ("terminate", 6)]
    two = [fix_attempt(n, failing=(f"check_{'xy'[n % 2]}",), files=files[n]) for n in range(4)]
    assert levels(heard(two, ALONE)) == [("warn", 3), ("terminate", 4)]


def test_one_more_of_very_many_failing_checks_that_is_fixed_again_brings_nothing_back(heard):
    """Only so many are known by name: that one of them made room for another is no return."""
    many = tuple(f"test_part_{n}" for n in range(200))
    more = tuple(f"test_more_{n}" for n in range(60))
    assert heard([fix_attempt(n, failing=(many, many + more)[n % 2]) for n in range(6)], ALONE) == []
    turns = (("test_x", *many), ("test_y", *many))
    few = (turns[0][:20], turns[1][:20])
    assert levels(heard([fix_attempt(n, failing=few[n % 2]) for n in range(3)], ALONE)) == [("warn", 3)]


def test_a_partial_success_between_begins_anew(heard):
    """It got further; what was broken before is another matter."""
    further = row(["a"], 3, outcome="partial")
    assert heard([*row("ab"), *further, *row("a", 4)], ALONE) == []
    assert levels(heard([*row("ab"), *further, *row("aba", 4)], ALONE)) == [("warn", 6)]


def test_a_success_clears(heard):
    """Both sides of it begin anew."""
    assert heard([*row("ab"), *row([""], 3, outcome="success"), *row("ab", 4)], ALONE) == []


def test_outages_between_neither_add_nor_clear(heard):
    """Nobody knows what fails after them."""
    outages = row("cdc", 10, error_message=OUTAGE)
    assert levels(heard([*row("ab"), *outages, *row("a", 3)], ALONE)) == [("warn", 6)]
    assert heard(row("ababab", error_message=OUTAGE), ALONE) == []


def test_the_alert_names_the_checks_and_says_what_to_do(heard):
    """Both sides, the loop's first attempt, and the strategy with its reason."""
    events = [new(n, failing=(f"test_{'ab'[n % 2]}",), files=("shop/cart.py",)) for n in range(4)]
    first, end = heard(events, ALONE)
    assert "test_a, test_b are fixed and broken in turn" in first.reasoning
    assert "one change that satisfies both" in first.guidance
    assert (first.pattern, first.suggested_strategy) == ("fix_break_oscillation", "different_files")
    assert (first.count, end.count, end.limits[0].value) == (1, 2, 2)
    assert end.evidence.attempt_ids == tuple(f"attempt-{n}" for n in range(4))
    assert (end.evidence.word_similarity, end.evidence.diff_similarity) == (0.0, None)
    assert first.loop_id == end.loop_id


def test_what_is_read_from_tool_calls_is_weak_and_goes_by_names_alone(heard):
    """Edits, then a check, in one session: the same round terminates only where an agent reports it."""
    events = []
    for turn in range(8):
        edit = {"file_path": "shop/cart.py", "old_string": f"a{turn}", "new_string": f"b{turn}"}
        events += [
            tool_call(2 * turn, "Edit", edit, "The file has been updated."),
            tool_call(2 * turn + 1, "bash", {"command": "pytest"}, f"FAILED t.py::test_{'ab'[turn % 2]}", error=1),
        ]
    alerts = heard(events, ALONE)
    assert {alert.level for alert in alerts} == {"warn"}
    assert alerts[0].evidence.derived
