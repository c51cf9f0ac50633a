"""What is said of a task's loops: once per level, again at double the count, and once more when they are broken."""

import pytest

from detectors import InvalidLimits, Limits, limits_from
from detectors.tasks.facts import Spent
from schemas.common import Usage
from schemas.testing import control, fix_attempt, review, session_event
from tests.detectors.traces import found

LETTERS = "bcdfghjklmnpqrstvwxz"
CHURN = {"off": ["circular_fix", "state_cycle", "too_many_attempts", "flaky_tests"]}
MANY = {"off": ["circular_fix", "approach_churn", "state_cycle", "flaky_tests"]}


def new(n, **fields):
    """Return an attempt that is like no other."""
    return fix_attempt(n, f"{LETTERS[n % 20] * 6} {LETTERS[n // 20] * 7}", **fields)


def back_and_forth(count, start=0, **fields):
    """Return attempts of two approaches in turn, each with a change and a failure of its own."""
    sides = (
        {
            "approach": "cache the totals",
            "files": ("src/cart.py",),
            "diff": _diff("cart", 3),
            "error_message": "E1001: a",
        },
        {
            "approach": "sort every row",
            "files": ("src/order.py",),
            "diff": _diff("order", 9),
            "error_message": "E2002: b",
        },
    )
    return [fix_attempt(start + n, **{**sides[n % 2], **fields}) for n in range(count)]


def _diff(name, line):
    return f"--- a/src/{name}.py\n+++ b/src/{name}.py\n@@ -{line} +{line} @@\n-{name} = 1\n+{name} = {line}\n"


def brief(alerts):
    """Return levels and detectors."""
    return [(alert.level, alert.detector) for alert in alerts]


@pytest.mark.parametrize(("count", "wanted"), [(5, 0), (6, 1), (11, 1), (12, 2), (23, 2), (24, 3)])
def test_a_loop_is_warned_of_once_and_again_at_double_the_count(heard, count, wanted):
    """Six attempts, twelve, twenty-four: nobody reads a warning for each."""
    alerts = heard([new(n) for n in range(count)], MANY)
    assert brief(alerts) == [("warn", "too_many_attempts")] * wanted
    assert len({alert.loop_id for alert in alerts}) == min(wanted, 1)
    assert [alert.interventions_so_far for alert in alerts] == list(range(wanted))


def test_the_multiple_at_which_it_is_warned_again_is_a_setting(heard):
    """The sessions' own."""
    alerts = heard([new(n) for n in range(20)], {**MANY, "decision.repeat_factor": 1.5})
    assert [alert.count for alert in alerts] == [6, 9, 14]


def test_a_loop_is_terminated_only_after_its_own_warning(heard):
    """Both sides of an approach churn: the first return, then two full rounds."""
    alerts = heard(back_and_forth(4), CHURN)
    assert found(alerts, "approach_churn") == [("warn", "approach_churn", 2), ("terminate", "approach_churn", 3)]
    assert not heard(back_and_forth(2), CHURN)


def test_a_level_that_is_reached_at_once_begins_with_the_warning(heard):
    """Limits may be as low as can be: who was not warned is not ended."""
    limits = {"ping_pong.warn": 1, "ping_pong.terminate": 1}
    assert brief(heard([review(n) for n in range(3)], limits)) == [("warn", "ping_pong"), ("terminate", "ping_pong")]


def test_weak_evidence_waits_for_another_kind(heard):
    """Words alone warn, however often they come again."""
    same = "cache the totals of the cart"
    words = [fix_attempt(n, f"{same} {LETTERS[n] * 6}") for n in range(8)]
    assert {level for level, *_ in found(heard(words, {"off": ["too_many_attempts"]}))} == {"warn"}
    assert found(heard(words))[-1][0] == "warn"  # too often as well, which is no other evidence of the same
    with_change = [fix_attempt(n, same, diff=_diff("cart", 3), error_message="ValueError: a") for n in range(8)]
    assert "terminate" in {level for level, *_ in found(heard(with_change))}


