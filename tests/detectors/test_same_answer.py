"""Same answer: one tool that gives one answer whatever it is asked, each limit from both sides."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from detectors import Limits, SessionState, observe
from schemas.common import ErrorInfo
from schemas.testing import at, session_event, tool_call

DEFAULT_PAGE = "Welcome to the city archive. Please accept our terms to continue to the reading room."


def ask(n, question=None, answer=DEFAULT_PAGE, tool="fetch_page", **fields):
    """A read with arguments of its own."""
    where = f"https://archive.example/record/{n if question is None else question}"
    return tool_call(n, tool, {"url": where}, answer, **fields)


def other(n):
    """A read of another tool that brings something new."""
    return tool_call(n, "Read", {"file_path": f"notes/{n}.md"}, f"note {n} about the harbour master")


def edit(n):
    """An accepted edit."""
    return tool_call(n, "Edit", {"file_path": f"src/p{n}.py", "new_string": f"row_{n}"}, f"revision {n}")


def found(alerts):
    """Level, limit and position of each of the detector's alerts."""
    return [(alert.level, alert.limits[0].name, alert.seq) for alert in alerts if alert.detector == "same_answer"]


WARN = ("warn", "same_answer.warn", 5)
AGAIN = ("warn", "same_answer.warn", 11)


@pytest.mark.parametrize(("count", "expected"), [(5, []), (6, [WARN]), (8, [WARN]), (12, [WARN, AGAIN])])
def test_warns_at_six_and_never_terminates_alone(play, count, expected):
    """Ever other questions, one answer: warned about exactly at the limit, and again at its double."""
    assert found(play([ask(n) for n in range(count)])) == expected


@pytest.mark.parametrize(("count", "levels"), [(3, []), (4, ["warn"]), (7, ["warn"]), (8, ["warn", "warn"])])
def test_set_limits_are_the_ones_that_count(play, count, levels):
    """Four instead of six, from both sides."""
    limits = {"same_answer": {"warn": 4, "terminate": 9}}
    assert [level for level, _, _ in found(play([ask(n) for n in range(count)], limits))] == levels


@pytest.mark.parametrize(("window", "count"), [(12, 1), (11, 1), (10, 0)])
def test_the_window_is_of_calls_and_a_setting(play, window, count):
    """Six equal answers among eleven calls, another look between each two."""
    events = [other(n) if n % 2 else ask(n) for n in range(11)]
    assert len(found(play(events, {"same_answer.window": window}))) == count


def test_the_alert_names_the_tool_and_the_questions(play):
    """A person can check it without the recording."""
    (alert,) = play([ask(n) for n in range(6)])
    assert (alert.count, alert.first_seen, alert.evidence.weak) == (6, at(0), False)
    assert "fetch_page gave one answer to 6 of the last 6 calls" in alert.reasoning
    assert "fetch_page(url=https://archive.example/record/5)" in alert.reasoning
    assert "same_answer.warn = 6, set by default" in alert.reasoning


def test_what_the_answer_repeats_of_the_question_does_not_make_another_answer(play):
    """Also where a request number and the time stand beside it."""
    events = [ask(n, answer=f"Page https://archive.example/record/{n} (12:00:0{n}): {DEFAULT_PAGE}") for n in range(6)]
    assert found(play(events)) == [WARN]


@pytest.mark.parametrize(("questions", "count"), [("ababab", 0), ("abcabc", 1)])
def test_three_different_questions_are_needed(play, questions, count):
    """Two calls in turn are an alternation, not a tool that knows one answer."""
    only = {"alternation": {"warn": 90, "terminate": 90, "edited_warn": 90, "edited_terminate": 90}}
    assert len(found(play([ask(n, question) for n, question in enumerate(questions)], only))) == count


@pytest.mark.parametrize("answer", ["", [], {"results": []}, "No results found.", "not found"])
def test_empty_answers_are_a_fruitless_search(play, answer):
    """That nothing is found is another detector's matter."""
    assert found(play([ask(n, answer=answer, tool="search_catalogue") for n in range(9)])) == []


@pytest.mark.parametrize("value", ["true", "42", 0, 3.5, "OK", "EUR 12", {"stock": 0}, "2026", None])
def test_equal_small_values_are_answers_to_different_questions(play, value):
    """Whether twelve rooms are free and what twelve parts weigh: equal figures are data."""
    events = [tool_call(n, "get_value", {"cell": f"B{n}"}, value) for n in range(12)]
    assert {alert.level for alert in play(events)} <= {"notice"}


