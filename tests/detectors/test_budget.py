"""Session budgets: five kinds of spending, each noticed at eighty per cent and ended at its limit; none by default."""

import pytest

from schemas.common import Usage
from schemas.events import FixAttempt, SessionInput
from schemas.testing import at, control, session_event, tool_call
from tests.detectors.traces import found, numbered, shell, view, work

SPENT = Usage(input_tokens=700, output_tokens=300, cost_usd=0.25)


def spending(count, budget):
    """Healthy calls, each of which spends a tenth of what the budgets below allow."""
    events: list[SessionInput] = []
    for n in range(count):
        if budget == "turns":
            events.append(session_event(n, "turn", occurred_at=at(60 * n)))
        usage = SPENT if budget in {"tokens", "cost_usd"} else None
        events.append(tool_call(n, "step", {"number": n}, f"result {n}", usage=usage, occurred_at=at(60 * n)))
    return events


BUDGETS = [("calls", 10, 7), ("turns", 10, 7), ("tokens", 10_000, 7), ("cost_usd", 2.5, 7), ("wall_s", 600, 8)]
"""Name, limit, and the place of the call with which eighty per cent of it are spent."""

TROUBLE = [shell(n, "./sync.sh", "0 files") for n in range(3)]
"""Three equal calls, which are warned about."""


def budget(alerts):
    """Level and position of what the rule found."""
    return [(level, seq) for level, _, seq in found(alerts, "budget")]


def test_there_are_no_budgets_by_default(play):
    """Nobody is stopped for what nobody forbade."""
    events = [
        tool_call(n, "step", {"number": n}, f"{n}", usage=Usage(input_tokens=10**12, cost_usd=1e6)) for n in range(49)
    ]
    assert found(play([*events, tool_call(99, "step", {"number": 99}, "late", occurred_at=at(10**7))]), "budget") == []


@pytest.mark.parametrize(("name", "limit", "soft"), BUDGETS)
def test_eighty_per_cent_are_a_notice(play, name, limit, soft):
    """Spending alone is no loop: the agent is told once, nobody else."""
    limits = {f"budget.{name}": limit}
    assert play(spending(soft, name), limits) == []
    assert budget(play(spending(soft + 1, name), limits)) == [("notice", soft)]
    assert budget(play(spending(soft + 2, name), limits)) == [("notice", soft)]


@pytest.mark.parametrize(("name", "limit", "soft"), BUDGETS)
def test_the_limit_itself_terminates(play, name, limit, soft):
    """The agent was told at eighty per cent; at a hundred it ends, with the very call that reaches it."""
    alerts = play(spending(soft + 3, name), {f"budget.{name}": limit})
    assert budget(alerts) == [("notice", soft), ("terminate", soft + 2)]
    (reached,) = alerts[-1].limits
    assert (reached.name, reached.value, reached.layer) == (f"budget.{name}", limit, "test")


@pytest.mark.parametrize(("name", "limit", "soft"), BUDGETS)
def test_it_goes_on_to_the_end_and_is_ended_at_each_double(play, name, limit, soft):
    """Whoever does not obey is not told with every call, but again at double and four times of what was spent."""
    alerts = budget(play(spending(soft + 30, name), {f"budget.{name}": limit}))
    ends = [at for level, at in alerts if level == "terminate"]
    assert ends[0] == soft + 2
    assert len(ends) in {2, 3}
    assert len(alerts) <= len(ends) + 2


@pytest.mark.parametrize(("name", "limit", "soft"), BUDGETS)
def test_eighty_per_cent_are_a_warning_when_something_else_is_wrong(play, name, limit, soft):
    """The soft limit acts together with another signal."""
    before = spending(soft, name)
    loop = [shell(500 + n, "./sync.sh", "0 files", occurred_at=before[-1].occurred_at) for n in range(3)]
    last = spending(soft + 1, name)[len(before) :]
    alerts = play([*before, *loop, *last], {f"budget.{name}": limit + 3 if name == "calls" else limit})
    assert found(alerts) == [("warn", "identical", soft + 2), ("warn", "budget", soft + 3)]


def test_trouble_after_the_notice_makes_a_warning_of_it(play):
    """A notice that was given does not stand in the way."""
    events = numbered([*spending(8, "calls"), *TROUBLE, *spending(9, "calls")[8:]])
    alerts = play(events, {"budget": {"calls": 15, "soft_share": 0.5}})
    assert found(alerts) == [("notice", "budget", 7), ("warn", "identical", 10), ("warn", "budget", 11)]