def test_weak_evidence_does_not_bear_out_other_weak_evidence(heard):
    """Two rules that go by the same words see the same."""
    words = [fix_attempt(n, ("cache the totals", "sort every row")[n % 2]) for n in range(8)]
    alerts = heard(words, {"off": ["too_many_attempts"]})
    assert {level for level, *_ in found(alerts)} == {"warn"}


def test_two_detectors_that_are_sure_at_once_begin_with_one_warning(heard):
    """The word of the second is no escalation of that of the first."""
    same = [
        fix_attempt(n, "cache the totals", files=("src/cart.py",), diff=_diff("cart", 3), error_message="ValueError: a")
        for n in range(4)
    ]
    limits = {f"{name}.{level}": 2 for name in ("circular_fix", "state_cycle") for level in ("warn", "terminate")}
    assert [alert.level for alert in heard(same[:3], limits)] == ["warn"]
    assert [alert.level for alert in heard(same, limits)] == ["warn", "terminate"]


def test_one_event_says_one_thing_of_one_loop(heard):
    """Several detectors see it: it is one alert, of the gravest."""
    alerts = heard(back_and_forth(12))
    assert len({(alert.loop_id, alert.seq) for alert in alerts}) == len(alerts)
    assert len({alert.loop_id for alert in alerts}) <= 2


@pytest.mark.parametrize("mode", ["observe", "warn", "enforce"])
def test_the_mode_is_carried_and_changes_nothing_that_is_found(heard, mode):
    """What is asked of whom is for the consumer of alerts to say."""
    alerts = heard(back_and_forth(4), {**CHURN, "mode": mode})
    assert brief(alerts) == brief(heard(back_and_forth(4), CHURN))
    assert {alert.mode for alert in alerts} == {mode}
    assert {alert.scope for alert in alerts} == {"task"}


def test_a_detector_that_is_off_says_nothing(heard):
    """Neither of others' loops."""
    assert not found(heard(back_and_forth(8), {"off": ["approach_churn"]}), "approach_churn")
    assert not heard([new(n) for n in range(12)], {"off": [*MANY["off"], "too_many_attempts"]})


def test_a_detector_that_only_warns_never_terminates(heard):
    """Also where its limit is a hard one."""
    rounds = [review(n) for n in range(9)]
    alerts = heard(rounds, {"warn_only": ["ping_pong"]})
    assert [(alert.level, alert.count) for alert in alerts] == [("warn", 3), ("warn", 6)]
    turns = [session_event(n, "turn", usage=Usage(input_tokens=1)) for n in range(5)]
    spent = [*turns, fix_attempt(1, "cache the totals")]
    limits = {"task_budget.turns": 5}
    assert brief(heard(spent, limits)) == [("terminate", "task_budget")]
    assert brief(heard(spent, {**limits, "warn_only": ["task_budget"]})) == [("warn", "task_budget")]


@pytest.mark.parametrize(
    ("quiet", "limits", "wanted"),
    [(4, {}, 0), (5, {}, 1), (9, {}, 1), (2, {"tasks.rearm_after": 3}, 0), (3, {"tasks.rearm_after": 3}, 1)],
)
def test_a_warned_loop_that_is_not_seen_for_a_while_has_recovered_once(heard, quiet, limits, wanted):
    """Five attempts and rounds of review without it, by default."""
    alerts = heard([*back_and_forth(3), *(new(n + 3) for n in range(quiet))], {**CHURN, **limits})
    assert brief(alerts) == [("warn", "approach_churn"), *[("recovered", "approach_churn")] * wanted]
    assert len({alert.loop_id for alert in alerts}) == 1
    for alert in alerts[1:]:
        assert (alert.limits[0].name, alert.limits[0].value) == (
            "tasks.rearm_after",
            limits.get("tasks.rearm_after", 5),
        )
        assert "not seen for a while" in alert.reasoning


def test_after_a_quiet_stretch_a_loop_is_warned_of_anew(heard):
    """It is a new story."""
    events = [*back_and_forth(3), *(new(n + 3) for n in range(12)), *back_and_forth(3, start=20)]
    assert [alert.level for alert in heard(events, CHURN)] == ["warn", "recovered", "warn"]


