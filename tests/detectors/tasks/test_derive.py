"""Attempts of agents that send none: what counts as one, what does not, and what is made of two that undo each other.

Everything here is tool calls, as they come from agents that know nothing of attempts.
"""

import msgspec
import pytest
from msgspec import UNSET

from schemas.common import ErrorInfo, Task
from schemas.events import Replacement
from schemas.testing import at, fix_attempt, session_event, tool_call
from tests.detectors.traces import found, numbered

OFF = {"off": ["spin_score", "stuck_check"]}
T1 = Task(id="T1")


def change(old="total += 1", new="total += price", path="src/cart.py", result="The file has been updated.", **fields):
    """Return a replacement in a file, accepted unless said otherwise."""
    arguments = {"file_path": path, "old_string": old, "new_string": new}
    return tool_call(0, "Edit", arguments, result, **fields)


def red(*names, command="pytest -q", **fields):
    """Return a run of the tests of which these fail."""
    lines = [f"FAILED tests/{name} - AssertionError: assert 3 == 4" for name in names]
    text = "\n".join(["..F", *lines, f"{len(lines)} failed, 7 passed in 0.31s"])
    return tool_call(0, "Bash", {"command": command}, text, error=1, **fields)


def green(command="pytest -q", **fields):
    """Return a run of the tests of which none fails."""
    return tool_call(0, "Bash", {"command": command}, "10 passed in 0.28s", **fields)


TEST_A, TEST_B = "test_cart.py::test_total", "test_order.py::test_ship"


def swing(times):
    """Return calls that mend one place and break another, and the other way round, so many times in all."""
    there, back = ("price * rate", "price * rate * tax"), ("price * rate * tax", "price * rate")
    rounds = [(change(*there), red(TEST_B)) if n % 2 else (change(*back), red(TEST_A)) for n in range(times)]
    return numbered(call for turn in rounds for call in turn)


def attempts(game, task="s1"):
    """Return the attempts that the state of a task has."""
    return game.tasks[task].attempts if task in game.tasks else []


def test_edits_and_then_a_check_that_fails_are_one_attempt(player):
    """However many edits; what they change together, which files, and which checks fail, is known of it."""
    game = player(OFF)
    game.play(numbered([change(), change("a", "b", "src/order.py"), red(TEST_A, TEST_B)]))
    (attempt,) = attempts(game)
    assert (attempt.derived, attempt.outcome, attempt.attempt_id) == (True, "failed", "call:s1-2")
    assert attempt.names == ("src/cart.py", "src/order.py")
    assert attempt.failing_names == (f"tests/{TEST_A}", f"tests/{TEST_B}")
    assert attempt.failing_count == 2
    assert len(attempt.change.files) == 2
    assert game.tasks["s1"].failed == 0
    assert game.tasks["s1"].failed_derived == 1


@pytest.mark.parametrize(
    ("calls", "wanted"),
    [
        ([red(TEST_A)], 0),
        ([red(TEST_A), red(TEST_A)], 0),
        ([change(), red(TEST_A), red(TEST_A)], 1),  # the second run has nothing new to judge
        ([change(), red(TEST_A), change("x", "y"), red(TEST_A)], 2),
        ([change()], 0),
        ([change(), change(), change()], 0),
        ([change(), green()], 0),
        ([change(), tool_call(0, "Bash", {"command": "ls"}, "ls: src: No such file", error=2)], 0),
        ([tool_call(0, "Bash", {"command": "git status"}, "clean"), red(TEST_A)], 0),
        ([change(result="old_string not found in file", error="no_match"), red(TEST_A)], 0),
        ([change(result="Error: the text was not found", status=None), red(TEST_A)], 0),
        ([change(result="denied", status="denied"), red(TEST_A)], 0),
    ],
)
def test_an_attempt_takes_an_accepted_edit_and_a_check_that_fails_after_it(player, calls, wanted):
    """Nothing else is read as one: runs without edits, edits without runs, refused edits, other commands."""
    game = player(OFF)
    game.play(numbered(calls))
    assert len(attempts(game)) == wanted
    assert bool(game.tasks) == bool(wanted)  # else there is nothing to tell


@pytest.mark.parametrize(
    "check",
    [
        tool_call(0, "Bash", {"command": "pytest -q"}, "503 Service Unavailable", error=ErrorInfo(code=503)),
        tool_call(0, "Bash", {"command": "pytest -q"}, "429 Too Many Requests"),
        tool_call(0, "Bash", {"command": "pytest -q"}, "not allowed by policy", status="denied"),
        tool_call(0, "Bash", {"command": "pytest -q"}, "Error: unknown tool 'Bash'", status="error"),
        tool_call(0, "Bash", {"command": "pytest -q"}, UNSET, status=None),
        tool_call(0, "Bash", {"command": "pytest -q"}, "", phase="start"),
    ],
)
def test_outages_and_refusals_say_nothing_of_the_edits(player, check):
    """They are neither an attempt nor a check of what was edited: the next run is."""
    game = player(OFF)
    game.play(numbered([change(), check]))
    assert not attempts(game)
    game.play([msgspec.structs.replace(red(TEST_A), event_id="later", occurred_at=at(60))])
    assert len(attempts(game)) == 1


