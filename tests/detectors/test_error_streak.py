"""Error streak: failures that go on under changing words, each limit from both sides."""

import pytest
from msgspec import UNSET

from detectors.state import MAX_AREAS, MAX_FAILING_CALLS
from schemas.common import ErrorInfo
from schemas.testing import at, tool_call

# Equal failing answers of one check are the matter of another detector, which sees the same loop.
ALONE = {"stuck_check": {"warn": 900, "terminate": 900}}


def fail(n, message, command="go test ./...", **fields):
    """A failing run with this message."""
    error = ErrorInfo(code=1, message=message)
    return tool_call(n, arguments={"command": command}, result=message, status="error", **{"error": error, **fields})


def apart(count, make, first=0):
    """So many calls of ``make(k, n)``, the k-th at n = ``first`` + 2k, each before a look at something new.

    Failures with nothing between are the matter of another detector as well.
    """
    events = []
    for k in range(count):
        n = first + 2 * k
        look = tool_call(n + 1, tool="read", arguments={"path": f"f{n}"}, result=f"text of part {n}")
        events += [make(k, n), look]
    return events


def edit(n):
    """An accepted edit."""
    return tool_call(n, tool="edit", arguments={"path": "a.go", "new": f"version {n}"}, result="ok")


SYLLABLES = ("ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu")


def another(n):
    """A failure that was not there before."""
    return f"undefined: {SYLLABLES[n % 10]}{SYLLABLES[n // 10]}{SYLLABLES[n * 7 % 10]}Handler"


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
    events = apart(17, lambda k, n: fail(n, f"{KINDS[k % 3]}, line {n}"))
    warn, end = ("warn", "error_streak.warn", 16), ("terminate", "error_streak.terminate", 30)
    assert found(play(events[:16])) == []
    assert found(play(events[:17])) == [warn]
    assert found(play(events[:30])) == [warn]
    assert found(play(events)) == [warn, end]


@pytest.mark.parametrize(("count", "levels"), [(2, []), (3, ["warn"]), (4, ["warn"]), (5, ["warn", "terminate"])])
def test_set_limits_are_the_ones_that_count(play, count, levels):
    """Three and five instead of eight and fifteen, from both sides."""
    limits = {**ALONE, "error_streak": {"warn": 3, "terminate": 5, "same_call_warn": 900, "same_call_terminate": 900}}
    events = [event for n in range(count) for event in (edit(2 * n), fail(2 * n + 1, KINDS[0]))]
    assert [level for level, _, _ in found(play(events, limits))] == levels


@pytest.mark.parametrize(
    ("limits", "make"),
    [
        ({"same_call_warn": 4, "same_call_terminate": 6}, lambda n: fail(n, KINDS[0])),
        ({"denied_warn": 4, "denied_terminate": 6}, lambda n: tool_call(n, "deploy", {"n": n}, "no", status="denied")),
    ],
    ids=["same call", "denied"],
)
def test_set_limits_of_equal_and_of_forbidden_calls_are_the_ones_that_count(play, limits, make):
    """Four and six, from both sides, a look at something new between each two."""
    events = apart(6, lambda _, n: make(n))
    changed = {**ALONE, "error_streak": limits}
    assert found(play(events[:6], changed)) == []
    assert [level for level, _, _ in found(play(events[:10], changed))] == ["warn"]
    assert [level for level, _, _ in found(play(events, changed))] == ["warn", "terminate"]


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
    assert found(play(events, ALONE)) == [("warn", "error_streak.warn", 15)]


def test_the_same_failure_after_each_edit_counts_in_full(play):
    """An edit that changes nothing about the failure is no movement: eight runs warn."""
    events = []
    for n in range(8):
        events += [edit(2 * n), fail(2 * n + 1, KINDS[0])]
    assert play(events[:14], ALONE) == []
    assert found(play(events, ALONE)) == [("warn", "error_streak.warn", 15)]


def test_changed_arguments_add_a_half(play):
    """Fourteen changed runs with the one failure count 7.5, fifteen count 8."""
    events = apart(15, lambda k, n: fail(n, KINDS[0], command=f"go test ./pkg{k}"))
    assert play(events[:28]) == []
    (alert,) = play(events)
    assert (alert.count, found([alert])) == (8.0, [("warn", "error_streak.warn", 28)])


