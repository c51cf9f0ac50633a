"""Runs that get further: fewer checks fail, or more pass before another one does. Healthy work that looks like failing.

Each way of getting further has its counterpart that only seems to: those are loops, and found.
"""

import pytest

from detectors import Limits, SessionState, TaskState, observe_task, step
from schemas.events import ToolCall
from schemas.testing import tool_call
from tests.detectors.traces import found

ROUNDS = 40
WORDS = [
    a + b for a in ("log", "car", "tot", "tax", "rou") for b in ("alpha", "beta", "gamma", "delta", "omega", "psi")
]
WORDS += [word[::-1] for word in WORDS]


def rounds(command, says, *, edits, count=ROUNDS):
    """Run a failing command again and again, ``says(k)`` being its k-th answer, with or without an edit before each."""
    events: list[ToolCall] = []
    for k in range(count):
        if edits:
            path = f"/w/{WORDS[k]}.py"
            events.append(tool_call(len(events), "edit", {"path": path, "old": f"a{k}", "new": f"b{k}"}, "edited"))
        events.append(tool_call(len(events), "bash", {"command": command}, says(k), status="error"))
    return events


def tasks_alerts(events):
    """Play events of one session through its task as well, and return the task's alerts."""
    state, task = SessionState(), TaskState()
    told = [step(state, event, Limits()).task_event for event in events]
    return [alert for event in told if event for alert in observe_task(task, event, Limits())]


def levels(alerts):
    """Return the levels of warnings and terminations."""
    return [alert.level for alert in alerts if alert.level in {"warn", "terminate"}]


FEWER = {
    "pytest": lambda k: (
        f"FAILED tests/test_{WORDS[k]}.py::test_it - assert 1 == 2\n{ROUNDS - k} failed, {k} passed in 1s"
    ),
    "cargo": lambda k: f"test {WORDS[k]} ... FAILED\n\ntest result: FAILED. {k} passed; {ROUNDS - k} failed; 0 ignored",
    "vitest": lambda k: f"AssertionError: no {WORDS[k]}\n Tests  {ROUNDS - k} failed | {k} passed ({ROUNDS})",
}
FIRST_ONLY = {
    "pytest -x": lambda k: (
        f"FAILED tests/test_{WORDS[k]}.py::test_it - KeyError: {WORDS[k]}\n1 failed, {k} passed in 1s"
    ),
    "python -m unittest -f": lambda k: (
        f"FAIL: test_{WORDS[k]} (tests.T)\nAssertionError: 1 != 2\nRan {3 * k + 1} tests in 0.1s\nFAILED (failures=1)"
    ),
    "npx jest --bail": lambda k: (
        f"  \u25cf suite > does {WORDS[k]}\n\nTests: 1 failed, {2 * k} passed, {2 * k + 1} total"
    ),
    "npx mocha --bail": lambda k: (
        f"  {k} passing (2s)\n  1 failing\n\n    1) does {WORDS[k]}:\n     AssertionError: 1 != 2"
    ),
}


@pytest.mark.parametrize("edits", [False, True], ids=["edits unseen", "edits seen"])
@pytest.mark.parametrize("runner", FEWER)
def test_fewer_failing_checks_each_time_are_no_loop(play, runner, edits):
    """A check that comes down from forty failures to one is on its way, whoever makes the edits."""
    events = rounds(runner, FEWER[runner], edits=edits)
    assert levels(play(events, {"identical.moving_warn": 900})) == []
    assert tasks_alerts(events) == []


@pytest.mark.parametrize("edits", [False, True], ids=["edits unseen", "edits seen"])
@pytest.mark.parametrize("runner", FIRST_ONLY)
def test_runs_that_end_at_the_first_failure_get_further(play, runner, edits):
    """One failure each time, always another one, with more that pass before it: so is mended what fails one by one."""
    events = rounds(runner, FIRST_ONLY[runner], edits=edits)
    assert levels(play(events, {"identical.moving_warn": 900})) == []
    assert tasks_alerts(events) == []


SEEMING = {
    "always the same failure, more and more that pass": lambda k: (
        f"FAILED tests/test_a.py::test_a - KeyError: a\n1 failed, {k} passed in 1s"
    ),
    "another failure, as many that pass": lambda k: (
        f"FAILED tests/test_{WORDS[k % 3]}.py::test_it - KeyError: a\n1 failed, 9 passed in 1s"
    ),
    "up and down": lambda k: (
        f"FAILED tests/test_{WORDS[k % 2]}.py::test_it - KeyError: a\n{2 + k % 2} failed, 9 passed"
    ),
    "more that pass, and more that fail": lambda k: (
        f"FAILED tests/test_{WORDS[k % 3]}.py::test_it - KeyError: a\n{k + 1} failed, {k + 9} passed"
    ),
}


@pytest.mark.parametrize("says", SEEMING.values(), ids=SEEMING.keys())
def test_what_only_seems_to_get_further_is_a_loop(play, says):
    """It is warned of with an edit before each run, and terminated where nothing is edited at all."""
    assert "warn" in levels(play(rounds("pytest", says, edits=True)))
    counting = [alert for alert in play(rounds("pytest", says, edits=False)) if alert.detector != "alternation"]
    assert "terminate" in levels(counting)


def test_getting_further_begins_the_counts_anew(play):
    """Four equal failures do not end a session, nor do four more after a step ahead; a fifth of either does."""

    def failing(*counts):
        return rounds(
            "pytest", lambda k: f"assert {k} == 7\n{counts[k]} failed, 9 passed", edits=False, count=len(counts)
        )

    assert levels(play(failing(9, 9, 9, 9, 8, 8, 8, 8))) == ["warn"]
    assert "terminate" in levels(play(failing(9, 9, 9, 9, 9)))
    assert "terminate" in levels(play(failing(9, 9, 9, 9, 8, 8, 8, 8, 8)))


def test_errors_that_move_on_with_each_edit_count_by_quarters(play):
    """Compilers that stop at the first error give no number: 28 runs with ever other errors do not warn, 29 do."""

    def says(k):
        return f"src/{WORDS[k]}.c:{k}:3: error: unknown type name '{WORDS[k]}_t'\nmake: *** [Makefile:12] Error 1"

    assert play(rounds("make", says, edits=True, count=28)) == []
    assert found(play(rounds("make", says, edits=True, count=29)), "error_streak") == [("warn", "error_streak", 57)]
