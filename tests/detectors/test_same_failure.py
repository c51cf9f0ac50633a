"""Same failure: failing calls in a row for one reason or two in turn, whatever the tool, each limit from both sides."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from detectors import Limits, SessionState, limits_from, observe
from detectors.layers import InvalidLimits
from schemas.common import ErrorInfo
from schemas.testing import at, session_event, tool_call

MISSING = "ledger entry must name a currency"
UNBALANCED = "debit and credit are not balanced"
CLOSED = "posting period is closed for this account"
UNSIGNED = "voucher carries no signature of an approver"
STALE = "exchange rate table has expired meanwhile"


def post(n, reason=MISSING, entry=None, **fields):
    """A call of an API that is refused for this reason, with an entry of its own."""
    arguments = {"entry": f"voucher {n}" if entry is None else entry}
    fields = {"result": reason, "error": ErrorInfo(message=reason), "status": "error", **fields}
    return tool_call(n, "erp_ledger", arguments, **fields)


def works(n, **fields):
    """A call of another tool that succeeds and brings something new."""
    return tool_call(n, "read_account", {"account": f"A-{n}"}, f"account A-{n} of the cost centre {n}", **fields)


def said(reasons):
    """Refused calls with these reasons, after one call that worked."""
    return [works(0), *(post(n, reason) for n, reason in enumerate(reasons, start=1))]


def found(alerts):
    """Level, limit and position of each of the detector's alerts."""
    return [(alert.level, alert.limits[0].name, alert.seq) for alert in alerts if alert.detector == "same_failure"]


FIVE = ("warn", "same_failure.warn", 5)


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (4, []),
        (5, [FIVE]),
        (11, [FIVE, ("warn", "same_failure.warn", 10)]),
        (12, [FIVE, ("warn", "same_failure.warn", 10), ("terminate", "same_failure.terminate", 12)]),
    ],
)
def test_warns_at_five_and_terminates_at_twelve(play, count, expected):
    """Ever other arguments, one reason: the default limits are reached exactly, and nothing is said twice."""
    alerts = play(said([MISSING] * count))
    assert found(alerts) == expected
    assert {alert.detector for alert in alerts} <= {"same_failure"}


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (6, []),
        (7, [("warn", "same_failure.warn", 7)]),
        (8, [("warn", "same_failure.warn", 7)]),
        (9, [("warn", "same_failure.warn", 7), ("terminate", "same_failure.terminate", 9)]),
    ],
)
def test_set_limits_are_the_ones_that_count(play, count, expected):
    """Seven and nine instead of five and twelve, from both sides."""
    assert found(play(said([MISSING] * count), {"same_failure": {"warn": 7, "terminate": 9}})) == expected


@pytest.mark.parametrize("terminate", [24, 25, 40])
def test_a_limit_that_is_accepted_can_be_reached(play, terminate):
    """A limit beyond what is remembered is either refused when it is set, or reached when the time comes."""
    try:
        limits = limits_from([("test", {"same_failure.terminate": terminate})])
    except InvalidLimits:
        return
    levels = [level for level, _, _ in found(play(said([MISSING] * terminate), limits))]
    assert levels[-1] == "terminate"


def test_the_alert_says_which_calls_which_reason_and_which_limit(play):
    """A person can check it without the recording."""
    (alert,) = play(said([MISSING] * 5))
    assert alert.count == 5
    assert alert.evidence.error == MISSING
    assert not alert.evidence.weak
    assert "erp_ledger(entry=voucher 5)" in alert.reasoning
    assert "same_failure.warn = 5, set by default" in alert.reasoning
    assert alert.first_seen == at(1)


@pytest.mark.parametrize(
    "message",
    [
        "field 'amount_{n}' on line {n} must be numeric",
        "could not open /srv/books/{n}/journal.csv: it is locked",
        "voucher {n} was rejected by the ledger",
    ],
)
def test_names_lines_files_and_echoes_do_not_make_another_reason(play, message):
    """What the message quotes differs with every call; the reason is one."""
    assert found(play(said([message.format(n=n) for n in range(1, 6)]))) == [FIVE]


def test_the_tool_does_not_matter(play):
    """A gateway that refuses every message does so whatever tool was asked for."""
    tools = ("erp_ledger", "crm_contact", "read_account", "edit_voucher", "browser_click")
    reason = "arguments were no valid JSON object"
    events = [
        tool_call(n, tool, {"entry": f"try {n}"}, reason, error=ErrorInfo(message=reason))
        for n, tool in enumerate(tools, start=1)
    ]
    assert found(play([works(0), *events[:4]])) == []
    assert found(play([works(0), *events])) == [FIVE]