@pytest.mark.parametrize(
    ("tool", "answer"),
    [
        ("write_file", "The file has been written successfully."),
        ("Edit", "The file was updated. Here is a snippet of the result, please review it."),
        ("create_ticket", {"status": "created", "message": "Ticket was created and assigned"}),
        ("update_cell", "Cell updated and sheet recalculated"),
        ("bash", "installed with all of its dependencies"),
        ("send_message", "Message delivered to the recipient"),
        ("think", "Noted. Nothing else has to be done for this thought."),
        ("bash", "No place was left as it stood before"),
    ],
)
def test_acknowledgements_of_what_acts_are_no_answers(play, tool, answer):
    """A hundred files written, each with the same friendly sentence."""
    events = []
    for n in range(75):
        arguments = (
            {"command": f"sed -i s/a{n}/b/ part{n}"} if tool == "bash" else {"path": f"part{n}", "text": f"body of {n}"}
        )
        events.append(tool_call(n, tool, arguments, answer))
    assert found(play(events)) == []


def test_what_acts_and_says_no_each_time_counts(play):
    """Where the harness says that the tool ran, a program that complains in one way of everything is a loop."""
    answer = "Solver could not start because the licence server was not reachable from this host"
    events = [tool_call(n, "execute_code", {"code": f"solve({n})"}, answer) for n in range(6)]
    assert "warn" in {alert.level for alert in play(events)}


@pytest.mark.parametrize(
    "between",
    [
        ask(5, "x", "Service Unavailable"),
        ask(5, "x", UNSET, status=None),
        ask(5, "x", "", error=ErrorInfo(code=503, message="Service Unavailable")),
        tool_call(5, "think", {"thought": "the terms may be in the way"}, "noted"),
        tool_call(5, "wait", {"seconds": 3}, "waited a little for the page"),
        other(5),
    ],
    ids=["outage in the result", "unknown result", "outage", "thought", "poll", "another tool"],
)
def test_what_is_no_answer_of_the_tool_neither_adds_nor_clears(play, between):
    """Outages, unknown results, talk, waiting and other tools leave the count as it was."""
    events = [*(ask(n) for n in range(5)), between]
    assert found(play(events)) == []
    assert found(play([*events, ask(6)])) == [("warn", "same_answer.warn", 6)]


def test_an_accepted_edit_clears(play):
    """After a change the same answer to the same questions is news."""
    assert found(play([*(ask(n) for n in range(5)), edit(5), *(ask(n) for n in range(6, 11))])) == []
    assert len(found(play([*(ask(n) for n in range(5)), edit(5), *(ask(n) for n in range(6, 12))]))) == 1


def test_another_answer_does_not_clear(play):
    """A tool that has an answer of its own now and then is still stuck: it is the window that forgets."""
    events = [ask(n, answer=f"record {n} of the harbour master") if n % 4 == 3 else ask(n) for n in range(9)]
    assert found(play(events)) == [("warn", "same_answer.warn", 6)]


def test_a_message_of_the_user_clears(play):
    """A person may accept the terms."""
    events = [*(ask(n) for n in range(5)), session_event(5, "user_message"), *(ask(n) for n in range(6, 11))]
    assert found(play(events)) == []


def test_outages_are_no_answer(play):
    """A server that is away says the same to everything, and comes back."""
    events = [ask(n, answer="503 Service Unavailable") for n in range(20)]
    assert found(play(events)) == []


def test_failures_have_detectors_of_their_own(play):
    """The same refusal of everything is not told twice."""
    reason = "your plan does not include the reading room"
    alerts = play([ask(n, answer=reason, error=ErrorInfo(message=reason)) for n in range(14)])
    assert found(alerts) == []
    assert "terminate" in {alert.level for alert in alerts}


@pytest.mark.parametrize(("count", "level"), [(7, "warn"), (8, "terminate")])
def test_terminates_at_eight_with_a_second_kind_of_evidence(play, count, level):
    """An exact repetition in the same stretch says that it is no honest work on many things."""
    walls = [ask(n) for n in range(count - 1)]
    same = [tool_call(50 + n, "bash", {"command": "./status"}, "as before", occurred_at=at(count)) for n in range(3)]
    alerts = play([*walls, *same, ask(90, occurred_at=at(count))])
    assert {alert.level for alert in alerts if alert.detector == "same_answer"} == {"warn", level}