def test_a_terminated_loop_is_not_said_to_have_recovered(heard):
    """The verdict stands."""
    alerts = heard([*back_and_forth(4), *(new(n + 4) for n in range(9))], CHURN)
    assert [alert.level for alert in alerts] == ["warn", "terminate"]


def test_a_success_is_the_recovery_of_all_that_was_warned_about(heard):
    """At once, and once."""
    events = [*back_and_forth(3), fix_attempt(3, "done", outcome="success"), *(new(n + 4) for n in range(5))]
    alerts = heard(events, CHURN)
    assert brief(alerts) == [("warn", "approach_churn"), ("recovered", "approach_churn")]
    assert "the task succeeded" in alerts[1].reasoning
    assert alerts[1].evidence.event_ids == ("s1-attempt-3",)


def test_a_success_that_takes_back_the_last_change_is_no_reversal(heard):
    """The way out of a loop is often the way back."""
    there, back = _diff("cart", 3), _diff("cart", 3).replace("-cart = 1", "-cart = 3").replace("+cart = 3", "+cart = 1")
    tries = [fix_attempt(n, diff=(there, back)[n % 2]) for n in range(4)]
    done = fix_attempt(4, diff=there, outcome="success")
    limits = {"off": ["approach_churn", "state_cycle", "circular_fix", "fix_break"]}
    assert "terminate" not in [alert.level for alert in heard([*tries, done], limits)]
    assert "terminate" in [alert.level for alert in heard([*tries, fix_attempt(4, diff=there)], limits)]


@pytest.mark.parametrize("action", ["resume", "reset", "clear"])
def test_a_resume_reset_or_clear_begins_anew(heard, player, action):
    """What was tried before is settled, and nothing is said of it again."""
    tries = back_and_forth(3)
    assert heard([*tries, *back_and_forth(4, start=3)], CHURN)[-1].level == "terminate"
    alerts = heard([*tries, control(200, action), *back_and_forth(2, start=4)], CHURN)
    assert [alert.level for alert in alerts] == ["warn"]
    game = player(CHURN)
    game.play([*tries, control(200, action)])
    task = game.tasks["s1"]
    assert (task.attempts, task.loops, task.tried) == ([], [], 0)
    assert (task.spent == Spent()) == (action != "resume")  # then what was spent is spent


@pytest.mark.parametrize("action", ["resume", "reset", "clear"])
def test_a_word_settles_by_its_time_whichever_is_read_first(heard, player, action):
    """It comes on another topic than the attempts, of which either may be hours behind."""
    early, late, word = back_and_forth(3), back_and_forth(3, start=4), control(200, action)
    for events in ([word, *early, *late], [*early, *late, word], [*early[:2], word, early[2], *late]):
        game = player(CHURN)
        game.play([fix_attempt(-1), *events])
        task = game.tasks["s1"]
        assert [seen.attempt_id for seen in task.attempts] == [each.attempt_id for each in late]
        assert (task.tried, task.failed) == (3, 3)
    told = [fix_attempt(-1), word, *early]
    assert heard(told, CHURN) == []
    assert heard(early, CHURN) != []


def test_a_loop_that_a_person_marks_as_wrong_is_not_alerted_again(heard):
    """The alert's id is what they answer; others of the task go on."""
    first = heard(back_and_forth(3), CHURN)
    wrong = control(200, "false_alarm", answers=first[0].alert_id)
    assert heard([*back_and_forth(3), wrong, *back_and_forth(6, start=4)], CHURN) == first
    quiet = [new(n + 4) for n in range(12)]
    assert heard([*back_and_forth(3), wrong, *quiet, *back_and_forth(4, start=20)], CHURN) == first
    rounds = [review(n + 1) for n in range(3)]
    alerts = heard([*back_and_forth(3), wrong, *rounds, *back_and_forth(6, start=300)], CHURN)
    assert [alert.detector for alert in alerts] == ["approach_churn", "ping_pong"]


