"""Error streak: failures that go on under changing words, each limit from both sides."""

import pytest
from msgspec import UNSET

from detectors.state import MAX_AREAS, MAX_FAILING_CALLS
from schemas.common import ErrorInfo
from schemas.testing import tool_call


def fail(n, message, command="go test ./...", **fields):
    """A failing run with this message."""
    error = ErrorInfo(code=1, message=message)
    return tool_call(n, arguments={"command": command}, result=message, status="error", **{"error": error, **fields})


def edit(n):
    """An accepted edit."""
    return tool_call(n, tool="edit", arguments={"path": "a.go", "new": f"version {n}"}, result="ok")


KINDS = ("undefined: parseConfig", "cannot use cfg as Config value", "missing return at end of function")


def moles(runs):
    """Edit and run in turn; the failure goes A, B, C, A."""
    events = []
    for run in range(runs):
        events += [edit(2 * run), fail(2 * run + 1, KINDS[run % 3])]
    return events


def found(alerts):
    """Level, limit and position of each alert."""
    return [(alert.level, alert.limits[0].name, alert.seq) for alert in alerts]


def test_failures_that_come_back_in_turn_are_one_pattern(play):
    """A, B, C, A with nothing edited: new kinds add a half, returning ones add one; 8 warns, 15 terminates."""
    events = [fail(n, f"{KINDS[n % 3]}, line {n}") for n in range(17)]
    assert found(play(events[:8])) == []
    assert found(play(events[:9])) == [("warn", "error_streak.warn", 8)]
    assert found(play(events[:15])) == [("warn", "error_streak.warn", 8)]
    assert found(play(events)) == [("warn", "error_streak.warn", 8), ("terminate", "error_streak.terminate", 15)]


def test_whack_a_mole_with_edits_between_counts_by_halves(play):
    """Each edit moves the failure elsewhere: that is movement, but 15 such runs warn and 29 end it."""
    assert play(moles(14)) == []
    assert found(play(moles(15))) == [("warn", "error_streak.warn", 29)]
    assert found(play(moles(28))) == [("warn", "error_streak.warn", 29)]
    assert found(play(moles(29))) == [("warn", "error_streak.warn", 29), ("terminate", "error_streak.terminate", 57)]


@pytest.mark.parametrize("result", [UNSET, None, "ok"])
def test_an_edit_that_the_producer_says_succeeded_was_accepted(play, result):
    """Also when nobody recorded what it answered."""
    events = []
    for n in range(14):
        events += [tool_call(2 * n, tool="edit", arguments={"new": str(n)}, result=result), fail(2 * n + 1, KINDS[0])]
    assert found(play(events)) == [("warn", "error_streak.warn", 15)]


def test_the_same_failure_after_each_edit_counts_in_full(play):
    """An edit that changes nothing about the failure is no movement: eight runs warn."""
    events = []
    for n in range(8):
        events += [edit(2 * n), fail(2 * n + 1, KINDS[0])]
    assert play(events[:14]) == []
    assert found(play(events)) == [("warn", "error_streak.warn", 15)]


def test_changed_arguments_add_a_half(play):
    """Fourteen changed runs with the one failure count 7.5, fifteen count 8."""
    events = [fail(n, KINDS[0], command=f"go test ./pkg{n}") for n in range(15)]
    assert play(events[:14]) == []
    (alert,) = play(events)
    assert (alert.count, found([alert])) == (8.0, [("warn", "error_streak.warn", 14)])


def test_always_another_failure_is_the_slowest_to_count(play):
    """New failures are movement: fourteen of them do not warn."""
    words = "alpha bravo charlie delta echo foxtrot golf hotel india juliett kilo lima mike november"
    assert play([fail(n, f"undefined symbol {word}{word}") for n, word in enumerate(words.split())]) == []


def test_a_success_of_the_same_program_clears(play):
    """A run that passes ends the streak; one of another program does not."""
    passed = tool_call(99, arguments={"command": "go test ./ok"}, result="ok")
    other = tool_call(99, arguments={"command": "cat go.mod"}, result="module x")
    assert play([*moles(14), passed, *[fail(100 + n, KINDS[n % 3]) for n in range(3)]]) == []
    assert found(play([*moles(14), other, fail(100, KINDS[2])])) == [("warn", "error_streak.warn", 29)]


def test_a_smaller_failing_set_clears(play):
    """Twelve failures, then seven, then three is progress."""
    events = []
    for n in range(24):
        events += [edit(2 * n), fail(2 * n + 1, f"{60 - n} failed: test_{'abcdefgh'[n % 3] * 9}")]
    assert play(events) == []


def test_tools_that_do_not_execute_have_no_streak(play):
    """Reads that fail one after the other are another detector's matter."""
    assert play([fail(n, KINDS[0], tool="read", command=f"f{n}") for n in range(40)]) == []


def test_same_call_with_the_same_failure_has_its_own_limits(play):
    """Three times warns, five terminates, whatever was read in between."""
    events = []
    for n in range(5):
        events += [
            fail(2 * n, f"{KINDS[0]} at line {n}"),
            tool_call(2 * n + 1, tool="read", arguments={"path": f"f{n}"}),
        ]
    assert found(play(events[:3])) == []
    assert found(play(events[:5])) == [("warn", "error_streak.same_call_warn", 4)]
    assert found(play(events[:8])) == [("warn", "error_streak.same_call_warn", 4)]
    assert [alert.level for alert in play(events)] == ["warn", "terminate"]