def test_always_another_failure_is_the_slowest_to_count(play):
    """New failures are movement: fourteen of them do not warn."""
    assert play(apart(14, lambda k, n: fail(n, another(k)))) == []


def test_a_success_of_the_same_program_clears(play):
    """A run that passes ends the streak; one of another program does not."""
    passed = tool_call(99, arguments={"command": "go test ./ok"}, result="ok")
    other = tool_call(99, arguments={"command": "cat go.mod"}, result="module x")
    assert play([*moles(14), passed, *[fail(100 + n, KINDS[n % 3]) for n in range(3)]]) == []
    assert found(play([*moles(14), other, fail(100, KINDS[2])])) == [("warn", "error_streak.warn", 29)]


def test_a_run_whose_outcome_nobody_knows_does_not_clear(play):
    """Without a flag and a result it may have failed as well."""
    unknown = tool_call(99, arguments={"command": "go test ./ok"}, result=UNSET, status=None)
    assert found(play([*moles(14), unknown, fail(100, KINDS[2])])) == [("warn", "error_streak.warn", 29)]


def test_a_smaller_failing_set_clears(play):
    """Twelve failures, then seven, then three is progress."""
    events = []
    for n in range(24):
        events += [edit(2 * n), fail(2 * n + 1, f"{60 - n} failed: test_{'abcdefgh'[n % 3] * 9}")]
    assert play(events) == []


def test_tools_that_do_not_execute_have_no_streak(play):
    """Reads that fail one after the other are another detector's matter."""
    alerts = play([fail(n, KINDS[0], tool="read", command=f"f{n}") for n in range(40)])
    assert not any(alert.detector == "error_streak" for alert in alerts)


def test_same_call_with_the_same_failure_has_its_own_limits(play):
    """Three times warns, five terminates, whatever was read in between."""
    events = apart(5, lambda k, n: fail(n, f"{KINDS[0]} at line {k}"))
    assert found(play(events[:4])) == []
    assert found(play(events[:5])) == [("warn", "error_streak.same_call_warn", 4)]
    assert found(play(events[:8])) == [("warn", "error_streak.same_call_warn", 4)]
    assert [alert.level for alert in play(events)] == ["warn", "terminate"]


def test_the_same_call_that_fails_over_something_else_each_time_is_not_the_same_failure(play):
    """Nine undefined names one after the other, as where a person mends them unseen, are not five times the same."""
    events = apart(9, lambda k, n: fail(n, f"NameError: name '{SYLLABLES[k]}_total' is not defined", "python main.py"))
    assert not any(limit.startswith("error_streak.same_call") for _, limit, _ in found(play(events)))
    same = apart(5, lambda _, n: fail(n, "NameError: name 'ba_total' is not defined", "python main.py"))
    assert ("terminate", "error_streak.same_call_terminate", 8) in found(play(same))


@pytest.mark.parametrize(("looks", "levels"), [(8, []), (9, ["warn"]), (30, ["warn"])])
def test_who_waits_for_checks_that_fail_while_pending_is_told_to_leave_more_time(play, looks, levels):
    """Nine looks, twenty seconds apart, are too many; none of them ends a session, and none may be the last."""
    events = [
        tool_call(
            n, arguments={"command": "gh pr checks 12"}, result="build pending", status="error", occurred_at=at(20 * n)
        )
        for n in range(looks)
    ]
    alerts = play(events)
    assert [alert.level for alert in alerts][:1] == levels
    assert {alert.level for alert in alerts} <= {"warn"}
    assert all("Leave more time before each look" in alert.guidance for alert in alerts)


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
    events = apart(15, lambda k, n: fail(n, "E  assert status 500 == 200", command=f"pytest tests/t{k}"))
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


