"""Fruitless search: searches that bring nothing, each for another invented name, each limit from both sides."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from detectors import Limits, SessionState, observe
from schemas.common import ErrorInfo
from schemas.testing import at, session_event, tool_call

# Names that share no word, as an agent invents them.
NAMES = (
    "AccountMapper", "resolve_tenant", "PRICE_TABLE", "loadFixture", "on_shutdown", "QuotaGuard", "Ledger",
    "spawn_worker", "TOKEN_BUDGET", "mergeRows", "utf8_reader", "CursorPool", "drain", "sealBatch", "ORPHANS",
)  # fmt: skip


def miss(n, name=None, result="No files found", **fields):
    """A search for a name of its own that finds nothing."""
    return tool_call(n, "Grep", {"pattern": name or NAMES[n % len(NAMES)], "path": "src"}, result, **fields)


def hit(n, **fields):
    """A search that finds something."""
    return tool_call(n, "Grep", {"pattern": f"def part_{n}"}, f"src/part.py:{n}: def part_{n}(row):", **fields)


def edit(n):
    """An accepted edit."""
    return tool_call(n, "Edit", {"file_path": f"src/p{n}.py", "new_string": f"row_{n}"}, f"revision {n}")


def shell(n, command, result, status=None, **fields):
    """A call of an agent whose only tool is a shell."""
    return tool_call(n, "bash", {"command": command}, result, status=status, **fields)


def found(alerts):
    """Level, limit and position of each of the detector's alerts."""
    return [(alert.level, alert.limits[0].name, alert.seq) for alert in alerts if alert.detector == "fruitless_search"]


def searches(pattern):
    """One search a letter: ``-`` finds nothing, ``+`` something."""
    return [miss(n) if letter == "-" else hit(n) for n, letter in enumerate(pattern)]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("-" * 7, []),
        ("-" * 8, [("warn", "fruitless_search.warn", 7)]),
        ("--+---+---", [("warn", "fruitless_search.warn", 9)]),
        ("--+--+--+---", []),
        ("-------+++-", []),
        ("-------++-", [("warn", "fruitless_search.warn", 9)]),
    ],
    ids=["seven", "eight", "eight of ten", "seven of any ten", "hits clear", "two hits do not"],
)
def test_warns_at_eight_of_the_last_ten(play, pattern, expected):
    """A few hits between do not excuse it; seven misses of ten are how one explores."""
    assert found(play(searches(pattern))) == expected


@pytest.mark.parametrize(("count", "window", "expected"), [(3, 10, []), (4, 10, [3]), (5, 5, [3]), (3, 4, [])])
def test_set_limits_are_the_ones_that_count(play, count, window, expected):
    """Four of the latest five or ten instead of eight of ten, from both sides."""
    limits = {"fruitless_search": {"warn": 4, "reworded_warn": 4, "window": window}}
    assert [seq for _, _, seq in found(play(searches("-" * count), limits))] == expected


def test_a_set_window_forgets_older_searches(play):
    """Four misses among six searches are seen in a window of six, not of five."""
    events = searches("-+-+--")
    limits = {"fruitless_search": {"warn": 4, "reworded_warn": 4}}
    assert len(found(play(events, {**limits, "fruitless_search.window": 6}))) == 1
    assert len(found(play(events, {**limits, "fruitless_search.window": 5}))) == 0


def test_never_terminates(play):
    """However long: that something cannot be found stops nobody."""
    alerts = play([miss(n, f"{NAMES[n % 15]}{chr(97 + n % 26)}") for n in range(60)])
    assert "terminate" not in {alert.level for alert in alerts}
    assert found(alerts)[0] == ("warn", "fruitless_search.warn", 7)


def test_never_terminates_beside_another_loop(play):
    """Also not where something else was warned about in the same stretch."""
    again = [tool_call(n, "Read", {"file_path": "src/part.py"}, "def part(row): ...") for n in range(3)]
    alerts = play([*again, *(miss(n) for n in range(3, 40))])
    assert {alert.level for alert in alerts if alert.detector == "fruitless_search"} == {"warn"}


def test_the_alert_says_how_many_of_how_many(play):
    """A person can check it without the recording."""
    (alert,) = play(searches("+" + "-" * 8))
    assert (alert.count, alert.first_seen) == (8, at(1))
    assert "8 of the last 9 searches" in alert.reasoning
    assert "Grep(pattern=" in alert.reasoning
    assert "fruitless_search.warn = 8, set by default" in alert.reasoning


REWORDED = (
    "quarterly revenue Patagonia wool",
    "Patagonia wool revenue by quarter",
    "wool exporter Patagonia quarterly revenue figures",
    "revenue wool Patagonia",
    "annual report Patagonia wool revenue",
)


