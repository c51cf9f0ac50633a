"""How attempts compare, and what is progress: pairs that agree, pairs that nearly do, and what is not known."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detectors import Limits
from detectors.tasks.attempt import read_attempt
from detectors.tasks.history import (
    checks_of,
    common_failure,
    diff_similarity,
    failed,
    got_further,
    identity,
    members,
    other_failure,
    same_change,
    same_failure,
    same_files,
    shown,
    since_progress,
    word_similarity,
)
from schemas.testing import fix_attempt
from tests.detectors.tasks.attempt_kit import KEY_ERROR, OUTAGE, TYPE_ERROR, swap


def attempt(approach=None, **fields):
    """Return the facts of an attempt."""
    return read_attempt(fix_attempt(1, approach, **fields), Limits())


def named(count, *more):
    """Return so many names of checks, and more."""
    return (*(f"test_part_{n}" for n in range(count)), *more)


def test_what_one_does_not_say_is_no_agreement():
    """Neither in words nor in changes, files or failures."""
    for other in (attempt(), attempt("guard totals", files=("a.py",), diff=swap("a", "b"), error_message=KEY_ERROR)):
        assert word_similarity(attempt(), other) is None
        assert diff_similarity(attempt(), other) is None
        assert not same_change(attempt(), other)
        assert not same_files(attempt(), other)
        assert not same_failure(attempt(), other)
        assert not other_failure(attempt(), other)


@pytest.mark.parametrize(
    ("one", "other", "same", "different"),
    [
        ({"error_message": KEY_ERROR}, {"error_message": KEY_ERROR}, True, False),
        ({"error_message": KEY_ERROR}, {"error_message": "KeyError: 'supplier'"}, False, True),
        (
            {"failing": ("a",), "error_message": KEY_ERROR},
            {"failing": ("a",), "error_message": TYPE_ERROR},
            False,
            True,
        ),
        ({"error_message": KEY_ERROR}, {"error_message": TYPE_ERROR}, False, True),
        ({"error_message": KEY_ERROR}, {"error_message": "it went wrong"}, False, False),
        ({"failing": ("a", "b")}, {"failing": ("b", "a")}, True, False),
        ({"failing": ("a", "b")}, {"failing": ("a",)}, False, False),
        ({"failing": ("a",)}, {"failing": ("b",)}, False, True),
        ({"failing": ("a",)}, {"error_message": KEY_ERROR}, False, False),
        ({"failing": named(200)}, {"failing": named(200)}, True, False),
        ({"failing": named(200)}, {"failing": named(199)}, False, False),
        ({"failing": named(3)}, {"failing": named(5_000)}, False, False),
    ],
)
def test_failures_are_the_same_others_or_not_known_to_be_either(one, other, same, different):
    """Names of checks decide where there are any, unless errors differ; else kinds of error and subject."""
    pair = attempt(**one), attempt(**other)
    assert (same_failure(*pair), same_failure(*pair[::-1])) == (same, same)
    assert (other_failure(*pair), other_failure(*pair[::-1])) == (different, different)


def test_of_very_many_checks_only_what_is_known_of_all_is_compared():
    """Nothing is taken to be fixed that only has no room any more."""
    few, many, more = (attempt(failing=named(count)) for count in (10, 200, 400))
    assert [len(found) for found in checks_of(few)] == [10]
    now, then, before = checks_of(many, more, few)
    assert now <= then
    assert before <= now


@pytest.mark.parametrize(
    ("fields", "from_last"),
    [
        ({"outcome": "partial"}, True),
        ({"failing": ("t1",)}, True),
        ({"failing": ("t1", "t2")}, False),
        ({"failing": ("t3",)}, False),
        ({"error_message": "1 failed, 4 passed"}, True),
        ({"error_message": "2 failed, 4 passed"}, False),
        ({"error_message": KEY_ERROR}, False),
        ({"failing": ("t1",), "outcome": "skipped"}, False),
        ({"failing": ("t1",), "error_message": OUTAGE}, False),
    ],
)
def test_progress_is_a_partial_success_or_fewer_failing_checks_than_ever(fields, from_last):
    """Only such as failed before; what an outage stopped or nobody tried got nowhere."""
    before = [attempt(failing=("t1", "t2", "t3")), attempt(failing=("t1", "t2"))]
    last = attempt(**fields)
    assert since_progress([*before, last]) == ([last] if from_last else [before[1], last])


def test_what_an_outage_left_is_not_what_has_to_be_beaten():
    """One check that could be run at all is no measure."""
    before = [attempt(failing=("t1", "t2", "t3")), attempt(failing=("t1",), error_message=OUTAGE)]
    last = attempt(failing=("t1", "t2"))
    assert since_progress([*before, last]) == [last]


@pytest.mark.parametrize(
    ("failing", "said", "further"),
    [
        (("t2",), "1 failed, 4 passed", True),
        (("t2",), "1 failed, 3 passed", False),
        (("t1",), "1 failed, 9 passed", False),
        (("t2", "t3"), "2 failed, 9 passed", False),
        (("t2",), "failed", False),
        ((), "IndexError: pop from empty list\n1 failed, 4 passed", True),
        ((), "1 failed, 4 passed", False),
    ],
)
def test_more_that_pass_before_another_check_fails_are_progress(failing, said, further):
    """As where a run ends at its first failure; not beside the same failure, nor where more fail, or nobody counts."""
    before = [attempt(failing=("t1",), error_message=f"1 failed, {n} passed") for n in (3, 2)]
    last = attempt(failing=failing, error_message=said)
    assert got_further(before, last) is further
    assert since_progress([*before, last]) == ([last] if further else [*before, last])


def test_progress_is_seen_among_very_many_failing_checks():
    """From two hundred to a hundred and fifty of them; not to a hundred and fifty with others among them."""
    before = attempt(failing=named(200))
    fewer, others = attempt(failing=named(150)), attempt(failing=named(60, *(f"test_more_{n}" for n in range(90))))
    assert since_progress([before, fewer]) == [fewer]
    assert since_progress([before, others]) == [before, others]


def test_history_without_progress_is_all_that_there_is():
    """Also an empty one."""
    attempts = [attempt(failing=("t1",)), attempt(failing=("t1",)), attempt()]
    assert since_progress(attempts) == attempts
    assert since_progress([]) == []


def test_what_failed_is_what_failed_for_good():
    """Outages, parts, successes and what was skipped are none."""
    others = [attempt(outcome=outcome) for outcome in ("partial", "success", "skipped")]
    red = attempt(error_message=KEY_ERROR)
    assert failed([*others, attempt(error_message=OUTAGE), red]) == [red]


@pytest.mark.parametrize(
    "fields",
    [
        {"approach": "guard totals"},
        {"diff": swap("a", "b")},
        {"files": ("a.py",)},
        {"failing": ("t1",)},
        {"error_message": KEY_ERROR},
        {"state_digest": "f00"},
    ],
)
def test_an_attempt_of_which_anything_is_known_can_be_told_from_others(fields):
    """Whatever a detector may rest on makes a loop that is the same next time."""
    assert identity(attempt(**fields)) == identity(attempt(**fields)) != 0
    assert members([attempt(**fields), attempt(**fields), attempt()]) == (identity(attempt(**fields)),)


def test_an_attempt_is_known_by_its_change_before_its_words():
    """And by these before where it led."""
    words, change = {"approach": "guard totals"}, {"diff": swap("a", "b")}
    assert identity(attempt(**words, **change)) == identity(attempt(**change))
    assert identity(attempt(**words, failing=("t1",))) == identity(attempt(**words))
    assert identity(attempt()) == 0


def test_failures_in_common_are_shown_only_when_all_have_them():
    """In the words of the latest."""
    same = [attempt(error_message=KEY_ERROR), attempt(error_message=KEY_ERROR)]
    found = common_failure(same)
    assert found is not None
    assert found.template == "KeyError: <~>"
    assert common_failure([*same, attempt(error_message=TYPE_ERROR)]) is None
    assert common_failure([*same, attempt()]) is None


def test_attempts_are_shown_by_what_is_known_of_them():
    """Their words, else what they touched and what failed; the latest six."""
    told = [
        attempt("guard totals", files=("a.py",)),
        attempt(files=("a.py", "b.py")),
        attempt(files=("a.py",), failing=("t1", "t2")),
        attempt(),
    ]
    assert shown(told) == (
        "guard totals",
        "a change of a.py and b.py",
        "a change of a.py, then t1 and t2 failing",
        "attempt 0",
    )
    assert len(shown(told * 3)) == 6


KINDS = [
    attempt(outcome="partial"),
    attempt(failing=("t1",), error_message=OUTAGE),
    *(attempt(failing=names) for names in ((), ("t1",), ("t1", "t2"), ("t2", "t3", "t4"))),
    *(attempt(failing=(name,), error_message=f"1 failed, {n} passed") for name in ("t1", "t5") for n in (3, 4)),
]


@settings(max_examples=300)
@given(st.lists(st.sampled_from(KINDS), max_size=8))
def test_progress_is_found_in_one_pass_as_by_looking_back_from_each(attempts):
    """The history begins at the latest attempt that got further than all before it."""
    further = [
        at
        for at in range(1, len(attempts))
        if attempts[at].outcome == "partial" or got_further(attempts[:at], attempts[at])
    ]
    assert since_progress(attempts) == attempts[max(further, default=0) :]
