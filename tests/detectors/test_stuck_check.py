"""Stuck check: one check with one failing answer whatever is edited between, each limit from both sides."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from detectors import SessionState, limits_from, observe
from detectors.state import MAX_CHECKS
from schemas.common import ErrorInfo
from schemas.testing import at, session_event, tool_call

RED = "FAILED spec/dose_spec.rb:14 expected 2.5, got 2.0\n31 examples, 1 failed"
OTHER = "FAILED spec/dose_spec.rb:29 expected nil, got 0\n31 examples, 1 failed"
GREEN = "31 examples, 0 failures"

ALONE = {"error_streak.warn": 100, "error_streak.terminate": 200}
"""Limits under which the error streak, which counts the same failures, says nothing."""


def edit(n, **fields):
    """An accepted edit with a text of its own."""
    arguments = {"file_path": "lib/dose.rb", "old_string": f"step {n}", "new_string": f"step {n + 1}"}
    return tool_call(n, "Edit", arguments, f"lib/dose.rb: revision {n}", **fields)


def check(n, result=RED, command="bundle exec rspec", **fields):
    """A check; flagged as failed where its answer is not green."""
    status = "ok" if result == GREEN else "error"
    return tool_call(n, "bash", {"command": command}, result, **{"status": status, **fields})


def after_edits(results, **fields):
    """An edit and a check in turn, the checks with these results; the k-th check is call 2k + 1."""
    return [event for k, each in enumerate(results) for event in (edit(2 * k), check(2 * k + 1, each, **fields))]


def found(alerts):
    """Level, limit and position of each of the detector's alerts."""
    return [(alert.level, alert.limits[0].name, alert.seq) for alert in alerts if alert.detector == "stuck_check"]


WARN = ("warn", "stuck_check.warn", 9)
AGAIN = ("warn", "stuck_check.warn", 19)
END = ("terminate", "stuck_check.terminate", 29)


@pytest.mark.parametrize(
    ("count", "expected"),
    [(4, []), (5, [WARN]), (9, [WARN]), (10, [WARN, AGAIN]), (14, [WARN, AGAIN]), (15, [WARN, AGAIN, END])],
)
def test_warns_at_five_and_terminates_at_fifteen(play, count, expected):
    """The default limits are reached exactly, with an accepted edit before every check."""
    assert found(play(after_edits([RED] * count), ALONE)) == expected


def test_three_or_four_equal_answers_are_healthy(play):
    """Nobody hears anything of four equal answers with edits between, from whatever detector."""
    assert play(after_edits([RED] * 4)) == []


@pytest.mark.parametrize(
    ("count", "levels"), [(2, []), (3, ["warn"]), (6, ["warn", "warn"]), (7, ["warn", "warn", "terminate"])]
)
def test_set_limits_are_the_ones_that_count(play, count, levels):
    """Three and seven instead of five and fifteen, from both sides."""
    limits = {"stuck_check": {"warn": 3, "terminate": 7}}
    assert [level for level, _, _ in found(play(after_edits([RED] * count), limits))] == levels


def test_a_far_limit_is_reached_when_the_time_comes(play):
    """No ring bounds the count."""
    limits = {"stuck_check.terminate": 40, "error_streak": {"warn": 900, "terminate": 900}}
    assert found(play(after_edits([RED] * 40), limits))[-1] == ("terminate", "stuck_check.terminate", 79)


def test_the_alert_says_which_check_and_which_answer(play):
    """A person can check it without the recording."""
    (alert,) = play(after_edits([RED] * 5))
    assert (alert.count, alert.first_seen, alert.evidence.weak) == (5, at(1), False)
    assert "bash(command=bundle exec rspec)" in alert.reasoning
    assert "expected" in (alert.evidence.error or "")
    assert "stuck_check.warn = 5, set by default" in alert.reasoning


@pytest.mark.parametrize("answer", [OTHER, GREEN])
def test_a_changed_answer_clears(play, answer):
    """Another failure and a green run both say that the edits reach the cause; the count begins anew."""
    results = [*[RED] * 4, answer, *[RED] * 4]
    assert found(play(after_edits(results), ALONE)) == []
    assert found(play(after_edits([*results, RED]), ALONE)) == [("warn", "stuck_check.warn", 19)]


def test_a_score_that_moves_is_another_answer(play):
    """Bare numbers are what a check is run for."""
    results = [f"FAILED: 1 of 31 above the threshold, deviation {0.9 - k / 50:.2f}" for k in range(12)]
    assert found(play(after_edits(results))) == []