def test_a_success_clears(play):
    """Four refusals, calls that work, four more: two stumbles, no row."""
    four = [post(n) for n in range(1, 5)]
    worked = [works(n) for n in range(5, 9)]
    again = [post(n) for n in range(9, 13)]
    assert found(play([works(0), *four, *worked, *again])) == []
    assert found(play([works(0), *four, *worked, *again, post(13)])) == [("warn", "same_failure.warn", 13)]


def mixed(pattern):
    """One call a letter: ``-`` is refused, ``+`` works."""
    return [works(n) if letter == "+" else post(n) for n, letter in enumerate(pattern)]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("+--+--+--", []),
        ("+---+---", []),
        ("+---+----", [("warn", "same_failure.window_warn", 8)]),
        ("+---+---+-", [("warn", "same_failure.window_warn", 9)]),
    ],
    ids=["six of nine", "six of eight", "seven of nine", "seven of ten"],
)
def test_a_success_now_and_then_does_not_excuse_seven_of_the_last_ten(play, pattern, expected):
    """A guess among many that is right is no progress."""
    assert found(play(mixed(pattern))) == expected


@pytest.mark.parametrize(("limits", "count"), [((4, 6), 1), ((4, 5), 0), ((5, 6), 0)])
def test_the_window_is_a_setting(play, limits, count):
    """Four of six, each from both sides."""
    window_warn, window = limits
    events = mixed("++-+-+--"[1:])
    assert len(found(play(events, {"same_failure": {"window_warn": window_warn, "window": window}}))) == count


def test_the_window_never_terminates(play):
    """A tool that works now and then stops nobody."""
    alerts = play(mixed("+---" * 12))
    assert [(level, limit) for level, limit, _ in found(alerts)] == [("warn", "same_failure.window_warn")]


def test_the_window_tells_since_when(play):
    """The alert speaks of all the calls that failed, not of the latest row."""
    (alert,) = play(mixed("+---+---+-"))
    assert (alert.count, alert.first_seen) == (7, at(1))


@pytest.mark.parametrize(
    "between",
    [
        post(5, "Service Unavailable", error=ErrorInfo(code=503, message="Service Unavailable")),
        tool_call(5, "think", {"thought": "the currency may be an ISO code"}, "noted"),
        tool_call(5, "update_plan", {"steps": ["name the currency"]}, "ok"),
        tool_call(5, "send_message", {"text": "still at it"}, "sent"),
        tool_call(5, "read_account", {"account": "A-5"}, UNSET, status=None),
        tool_call(5, "wait", {"seconds": 30}, "waited"),
        tool_call(5, "bash", {"command": "sleep 30"}, ""),
    ],
    ids=["outage", "thought", "plan", "message", "unknown result", "poll", "sleep"],
)
def test_what_neither_works_nor_fails_neither_adds_nor_clears(play, between):
    """Outages, talk, plans, waiting and unknown results say nothing about the reason."""
    four = [works(0), *(post(n) for n in range(1, 5)), between]
    assert found(play(four)) == []
    assert found(play([*four, post(6)])) == [("warn", "same_failure.warn", 6)]


@pytest.mark.parametrize("message", [None, "No matches found"])
def test_searches_that_find_nothing_do_not_add(play, message):
    """That a search misses is another detector's matter, also where the program calls it a failure."""
    error = ErrorInfo(code=1, message=message)
    missed = [
        tool_call(n, "bash", {"command": f"grep -rn symbol{n} src"}, message or "", status="error", error=error)
        for n in range(1, 8)
    ]
    assert found(play([works(0), *missed])) == []


def test_where_a_message_says_too_little_the_whole_answer_is_the_reason(play):
    """Nothing but a quotation is left of it: equal answers are one reason all the same."""
    answer = '{"error": "account is frozen"}'
    events = [tool_call(n, "erp_ledger", {"entry": f"voucher {n}"}, answer, status="error") for n in range(1, 6)]
    assert found(play([works(0), *events])) == [FIVE]


