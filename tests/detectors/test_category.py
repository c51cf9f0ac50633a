"""Category streaks: calls of one kind in a row, with limits per kind and tool, and what must come on top of them."""

import pytest
from msgspec import UNSET

from schemas.testing import control, tool_call
from tests.detectors.traces import click, edit, found, numbered, reached, shell, think, view, work


def look(n):
    """A read that brings something new."""
    return view(n, f"src/{n}.py", f"module {n}")


def change(n):
    """An edit of a file of its own."""
    return edit(n, f"src/{n}.py", f"return {n}")


def plan(n):
    """Another item on a list of things to do."""
    return tool_call(n, "todo_write", {"todos": [f"item {n}"]}, f"{n} items")


def unknown(n):
    """A tool of which nothing is known."""
    return tool_call(n, "frobnicate", {"unit": n}, f"unit {n} is frobnicated")


def run(n):
    """A program that runs."""
    return shell(n, f"./simulate --seed {n}", f"mean {n}.5")


def commit(n):
    """A command that changes something."""
    return shell(n, f"git commit -m 'part {n}'", f"[main {n:07x}] part {n}")


KINDS = [
    (look, "explore", 100, 200),
    (change, "act", 50, 100),
    (plan, "plan", 30, 60),
    (unknown, "other", 50, 100),
    (run, "execute", 50, 100),
    (commit, "execute_write", 30, 60),
]
FEW = {"category": {"execute_warn": 4, "execute_terminate": 6}}
"""Limits so low that a test of what else must come is short."""


def category(alerts):
    """Level and position of what the rule found."""
    return [(level, seq) for level, _, seq in found(alerts, "category")]


@pytest.mark.parametrize(("call", "name", "warn", "terminate"), KINDS)
def test_each_category_has_its_limits(play, call, name, warn, terminate):
    """Every call has other arguments than the one before, which counts a half: twice as many reach the limit."""
    calls = [call(n) for n in range(2 * terminate - 1)]
    assert category(play(calls[: 2 * warn - 2])) == []
    assert category(play(calls[: 2 * warn - 1])) == [("warn", 2 * warn - 2)]
    assert reached(play(calls[: 2 * warn - 1]), "category") == [("warn", f"category.{name}_warn", 2 * warn - 2)]
    alone = {"category.alone": True}
    assert "terminate" not in {level for level, _ in category(play(calls[:-1], alone))}
    assert category(play(calls, alone))[-1] == ("terminate", 2 * terminate - 2)


@pytest.mark.parametrize(("call", "name", "terminate"), [(call, name, most) for call, name, _, most in KINDS])
def test_no_category_terminates_alone(play, call, name, terminate):
    """That much of one kind was done is the weakest sign there is: warned about again and again, never ended."""
    alerts = play([call(n) for n in range(4 * terminate + 8)])
    assert reached(alerts, f"category.{name}_warn")
    assert {alert.level for alert in alerts} <= {"notice", "warn"}


def test_looking_is_one_kind_of_evidence_whoever_counts_it(play):
    """Two rules count looks in a row; that both do is no second kind, or every thorough review would be ended."""
    alerts = play([look(n) for n in range(420)])
    assert {alert.detector for alert in alerts} == {"analysis", "category"}
    assert "terminate" not in {alert.level for alert in alerts}


@pytest.mark.parametrize(
    ("commands", "count"),
    [
        (["./sync.sh"] * 4, 4),
        (["./sync.sh", "./sync.sh a"] * 4, 4.5),
        (["./sync.sh", "./sync.sh", "./sync.sh a", "./sync.sh a", "./sync.sh b"], 4),
        ([f"./sync.sh {n}" for n in range(7)], 4),
    ],
)
def test_a_call_with_other_arguments_counts_a_half(play, commands, count):
    """Equal ones in a row count whole; another one adds a half and does not reset."""
    events = [shell(n, command, f"{n} files") for n, command in enumerate(commands)]
    limits = {"category": {"execute_warn": 4, "execute_terminate": 100}, "identical.moving_warn": 100}
    alerts = [alert for alert in play(events, limits) if alert.detector == "category"]
    assert [alert.count for alert in alerts] == [min(count, 4)]
    assert category(play(events[:-1], {**limits, "category.execute_warn": 4})) == (
        [] if count == 4 else category(alerts)
    )


@pytest.mark.parametrize(("step", "count"), [(look(90), 0), (plan(90), 0), (unknown(90), 0), (change(90), 1)])
def test_a_change_of_category_resets(play, step, count):
    """One look between runs starts over; an edit is of the same category as a run."""
    events = numbered([*(run(n) for n in range(6)), step, *(run(n) for n in range(6, 11))])
    assert len(category(play(events, FEW))) == count


@pytest.mark.parametrize(
    "step",
    [
        shell(90, "sleep 5", ""),
        tool_call(90, "wait_for_job", {"id": 4}, "running"),
        tool_call(90, "send_message", {"text": "I am at it"}, "sent"),
    ],
)
def test_waiting_and_speaking_neither_add_nor_reset(play, step):
    """They are no work of any category."""
    events = numbered([*(run(n) for n in range(6)), step, step, run(6)])
    assert category(play(events[:-1], FEW)) == []
    assert category(play(events, FEW)) == [("warn", 8)]


