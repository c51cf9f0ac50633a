"""Which findings speak of one loop, and what weak evidence must wait for before it ends anything."""

import pytest

from schemas.common import ErrorInfo
from schemas.testing import control, tool_call
from tests.detectors.traces import PAGE_TEXT, click, edit, found, in_turn, numbered, page, shell, view, work

LOOK = shell(0, "git diff --stat", "2 files")


def failing(n, program, told="Error: no value is given for the endpoint", **fields):
    """A program that says in its text that it failed, each time for other work; no flag tells."""
    return shell(n, f"{program} task_{n}", told, status=None, **fields)


def test_three_rules_on_one_failing_call_are_one_loop(play):
    """Equal calls, a failing call, a check that is stuck: warned about once and ended as one, under one name."""
    events = [
        shell(n, "pytest -q tests/test_pay.py", "1 failed", error=ErrorInfo(code=1, message="AssertionError: 3 != 4"))
        for n in range(16)
    ]
    alerts = play(events)
    assert [(alert.level, alert.seq) for alert in alerts] == [("warn", 2), ("terminate", 4), ("terminate", 9)]
    assert len({alert.loop_id for alert in alerts}) == 1


def test_rereads_and_equal_reads_are_one_loop(play):
    """The third equal read of a file is an equal call and a reread: the stronger word is given, once."""
    assert found(play([view(n, "plan.md", "the plan") for n in range(9)])) == [
        ("warn", "identical", 2),
        ("terminate", "identical", 4),
    ]


def test_a_majority_inside_of_an_alternation_is_the_same_loop(play):
    """A, B, A, B: whichever rule speaks first, the other adds nothing."""
    alerts = play(in_turn([LOOK] * 9, [shell(n, "./bench", "41 ms") for n in range(9)]))
    assert [alert.level for alert in alerts] == ["warn", "terminate"]


def test_the_same_call_in_another_loop_much_later_is_another_loop(play):
    """It was a loop by itself; that it goes round with others now is a new one, though the first is still watched."""
    alone = [shell(0, "./sync.sh", "0 files") for _ in range(3)]
    together = in_turn(
        [shell(n, "./sync.sh", "0 files") for n in range(3)], [shell(n, "./bench", "41 ms") for n in range(3)]
    )
    alerts = play(numbered([*alone, *(work(n) for n in range(13)), *together]))
    assert found(alerts) == [("warn", "identical", 2), ("warn", "alternation", 21)]
    assert alerts[0].loop_id != alerts[1].loop_id


def test_what_recovered_is_counted_by_the_rule_that_named_it(play):
    """Four laps, not the five equal calls that another rule counts in the same loop."""
    laps = [shell(0, f"./tool {n % 2}", "as before") for n in range(9)]
    alerts = play(numbered([*laps, *(work(n) for n in range(30))]))
    assert [(alert.level, alert.detector, alert.count) for alert in alerts] == [
        ("warn", "alternation", 3),
        ("recovered", "alternation", 4),
    ]


def test_loops_that_share_a_minor_part_are_two(play):
    """One call in common does not make two rounds one."""
    first = [shell(0, f"./a {n % 3}", f"a{n % 3}") for n in range(9)]
    second = [shell(0, f"./{'b' if n % 3 else 'a'} {n % 3}", f"b{n % 3}") for n in range(9)]
    alerts = play(numbered([*first, *(work(n) for n in range(3)), *second]), {"revisits.warn": 12})
    assert found(alerts) == [("warn", "alternation", 8), ("warn", "alternation", 20)]
    assert alerts[0].loop_id != alerts[1].loop_id


@pytest.mark.parametrize("first", [3, 5, 12, 20])
def test_a_new_loop_right_after_another_gets_its_own_warning(play, first):
    """Whether the one before was warned about, ended, or went on for long: who changes to another loop is told anew."""
    one = [shell(0, "./sync.sh", "0 files") for _ in range(first)]
    two = [shell(0, "./convert.sh", "0 rows") for _ in range(5)]
    alerts = [alert for alert in play(numbered([*one, *two])) if alert.detector == "identical" and alert.seq >= first]
    assert found(alerts) == [("warn", "identical", first + 2), ("terminate", "identical", first + 4)]


def test_the_stronger_level_of_one_call_is_the_one_alerted(play):
    """A notice and a termination of one loop at one call are a termination."""
    limits = {"rereads.notice": 4, "rereads.warn": 16, "identical.warn": 3, "identical.terminate": 4}
    alerts = play([view(n, "plan.md", "the plan") for n in range(4)], limits)
    assert found(alerts) == [("warn", "identical", 2), ("terminate", "identical", 3)]


def test_a_notice_never_stands_in_the_way_of_a_warning(play):
    """It was for the agent; the warning is for people."""
    events = numbered([LOOK if n % 2 else view(n, "plan.md", "the plan") for n in range(14)])
    alerts = play(events, {"identical.window_warn": 7, "alternation.warn": 5})
    levels = [alert.level for alert in alerts]
    assert levels[0] == "notice"
    assert "warn" in levels


def test_a_notice_after_a_warning_is_not_given(play):
    """Who was warned about a loop needs no gentle word about it."""
    alerts = play([view(n, "plan.md", "the plan") for n in range(3)], {"identical.warn": 2, "identical.terminate": 50})
    assert found(alerts) == [("warn", "identical", 1)]


