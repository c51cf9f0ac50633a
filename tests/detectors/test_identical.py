"""Identical calls: what counts as the same, and each limit from both sides."""

from typing import Any

import pytest
from msgspec import UNSET

from schemas.testing import tool_call
from tests.detectors.traces import edit, found, shell, work


def same(count, **fields):
    """So many equal calls."""
    return [tool_call(n, **fields) for n in range(count)]


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (2, []),
        (3, [("warn", "identical", 2)]),
        (4, [("warn", "identical", 2)]),
        (5, [("warn", "identical", 2), ("terminate", "identical", 4)]),
        (9, [("warn", "identical", 2), ("terminate", "identical", 4)]),
        (12, [("warn", "identical", 2), ("terminate", "identical", 4), ("terminate", "identical", 9)]),
    ],
)
def test_streak_warns_at_three_and_terminates_at_five(play, count, expected):
    """The default limits are reached exactly; nothing is said twice, but that it still goes on at double the count."""
    assert found(play(same(count))) == expected


def test_a_different_result_breaks_the_streak(play):
    """Polling whose answer moves is progress."""
    assert play([shell(n, "./import.sh", f"{n} of 40 done") for n in range(40)]) == []


def test_volatile_parts_of_results_do_not_hide_the_loop(play):
    """Durations and process ids change in every run and mean nothing."""
    alerts = play([tool_call(n, result=f"FAILED x in {n}.31s (pid {4000 + n})") for n in range(5)])
    assert found(alerts) == [("warn", "identical", 2), ("terminate", "identical", 4)]


def test_numbers_that_are_the_answer_keep_results_apart(play):
    """A score or a loss that moves is what the run was for."""
    assert play([tool_call(n, result=f"epoch loss {0.9 - n / 100:.2f}") for n in range(10)]) == []


def test_spelling_of_arguments_does_not_matter(play):
    """Key order, 1.0 for 1, null for absent, white space and a trailing slash are one call."""
    spellings = [
        {"path": "src/", "limit": 1},
        {"limit": 1.0, "path": "src"},
        {"path": " src ", "limit": 1, "offset": None},
    ]
    alerts = play([tool_call(n, tool="read", arguments=arguments) for n, arguments in enumerate(spellings)])
    assert found(alerts) == [("warn", "identical", 2)]


def test_arguments_sent_as_json_text_are_the_same_arguments(play):
    """On OpenAI's wire arguments are a text: spacing, labels and polling are judged as in an object."""
    texts = ['{"command": "ls", "description": "a"}', '{"description":"b","command":"ls"}', {"command": "ls"}]
    alerts = play([tool_call(n, arguments=arguments) for n, arguments in enumerate(texts)])
    assert found(alerts) == [("warn", "identical", 2)]
    assert play([tool_call(n, arguments='{"command": "sleep 30; kubectl get pods"}') for n in range(8)]) == []


def test_label_arguments_do_not_hide_the_loop(play):
    """What only describes a call to people does not make it another call."""
    alerts = play([tool_call(n, arguments={"command": "ls", "description": f"attempt {n}"}) for n in range(3)])
    assert found(alerts) == [("warn", "identical", 2)]


@pytest.mark.parametrize(("count", "seqs"), [(19, []), (20, [19]), (39, [19]), (48, [19, 39])])
def test_without_results_only_arguments_count_and_never_terminate(play, count, seqs):
    """A result that was not recorded is no evidence: higher limit, warnings only, the next at double the count."""
    alerts = play([shell(n, "./deploy.sh", UNSET, status=None) for n in range(count)])
    assert found(alerts) == [("warn", "identical", seq) for seq in seqs]
    assert {alert.limits[0].name for alert in alerts} <= {"identical.unrecorded_warn"}


def test_without_arguments_there_is_no_verdict(play):
    """Calls whose arguments nobody recorded are never taken for equal."""
    assert play([tool_call(n, arguments=None) for n in range(30)]) == []


def test_digests_stand_for_what_may_not_be_sent(play):
    """Producers that send digests only get the same detection."""
    fields: dict[str, Any] = {"arguments": None, "arguments_digest": "a1", "result": UNSET, "result_digest": "r1"}
    assert found(play(same(3, **fields))) == [("warn", "identical", 2)]
    changing = [tool_call(n, **{**fields, "result_digest": f"r{n}"}) for n in range(10)]
    assert play(changing) == []


