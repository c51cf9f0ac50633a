"""Task budget: what the sessions of one task spend is added up, and only what is set is a limit."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detectors import Limits, encode_task, limits_from
from schemas.common import Task, Usage
from schemas.events import SessionInput
from schemas.testing import at, control, fix_attempt, review, session_event, tool_call
from tests.detectors.tasks.conftest import Player
from tests.detectors.traces import shell

T1 = Task(id="T1")
OVER = "task_budget"


def run(n, turns=5, *, usage=None, outcome="failed", **fields):
    """Return a session of the task: so many turns, and then an attempt in words of its own."""
    who = {"session_id": f"run-{n}", "task": T1, **fields}
    start = 10_000 * n
    said = [session_event(start + each, "turn", usage=usage, **who) for each in range(turns)]
    words = f"{'abcdefghijklmnop'[n] * 6} it"
    return [*said, fix_attempt(n, words, outcome=outcome, occurred_at=at(start + turns), **who)]


def runs(count, turns=5, **fields):
    """Return sessions of the task, one after the other."""
    return [event for n in range(count) for event in run(n, turns, **fields)]


def budget(alerts):
    """Return levels, limits and counts of what is alerted of budgets."""
    return [
        (alert.level, alert.limits[0].name.partition(".")[2], alert.count)
        for alert in alerts
        if alert.detector == OVER and alert.level != "recovered"
    ]


def test_five_turns_in_each_of_eight_attempts_are_forty(heard):
    """Flapping and convergence's own example: no run is beyond its bounds, and all together are."""
    limits = {"task_budget.turns": 40, "budget.turns": 6, "off": ["too_many_attempts"]}
    alerts = heard(runs(8), limits)
    assert budget(alerts) == [("notice", "turns", 32), ("terminate", "turns", 40)]
    assert (alerts[-1].session_id, alerts[-1].task_id) == ("run-7", "T1")
    assert alerts[-1].suggested_strategy == "escalate_human"


def test_thirty_nine_turns_are_not_forty(heard):
    """One less in the last run."""
    events = [*runs(7), *run(7, 4)]
    assert budget(heard(events, {"task_budget.turns": 40, "off": ["too_many_attempts"]})) == [("notice", "turns", 32)]


def test_nothing_is_a_limit_until_it_is_set(heard):
    """Whatever is spent."""
    events = runs(12, usage=Usage(input_tokens=10**9, cost_usd=10**6))
    assert not budget(heard(events))


@pytest.mark.parametrize(
    ("limit", "hard", "below"),
    [
        ("attempts", 4, 5),
        ("turns", 20, 21),
        ("tokens", 4 * 5 * 110, 4 * 5 * 110 + 1),
        ("cost_usd", 4 * 5 * 0.25, 4 * 5 * 0.25 + 0.01),
        ("wall_s", 4 * 5, 4 * 5 + 0.001),
    ],
)
def test_each_budget_terminates_when_it_is_spent_and_not_before(heard, limit, hard, below):
    """Four runs of five turns, a second apart and then an attempt: nothing is left, or a little."""
    events = runs(4, usage=Usage(input_tokens=100, output_tokens=10, cost_usd=0.25))
    assert budget(heard(events, {f"task_budget.{limit}": hard}))[-1] == ("terminate", limit, pytest.approx(hard))
    assert "terminate" not in [level for level, *_ in budget(heard(events, {f"task_budget.{limit}": below}))]


@pytest.mark.parametrize(("calls", "over"), [(7, False), (8, True)])
def test_calls_of_several_sessions_add_up(heard, calls, over):
    """Told at the end of each session at the latest."""
    events: list[SessionInput] = []
    for name in ("one", "two"):
        who: dict[str, Any] = {"session_id": name, "task": T1}
        events += [shell(n, f"./step {n}", f"step {n}", **who) for n in range(calls)]
        events.append(session_event(calls, "ended", **who))
    last = budget(heard(events, {"task_budget.calls": 16}))[-1]
    assert last == ("terminate" if over else "notice", "calls", 2 * calls)