def test_the_category_goes_by_what_a_command_does(play):
    """A shell alone is not one category: looking, running and changing with it are told apart."""
    assert reached(play([shell(n, f"cat {n}.md", f"{n}") for n in range(199)]), "category.explore_warn")
    assert reached(play([shell(n, f"make t{n}", f"ok {n}") for n in range(99)]), "category.execute_warn")
    assert reached(play([shell(n, f"sed -i s/a/{n}/ a.md", f"ok {n}") for n in range(59)]), "category.execute_write")


def test_interactions_with_a_page_are_acting(play):
    """Clicking, whatever comes of it, has the limits of acting."""
    calls = [click(n, f"row {n}", f"detail {n} " * 20) for n in range(99)]
    assert reached(play(calls), "") == [("warn", "category.act_warn", 98)]


def test_healthy_work_is_of_many_kinds(play):
    """Reading, editing, checking and searching in turn, for as long as it takes."""
    assert play([work(n) for n in range(800)]) == []


@pytest.mark.parametrize(
    ("tools", "expected"), [({"deploy": [2, 4]}, ["warn", "terminate"]), ({"undeploy": [2, 4]}, [])]
)
def test_a_tool_can_have_limits_of_its_own(play, tools, expected):
    """A tool that should be called rarely, or very often, is one more line of configuration."""
    calls = [tool_call(n, "deploy", {"region": f"r{n}"}, f"deployed {n}") for n in range(7)]
    alerts = play(calls, {"category": {"tools": tools, "alone": True}})
    assert [alert.level for alert in alerts] == expected
    assert {alert.limits[0].name for alert in alerts} <= {"category.tools"}


@pytest.mark.parametrize(
    "setting",
    [
        {"category.tools.deploy": [2, 4]},
        {"category": {"tools": {"deploy": [2, 4]}}},
        {"category.tools": {"deploy": [2, 4]}},
    ],
)
def test_the_layer_that_set_a_tools_limits_is_named(play, setting):
    """However it was written down, the alert says who set it."""
    calls = [tool_call(n, "deploy", {"region": f"r{n}"}, f"deployed {n}") for n in range(3)]
    (alert,) = play(calls, setting)
    assert [(limit.value, limit.layer) for limit in alert.limits] == [(2, "test")]


def test_calls_of_one_category_before_a_rare_tool_are_not_its_calls(play):
    """A limit of two for one tool is for calls of that tool; a day of edits before its first call is none of them."""
    calls = [*[change(n) for n in range(40)], tool_call(40, "deploy", {"region": "r"}, "deployed")]
    assert category(play(calls, {"category": {"tools": {"deploy": [2, 4]}}})) == []


def test_explore_mode_has_no_limit_for_looking(play):
    """Looking is what the session was told to do; anything else has its limits as ever."""
    mode = control(0, "mode", mode="explore", event_id="m1")
    assert play([mode, *(look(n) for n in range(420))]) == []
    assert category(play([mode, *(run(n) for n in range(99))])) == [("warn", 98)]


def test_a_thing_that_is_wrong_in_the_same_stretch_ends_it(play):
    """Equal calls were warned about since the category began: that is a second kind of evidence."""
    same = [shell(n, "./sync.sh", "0 files") for n in range(3)]
    alerts = play(numbered([*same, *(run(n) for n in range(8))]), FEW)
    assert found(alerts) == [("warn", "identical", 2), ("warn", "category", 4), ("terminate", "category", 8)]


def test_a_thing_that_was_wrong_in_an_earlier_stretch_does_not(play):
    """The agent did something else since then; what it does now has to be judged by itself."""
    same = [shell(n, "./sync.sh", "0 files") for n in range(3)]
    events = numbered([*same, look(0), *(run(n) for n in range(12))])
    assert found(play(events, FEW)) == [("warn", "identical", 2), ("warn", "category", 10)]


def test_a_thing_that_a_person_marked_as_right_is_no_evidence(play):
    """A false alarm speaks for nothing."""
    same = [shell(n, "./sync.sh", "0 files") for n in range(3)]
    (alert,) = play(same, FEW)
    wrong = control(3, "false_alarm", answers=alert.alert_id)
    alerts = play([*same, wrong, *(run(n) for n in range(4, 20))], FEW)
    assert "terminate" not in {alert.level for alert in alerts}


def test_calls_whose_results_nobody_saw_are_counted(play):
    """The category is of what was done."""
    calls = [tool_call(n, "frobnicate", {"unit": n}, UNSET, status=None) for n in range(99)]
    assert category(play(calls)) == [("warn", 98)]


def test_thinking_without_end_is_planning(play):
    """Thought after thought, each another one: thirty count, fifty-nine by halves."""
    assert reached(play([think(n, f"idea {n}") for n in range(59)]), "") == [("warn", "category.plan_warn", 58)]