def test_a_notice_recovers_silently(play):
    """Nobody was warned, so nobody is told that it is over."""
    reads = [call for n in range(3) for call in (view(0, "plan.md", "the plan"), work(4 * n + 1))]
    alerts = play(numbered([*reads, *(work(n) for n in range(20, 60))]))
    assert found(alerts) == [("notice", "rereads", 4)]


def test_weak_evidence_waits_for_a_second_kind(play):
    """Only actions are equal: warned about at multiples of the count; the same with a failing flag is ended."""
    weak = play([click(n, "Pay", page("https://shop.example/pay", f"clock {n}")) for n in range(30)])
    assert {alert.level for alert in weak} == {"warn"}
    refused = [
        tool_call(n, "browser_click", {"element": "Pay"}, "not clickable", error="not_clickable") for n in range(5)
    ]
    assert [alert.level for alert in play(refused)] == ["warn", "terminate"]


def test_a_failing_flag_beside_text_is_a_second_kind(play):
    """The text says so, and the producer says so: twelve in a row for one reason are ended."""
    events = [
        shell(n, f"./run.py task_{n}", "Error: no value is given", error=ErrorInfo(code=2, message="no value is given"))
        for n in range(12)
    ]
    assert [alert.level for alert in play(events)][-1] == "terminate"


def test_two_readings_of_one_text_are_no_two_kinds_of_evidence(play):
    """One program, ever other arguments, one message: all rules that see it have read the same text."""
    alerts = play([failing(n, "./run.py") for n in range(60)])
    assert {alert.level for alert in alerts} == {"warn"}


def test_two_readings_of_one_text_are_none_in_two_loops_either(play):
    """Two programs in turn with that message make several loops; still nothing but their text says that they fail."""
    alerts = play(in_turn([failing(n, "python") for n in range(30)], [failing(n, "node") for n in range(30, 60)]))
    assert {alert.level for alert in alerts} == {"warn"}


def test_a_notice_is_no_second_kind_of_evidence(play):
    """What the agent alone was told of is nothing that is wrong."""
    reads = [call for n in range(3) for call in (view(0, "plan.md", "the plan"), view(0, f"{n}.py", f"text {n}"))]
    more = [view(0, f"{n}.py", f"text {n}") for n in range(3, 12)]
    limits = {"category": {"explore_warn": 4, "explore_terminate": 6}}
    alerts = play(numbered([*reads, *more]), limits)
    assert found(alerts) == [("notice", "rereads", 4), ("warn", "category", 6), ("warn", "category", 14)][: len(alerts)]


def test_a_loop_that_was_noticed_and_then_warned_about_is_a_second_kind(play):
    """The loop was known from weak evidence first; by now it rests on equal calls."""
    reads = [call for n in range(3) for call in (view(0, "plan.md", "the plan"), view(0, f"{n}.py", f"text {n}"))]
    equal = [view(0, "plan.md", "the plan")] * 3
    more = [view(0, f"{n}.py", f"text {n}") for n in range(3, 12)]
    limits = {"category": {"explore_warn": 4, "explore_terminate": 8}}
    alerts = play(numbered([*reads, *equal, *more]), limits)
    assert ("warn", "identical", 8) in found(alerts)
    assert found(alerts, "category")[-1][0] == "terminate"


@pytest.mark.parametrize(("quiet", "terminate", "level"), [(16, 11, "terminate"), (24, 15, "warn")])
def test_another_loop_is_evidence_only_while_it_goes_on(play, quiet, terminate, level):
    """What was wrong before a quiet stretch says nothing about now."""
    same = [shell(0, "./sync.sh", "0 files") for _ in range(3)]
    runs = [shell(0, f"./simulate --seed {n}", f"mean {n}.5") for n in range(quiet)]
    limits = {"category": {"execute_warn": 4, "execute_terminate": terminate}}
    assert found(play(numbered([*same, *runs]), limits), "category")[-1][0] == level


def test_an_edit_that_is_refused_for_one_reason_is_one_loop(play):
    """Refused edits, the same failure, the same write: three rules read it, people hear of one loop."""
    events = [edit(n, "pay.py", f"v{n}", "old_string not found", error="no_match") for n in range(12)]
    alerts = play(events)
    assert [alert.level for alert in alerts if alert.level != "notice"] == ["warn", "terminate"]


def test_loops_of_a_web_agent_are_one_each(play):
    """Going back and forth between two pages is revisiting as well: one loop, one warning, an end at each double."""
    pages = [
        tool_call(
            0, "goto", {"url": f"https://wiki.example/{n % 2}"}, f"URL: https://wiki.example/{n % 2}\n{PAGE_TEXT}"
        )
        for n in range(24)
    ]
    alerts = play(numbered(pages))
    assert [alert.level for alert in alerts] == ["warn", "terminate", "terminate"]
    assert len({alert.loop_id for alert in alerts}) == 1


def test_a_decision_of_a_person_is_for_one_loop(play):
    """Going on with one thing does not bless the next."""
    one = [shell(n, "./sync.sh", "0 files") for n in range(5)]
    two = [shell(10 + n, "./convert.sh", "0 rows") for n in range(5)]
    alerts = play([*one, control(6, "resume"), *two])
    assert [level for level, _, _ in found(alerts)] == ["warn", "terminate"] * 2