@pytest.mark.parametrize(
    ("share", "turns", "wanted"), [(0.5, 4, []), (0.5, 5, ["notice"]), (1, 9, []), (1, 10, ["terminate"])]
)
def test_the_soft_share_is_a_setting(heard, share, turns, wanted):
    """Of ten turns."""
    limits = {"task_budget.turns": 10, "task_budget.soft_share": share}
    assert [level for level, *_ in budget(heard(run(0, turns), limits))] == wanted


def test_the_soft_share_is_a_warn_once_something_else_is_wrong(heard):
    """Spending alone is no loop; together with three rounds of review it is one that costs."""
    limits = {"task_budget.attempts": 5}
    tries = runs(4, 0)
    rounds = [review(20 + n, session_id="run-9", task=T1) for n in range(4)]
    assert budget(heard(tries, limits)) == [("notice", "attempts", 4)]
    assert budget(heard([*tries, *rounds], limits)) == [("notice", "attempts", 4), ("warn", "attempts", 4)]


def test_neither_a_notice_nor_what_a_person_marked_as_wrong_makes_it_a_warn(heard):
    """What is wrong is what was warned about and stands."""
    rounds = [review(n, session_id="run-9", task=T1) for n in range(3)]
    (warned,) = heard(rounds)
    wrong = control(8_000, "false_alarm", session_id="run-9", answers=warned.alert_id)
    limits = {"task_budget.attempts": 2, "task_budget.soft_share": 0.5, "decision.repeat_factor": 100}
    assert budget(heard([*rounds, *run(1, 0)], limits)) == [("warn", "attempts", 1)]
    assert budget(heard([*rounds, wrong, *run(1, 0)], limits)) == [("notice", "attempts", 1)]
    there, back = (f"--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a = {n}\n+a = {1 - n}\n" for n in range(2))
    reverts = [fix_attempt(n, diff=diff, session_id="run-9", task=T1) for n, diff in enumerate((there, back))]
    ended = session_event(200, "ended", session_id="run-9", task=T1)
    alerts = heard([*reverts, ended], {"task_budget.attempts": 4, "task_budget.soft_share": 0.5})
    assert [(alert.level, alert.detector) for alert in alerts] == [
        ("notice", "diff_reversal"),
        ("notice", "task_budget"),
    ]


@pytest.mark.parametrize(("every", "told"), [(3, [3, 6, 7]), (4, [4, 7]), (7, [7]), (8, [7])])
def test_a_session_tells_what_it_spent_every_so_many_calls_and_turns(player, every, told):
    """And at its end what is left; nothing when nothing is."""
    who: dict[str, Any] = {"session_id": "one", "task": T1}
    game = player({"task_budget.every": every})
    spent = []
    for n in range(7):
        event = shell(n, f"./step {n}", f"{n}", **who) if n % 2 else session_event(n, "turn", **who)
        game.play([event])
        spent.append(game.tasks["T1"].spent)
    game.play([session_event(7, "ended", **who)])
    spent.append(game.tasks["T1"].spent)
    sums = [each.calls + each.turns for each in spent]
    assert sorted(set(sums) - {0}) == told


def test_the_end_of_a_session_tells_the_time_since_its_last_attempt(player):
    """Nothing else happened in it, and yet it took its time."""
    game = player()
    game.play([*run(0, 1), session_event(100, "ended", session_id="run-0", task=T1)])
    assert game.tasks["T1"].spent.wall_ms == 100_000


def test_a_session_without_a_task_reports_no_spending(player):
    """It has an account of its own, and a task nobody named is no more than the session."""
    game = player({"task_budget.calls": 5, "task_budget.turns": 5})
    said = [session_event(100 + n, "turn") for n in range(30)]
    game.play([*(tool_call(n) for n in range(30)), *said, session_event(200, "ended")])
    assert not game.tasks


def test_a_success_clears_what_was_spent(heard, player):
    """Whoever goes on with the task starts anew; and one that is solved is not terminated for its last turn."""
    limits = {"task_budget.turns": 10, "task_budget.attempts": 2}
    alerts = heard([*run(0), *run(1, outcome="success")], limits)
    assert "terminate" not in [level for level, *_ in budget(alerts)]
    game = player(limits)
    game.play([*run(0), *run(1, outcome="success")])
    assert game.tasks["T1"].empty
    assert not budget(game.play(run(2, 4)))