def test_the_same_words_of_different_tools_are_different_answers(play):
    """What two tools say alike is not one tool that knows one answer."""
    events = [ask(n, tool=("fetch_page", "read_scan", "view_map")[n % 3]) for n in range(12)]
    assert found(play(events)) == []


# Other agents


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("visit_webpage", lambda n: {"url": f"https://museum.example/item/{n}"}),
        ("mcp__db__describeTable", lambda n: {"table": f"loans_{n}"}),
        ("web_search", lambda n: {"query": f"keeper of lamp number {n}"}),
        ("examine", lambda n: {"object": f"drawer {n}"}),
        ("bash", lambda n: {"command": f"curl -s https://museum.example/item/{n}"}),
        ("bash", lambda n: {"command": f"cat exhibits/{n}/label.txt"}),
    ],
)
@pytest.mark.parametrize("status", ["ok", None])
def test_whatever_looks(play, tool, arguments, status):
    """Web pages, tables, search engines, worlds and files behind a shell, with flags and without."""
    events = [tool_call(n, tool, arguments(n), DEFAULT_PAGE, status=status) for n in range(6)]
    assert found(play(events)) == [WARN]


PAGE = "Basket: two lamps, one shade. Delivery to the harbour office. Choose how you would like to pay for it."


@pytest.mark.parametrize(
    ("tool", "argument", "count"),
    [("browser_click", "element", 1), ("left_click", "coordinate", 1), ("browser_scroll", "to", 0)],
)
def test_a_page_that_stays_whatever_is_pressed_is_one_answer(play, tool, argument, count):
    """Six different buttons and the page is the same; scrolling is there to show the same page."""
    events = [tool_call(n, tool, {argument: f"{n}, {n}"}, PAGE) for n in range(6)]
    assert found(play(events[:5])) == []
    assert len(found(play(events))) == count


def test_a_page_that_moves_on_is_progress(play):
    """Six buttons and six pages."""
    events = [tool_call(n, "browser_click", {"element": f"b{n}"}, f"{PAGE} Order number {n}.") for n in range(12)]
    assert {alert.level for alert in play(events)} <= {"notice"}


# Healthy practice


def test_many_files_with_one_header_are_different_answers(play):
    """Equal beginnings are not equal answers."""
    events = [ask(n, answer=f"{DEFAULT_PAGE} Today: record {n}.") for n in range(20)]
    assert found(play(events)) == []


@pytest.mark.parametrize("status", ["ok", None])
@pytest.mark.parametrize(
    ("tool", "argument", "answer"),
    [
        ("bash", "npx eslint src/part{}.ts", "No problems found."),
        ("bash", "mypy src/part{}.py", "Success: no issues found in 1 source file"),
        ("bash", "pytest tests/test_{}.py -q", "4 passed, no warnings raised"),
        ("bash", "yamllint conf/{}.yml && echo no errors", "no errors"),
        ("get_diagnostics", "src/part{}.ts", "No errors or warnings were found in this file."),
    ],
)
def test_green_checks_of_one_part_after_the_other_are_healthy(play, tool, argument, answer, status):
    """That there is nothing wrong with any of twelve parts is what a check is run to hear."""
    key = "command" if tool == "bash" else "file"
    events = [tool_call(n, tool, {key: argument.format(n)}, answer, status=status) for n in range(12)]
    assert play(events) == []


def test_a_few_equal_pages_among_many_are_healthy(play):
    """Some records are under lock, most are not."""
    events = [ask(n) if n % 3 == 0 else ask(n, answer=f"record {n}: a bill of lading") for n in range(36)]
    assert found(play(events)) == []


@settings(max_examples=60, deadline=None)
@given(st.text("ab", max_size=25))
def test_what_counts_is_how_many_of_the_last_twelve_are_equal(answers):
    """Warned about exactly when one answer was given to six of the latest twelve questions."""
    due = any(answers[max(0, n - 11) : n + 1].count(letter) >= 6 for n, letter in enumerate(answers))
    state = SessionState()
    texts = {"a": DEFAULT_PAGE, "b": "The reading room is closed on public holidays"}
    events = [ask(n, answer=texts[letter]) for n, letter in enumerate(answers)]
    assert bool(found(alert for event in events for alert in observe(state, event, Limits()))) is due