@pytest.mark.parametrize("answers", ["", "no such alert", None])
def test_a_word_on_an_alert_that_nobody_gave_changes_nothing(heard, answers):
    """It may be of another task."""
    wrong = control(200, "false_alarm", answers=answers)
    alerts = heard([*back_and_forth(3), wrong, *back_and_forth(4, start=4)], CHURN)
    assert brief(alerts)[:2] == [("warn", "approach_churn"), ("terminate", "approach_churn")]


def test_an_alert_says_which_limit_was_reached_and_who_set_it(heard):
    """Also where a terminate waits: then it is the warn limit that was."""
    alerts = heard([review(n) for n in range(2)], {"ping_pong.warn": 1, "ping_pong.terminate": 2})
    assert [(each.limits[0].name, each.limits[0].value, each.limits[0].layer) for each in alerts] == [
        ("ping_pong.warn", 1, "test"),
        ("ping_pong.terminate", 2, "test"),
    ]
    (alert,) = heard([new(n) for n in range(6)], Limits(off=("circular_fix", "approach_churn", "state_cycle")))
    assert (alert.limits[0].name, alert.limits[0].layer) == ("too_many_attempts.warn", "default")


@pytest.mark.parametrize(
    ("usage", "tokens", "cost", "estimated"),
    [(Usage(input_tokens=400, cost_usd=0.25), 800, 0.5, False), (None, 0, None, True)],
)
def test_what_was_wasted_is_measured_where_it_was_sent(heard, usage, tokens, cost, estimated):
    """From the first attempt of the loop on, which is not wasted itself."""
    (alert,) = heard(back_and_forth(3, usage=usage), CHURN)
    assert (alert.tokens_wasted, alert.cost_wasted, alert.wasted_estimated) == (tokens, cost, estimated)


def test_no_words_are_quoted_where_none_may_be_kept(heard):
    """A setting; what was compared were digests all along."""
    alerts = heard(back_and_forth(4), {**CHURN, "decision.excerpt_chars": 0})
    assert alerts
    assert not [word for alert in alerts for word in ("cache", "sort", "cart", "order", "1001") if word in repr(alert)]


@pytest.mark.parametrize(
    ("given", "low", "high"),
    [
        ({"circular_fix.warn": 12}, "circular_fix.warn", "circular_fix.terminate"),
        ({"circular_fix.lookback": 1}, "circular_fix.warn", "circular_fix.lookback"),
        ({"approach_churn.warn": 12}, "approach_churn.warn", "approach_churn.terminate"),
        ({"diff_reversal.notice": 12}, "diff_reversal.notice", "diff_reversal.warn"),
        ({"diff_reversal.warn": 12}, "diff_reversal.warn", "diff_reversal.terminate"),
        ({"state_cycle.warn": 12}, "state_cycle.warn", "state_cycle.terminate"),
        ({"fix_break.warn": 12}, "fix_break.warn", "fix_break.terminate"),
        ({"ping_pong.warn": 12}, "ping_pong.warn", "ping_pong.terminate"),
    ],
)
def test_limits_that_could_never_be_reached_in_turn_are_refused(given, low, high):
    """A loop has to be warned of before it is ended."""
    with pytest.raises(InvalidLimits, match=rf"^file: {low} = \d+(\.0)? is above {high} = \d+(\.0)?; lower the first"):
        limits_from([("file", given)])


@pytest.mark.parametrize(
    "given",
    [
        {"tasks.retention_days": 0},
        {"tasks.rearm_after": 0},
        {"task_budget.every": 0},
        {"task_budget.turns": -1},
        {"task_budget.soft_share": 0},
        {"circular_fix.lookback": 13},  # more than are remembered
        {"circular_fix.similarity": 1.01},
        {"diff_reversal.share": 0},
        {"approach_churn.terminate": 1},
        {"ping_pong.returned_warn": 0},
        {"comment_velocity.warn": 0},
    ],
)
def test_a_limit_out_of_its_range_is_refused_by_its_name(given):
    """With the layer that set it."""
    (name,) = given
    with pytest.raises(InvalidLimits, match=f"^file: {name}: "):
        limits_from([("file", given)])