def test_a_success_under_review_keeps_the_account_and_does_not_repeat_the_verdict(player):
    """The change may come back; the verdict was given."""
    limits = {"task_budget.turns": 10}
    over = [review(0, "commented", task=T1, session_id="run-9"), *run(0), *run(1)]
    after = [*run(2, 1, outcome="success"), review(20, "commented", task=T1, session_id="run-9")]
    game = player(limits)
    assert budget(game.play([*over, *after])) == [("notice", "turns", 9), ("terminate", "turns", 10)]
    assert game.tasks["T1"].spent.turns == 11


@pytest.mark.parametrize(("verdict", "over"), [("merged", True), ("closed", False)])
def test_the_end_of_the_pull_request_is_no_time_for_a_verdict(heard, verdict, over):
    """With a merge all is over, also what was spent; after a close the next run is more of the same."""
    events = [*run(0, 5), session_event(9, "turn", session_id="run-0", task=T1)]
    end = review(1, verdict, session_id="run-0", task=T1)
    limits = {"task_budget.turns": 6, "task_budget.soft_share": 1}
    assert not budget(heard([*events, end], limits))
    assert bool(budget(heard([*events, end, *run(1, 4)], limits))) != over


def test_a_green_check_does_not_repeat_what_was_said_of_the_budget(heard):
    """The account of a task with a name goes on after it, and so does its loop."""
    who: dict[str, Any] = {"session_id": "one", "task": T1}
    events = []
    for n in range(0, 24, 4):
        edit = tool_call(n, "Edit", {"file_path": "a.py", "old_string": f"{n}", "new_string": f"{n + 1}"}, "ok", **who)
        red = shell(n + 1, "pytest", "FAILED tests/test_a.py::test_a - x\n1 failed", error=1, **who)
        events += [edit, red, shell(n + 2, "pytest", "3 passed", **who)]
    assert budget(heard(events, {"task_budget.calls": 10})) == [("notice", "calls", 8), ("terminate", "calls", 11)]
    spent = {"task_budget.calls": 3, "task_budget.soft_share": 1}
    assert budget(heard(events[:3], spent)) == [("terminate", "calls", 3)]  # and the check is no end of the task


@pytest.mark.parametrize(("action", "spent"), [("resume", 10), ("reset", 0), ("clear", 0)])
def test_a_reset_clears_the_account_and_a_resume_does_not(player, action, spent):
    """Who resumes a task that is over its budget has to raise the limit, as the next event says."""
    game = player({"task_budget.turns": 10})
    game.play([*run(0), *run(1), control(20_000, action, session_id="run-1", task=T1)])
    assert game.tasks["T1"].spent.turns == spent
    assert bool(budget(game.play(run(2, 1)))) == (spent > 0)


def test_the_largest_numbers_that_may_come_fit_into_the_state(player):
    """Producers' nonsense must not stop a partition."""
    game = player()
    game.play(runs(8, usage=Usage(input_tokens=2**63 - 1, output_tokens=2**63 - 1, cost_usd=1e300)))
    assert encode_task(game.tasks["T1"])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=8), st.integers(1, 5))
def test_whatever_the_sessions_do_their_task_has_all_of_it(work, every):
    """Sessions in turn, each with some turns and calls: in the end the sums agree."""
    game = Player(limits_from([("test", {"task_budget.every": every})], Limits(off=("spin_score",))))
    second = 0
    for session, times in work:
        for _ in range(times):
            second += 1
            who: dict[str, Any] = {"session_id": f"s{session}", "task": T1}
            game.play([shell(second, f"./step {second}", f"{second}", **who), session_event(second, "turn", **who)])
    total = sum(times for _, times in work)
    known = game.tasks["T1"].spent
    assert total * 2 - 4 * every < known.calls + known.turns <= total * 2
    game.play([session_event(second, "ended", session_id=f"s{session}", task=T1) for session in range(4)])
    known = game.tasks["T1"].spent
    assert (known.calls, known.turns) == (total, total)
