"""Too many attempts: more than five failed ones of any kind, over all sessions, each limit from both sides."""

import pytest

from schemas.common import Task
from schemas.testing import fix_attempt, tool_call
from tests.detectors.tasks.attempt_kit import KEY_ERROR, OUTAGE, alone, brief, levels, new

ALONE = alone("too_many_attempts")
TASK = Task(id="T1")


def tried(turns, session_id="s1"):
    """Return edits and a failing check after each, of another kind every time."""
    for turn in range(turns):
        edit = {"file_path": f"{turn}.py", "old_string": f"old {turn}", "new_string": f"new {turn}"}
        yield tool_call(2 * turn, "Edit", edit, "The file has been updated.", session_id=session_id)
        output = f"FAILED t.py::test_{'abcdefghijklmnopqrstuvwxyz'[turn]}"
        yield tool_call(2 * turn + 1, "bash", {"command": "pytest"}, output, error=1, session_id=session_id)


@pytest.mark.parametrize(
    ("count", "wanted"), [(5, []), (6, [("warn", 6)]), (11, [("warn", 6)]), (12, [("warn", 6), ("warn", 12)])]
)
def test_more_than_five_failed_attempts_are_too_many(heard, count, wanted):
    """Circular-fix guide; and again at double the count."""
    assert levels(heard([new(n) for n in range(count)], ALONE)) == wanted


@pytest.mark.parametrize(("warn", "count", "wanted"), [(1, 1, 1), (3, 2, 0), (3, 3, 1), (9, 8, 0), (9, 9, 1)])
def test_the_set_limit_is_the_one_that_counts(heard, warn, count, wanted):
    """From both sides."""
    assert len(heard([new(n) for n in range(count)], alone("too_many_attempts", warn=warn))) == wanted


@pytest.mark.parametrize(
    ("limits", "count", "wanted"), [({}, 19, 0), ({}, 20, 1), ({"derived_warn": 4}, 3, 0), ({"derived_warn": 4}, 4, 1)]
)
def test_attempts_read_from_tool_calls_have_a_limit_of_their_own(heard, limits, count, wanted):
    """More than nineteen, or as many as is set."""
    alerts = heard(tried(count), alone("too_many_attempts", **limits))
    assert len(alerts) == wanted
    assert all(alert.limits[0].name == "too_many_attempts.derived_warn" for alert in alerts)
    assert all(alert.evidence.derived for alert in alerts)


def test_all_sessions_of_a_task_count_together_and_tasks_apart(heard):
    """Two sessions in turn make six; six tasks one each make none."""
    shared = [new(n, session_id=f"s{n % 2}", task=TASK) for n in range(6)]
    (alert,) = heard(shared, ALONE)
    assert (alert.task_id, alert.session_id, alert.scope) == ("T1", "s1", "task")
    assert heard([new(n, session_id=f"s{n}") for n in range(6)], ALONE) == []
    apart = [new(n, session_id="s1", task=Task(id=f"T{n % 2}")) for n in range(10)]
    assert heard(apart, ALONE) == []


def test_names_of_attempts_may_be_used_again_in_another_session(heard):
    """Unique are they within one only; the same one twice there is one attempt."""
    first = {"attempt_id": "first", "task": TASK}
    assert len(heard([new(n, session_id=f"s{n}", **first) for n in range(6)], ALONE)) == 1
    assert heard([new(n, **first) for n in range(6)], ALONE) == []


@pytest.mark.parametrize("fields", [{"error_message": OUTAGE}, {"outcome": "skipped"}, {"outcome": "partial"}])
def test_what_did_not_fail_for_good_is_not_counted(heard, fields):
    """Nor does it set back what did."""
    others = [new(n, **fields) for n in range(20, 30)]
    assert heard([*others, *(new(n) for n in range(5))], ALONE) == []
    assert len(heard([*(new(n) for n in range(5)), *others[:3], new(5)], ALONE)) == 1


def test_a_success_sets_the_count_back(heard):
    """The sixth after it is one too many again."""
    tried, done = [new(n) for n in range(5)], new(5, outcome="success")
    assert heard([*tried, done, *(new(n) for n in range(6, 11))], ALONE) == []
    assert len(heard([*tried, done, *(new(n) for n in range(6, 12))], ALONE)) == 1


def test_attempts_that_get_further_are_not_too_many(heard):
    """Five partial successes after the warning, and it is taken back."""
    further = [new(n, outcome="partial") for n in range(6, 11)]
    assert [level for level, _ in levels(heard([*(new(n) for n in range(6)), *further], ALONE))] == [
        "warn",
        "recovered",
    ]


def test_what_is_forgotten_of_the_oldest_does_not_lower_the_count(heard):
    """It is counted, not looked up: the twenty-fourth is the third warning."""
    assert [alert.count for alert in heard([new(n) for n in range(24)], ALONE)] == [6, 12, 24]


def test_it_never_terminates_alone(heard):
    """Whatever the attempts have in common, as far as this rule goes."""
    assert {level for level, _ in levels(heard([fix_attempt(n) for n in range(30)], ALONE))} == {"warn"}


def test_it_bears_out_nothing_and_makes_no_other_loop_its_own(heard):
    """Words in common warn and end nothing; a loop that begins after it gets a warning of its own."""
    limits = {"off": ["approach_churn", "state_cycle"]}
    found = brief(heard([fix_attempt(n, "guard empty basket totals") for n in range(1, 12)], limits))
    assert found[0] == ("warn", "circular_fix", 3)
    assert {level for level, *_ in found} == {"warn"}
    unlike = [new(n) for n in range(6)]
    sides = [("a.py", "test_a"), ("b.py", "test_b")]
    swing = [fix_attempt(20 + n, files=(sides[n % 2][0],), failing=(sides[n % 2][1],)) for n in range(4)]
    heads = [(alert.level, alert.detector, alert.loop_id) for alert in heard([*unlike, *swing])]
    assert [head[:2] for head in heads] == [
        ("warn", "too_many_attempts"),
        ("warn", "fix_break"),
        ("terminate", "fix_break"),
    ]
    assert heads[0][2] != heads[1][2] == heads[2][2]


def test_nobody_hears_of_it_who_has_heard_the_last_word(heard):
    """A task that is to be stopped need not be counted on."""
    sides = [("a.py", "test_a"), ("b.py", "test_b")]
    swing = [fix_attempt(n, files=(sides[n % 2][0],), failing=(sides[n % 2][1],)) for n in range(9)]
    assert {alert.detector for alert in heard(swing)} == {"fix_break"}


def test_the_alert_hands_over_to_a_person(heard):
    """How often, and the latest attempts with what they have in common."""
    (alert,) = heard([new(n, error_message=KEY_ERROR) for n in range(6)], ALONE)
    assert (alert.count, alert.suggested_strategy, alert.pattern) == (6, "escalate_human", None)
    assert "Already tried 6 times. Human intervention recommended." in alert.reasoning
    assert alert.evidence.attempt_ids == tuple(f"attempt-{n}" for n in range(6))
    assert alert.evidence.error == "KeyError: <~>"
    assert (alert.evidence.word_similarity, alert.evidence.diff_similarity) == (None, None)
    assert "hand it over to a person" in alert.guidance