def test_durations_and_process_ids_do_not_change_the_answer(play):
    """What moves without meaning anything is masked."""
    results = [f"{RED}\nFinished in 0.{k}1 seconds (pid {700 + k})" for k in range(5)]
    assert found(play(after_edits(results))) == [WARN]


@pytest.mark.parametrize("result", [GREEN, "ok", "", UNSET])
def test_green_checks_after_each_edit_are_healthy(play, result):
    """However often: that is what one should do, also where a check that passes prints nothing."""
    assert play([event for k in range(40) for event in (edit(2 * k), check(2 * k + 1, result, status="ok"))]) == []


@pytest.mark.parametrize(
    "between",
    [
        check(8, "Service Unavailable", error=ErrorInfo(code=503, message="Service Unavailable")),
        check(8, UNSET, status=None),
        check(8, UNSET, status="timeout"),
        tool_call(8, "think", {"thought": "the step may be rounded"}, "noted"),
        tool_call(8, "bash", {"command": "sleep 20"}, ""),
        tool_call(8, "Read", {"file_path": "lib/dose.rb"}, "def dose; end"),
        tool_call(8, "bash", {"command": "bundle exec rspec spec/unit_spec.rb"}, GREEN),
    ],
    ids=["outage", "unknown result", "timeout without result", "thought", "poll", "read", "another check"],
)
def test_what_is_no_answer_of_the_check_neither_adds_nor_clears(play, between):
    """Outages, unknown results, talk, waiting, reading and other checks leave the count as it was."""
    events = [*after_edits([RED] * 4), between]
    assert found(play(events)) == []
    assert found(play([*events, edit(9), check(10)])) == [("warn", "stuck_check.warn", 10)]


def test_a_silent_success_clears(play):
    """The producer's word that a check passed is enough, though nobody recorded what it printed."""
    first, second = after_edits([RED] * 9)[:8], after_edits([RED] * 9)[10:]
    assert found(play([*first, check(9, UNSET, status="ok"), *second])) == []
    assert found(play([*first, *second])) == [WARN]


def test_what_several_detectors_see_of_one_check_is_one_loop(play):
    """The error streak counts the same failures: nobody is told twice at a time, or of two loops."""
    alerts = play(after_edits([RED] * 15))
    assert len({alert.loop_id for alert in alerts}) == 1
    assert len({alert.seq for alert in alerts}) == len(alerts)


def test_two_checks_in_turn_are_counted_apart(play):
    """Each has an answer of its own."""
    events = []
    for k in range(5):
        events += [edit(3 * k), check(3 * k + 1), check(3 * k + 2, OTHER, "bundle exec rubocop")]
    assert [seq for _, _, seq in found(play(events))] == [13, 14]


@pytest.mark.parametrize(("others", "count"), [(MAX_CHECKS - 1, 1), (MAX_CHECKS, 0)])
def test_checks_remembered_are_bounded(play, others, count):
    """Failing checks up to the bound do not push one out, one more does."""
    events = after_edits([RED] * 4)
    for n in range(others):
        events += [edit(20 + 2 * n), check(21 + 2 * n, f"FAILED: part {n} differs", f"make verify-part{n}")]
    assert len(found(play([*events, edit(50), check(51)]))) == count


@pytest.mark.parametrize(
    ("tool", "arguments", "answer"),
    [
        ("run_tests", {"suite": "dose"}, RED),
        ("get_diagnostics", {"file": "lib/dose.rb"}, "lib/dose.rb:14: error: undefined local variable step"),
        ("mcp__ci__build", {"target": "all"}, "BUILD FAILED: cannot resolve symbol dose"),
        ("bash", {"command": "cd dose && python simulate.py --patients 40"}, "ValueError: dose must be positive"),
        ("execute_code", {"code": "print(simulate(40))"}, "ZeroDivisionError: float division by zero"),
        ("bash", {"command": "npm run build"}, "ERROR in ./src/dose.ts: type mismatch"),
    ],
)
def test_whatever_checks_or_runs(play, tool, arguments, answer):
    """Test runners, diagnostics, builds behind a server, programs and notebooks."""
    events = []
    for k in range(5):
        failed = tool_call(2 * k + 1, tool, arguments, answer, status="error")
        events += [edit(2 * k), failed]
    assert found(play(events)) == [WARN]