@pytest.mark.parametrize(("share", "seq"), [(0.5, 4), (0.8, 7), (0.81, 8), (1, 9)])
def test_the_soft_share_is_a_limit(play, share, seq):
    """How early the agent is told is a setting; with all of it there is no notice before the end."""
    alerts = budget(play(spending(10, "calls"), {"budget": {"calls": 10, "soft_share": share}}))
    assert alerts[0][1] == seq


def test_a_loop_that_a_person_marked_as_right_is_no_trouble(play):
    """Nothing else is wrong, then."""
    (alert,) = play(TROUBLE)
    events = [*TROUBLE, control(3, "false_alarm", answers=alert.alert_id), *spending(9, "calls")[4:]]
    alerts = play(events, {"budget.calls": 10})
    assert budget(alerts) == [("notice", 7)]


def test_a_loop_that_recovered_is_no_trouble(play):
    """What was wrong long ago is over."""
    events = numbered([*TROUBLE, *(work(n) for n in range(40))])
    alerts = play(events, {"budget.calls": 50})
    assert found(alerts) == [("warn", "identical", 2), ("recovered", "identical", 22), ("notice", "budget", 39)]


def test_a_notice_of_something_else_is_no_trouble(play):
    """Only what people were warned about is."""
    reads = [
        step for n in range(3) for step in (view(n, "plan.md", "the plan"), shell(n, f"make part_{n}", f"built {n}"))
    ]
    alerts = play(numbered([*reads, *spending(2, "calls")]), {"budget.calls": 10})
    assert found(alerts) == [("notice", "rereads", 4), ("notice", "budget", 7)]


def test_a_budget_that_is_spent_is_no_trouble_for_another(play):
    """Each is judged by itself."""
    alerts = play(spending(12, "tokens"), {"budget": {"calls": 8, "tokens": 12_000}})
    tokens = [(alert.level, alert.seq) for alert in alerts if alert.limits[0].name == "budget.tokens"]
    assert tokens[:1] == [("notice", 9)]


def test_several_budgets_are_told_apart(play):
    """Each is a matter of its own, and one that is nearly spent is no trouble for another."""
    limits = {"budget": {"calls": 10, "tokens": 10_000, "cost_usd": 100}}
    alerts = [alert for alert in play(spending(8, "tokens"), limits) if alert.detector == "budget"]
    assert sorted(alert.limits[0].name for alert in alerts) == ["budget.calls", "budget.tokens"]
    assert {alert.level for alert in alerts} == {"notice"}


def test_what_turns_and_attempts_consume_counts(play):
    """The account is the session's, whatever kind of event said what was consumed."""
    attempt = FixAttempt(
        event_id="f1", session_id="s1", occurred_at=at(0), attempt_id="1", outcome="failed", usage=Usage(cost_usd=1.0)
    )
    turn = session_event(0, "turn", usage=Usage(cost_usd=1.0))
    alerts = play([attempt, turn, *spending(1, "cost_usd")], {"budget.cost_usd": 2.5})
    assert budget(alerts) == [("notice", 0)]


@pytest.mark.parametrize(
    "event", [session_event(200, "user_message"), control(200, "resume"), session_event(200, "started")]
)
def test_what_clears_counts_gives_no_money_back(play, event):
    """A session's budget is for all of it."""
    events = spending(10, "calls")
    assert [seq for _, seq in budget(play([*events[:4], event, *events[4:]], {"budget.calls": 10}))][:1] == [7]


def test_wall_time_goes_by_the_events_from_the_first_call_on(play):
    """Whenever they are read: ten minutes from the first call to the last."""
    events = [shell(0, "make a", occurred_at=at(90_000)), shell(1, "make b", occurred_at=at(90_480))]
    assert budget(play(events, {"budget.wall_s": 600})) == [("notice", 1)]
    assert play(events, {"budget.wall_s": 601}) == []


def test_the_alert_says_what_was_spent(play):
    """In figures and words, for the person who set the limit."""
    (alert,) = play(spending(8, "cost_usd"), {"budget.cost_usd": 2.5})
    assert "2.00 of 2.50 US dollars are spent" in alert.reasoning
    assert "budget.cost_usd = 2.5, set by test" in alert.reasoning
    assert (alert.count, alert.first_seen) == (2.0, at(0))