@pytest.mark.parametrize(("count", "expected"), [(4, []), (5, [("warn", "fruitless_search.reworded_warn", 4)])])
def test_one_question_in_other_words_warns_at_five(play, count, expected):
    """Queries that share their words ask for the same: fewer are enough."""
    events = [tool_call(n, "web_search", {"query": query}, []) for n, query in enumerate(REWORDED[:count])]
    assert found(play(events)) == expected


def test_the_limit_of_reworded_questions_is_a_setting(play):
    """Three instead of five."""
    events = [tool_call(n, "web_search", {"query": query}, []) for n, query in enumerate(REWORDED[:3])]
    assert len(found(play(events, {"fruitless_search.reworded_warn": 3}))) == 1
    assert found(play(events[:2], {"fruitless_search.reworded_warn": 3})) == []


def test_questions_that_share_no_words_are_not_reworded(play):
    """Seven different questions without an answer are exploring."""
    assert found(play([tool_call(n, "web_search", {"query": name}, []) for n, name in enumerate(NAMES[:7])])) == []


@pytest.mark.parametrize(
    "nothing",
    [
        "",
        [],
        {"results": []},
        {"data": {"items": []}, "count": 0},
        '{"hits": 0, "results": []}',
        "0 results",
        "No matches found for {name}",
        "Your search returned no results.",
        "Nothing found.",
        "<results></results>",
        "Found 0 files",
        "No such symbol: {name}",
    ],
)
def test_nothing_has_many_spellings(play, nothing):
    """Empty texts and lists, wrappers around them, counts of zero and sentences that say so."""
    made = [nothing.format(name=name) if isinstance(nothing, str) and "{name" in nothing else nothing for name in NAMES]
    assert found(play([miss(n, result=made[n]) for n in range(8)])) == [("warn", "fruitless_search.warn", 7)]


@pytest.mark.parametrize(
    "something",
    [
        "src/part.py:{n}: return None",
        "{n} results",
        '{{"count": {n}, "results": ["part {n}"]}}',
        "No errors in part {n}; see src/part_{n}.py",
        "src/empty_{n}.py: # no such row",
    ],
)
def test_something_is_not_nothing(play, something):
    """Also where it speaks of none, null and empty."""
    assert found(play([miss(n, result=something.format(n=n + 1)) for n in range(12)])) == []


@pytest.mark.parametrize(
    "between",
    [
        tool_call(7, "think", {"thought": "it may be generated"}, "noted"),
        tool_call(7, "wait", {"seconds": 3}, "waited"),
        miss(7, result=UNSET, status=None),
        miss(7, "x", "Service Unavailable"),
        miss(7, "x", "", error=ErrorInfo(code=503, message="Service Unavailable")),
        tool_call(7, "Read", {"file_path": "src/part.py"}, "def part(row): ..."),
    ],
    ids=["thought", "poll", "unknown result", "outage in the result", "outage", "read"],
)
def test_what_is_no_answered_search_neither_adds_nor_clears(play, between):
    """Talk, waiting, outages and unknown results leave the count as it was."""
    events = [*searches("-" * 7), between]
    assert found(play(events)) == []
    assert found(play([*events, miss(8)])) == [("warn", "fruitless_search.warn", 8)]


def test_an_accepted_edit_clears(play):
    """Whoever makes what was not there had a reason to look for it."""
    assert found(play([*searches("-" * 7), edit(7), miss(8)])) == []
    made = [event for n in range(20) for event in (miss(2 * n), edit(2 * n + 1))]
    assert found(play(made)) == []


def test_unknown_results_are_no_hits(play):
    """They do not push misses out of the window either."""
    unknown = [miss(n, result=UNSET, status=None) for n in range(7, 10)]
    assert found(play([*searches("-" * 7), *unknown, miss(10)])) == [("warn", "fruitless_search.warn", 10)]


def test_searches_that_fail_are_misses(play):
    """Whatever the reason, another one each time: nothing was found."""
    words = ["locked", "stale", "busy", "split", "moving", "partial", "foreign", "sealed", "draining", "frozen"]
    reasons = [f"the index of {word} volumes cannot be asked" for word in words]
    events = [hit(0), *(miss(n, None, reasons[n], error=ErrorInfo(message=reasons[n])) for n in range(1, 9))]
    assert found(play(events)) == [("warn", "fruitless_search.warn", 8)]


def test_a_message_of_the_user_clears(play):
    """A person may say where it is."""
    assert found(play([*searches("-" * 7), session_event(7, "user_message"), miss(8)])) == []


@pytest.mark.parametrize(
    ("tool", "argument"),
    [
        ("read_file", "path"),
        ("get_customer", "customer_id"),
        ("mcp__wiki__getPage", "title"),
        ("lookup_symbol", "symbol"),
    ],
)
def test_look_ups_of_invented_names_count_as_searches(play, tool, argument):
    """A record or file that is not there is a miss, whatever the tool is called."""
    events = [tool_call(n, tool, {argument: NAMES[n]}, f"{NAMES[n]} not found", status=None) for n in range(8)]
    assert len(found(play(events[:7]))) == 0
    assert "warn" in {alert.level for alert in play(events)}
    assert "terminate" not in {alert.level for alert in play(events)}