@pytest.mark.parametrize("command", ["cat server.log", "grep -n boom server.log", "tail -n 20 server.log"])
def test_what_is_shown_of_errors_is_content(play, command):
    """Where the producer says that a look succeeded, errors in what it shows are those of somebody else."""
    events = [
        tool_call(n, arguments={"command": command}, result=f"Error: boom in part {n}\n" + f"stack of part {n}\n" * 99)
        for n in range(30)
    ]
    assert {alert.level for alert in play(events)} <= {"notice"}


def test_a_run_that_ends_in_an_error_failed_whatever_its_flag(play):
    """Flags often say no more than that the tool itself ran: the text tells, as weaker evidence."""
    text = "Traceback (most recent call last):\n  File x\nValueError: bad magic number"
    command = "python part{}.py"
    events = apart(15, lambda k, n: tool_call(n, arguments={"command": command.format(k)}, result=text, status="ok"))
    alerts = play(events)
    assert found(alerts) == [("warn", "error_streak.warn", 28)]
    assert alerts[0].evidence.weak


@pytest.mark.parametrize(("count", "levels"), [(8, []), (9, ["warn"]), (14, ["warn"]), (15, ["warn", "terminate"])])
def test_polls_that_fail_the_same_way_have_three_times_the_limits(play, count, levels):
    """What is waited for may not be there yet."""
    gone = ErrorInfo(message="the job has not been scheduled so far")
    events = apart(count, lambda _, n: tool_call(n, "check_status", {"job": 7}, gone.message, error=gone))
    assert [level for level, limit, _ in found(play(events)) if "same_call" in limit] == levels


@pytest.mark.parametrize(("others", "count"), [(MAX_AREAS - 1, 1), (MAX_AREAS, 0)])
def test_programs_remembered_are_bounded(play, others, count):
    """Failures of as many programs as there is room for do not push one out, one more does."""
    noise = apart(others, lambda k, n: fail(n, f"{KINDS[1]} ({k})", command=f"prog{k} run"), first=200)
    events = [*moles(14), *noise, fail(300, KINDS[2])]
    assert len(play(events)) == count


@pytest.mark.parametrize(("others", "count"), [(MAX_FAILING_CALLS - 1, 1), (MAX_FAILING_CALLS, 0)])
def test_failing_calls_remembered_are_bounded(play, others, count):
    """The same holds for calls that failed."""
    noise = apart(others, lambda k, n: fail(n, KINDS[1], tool="ledger", command=f"entry {k}"), first=10)
    again = [fail(n, KINDS[0], tool="ledger", command="entry x") for n in range(2)]
    limits = {"error_streak.same_call_within": 30}
    assert len(play([*again, *noise, fail(50, KINDS[0], tool="ledger", command="entry x")], limits)) == count


# CycleDetector's two halves: one call unchanged, and one area with ever other changes


def rounds(count, error, *, flagged=True, one_tool=False):
    """Read, patch and build in turn, each patch another one, each build with this error of its round."""
    status = "error" if flagged else None
    ok = "ok" if flagged else None
    events = []
    for n in range(count):
        lines, body = f"{5 * n + 1},{5 * n + 5}", f"func step{n}() int {{ return {n} }}"
        if one_tool:
            look = tool_call(3 * n, "bash", {"command": f"sed -n {lines}p auth.go"}, f"// {n}\n{body}", status=ok)
            write = f"cat > part{n}.go <<'EOF'\n{body}\nEOF"
            patch = tool_call(3 * n + 1, "bash", {"command": write}, "", status=ok)
        else:
            where = {"file_path": "auth.go", "offset": 5 * n + 1, "limit": 5}
            look = tool_call(3 * n, "Read", where, f"// {n}\n{body}", status=ok)
            change = {"file_path": "auth.go", "old_string": f"// {n}", "new_string": body}
            patch = tool_call(3 * n + 1, "Edit", change, f"auth.go: revision {n}", status=ok)
        text = f"auth.go:{n + 3}: error: {error(n)}"
        failed = ErrorInfo(code=2, message=text) if flagged else None
        build = {"command": "go build ./..."}
        events += [look, patch, tool_call(3 * n + 2, "bash", build, text, status=status, error=failed)]
    return events