def test_the_same_call_told_twice_is_one_attempt(player):
    """A hook and a span for one call, and a redelivery."""
    game = player(OFF)
    calls = numbered([change(call_id="toolu_012345678901"), red(TEST_A, call_id="toolu_112345678901")])
    again = [msgspec.structs.replace(call, event_id=f"{call.event_id}-span") for call in calls]
    game.play([*calls, *calls, *again])
    assert len(attempts(game)) == game.tasks["s1"].tried == 1


def test_a_check_that_passes_settles_what_it_had_found(player):
    """Nothing of it has to be remembered any more."""
    game = player(OFF)
    game.play(numbered([change(), red(TEST_A), change("x", "y"), red(TEST_A), green()]))
    assert game.tasks["s1"].empty


def test_a_check_settles_only_what_it_had_found_itself(player):
    """Another one is still red."""
    game = player(OFF)
    other = red(TEST_B, command="pytest tests/test_order.py")
    game.play(numbered([change(), red(TEST_A), change("x", "y"), other, green()]))
    (attempt,) = attempts(game)
    assert attempt.failing_names == (f"tests/{TEST_B}",)


@pytest.mark.parametrize("result", ["10 passed", UNSET])
def test_a_producer_that_sends_no_results_is_believed_in_both_directions(player, result):
    """Its flag says that a check failed, and likewise that it passed."""
    command = {"command": "pytest -q"}
    failed, passed = tool_call(0, "Bash", command, UNSET, error=1), tool_call(0, "Bash", command, result)
    game = player(OFF)
    game.play(numbered([change(), failed]))
    assert len(attempts(game)) == 1
    game.play([msgspec.structs.replace(passed, event_id="later", occurred_at=at(60))])
    assert game.tasks["s1"].empty


def test_nothing_is_derived_where_it_is_switched_off(player):
    """A setting."""
    game = player({**OFF, "tasks.derive": False})
    game.play(swing(8))
    assert not game.tasks


def test_a_session_that_sends_attempts_of_its_own_is_left_alone(player):
    """Its word is worth more than what its calls look like."""
    game = player(OFF)
    game.play([fix_attempt(0, "round the total"), *swing(8)])
    assert [attempt.derived for attempt in attempts(game)] == [False]


def test_what_was_derived_goes_when_the_session_sends_its_first_attempt(player):
    """Its attempts come on another topic than its calls, and may be read after them."""
    game = player(OFF)
    game.play(swing(2))
    assert [attempt.derived for attempt in attempts(game)] == [True, True]
    game.play([fix_attempt(1, "round the total")])
    assert [(attempt.derived, attempt.number) for attempt in attempts(game)] == [(False, 3)]  # no number comes twice
    assert (game.tasks["s1"].tried, game.tasks["s1"].failed, game.tasks["s1"].failed_derived) == (1, 1, 0)
    assert not game.tasks["s1"].loops


def test_both_orders_of_the_topics_leave_the_same_attempts(player):
    """Attempts before the calls, after them, and in between."""
    sent = [fix_attempt(n, f"{'abc'[n] * 6} it", occurred_at=at(2 * n)) for n in range(3)]
    calls = swing(3)
    kept = []
    for events in ([*sent, *calls], [*calls, *sent], sorted([*sent, *calls], key=lambda event: event.occurred_at)):
        game = player(OFF)
        game.play(events)
        task = game.tasks["s1"]
        facts = [(seen.attempt_id, seen.words, seen.derived) for seen in task.attempts]
        numbers = [seen.number for seen in task.attempts]
        assert numbers == sorted(set(numbers))
        kept.append((facts, task.tried, task.failed, task.failed_derived))
    assert kept[0] == kept[1] == kept[2]


def test_only_the_session_that_sends_attempts_loses_what_was_derived(player):
    """Two sessions of one task, one of which knows of attempts."""
    game = player(OFF)
    quiet = [msgspec.structs.replace(call, session_id="s2", event_id=f"s2{call.event_id}") for call in swing(1)]
    game.play([msgspec.structs.replace(call, task=T1) for call in [*swing(1), *quiet]])
    game.play([fix_attempt(1, "round the total", task=T1)])
    assert [attempt.derived for attempt in attempts(game, "T1")] == [True, False]