@pytest.mark.parametrize(
    ("reasons", "count"),
    [
        ([MISSING, UNBALANCED, MISSING, UNBALANCED], 0),
        ([MISSING, UNBALANCED, MISSING, UNBALANCED, MISSING], 1),
        ([MISSING, MISSING, UNBALANCED, UNBALANCED, MISSING], 1),
        ([MISSING, MISSING, MISSING, UNBALANCED, UNBALANCED], 0),
        ([MISSING, UNBALANCED, CLOSED, MISSING, UNBALANCED, CLOSED], 0),
        ([CLOSED, MISSING, MISSING, MISSING, MISSING, MISSING], 1),
        ([CLOSED, MISSING, UNBALANCED, MISSING, UNBALANCED], 0),
        ([MISSING, MISSING, UNBALANCED, MISSING, CLOSED, MISSING, CLOSED], 0),
    ],
    ids=["ABAB", "ABABA", "AABBA", "AAABB", "ABCABC", "CAAAAA", "CABAB", "AABACAC"],
)
def test_two_reasons_in_turn_are_one_and_a_new_one_begins_anew(play, reasons, count):
    """The first must have come back after the second; else the second is where the agent now is."""
    assert len(found(play(said(reasons)))) == count


def test_two_reasons_in_turn_are_one_loop(play):
    """Stopped where one reason would be, and neither is warned about for itself."""
    alerts = play(said([(MISSING, UNBALANCED)[n % 2] for n in range(12)]))
    assert [level for level, _, _ in found(alerts)] == ["warn", "warn", "terminate"]


@pytest.mark.parametrize(
    ("entries", "count"), [("abcd", None), ("abca", None), ("abab", 5.0), ("abcab", 6.0), ("abcda", 5.5)]
)
def test_calls_made_before_in_the_row_count_one_and_a_half(play, entries, count):
    """Sending the refused text again cannot bring news: two of four warn, one of four does not."""
    events = [works(0), *(post(n, entry=entry) for n, entry in enumerate(entries, start=1))]
    assert [alert.count for alert in play(events) if alert.detector == "same_failure"] == ([count] if count else [])


def test_a_session_whose_every_call_fails_warns_at_the_fifth_whatever_the_reasons(play):
    """From the first call on nothing has worked: something is wrong with all of it."""
    reasons = (MISSING, UNBALANCED, CLOSED, UNSIGNED, STALE)
    events = [post(n, reason) for n, reason in enumerate(reasons)]
    assert found(play(events[:4])) == []
    assert found(play(events)) == [("warn", "same_failure.warn", 4)]
    assert found(play([works(0), *(post(n + 1, reason) for n, reason in enumerate(reasons))])) == []


@pytest.mark.parametrize("entry", [None, "the opening balance"])
def test_a_session_whose_every_call_fails_is_one_loop(play, entry):
    """It is warned about once, again at double the count, and stopped at most once, not anew with each reason."""
    reasons = (MISSING, UNBALANCED, CLOSED, UNSIGNED, STALE)
    events = [post(n, reasons[n % 5], entry) for n in range(20)]
    assert found(play(events[:9])) == [("warn", "same_failure.warn", 4)]
    assert [level for level, _, _ in found(play(events[:11]))] == ["warn", "warn"]
    assert [level for level, _, _ in found(play(events))].count("terminate") <= 1


@pytest.mark.parametrize(
    "call",
    [
        lambda n: tool_call(n, "vault_key", {"n": n}, "not allowed", status="denied"),
        lambda n: tool_call(n, f"vault_{n}", {"n": n}, "Error: unknown tool", status="error"),
    ],
)
def test_calls_that_are_not_allowed_have_limits_of_their_own(play, call):
    """Refusals by policy and invented tools are the error streak's: three and ten, not five and twelve."""
    alerts = play([works(0), *(call(n) for n in range(1, 15))])
    assert {alert.detector for alert in alerts} == {"error_streak"}
    assert [alert.seq for alert in alerts if alert.level == "terminate"] == [10]


def test_a_message_of_the_user_clears(play):
    """What a person says may change everything; the row begins anew."""
    events = [works(0), *(post(n) for n in range(1, 5)), session_event(5, "user_message"), post(6)]
    assert found(play(events)) == []
    assert len(found(play(events, {"decision.user_message_clears": False}))) == 1


# Agents that have one tool, or no flags


def shell(n, command, result, **fields):
    """A call of an agent whose only tool is a shell and whose harness flags nothing."""
    return tool_call(n, "bash", {"command": command}, result, **{"status": None, **fields})


PROSE = "bash: line 1: {}: command not found"


