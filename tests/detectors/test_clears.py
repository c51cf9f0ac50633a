"""What sets back what: a person's word, a decision, a trimmed context, a long pause, whenever they are read."""

import random
from collections.abc import Callable

import pytest

from detectors import Limits, SessionState, limits_from, observe
from detectors.state import Clear
from schemas.common import ErrorInfo
from schemas.events import ToolCall
from schemas.testing import at, control, session_event, tool_call
from tests.detectors.traces import click, edit, found, in_turn, numbered, page, shell, think, view, work


def run(n):
    """The same run with the same answer."""
    return shell(n, "./sync.sh", "0 files")


def failing(n):
    """A run that fails, flagged, with one error and ever other arguments."""
    return shell(n, f"./import.py part_{n}", "x", error=ErrorInfo(code=7, message="no value is given for endpoint"))


TOURS = [place for seed in range(20) for place in random.Random(seed).sample(range(11), 11)]  # noqa: S311 -- no secret
TOLD = ("missing key", "wrong type", "bad range", "cyclic import", "stale lock", "empty header", "odd length")

LOOPS: dict[str, Callable[[int], ToolCall]] = {
    "identical": run,
    "moving": lambda n: tool_call(n, "frobnicate", {"unit": 1}, f"{100 + n} points"),
    "said": lambda n: think(n, "once more"),
    "page": lambda n: click(n, "Pay", page("https://shop.example/cart", f"clock {n}")),
    "denied": lambda n: tool_call(n, "drop_table", {"name": f"t{n}"}, "may not", status="denied"),
    "same_call": lambda n: (
        shell(n, "./flaky", f"run {n}", error=ErrorInfo(code=3, message="lost the device"))
        if n % 2
        else work(4 * n + 3)
    ),
    "error_streak": lambda n: (
        shell(n, f"make part_{n}", "x", error=ErrorInfo(code=2, message=f"Error: {TOLD[n % 7]}")) if n else work(0)
    ),
    "fruitless_search": lambda n: tool_call(n, "grep", {"pattern": f"{'abcdefghijklmnopqr'[n % 18] * 5}{n}"}, ""),
    "alternation": lambda n: shell(n, f"./tool {n % 2}", "same"),
    "same_failure": failing,
    "category": lambda n: tool_call(n, "frobnicate", {"unit": n}, f"unit {n}"),
    "analysis": lambda n: view(n, f"{n}.py", f"text {n}"),
    "refused_edits": lambda n: edit(n, "a.py", f"v{n}", "old_string not found in file", error="no_match"),
    "revisits": lambda n: shell(n, f"./show {TOURS[n]}", "as it was, with all that belongs to it"),
    "stuck_check": lambda n: (
        edit(n, f"{n}.py", f"{n}")
        if n % 2
        else shell(n, "make check", "x", error=ErrorInfo(code=2, message="3 of 9 failed"))
    ),
}
"""For each rule a session that it alone, or it first, finds something in."""

SPARED = {"revisits": 15, "alternation": 4, "stuck_check": 8, "error_streak": 13, "same_call": 4}
"""Calls by which an alert comes later at least, where that depends on the place of the clearing in a round."""


RULES_ALONE = limits_from([("test", {"off": ["spin_score"]})])


def first_alert(call, events=(), limits=None):
    """The place in the stream of calls at which the first alert comes, with further events among them by time."""
    state, made = SessionState(), limits or RULES_ALONE
    calls = numbered(call(n) for n in range(220))
    stream = sorted([*calls, *events], key=lambda event: event.occurred_at)
    for event in stream:
        if observe(state, event, made):
            return state.calls
    return 0


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("kind", ["user_message", "started", "resume", "reset"])
def test_what_clears_sets_every_count_back(name, kind):
    """A person speaks a call before the first alert would come: it comes as late as if that were the start."""
    alone = first_alert(LOOPS[name])
    assert alone > 2
    build = control if kind in {"resume", "reset"} else session_event
    cleared = first_alert(LOOPS[name], [build(0, kind, occurred_at=at(alone - 1.5))])
    assert cleared >= alone + SPARED.get(name, alone - 1)


@pytest.mark.parametrize("name", LOOPS)
def test_talk_status_and_interventions_set_nothing_back(name):
    """Neither a turn's end nor an orchestrator's answers nor a trimmed context are progress."""
    alone = first_alert(LOOPS[name])
    said = [
        event
        for n in range(alone)
        for event in (
            session_event(n, "turn", occurred_at=at(n + 0.2)),
            control(n, "obeyed", answers="d1", occurred_at=at(n + 0.3)),
            control(n, "refused", answers="d1", occurred_at=at(n + 0.4)),
        )
    ]
    assert first_alert(LOOPS[name], said) == alone


def test_a_warned_loop_that_goes_on_after_a_message_is_not_warned_again(play):
    """The person knows of it; what is due next is its end, by the counts from the message on."""
    message = session_event(0, "user_message", occurred_at=at(2.5))
    assert found(play([*[run(n) for n in range(3)], message, *[run(n) for n in range(3, 9)]])) == [
        ("warn", "identical", 2),
        ("terminate", "identical", 7),
    ]