def test_results_cut_short_are_told_apart_by_their_digest(play):
    """Equal beginnings of long outputs do not make equal outputs."""
    cut = [tool_call(n, result="same head", result_length=90_000, result_digest=f"d{n}") for n in range(6)]
    assert play(cut) == []
    whole = [tool_call(n, result="same head", result_length=9, result_digest=f"d{n}") for n in range(3)]
    assert found(play(whole)) == [("warn", "identical", 2)]


@pytest.mark.parametrize(
    "poll",
    [
        {"tool": "wait", "arguments": {"id": 7}},
        {"tool": "bash", "arguments": {"command": "sleep 30 && gh run view 7"}},
        {"tool": "process", "arguments": {"action": "poll", "id": 7}},
    ],
)
def test_declared_pollers_have_three_times_the_limits(play, poll):
    """Who waits for something may ask more often, but not for ever."""
    assert play(same(8, **poll)) == []
    assert found(play(same(9, **poll))) == [("warn", "identical", 8)]
    assert found(play(same(15, **poll))) == [("warn", "identical", 8), ("terminate", "identical", 14)]


def fruitless(n):
    """A call that never comes again and brings nothing, so that equal calls around it are no looking round."""
    return shell(n, f"./tidy {n}", "")


def test_window_majority_warns_at_five_of_twelve(play):
    """One foreign call between blinds a streak; the window sees through it."""
    turns = [fruitless(n) if n % 2 else tool_call(n) for n in range(9)]
    assert play(turns[:8]) == []
    alerts = play(turns)
    assert found(alerts) == [("warn", "identical", 8)]
    assert alerts[0].limits[0].name == "identical.window_warn"


def test_window_majority_terminates_at_seven_of_twelve(play):
    """Seven equal calls among twelve end it, six do not."""
    pairs = [fruitless(n) if n % 3 == 2 else tool_call(n) for n in range(11)]
    six = found(play([*pairs[:8]]))
    assert six == [("warn", "identical", 6)]
    assert ("terminate", "identical", 9) in found(play(pairs))


def test_calls_outside_the_window_do_not_count(play):
    """The same look now and then over a long session is healthy."""
    assert play([shell(n, "git status", "clean") if n % 3 == 0 else work(n) for n in range(60)]) == []


@pytest.mark.parametrize(("answer", "rest"), [("12 passed", []), ("1 failed: test_a", ["stuck_check"])])
def test_runs_with_an_accepted_edit_between_are_no_majority(play, answer, rest):
    """Running the same check after each edit is what one should do; when it keeps failing, the stuck check says so."""
    events = []
    for n in range(0, 14, 2):
        events += [edit(n, "a.py", str(n)), shell(n + 1, "pytest", answer)]
    assert [alert.detector for alert in play(events)] == rest


@pytest.mark.parametrize(
    "tool",
    ["replace_string_in_file", "insert_edit_into_file", "apply_diff", "update_file", "replaceSymbolBody", "Edit"],
)
@pytest.mark.parametrize(
    ("check", "arguments"),
    [
        ("runTests", {"target": "all"}),
        ("getDiagnostics", {"target": "all"}),
        ("bash", {"command": "make check"}),
        ("read", {"path": "a.py", "start_line": 1, "end_line": 40}),
    ],
)
def test_checks_after_edits_are_healthy_whatever_the_tools_are_called(play, tool, check, arguments):
    """An edit that was accepted, then the same look or check with the same answer, again and again."""
    events = []
    for n in range(0, 40, 2):
        events += [
            tool_call(n, tool=tool, arguments={"path": "a.py", "new": str(n)}, result="ok"),
            tool_call(n + 1, tool=check, arguments=arguments, result="12 passed"),
        ]
    assert play(events) == []


@pytest.mark.parametrize(
    ("tool", "argument"), [("think", "thought"), ("notify_user", "explanation"), ("log", "task_progress")]
)
def test_labels_that_are_all_there_is_are_the_content(play, tool, argument):
    """A tool to think with has nothing but its thought: another thought is another call, the same one is not."""
    thoughts = [tool_call(n, tool=tool, arguments={argument: f"idea {n}"}, result="logged") for n in range(20)]
    assert play(thoughts) == []
    again = [tool_call(n, tool=tool, arguments={argument: "idea"}, result="logged") for n in range(3)]
    assert found(play(again)) == [("warn", "identical", 2)]