@pytest.mark.parametrize(("clears", "kept"), [(True, 0), (False, 2)])
def test_a_message_of_the_user_sets_back_what_was_derived(player, clears, kept):
    """What follows is another request, unless a setting says otherwise."""
    game = player({**OFF, "decision.user_message_clears": clears})
    game.play([*swing(2), session_event(9, "user_message")])
    assert len(attempts(game)) == kept


def test_a_message_that_is_read_late_leaves_what_was_tried_after_it(player):
    """It comes on another topic; event time decides."""
    game = player(OFF)
    game.play([*swing(3), session_event(2, "user_message")])
    assert [attempt.event_id for attempt in attempts(game)] == ["s1-3", "s1-5"]


def test_a_message_of_the_user_leaves_attempts_that_were_sent(player):
    """Who sends attempts says by them what a task is."""
    game = player(OFF)
    game.play([fix_attempt(0, "round the total"), session_event(60, "user_message")])
    assert len(attempts(game)) == 1


@pytest.mark.parametrize(("times", "warned"), [(2, False), (3, True), (9, True)])
@pytest.mark.parametrize("off", [["circular_fix", "diff_reversal"], ["approach_churn", "state_cycle", "circular_fix"]])
def test_two_places_that_break_each_other_are_found_from_tool_calls_alone(heard, times, warned, off):
    """Mending A breaks B, mending B breaks A: the first return warns, and nobody is stopped by what was only read."""
    alerts = heard(swing(times), {"off": [*OFF["off"], *off]})
    assert {alert.level for alert in alerts} - {"notice"} == ({"warn"} if warned else set())
    assert len({alert.loop_id for alert in alerts}) <= 1
    for alert in alerts:
        last = 2 * alert.seq + 1
        assert alert.evidence.derived
        assert alert.evidence.event_ids[-1] == f"s1-{last}"
        assert alert.evidence.attempt_ids[-1] == f"call:s1-{last}"


@pytest.mark.parametrize(("times", "wanted"), [(2, []), (3, ["warn"]), (8, ["warn"])])
def test_checks_that_fail_in_turn_do_not_terminate_alone(heard, times, wanted):
    """What is read from tool calls waits for what the edits say: here each is another."""
    calls = [call for n in range(times) for call in (change(f"was {n}", f"is {n}"), red(TEST_B if n % 2 else TEST_A))]
    alerts = heard(numbered(calls), OFF)
    assert [alert.level for alert in alerts if alert.detector == "fix_break"][:1] == wanted
    assert "terminate" not in [alert.level for alert in alerts]


@pytest.mark.parametrize(
    ("times", "wanted"),
    [(1, []), (2, ["notice"]), (3, ["notice", "warn"]), (4, ["notice", "warn"]), (5, ["notice", "warn", "warn"])],
)
def test_an_edit_that_takes_back_the_last_one_is_found_from_tool_calls_alone(heard, times, wanted):
    """Old and new text of the edit tool, nothing else: twice in the same lines warns, four times again."""
    alerts = heard(swing(times), {"off": [*OFF["off"], "fix_break", "state_cycle", "approach_churn", "circular_fix"]})
    assert [level for level, *_ in found(alerts, "diff_reversal")] == wanted
    assert all(alert.evidence.derived for alert in alerts)


def test_an_attempt_that_was_sent_is_not_marked_as_derived(heard):
    """The alert says on what it rests."""
    words = ["round the total", "cache the rows", "round the total", "cache the rows"]
    alerts = heard([fix_attempt(n, text) for n, text in enumerate(words)])
    assert alerts
    assert not any(alert.evidence.derived for alert in alerts)


def test_one_derived_attempt_among_those_of_a_loop_marks_it(heard):
    """One session edits, another sends what takes that back."""
    calls = [msgspec.structs.replace(call, task=T1) for call in numbered([change("a = 1", "a = 2"), red(TEST_A)])]
    back = (Replacement(path="src/cart.py", old="a = 2", new="a = 1"),)
    alerts = heard([*calls, fix_attempt(1, replacements=back, session_id="s2", task=T1)], OFF)
    assert [(alert.detector, alert.evidence.derived) for alert in alerts] == [("diff_reversal", True)]


@pytest.mark.parametrize(("times", "wanted"), [(19, False), (20, True)])
def test_many_attempts_from_tool_calls_have_a_limit_of_their_own(heard, times, wanted):
    """Healthy work has red checks too: twenty of them, and not six."""
    rounds = [(change(f"was {n}", f"is {n}", f"src/part_{n}.py"), red(f"test_{n}.py::test_x")) for n in range(times)]
    alerts = heard(numbered(call for turn in rounds for call in turn), OFF)
    assert bool(found(alerts, "too_many_attempts")) == wanted