@pytest.mark.parametrize(
    "decided",
    [
        control(0, "resume", occurred_at=at(2.5)),
        control(0, "reset", occurred_at=at(2.5)),
        session_event(0, "started", occurred_at=at(2.5)),
    ],
)
def test_a_warned_loop_that_goes_on_after_a_decision_is_warned_again(play, decided):
    """Going on, or starting again, was decided with that loop in sight: it is settled, and noticed anew."""
    assert found(play([*[run(n) for n in range(3)], decided, *[run(n) for n in range(3, 9)]])) == [
        ("warn", "identical", 2),
        ("warn", "identical", 5),
        ("terminate", "identical", 7),
    ]


@pytest.mark.parametrize("clears", [True, False])
def test_whether_a_message_clears_is_a_limit(play, clears):
    """Some agents are spoken to by programs."""
    message = session_event(0, "user_message", occurred_at=at(1.5))
    alerts = play([run(0), run(1), message, run(2), run(3)], {"decision.user_message_clears": clears})
    assert bool(alerts) is not clears


@pytest.mark.parametrize(("moment", "seq"), [(1.0, 3), (1.5, 4), (2.0, 4), (2.5, 2)])
def test_a_message_clears_by_its_time(play, moment, seq):
    """Calls of the very moment of the message, or later, count; those before do not, wherever it is read."""
    message = session_event(0, "user_message", occurred_at=at(moment))
    calls = [run(n) for n in range(5)]
    for place in range(3):
        assert found(play([*calls[:place], message, *calls[place:]])) == [("warn", "identical", seq)]


@pytest.mark.parametrize("late", range(5))
def test_a_message_read_late_opens_the_task_when_it_was_said(play, late):
    """The twenty calls that are exempt are those from its time on, not from its reading on."""
    calls = numbered([*(work(n) for n in range(30)), *(view(n, f"{n}.py", f"text {n}") for n in range(22))])
    message = session_event(0, "user_message", occurred_at=at(29.5))
    alerts = play([*calls[: 30 + late], message, *calls[30 + late :]])
    assert found(alerts) == [("notice", "analysis", 50)]


@pytest.mark.parametrize("place", range(1, 12))
def test_a_trimmed_context_read_late_brings_no_settled_calls_back(play, place):
    """Looks before an accepted edit stay settled by it, whenever an earlier trim is read."""
    looks = [shell(n, "git diff --stat", "2 files") for n in range(6)]
    turns = in_turn(looks, [shell(n, f"./tidy {n}", "") for n in range(6)])
    calls = numbered([*turns[:7], edit(7, "a.py", "v1"), *turns[8:]])
    assert found(play(turns), "identical") == [("warn", "identical", 8)]
    assert play(calls) == []
    trim = session_event(0, "context_trimmed", occurred_at=at(0.5))
    assert play([*calls[:place], trim, *calls[place:]]) == []


@pytest.mark.parametrize("place", [1, 2, 3])
def test_a_trimmed_context_read_late_counts_no_run_twice(play, place):
    """Equal runs are none of its business."""
    trim = session_event(0, "context_trimmed", occurred_at=at(0.5))
    calls = [run(n) for n in range(6)]
    assert found(play([*calls[:place], trim, *calls[place:]])) == [
        ("warn", "identical", 2),
        ("terminate", "identical", 4),
    ]


def test_looks_before_a_trimmed_context_are_no_majority(play):
    """What was taken from the window has to be looked at again; without the trim the fifth look is one too many."""
    looks = [shell(n, "git diff --stat", "2 files") for n in range(5)]
    turns = in_turn(looks, [shell(n, f"./tidy {n}", "") for n in range(5)])[:9]
    assert found(play(turns)) == [("warn", "identical", 8)]
    assert play([*turns[:8], session_event(0, "context_trimmed", occurred_at=at(7.5)), turns[8]]) == []


def test_a_trimmed_context_sets_back_what_was_seen_only(play):
    """Reads and revisits start over; failures and equal runs go on."""
    trims = [session_event(n, "context_trimmed", occurred_at=at(n - 0.5)) for n in range(1, 9)]
    reads = [view(n, "plan.md", "the plan") if n % 2 else work(4 * n) for n in range(9)]
    by_time = sorted([*numbered(reads), *trims], key=lambda event: event.occurred_at)
    assert found(play(by_time)) == []
    fails = sorted([*(failing(n) for n in range(9)), *trims], key=lambda event: event.occurred_at)
    assert found(play(fails))[0] == ("warn", "same_failure", 4)


@pytest.mark.parametrize("pause_s", [14_400, 14_401])
def test_a_long_pause_sets_every_count_back(play, pause_s):
    """Four hours between two calls belong to one stretch, a second more begins another."""
    events = [run(0), run(1), shell(2, "./sync.sh", "0 files", occurred_at=at(1 + pause_s))]
    assert bool(play(events, {"identical.patient_s": 10**9})) is (pause_s == 14_400)


def test_depths_of_clearing_are_ordered():
    """What forgets loops forgets counts as well, and what forgets counts forgets reads."""
    assert Clear.READS < Clear.COUNTS < Clear.LOOPS
    for depth in Clear:
        state = SessionState()
        for n in range(3):
            observe(state, view(n, "plan.md", "the plan"), Limits())
        assert (len(state.loops), state.streak.count, len(state.reads)) == (1, 3, 1)
        state.settle(10**15, depth)
        assert (len(state.loops), state.streak.count, len(state.reads)) == (depth < Clear.LOOPS, 0 if depth else 3, 0)


def test_a_thought_is_no_message(play):
    """What an agent says to itself settles nothing."""
    calls = [run(0), run(1), think(2, "one more time"), run(3), run(4), run(5)]
    assert found(play(calls))
