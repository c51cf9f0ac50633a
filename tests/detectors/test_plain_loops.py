"""Plain loops behind something that moves, and settings by which one lives with a detector."""

import pytest

from detectors import Limits, SessionState, observe
from schemas.testing import tool_call
from tests.detectors.traces import edit, found, numbered, shell


@pytest.mark.parametrize(
    "answer",
    [
        "Wrong. You have used {} of 100 guesses.",
        '{{"correct": false, "attempts": {}}}',
        "I cannot do that. (credits left: {})",
        "Not accepted, {} tries left",
    ],
)
def test_what_is_left_of_a_budget_does_not_hide_a_loop(play_weighed, answer):
    """Counters of attempts move with every call and mean nothing."""
    alerts = play_weighed([tool_call(n, "submit_answer", {"answer": 42}, answer.format(90 - n)) for n in range(3)])
    assert found(alerts, "identical") == [("warn", "identical", 2)]


@pytest.mark.parametrize("line", ["src/p.py:{}: TypeError: row is None", "error at line {} of part"])
def test_a_failure_whose_line_moves_is_one_answer(play_weighed, line):
    """Each edit above it moves the line; the failure is the same."""
    events = []
    for n in range(5):
        events += [edit(0, "src/p.py", f"row {n}"), shell(0, "pytest -q", line.format(30 + n), error="red")]
    alerts = play_weighed(numbered(events))
    assert found(alerts, "stuck_check") == [("warn", "stuck_check", 9)]


def test_a_long_round_is_noticed_though_a_notice_was_given(play_weighed):
    """That somebody only reads says less than that it was all read before."""
    events = [shell(n, f"cat notes/{n % 10}.md", f"note {n % 10}") for n in range(30)]
    assert ("warn", "revisits", 19) in found(play_weighed(events))


@pytest.mark.parametrize(
    "message",
    [
        "Permission to use Bash has been denied.",
        "The user doesn't want to proceed with this tool use.",
        "Blocked by policy: outbound requests",
    ],
)
def test_denials_are_read_from_the_message_of_a_failure(play_weighed, message):
    """Harnesses that have no flag for it say it in words."""
    events = [shell(n, f"curl https://example.org/{n}", message, error="denied") for n in range(3)]
    (alert,) = play_weighed(events)
    assert alert.limits[0].name == "error_streak.denied_warn"


def test_a_structured_error_says_what_it_is(play_weighed):
    """Quotation marks and apostrophes in it do not make five reasons one."""
    reasons = ("'name' is required", "'age' is too short", "'mail' is bad", "unknown unit 'kg'", "no such ward here")
    events = [tool_call(n, "create_ward", {"n": n}, {"error": reason}) for n, reason in enumerate(reasons)]
    assert [alert.evidence.error for alert in play_weighed([tool_call(99, "ping", {}, "pong"), *events])] == []
    same = [tool_call(n, "create_ward", {"n": n}, {"error": "field 'currency' is required"}) for n in range(6)]
    (alert,) = play_weighed([tool_call(99, "ping", {}, "pong"), *same])
    assert "is required" in (alert.evidence.error or "")


def test_a_detector_that_is_off_says_nothing(play_weighed):
    """And the others go on."""
    events = [shell(n, "./sync.sh", "0 files") for n in range(30)]
    assert {alert.detector for alert in play_weighed(events)} == {"identical"}
    assert {alert.detector for alert in play_weighed(events, {"off": ["identical"]})} == {"revisits", "spin_score"}
    assert {alert.detector for alert in play_weighed(events, {"off": ["identical", "spin_score"]})} == {"revisits"}
    assert play_weighed(events, {"off": ["identical", "revisits", "spin_score"]}) == []


def test_a_detector_may_be_kept_from_terminating(play_weighed):
    """It warns again instead, at double the count."""
    events = [shell(n, "./sync.sh", "0 files") for n in range(13)]
    alerts = play_weighed(events, {"warn_only": ["identical"]})
    assert found(alerts) == [("warn", "identical", 2), ("warn", "identical", 5), ("warn", "identical", 11)]


@pytest.mark.parametrize("depth", [60, 300, 900])
@pytest.mark.parametrize("tool", ["nest", "write_file", "Read", "grep", "todo_write"])
def test_arguments_nested_however_deep_are_read(depth, tool):
    """What lies too deep is left out of the comparison, and nothing fails."""
    value: object = "x"
    for _ in range(depth):
        value = [value]
    state = SessionState()
    alerts = [observe(state, tool_call(n, tool, {"value": value, "path": value}, "done"), Limits()) for n in range(3)]
    assert [[alert.detector for alert in each] for each in alerts] == [[], [], ["identical"]]