def test_looks_and_edits_are_no_checks(play):
    """A read and an edit that fail the same way after each edit are other detectors' matter."""
    gone = ErrorInfo(message="no such chapter in the manual")
    events = []
    for k in range(8):
        events += [edit(2 * k), tool_call(2 * k + 1, "read_manual", {"chapter": "dose"}, "", error=gone)]
    assert found(play(events)) == []


def test_a_message_of_the_user_clears(play):
    """What a person says may change what the answer is worth."""
    assert found(play([*after_edits([RED] * 4), session_event(8, "user_message"), edit(9), check(10)])) == []


# Agents whose only tool is a shell, and harnesses without flags


@pytest.mark.parametrize("edits", ["sed -i 's/step {n}/step/' lib/dose.rb", "cat > lib/dose.rb <<'EOF'\nstep {n}\nEOF"])
@pytest.mark.parametrize(
    "answer",
    [
        RED,
        "Traceback (most recent call last):\n  File dose\nKeyError: 'step'",
        "<returncode>1</returncode>\n<output>1 failed</output>",
    ],
)
def test_without_flags_the_text_tells_as_weak_evidence_and_terminates_nothing(play, edits, answer):
    """A shell for everything and no flag for anything: warned about at the fifth equal answer, never stopped for it."""
    events = []
    for k in range(30):
        events += [
            tool_call(2 * k, "bash", {"command": edits.format(n=k)}, "", status=None),
            tool_call(2 * k + 1, "bash", {"command": "pytest tests/test_dose.py"}, answer, status=None),
        ]
    alerts = play(events)
    assert found(alerts)[0] == WARN
    assert "terminate" not in {alert.level for alert in alerts}
    assert all(alert.evidence.weak for alert in alerts if alert.detector == "stuck_check")


@pytest.mark.parametrize("answer", ["31 passed", "OK (31 tests)", "warning: 2 deprecations", "compiled with 0 errors"])
def test_without_flags_green_texts_are_green(play, answer):
    """Speaking of errors that there are none of is not failing."""
    events = []
    for k in range(20):
        events += [edit(2 * k), tool_call(2 * k + 1, "bash", {"command": "make test"}, answer, status=None)]
    assert play(events) == []


# Healthy practice


def test_a_check_between_edits_with_moving_answers_is_healthy(play):
    """One fault after the other is found and mended, twenty times over."""
    faults = [f"FAILED dose_spec.rb:{7 * k} {word}" for k, word in enumerate("abcdefghijklmnopqrst")]
    events = after_edits([f"{fault}\n{20 - k} failed" for k, fault in enumerate(faults)])
    assert play([*events, edit(40), check(41, GREEN)]) == []


def test_rebuilding_an_environment_with_other_pins_and_other_errors_is_healthy(play):
    """Each set of pins gets further and fails elsewhere: the build is the same command, the answer is not."""
    conflicts = [
        "grid needs mesh<3",
        "mesh 2 needs solver>=5",
        "solver 5 dropped py37",
        "wheel of blas is missing",
        "linker cannot find libquad",
        "header quad.h is too old",
        "grid was built for another abi",
    ]
    events = []
    for k, conflict in enumerate(conflicts):
        pins = {"path": "pins.txt", "content": f"grid=={k}.1\nmesh=={k}.0"}
        events += [
            tool_call(2 * k, "write_file", pins, f"pins.txt: {k + 2} lines"),
            check(2 * k + 1, f"ERROR: {conflict}", "docker build -t sim ."),
        ]
    assert found(play(events)) == []
    assert "terminate" not in {alert.level for alert in play(events)}


def test_tuning_one_parameter_after_the_other_is_healthy(play):
    """A run that ends above its target each time, with another figure each time."""
    results = [f"mean absolute error 0.{90 - k} is above the target 0.20" for k in range(25)]
    assert play(after_edits(results, status="ok", command="python tune.py")) == []


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([RED, OTHER, GREEN]), max_size=20))
def test_only_the_latest_run_of_equal_failing_answers_counts(results):
    """Warned about exactly when five equal failing answers stand in a row, whatever came before."""
    stuck = any(results[k] != GREEN and results[k : k + 5] == [results[k]] * 5 for k in range(len(results)))
    limits = limits_from([("test", {"error_streak": {"warn": 900, "terminate": 900}})])
    state = SessionState()
    alerts = [alert for event in after_edits(results) for alert in observe(state, event, limits)]
    assert bool(found(alerts)) is stuck