# Agents whose only tool is a shell


COMMANDS = ("grep -rn {} src", "rg {}", "find . -name '{}*'", "git grep {}", "ag {} lib")


@pytest.mark.parametrize(("count", "expected"), [(7, []), (8, [("warn", "fruitless_search.warn", 8)])])
def test_searches_in_a_shell_count_whatever_the_program(play, count, expected):
    """Five programs that search, in turn, and no flags."""
    events = [shell(0, "ls", "src lib")]
    events += [shell(n + 1, COMMANDS[n % 5].format(NAMES[n]), "") for n in range(count)]
    assert found(play(events)) == expected


@pytest.mark.parametrize("status", ["error", None])
def test_a_search_that_exits_with_one_is_a_miss(play, status):
    """Programs that search say by their exit code that there was nothing; harnesses flag it or print it."""
    result = "" if status else "[exit code: 1]"
    events = [shell(0, "ls", "src lib", status and "ok")]
    events += [shell(n + 1, f"grep -rn {NAMES[n]} src", result, status) for n in range(8)]
    assert found(play(events)) == [("warn", "fruitless_search.warn", 8)]


def test_files_that_are_not_there_count_in_a_shell_as_well(play):
    """Reading one invented path after the other is a search for it."""
    events = [shell(0, "ls", "src lib")]
    for n, name in enumerate(NAMES[:10]):
        events.append(shell(n + 1, f"cat src/{name}.py", f"cat: src/{name}.py: No such file or directory"))
    alerts = play(events)
    assert "warn" in {alert.level for alert in alerts}
    assert "terminate" not in {alert.level for alert in alerts}


# Healthy practice


def test_exploring_an_unknown_tree_with_a_few_empty_searches_is_healthy(play):
    """Some names are guessed wrong, most searches bring something."""
    assert {alert.level for alert in play(searches("+-+--+-+-+-+--++-+-+"))} <= {"notice"}


def test_proving_absence_twice_is_healthy(play):
    """After a rename two searches show that nothing of the old name is left, in each of four places."""
    events = []
    for n in range(0, 32, 8):
        name = NAMES[n // 8]
        events += [hit(n), *(edit(n + k) for k in range(1, 5))]
        events.append(shell(n + 5, f"pytest tests/p{n}", f"{n + 3} passed", "ok"))
        events += [shell(n + 6, f"grep -rn {name} src", "", "ok"), shell(n + 7, f"git grep {name}", "", "ok")]
    assert {alert.level for alert in play(events)} <= {"notice"}


@pytest.mark.parametrize(
    ("command", "result"),
    [
        ("make test", ""),
        ("./run_tests.sh", ""),
        ("npm test --silent", ""),
        ("git status --short", ""),
        ("git diff", ""),
    ],
)
def test_checks_that_are_silent_when_all_is_well_are_healthy(play, command, result):
    """A green test that prints nothing and a clean tree after each edit are answers, not misses."""
    events = []
    for n in range(0, 36, 3):
        events += [
            edit(n),
            shell(n + 1, command, result, "ok"),
            shell(n + 2, f"git commit -qam 'part {n}'", f"[main {n:07x}] part {n}", "ok"),
        ]
    assert play(events) == []


def test_a_miss_now_and_then_over_a_long_session_is_healthy(play):
    """One file that is not there among fifty calls that work, ten times: most looks brought something."""
    events = []
    for n in range(0, 500, 50):
        gone = f"cat: conf/{NAMES[n // 50]}.toml: No such file or directory"
        events.append(shell(n, f"cat conf/{NAMES[n // 50]}.toml", gone, "error", error=ErrorInfo(code=1, message=gone)))
        for k in range(n + 1, n + 49, 3):
            events += [
                shell(k, f"cat src/part_{k}.py", f"def part_{k}(row): ...", "ok"),
                edit(k + 1),
                shell(k + 2, f"pytest tests/test_{k}.py", f"{k} passed", "ok"),
            ]
    assert found(play(events)) == []


@settings(max_examples=60, deadline=None)
@given(st.text("-+", max_size=25))
def test_what_counts_is_how_many_of_the_last_ten_missed(pattern):
    """Warned about exactly when a miss makes it eight of the latest ten, in whatever order."""
    due = any(letter == "-" and pattern[max(0, n - 9) : n + 1].count("-") >= 8 for n, letter in enumerate(pattern))
    state = SessionState()
    events = [miss(n, f"{NAMES[n % 15]}{'xyz'[n // 15]}") if x == "-" else hit(n) for n, x in enumerate(pattern)]
    assert bool(found(alert for event in events for alert in observe(state, event, Limits()))) is due