def test_an_accepted_edit_refutes_earlier_failures_of_a_call(play):
    """Running the same check again after an edit is not the same call failing again."""
    assert play(moles(5)) == []


@pytest.mark.parametrize(("gap", "count"), [(11, 1), (12, 0)])
def test_single_failures_far_apart_are_not_one_loop(play, gap, count):
    """The same failure must come again within twelve calls."""
    events, n = [], 0
    for _ in range(3):
        events.append(fail(n, KINDS[0]))
        events += [tool_call(n + 1 + k, tool="read", arguments={"path": f"f{n + k}"}) for k in range(gap)]
        n += gap + 1
    assert len([alert for alert in play(events) if alert.level == "warn"]) == count


@pytest.mark.parametrize(
    "error",
    [
        *[
            ErrorInfo(code=code, message="try later")
            for code in (429, 503, "ECONNRESET", "HTTP 429", "TooManyRequests")
        ],
        *[
            ErrorInfo(code=22, message=message)
            for message in (
                "HTTP/2 429",
                "HTTP/1.1 503",
                '{"statusCode": 429, "x": 1}',
                "429 Client Error for url",
                "received 503 from upstream",
                "ThrottlingException: Rate exceeded",
                "RESOURCE_EXHAUSTED: quota",
                "socket hang up",
                "upstream connect error or disconnect",
            )
        ],
    ],
)
def test_outages_neither_add_nor_clear(play, error):
    """A rate limit is not the agent's failure, and not its success either."""
    outage = [fail(50 + n, f"unavailable {n}", error=error) for n in range(30)]
    assert play(outage) == []
    assert found(play([*moles(14), outage[0], fail(100, KINDS[2])])) == [("warn", "error_streak.warn", 29)]


def test_an_outage_that_is_flagged_as_a_failure_does_not_terminate(play):
    """The stronger signal is not judged more harshly than the text alone."""
    error = ErrorInfo(code=503, message="Service Unavailable")
    events = [fail(n, "503 Service Unavailable", tool="fetch", error=error) for n in range(20)]
    assert {alert.level for alert in play(events)} == {"warn"}


def test_a_check_that_speaks_of_an_outage_has_found_something(play):
    """A test that fails because a status was 500 fails."""
    events = [fail(n, "E  assert status 500 == 200", command=f"pytest tests/t{n}") for n in range(15)]
    assert [alert.level for alert in play(events)] == ["warn"]


@pytest.mark.parametrize(
    ("count", "levels"), [(2, []), (3, ["warn"]), (9, ["warn", "warn"]), (10, ["warn", "warn", "terminate"])]
)
def test_denied_calls_warn_at_three_and_terminate_at_ten(play, count, levels):
    """A policy that says no will say no again; the second warning comes at double the count."""
    events = [
        tool_call(n, tool="deploy", arguments={"n": n}, result="not allowed", status="denied") for n in range(count)
    ]
    assert [alert.level for alert in play(events)] == levels


def test_invented_tools_count_together(play):
    """Another invented name each time is one loop."""
    events = [tool_call(n, tool=f"tool_{n}", result="Error: unknown tool", status="error") for n in range(3)]
    assert found(play(events)) == [("warn", "error_streak.denied_warn", 2)]
    known = tool_call(2, tool="read", arguments={"path": "a"})
    again = tool_call(3, tool="tool_3", result="Error: unknown tool", status="error")
    assert play([*events[:2], known, again]) == []


def test_failure_read_from_text_is_marked_and_does_not_terminate_alone(play):
    """Without a flag the beginning of the result tells, as weaker evidence."""
    text = "Traceback (most recent call last):\n  File x\nValueError: bad magic number"
    events = [tool_call(n, arguments={"command": "python a.py"}, result=f"{text}{n}", status=None) for n in range(12)]
    alerts = play(events)
    assert alerts
    assert {alert.level for alert in alerts} == {"warn"}
    assert all(alert.evidence.weak for alert in alerts)


def test_a_green_flag_is_believed_over_the_text(play):
    """A call that the producer says succeeded did not fail, whatever it printed."""
    events = [tool_call(n, arguments={"command": f"grep {n}"}, result="Error: boom", status="ok") for n in range(30)]
    assert play(events) == []


@pytest.mark.parametrize(("others", "count"), [(MAX_AREAS - 1, 1), (MAX_AREAS, 0)])
def test_programs_remembered_are_bounded(play, others, count):
    """Failures of as many programs as there is room for do not push one out, one more does."""
    noise = [fail(200 + n, KINDS[1], command=f"prog{n} run") for n in range(others)]
    events = [*moles(14), *noise, fail(300, KINDS[2])]
    assert len(play(events)) == count


@pytest.mark.parametrize(("others", "count"), [(MAX_FAILING_CALLS - 1, 1), (MAX_FAILING_CALLS, 0)])
def test_failing_calls_remembered_are_bounded(play, others, count):
    """The same holds for calls that failed."""
    noise = [fail(10 + n, KINDS[1], tool="fetch", command=f"url {n}") for n in range(others)]
    again = [fail(n, KINDS[0], tool="fetch", command="url x") for n in range(2)]
    assert len(play([*again, *noise, fail(50, KINDS[0], tool="fetch", command="url x")])) == count