@pytest.mark.parametrize(("count", "levels"), [(4, []), (5, ["warn"]), (10, ["warn", "warn"]), (40, None)])
def test_prose_sent_to_a_shell_without_flags_warns_as_weak_evidence_and_never_terminates(play, count, levels):
    """Each sentence is another command that is not found: the text tells, marked as weaker, alone it ends nothing."""
    words = [f"Let{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(count)]
    events = [shell(0, "ls", "notes.txt  plan.md")]
    events += [shell(n, f"{word} us look at the plan", PROSE.format(word)) for n, word in enumerate(words, start=1)]
    alerts = [alert for alert in play(events) if alert.detector == "same_failure"]
    if levels is not None:
        assert [alert.level for alert in alerts] == levels
    assert {alert.level for alert in play(events)} <= {"warn", "notice"}
    assert all(alert.evidence.weak for alert in alerts)


@pytest.mark.parametrize(
    "reason",
    [
        "Traceback (most recent call last):\n  File x, line {n}\nModuleNotFoundError: No module named 'geo_{n}'",
        "<returncode>127</returncode>\n<output>\nsh: 1: gdal{n}: not found\n</output>",
        "Error: parse error near token {n}: expected one fenced block",
        "fatal: ambiguous argument 'rev{n}': unknown revision or path not in the working tree.",
        '{{"error": "quota of project {n} does not permit this operation"}}',
    ],
)
def test_failures_are_read_from_texts_of_any_harness(play, reason):
    """Interpreters, wrappers with a return code, parsers and structured answers: five in a row warn."""
    events = [shell(0, "ls", "notes.txt")]
    events += [shell(n, f"step-{n} --input part{n}.geojson", reason.format(n=n)) for n in range(1, 6)]
    assert found(play(events[:5])) == []
    assert found(play(events)) == [FIVE]


@pytest.mark.parametrize(
    ("tool", "argument", "answer"),
    [
        ("take_action", "action", "Nothing happens."),
        ("click", "element", "Error: element is not attached to the page"),
        ("computer", "coordinate", "Invalid coordinate: outside of the display"),
        ("mcp__crm__findDeal", "deal_id", "Error: the deal id must be a number"),
    ],
    ids=["world", "web", "desktop", "server"],
)
def test_refusals_of_worlds_pages_screens_and_servers_are_failures(play, tool, argument, answer):
    """Five actions, each another one, that are answered with one refusal and no flag."""
    events = [tool_call(n, tool, {argument: f"lamp {n} on desk {n}"}, answer, status=None) for n in range(1, 6)]
    alerts = [alert for alert in play([works(0), *events]) if alert.detector == "same_failure"]
    assert found(play([works(0), *events[:4]])) == []
    assert found(alerts) == [FIVE]
    assert alerts[0].evidence.weak


# Healthy practice


def test_four_scattered_format_errors_each_followed_by_progress_are_healthy(play):
    """An agent that sends a malformed message now and then, and then does its work, is no loop."""
    events = []
    for n in range(0, 40, 10):
        reason = "the message held no tool call"
        events.append(
            tool_call(n, "respond_with_tool", {"text": f"I will {n}"}, reason, error=ErrorInfo(message=reason))
        )
        events += [works(n + k) for k in range(1, 10)]
    assert {alert.level for alert in play(events)} <= {"notice"}


def test_setting_up_a_program_with_ever_other_errors_is_healthy(play):
    """Each attempt fails for another reason and the one before is out of the way: that is how one gets there."""
    reasons = [
        "The configuration names no host",
        "Certificate of the host has expired",
        "Login was refused: unknown principal",
        "Schema version of the store is too old",
        "Index could not be built on a view",
    ]
    events = [works(0)]
    for n, reason in enumerate(reasons, start=1):
        events.append(
            tool_call(n, "bash", {"command": f"storectl up --try {n}"}, reason, error=ErrorInfo(message=reason))
        )
    assert found(play(events)) == []


@settings(max_examples=100, deadline=None)
@given(st.text("+-", max_size=25))
def test_five_in_a_row_and_seven_of_ten_are_all_there_is(pattern):
    """With one reason and ever other arguments, a session is a loop exactly then."""
    pattern = f"+{pattern}"
    ends = range(1, len(pattern) + 1)
    due = any(pattern[:end].endswith("-----") for end in ends) or any(
        pattern[end - 1] == "-" and pattern[max(0, end - 10) : end].count("-") >= 7 for end in ends
    )
    state, limits = SessionState(), limits_from([("test", {"off": ["spin_score"]})])
    assert bool(found(alert for event in mixed(pattern) for alert in observe(state, event, limits))) is due


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([MISSING, UNBALANCED]), min_size=5, max_size=12))
@example([*[MISSING] * 7, *[UNBALANCED] * 4, MISSING])
def test_which_of_two_reasons_is_which_does_not_matter(reasons):
    """Swapping the two reasons throughout gives the same alerts at the same places."""
    swapped = [MISSING if reason == UNBALANCED else UNBALANCED for reason in reasons]
    played = []
    for each in (reasons, swapped):
        state = SessionState()
        played.append(found(alert for event in said(each) for alert in observe(state, event, Limits())))
    assert played[0] == played[1]