@pytest.mark.parametrize("message", ["", "undefined: parseConfig"])
@pytest.mark.parametrize("flagged", [True, False])
def test_one_call_unchanged_terminates_by_the_twenty_fifth_round(play, message, flagged):
    """Counted in full, whether it works or fails, with the producer's flag or without."""
    status, error = ("error", ErrorInfo(code=2, message=message)) if message and flagged else (None, None)
    events = [
        tool_call(n, arguments={"command": "go vet ./auth"}, result=message or "ok", status=status, error=error)
        for n in range(25)
    ]
    assert "terminate" in {alert.level for alert in play(events)}


def test_one_failing_call_with_moving_words_terminates_by_the_twenty_fifth_round(play):
    """Nothing is changed between: A, B, C, A in one area is counted in full."""
    events = [fail(n, f"{KINDS[n % 3]} ({n} notes)") for n in range(25)]
    assert "terminate" in {alert.level for alert in play(events)}


@pytest.mark.parametrize("flagged", [True, False])
@pytest.mark.parametrize("one_tool", [False, True])
def test_fifty_rounds_of_real_change_never_terminate(play, flagged, one_tool):
    """Each patch is another one and each build fails elsewhere: reasonable debugging, warned about at most."""
    alerts = play(rounds(50, another, flagged=flagged, one_tool=one_tool))
    assert {alert.level for alert in alerts} <= {"notice", "warn"}


@pytest.mark.parametrize("kinds", [1, 2, 3])
@pytest.mark.parametrize("one_tool", [False, True])
def test_fifty_rounds_of_one_recurring_cluster_terminate(play, kinds, one_tool):
    """The patches change and the failures come back: the form is new, the substance goes round."""
    alerts = play(rounds(50, lambda n: KINDS[n % kinds], one_tool=one_tool))
    assert "terminate" in {alert.level for alert in alerts}
    assert "warn" in {alert.level for alert in play(rounds(25, lambda n: KINDS[n % kinds], one_tool=one_tool))}


@pytest.mark.parametrize("one_tool", [False, True])
def test_a_recurring_cluster_that_is_only_read_from_text_warns(play, one_tool):
    """Without flags the same loop is found, as weaker evidence that ends nothing alone."""
    alerts = play(rounds(50, lambda n: KINDS[n % 3], flagged=False, one_tool=one_tool))
    assert {alert.level for alert in alerts if alert.detector == "error_streak"} == {"warn"}
    assert all(alert.evidence.weak for alert in alerts if alert.detector == "error_streak")
    assert "terminate" not in {alert.level for alert in alerts}


def withheld(n, **fields):
    """A failing check of which neither text nor kind may be sent."""
    return tool_call(n, arguments=UNSET, arguments_digest="check", result=UNSET, status="error", **fields)


@pytest.mark.parametrize("fields", [lambda n: {"result_digest": f"d{n}"}, lambda _: {}], ids=["digests", "nothing"])
def test_failures_of_which_no_kind_is_known_are_never_the_same(play, fields):
    """With edits between, thirty of them terminate nothing: what is not known does not make failures equal."""
    events = [each for n in range(30) for each in (edit(2 * n), withheld(2 * n + 1, **fields(n)))]
    assert "terminate" not in {alert.level for alert in play(events)}


def test_failures_with_one_digest_of_the_result_are_the_same(play):
    """Where the results are equal, nothing more has to be known to see that the edits change nothing."""
    events = [each for n in range(30) for each in (edit(2 * n), withheld(2 * n + 1, result_digest="d"))]
    assert ("terminate", "error_streak", 29) in [(each.level, each.detector, each.seq) for each in play(events, ALONE)]


@pytest.mark.parametrize(("digests", "level"), [(1, "terminate"), (5, "warn")])
def test_what_the_sender_read_of_a_failure_is_taken_for_its_text(play, digests, level):
    """Its digests tell one failure from five that take turns, as the text would."""
    told = (ErrorInfo(digest=f"k{n % digests}", about_digest=f"a{n}" if digests > 1 else "a") for n in range(30))
    events = [
        each
        for n, error in enumerate(told)
        for each in (edit(2 * n), withheld(2 * n + 1, error=error, result_digest=f"r{n}"))
    ]
    assert [alert.level for alert in play(events, ALONE)][-1] == level