@pytest.mark.parametrize("tool", ["browser_click", "scroll", "press_key"])
def test_a_mere_word_that_an_interaction_worked_is_no_result(play, tool):
    """Paging on with one button is progress that the answer does not show: the limits are those without results."""
    events = [tool_call(n, tool=tool, arguments={"on": "Next"}, result="ok") for n in range(12)]
    assert play(events[:11]) == []
    assert [alert.limits[0].name for alert in play(events)] == ["identical.unrecorded_look_warn"]
    shown = [
        tool_call(n, tool=tool, arguments={"on": "Next"}, result="page 1 " + "of many words " * 9) for n in range(6)
    ]
    assert play(shown[:5]) == []
    assert found(play(shown)) == [("warn", "identical", 5)]


def test_equal_calls_of_one_parallel_batch_count_once_and_a_dozen_warns(play):
    """A response that asks twice for one thing is careless, a dozen times is a loop."""
    assert play(same(11, batch_id="b1")) == []
    alerts = play(same(12, batch_id="b1"))
    assert found(alerts) == [("warn", "identical", 11)]
    assert alerts[0].limits[0].name == "identical.batch_warn"


def test_batches_that_repeat_are_a_streak(play):
    """Three responses in a row with the same pair of calls are three, not six."""
    events = [tool_call(n, batch_id=f"b{n // 2}") for n in range(6)]
    assert found(play(events[:4])) == []
    assert found(play(events)) == [("warn", "identical", 4)]


def test_an_outage_inside_a_result_warns_but_does_not_terminate(play):
    """An outage passes by itself: nobody is stopped for it."""
    for result in ("503 service unavailable", "Error: rate limit exceeded", "HTTP/2 429", '{"statusCode": 429}'):
        events = same(20, tool="search", arguments={"q": "x"}, result=result)
        assert {alert.level for alert in play(events)} == {"warn"}


def test_a_text_that_speaks_of_outages_is_an_answer(play):
    """A file about rate limits is not an outage."""
    events = same(5, tool="read", arguments={"path": "a.py"}, result="# rate limited client\nimport time")
    assert [alert.level for alert in play(events)] == ["warn", "terminate"]


def test_reasoning_names_call_count_and_limit(play):
    """A person can check the alert without the recording."""
    (alert,) = play(same(3))
    assert "3 times in a row" in alert.reasoning
    assert "bash(command=ls)" in alert.reasoning
    assert "identical.warn = 3, set by default" in alert.reasoning
    assert alert.evidence.event_ids == ("s1-0", "s1-1", "s1-2")
    assert (alert.count, alert.tokens_wasted, alert.wasted_estimated) == (3, 2_000, True)


@pytest.mark.parametrize(
    "reference",
    [
        "File unchanged since last read. The content from the earlier Read tool_result is still current.",
        "[Result identical to earlier call #{n}]",
        "<output is the same as in step {n}>",
        "Nothing has changed since call {n}",
        "You have already read this file.",
    ],
)
def test_a_result_that_refers_to_the_one_before_is_that_one(play, reference):
    """Harnesses save room so: what was asked twice was answered twice."""
    results = ["def total(rows): ...", *(reference.format(n=n) for n in range(1, 5))]
    events = [tool_call(n, "Read", {"path": "cart.py"}, result) for n, result in enumerate(results)]
    assert found(play(events)) == [("warn", "identical", 2), ("terminate", "identical", 4)]


@pytest.mark.parametrize(
    "answer",
    ["ticket {n}: the same trouble as before", "build {n} is unchanged since 1.{n}", "{n} rows equal to the last ones"],
)
def test_a_result_that_only_speaks_of_one_before_is_another(play, answer):
    """Work that is handed out one by one may be much alike."""
    assert play([tool_call(n, "next_ticket", {}, answer.format(n=n)) for n in range(8)]) == []


def test_a_reference_to_what_failed_or_is_long_gone_stands_for_itself(play):
    """The result that it speaks of is not among the latest calls, or is no result."""
    word = "Result identical to earlier call"
    failing = [tool_call(0, "Read", {"path": "cart.py"}, "no", error="missing")]
    again = [tool_call(n, "Read", {"path": "cart.py"}, word) for n in (1, 2)]
    assert play([*failing, *again]) == []
    third = tool_call(3, "Read", {"path": "cart.py"}, word)
    assert found(play([*failing, *again, third])) == [("warn", "identical", 3)]
