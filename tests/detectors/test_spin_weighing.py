"""The spin score beside the rules: what weak rules need, which loop is whose, and what neither may do to the other."""

import pytest

from detectors import InvalidLimits, Limits, SessionState, limits_from, observe
from detectors.features import MIN_CALLS, window_of
from schemas.testing import control, session_event, tool_call
from tests.detectors.spin_kit import ALONE, EAGER, SPINNING, look, played, refused, scores, sequence
from tests.detectors.traces import found, numbered, shell, think, view

CATEGORY = [view(n, f"src/part_{n}.py", f"def part_{n}(): pass\nreturn {n}") for n in range(220)]
"""Looks that bring news: the rule that counts looks warns at its hundredth half."""


def levels(events, detector, limits):
    """Levels of a detector's alerts."""
    return [alert.level for alert in played(events, limits)[0] if alert.detector == detector]


def test_what_only_counts_calls_needs_the_score():
    """Two hundred reads of what is new are a notice; without the score they are a warn."""
    assert levels(CATEGORY, "category", {"off": ["spin_score"]})[0] == "warn"
    assert levels(CATEGORY, "category", {}) == ["notice"]
    assert "spin score is only" in next(
        alert.reasoning for alert in played(CATEGORY)[0] if alert.detector == "category"
    )


def first_alert(events, detector, limits):
    """A detector's first alert above a notice."""
    alerts = [a for a in played(events, limits)[0] if a.detector == detector and a.level != "notice"]
    return alerts[0].seq if alerts else None


def test_the_score_that_is_needed_is_a_limit():
    """Reached exactly it lets the warn stand, just above it does not, for both kinds of rules."""
    at = first_alert(CATEGORY, "category", {"off": ["spin_score"]})
    score = scores(CATEGORY)[at]
    assert first_alert(CATEGORY[: at + 1], "category", {"spin_score.notice": score}) == at
    assert first_alert(CATEGORY[: at + 1], "category", {"spin_score.notice": score + 1e-9}) is None
    misses = [tool_call(n, "search_docs", {"query": f"how to {w}"}, {"results": []}) for n, w in enumerate(WORDS_ASKED)]
    at = first_alert(misses, "fruitless_search", {"off": ["spin_score"]})
    score = scores(misses)[at]
    assert first_alert(misses[: at + 1], "fruitless_search", {"spin_score.weak_needs": score}) == at
    assert first_alert(misses[: at + 1], "fruitless_search", {"spin_score.weak_needs": score + 1e-9}) is None


WORDS_ASKED = ["fly", "sew", "row", "bake", "knit", "weld", "sail", "ski", "dig", "mow"]


def test_a_limit_that_somebody_set_holds_without_the_score():
    """It is their word."""
    assert levels(CATEGORY, "category", {"category.explore_warn": 90})[0] == "warn"
    assert (
        levels(CATEGORY, "category", {"category.explore_warn": 100, "spin_score.notice": 1.0, "spin_score.warn": 1.0})[
            0
        ]
        == "warn"
    )


def test_the_warn_that_somebody_set_holds_where_the_terminate_limit_is_reached_too():
    """One of the two is their word."""
    calls = [view(n, f"src/part_{n}.py", f"def part_{n}(): pass\nreturn {n}") for n in range(420)]
    assert levels(calls, "category", {"category.explore_warn": 200}) == ["warn"]


def test_the_score_is_not_weighed_by_itself():
    """What weak rules need is of no concern for it."""
    assert "warn" in levels(SPINNING, "spin_score", {**ALONE, "spin_score.weak_needs": 1.0})


def test_strong_rules_do_not_need_the_score():
    """An exact repeat is one, whatever else is new."""
    same = [shell(n, "./sync.sh", "0 files") for n in range(3)]
    needed = dict.fromkeys(("spin_score.warn", "spin_score.notice", "spin_score.weak_needs"), 1.0)
    calls = numbered([*map(look, range(9)), *same])
    assert levels(calls, "identical", needed) == ["warn"]


def test_what_counts_calls_is_borne_out_by_a_high_score():
    """Then it may terminate; a score that is no warn does not let it."""
    calls = [tool_call(n, "frobnicate", {"unit": n % 40}, f"unit {n % 40} reads {n % 40}") for n in range(300)]
    off = [name for name in ALONE["off"] if name != "category"]
    low = {"off": off, "spin_score.notice": 1e-9, "spin_score.warn": 0.9999}
    assert levels(calls, "category", low) == ["warn", "warn"]
    high = {**low, "spin_score.warn": 1e-9}
    assert "terminate" in {alert.level for alert in played(calls, high)[0]}


def test_a_new_loop_is_told_though_the_score_spoke_before():
    """What the score sees is no one loop: each exact repeat is warned about and terminated by itself."""
    first = [shell(0, "./report", "12 parts are missing") for _ in range(8)]
    second = [shell(0, "./deploy", "nothing to deploy") for _ in range(30)]
    told = found(played(sequence(first, second))[0], "identical")
    ends = [("terminate", "identical", at) for at in (12, 17, 27)]
    assert told == [("warn", "identical", 2), ("terminate", "identical", 4), ("warn", "identical", 10), *ends]


def test_a_loop_of_the_score_and_a_rules_loop_are_two():
    """The rule has a warning and a name of its own, also after the score has warned."""
    calls = sequence(SPINNING, [shell(0, "./deploy", "nothing to deploy") for _ in range(6)])
    alerts = played(calls)[0]
    own = [alert for alert in alerts if alert.detector == "identical"]
    assert [alert.level for alert in own] == ["warn", "terminate"]
    assert {alert.loop_id for alert in own}.isdisjoint(alert.loop_id for alert in alerts if alert not in own)


def test_a_false_alarm_of_the_score_silences_the_score_alone():
    """A person said that the score is wrong here; of exact repeats they said nothing."""
    state, limits = SessionState(), limits_from([("test", EAGER)])
    news = [*map(look, range(6)), *(shell(n, f"./show {n % 3}", f"part {n % 3} of all") for n in range(6, 14))]
    alerts = [alert for event in news for alert in observe(state, event, limits)]
    (spoken, *_) = [alert for alert in alerts if alert.detector == "spin_score"]
    observe(state, control(14, "false_alarm", answers=spoken.alert_id), limits)
    rest = [shell(n, "./deploy", "nothing to deploy") for n in range(15, 27)]
    alerts = [alert for event in rest for alert in observe(state, event, limits)]
    assert ("terminate", "identical") in {(alert.level, alert.detector) for alert in alerts}
    assert "spin_score" not in {alert.detector for alert in alerts}


@pytest.mark.parametrize("marked", [True, False])
def test_a_false_alarm_of_the_score_silences_what_it_sees_later_as_well(marked):
    """Also what is under watch when the word comes: one loop of the score is as good as another."""
    state, limits = SessionState(), limits_from([("test", {**ALONE, **EAGER, "decision.repeat_factor": 1.1})])

    def play(events):
        found = [alert for event in events for alert in observe(state, event, limits)]
        return [alert for alert in found if alert.level != "recovered"]

    def shows(begin, end):
        return [shell(n, f"./show {n % 3}", f"part {n % 3} of all") for n in range(begin, end)]

    (*_, spoken) = play([*map(look, range(6)), *shows(6, 26)])
    assert not play(map(look, range(30, 70)))
    assert state.loops == []
    assert play(shows(70, 90))
    if marked:
        observe(state, control(90, "false_alarm", answers=spoken.alert_id), limits)
    assert bool(play(shows(91, 120))) is not marked


def test_where_a_rule_warns_the_score_says_nothing():
    """Neither at that call nor at the next ones; its loop, if there was one, goes on and has not recovered."""
    same = [shell(n, "./deploy", "nothing to deploy") for n in range(40)]
    assert {alert.detector for alert in played(same)[0]} == {"identical"}
    calls = sequence(SPINNING[:22], [shell(0, "./deploy", "nothing to deploy") for _ in range(40)])
    alerts = played(calls, {"off": ["refused_edits", "same_failure"], "identical.terminate": 1_000})[0]
    spoken = [alert for alert in alerts if alert.detector == "spin_score"]
    assert {alert.level for alert in spoken} <= {"notice", "warn"}
    assert max(alert.seq for alert in spoken) < 24


def test_loops_of_the_score_differ_from_session_to_session():
    """Their names are made of what repeats."""
    other = [tool_call(n, "patch", {"file": "b.py", "text": f"{n}"}, "Error: hunk failed to apply") for n in range(20)]
    names = [{alert.loop_id for alert in played(calls, ALONE)[0]} for calls in (SPINNING, other)]
    assert all(len(each) == 1 for each in names)
    assert names[0] != names[1]


@pytest.mark.parametrize(
    ("tool", "answer"), [("frobnicate", "unit is still running"), ("frobnicate", "503 service unavailable")]
)
def test_who_waits_is_not_terminated_by_counting(tool, answer):
    """A high score bears nothing out where the score itself keeps silent."""
    calls = [tool_call(n, tool, {"unit": n % 5}, answer) for n in range(240)]
    off = [name for name in ALONE["off"] if name != "category"]
    assert "terminate" not in {alert.level for alert in played(calls, {"off": off})[0]}


@pytest.mark.parametrize("later", [6, 8, 10, 12])
def test_a_trim_read_late_leaves_the_state_that_it_leaves_in_time(later):
    """As many calls as are remembered may lie between."""
    first, second = SPINNING[:24], [refused(n) for n in range(30, 30 + later)]
    word = session_event(25, "context_trimmed")
    in_time, late = played([*first, word, *second])[1], played([*first, *second, word])[1]
    assert in_time.spin == late.spin
    assert in_time.recent[-8:] == late.recent[-8:]


@pytest.mark.parametrize(("notice", "warn", "fits"), [(0.5, 0.5, True), (0.51, 0.5, False), (0.9, 0.0, True)])
def test_a_notice_above_the_warn_is_refused(notice, warn, fits):
    """Where both are set; what is learned gives way."""
    limits = [("file", {"spin_score": {"notice": notice, "warn": warn}})]
    if fits:
        assert limits_from(limits).spin_notice <= limits_from(limits).spin_warn
    else:
        with pytest.raises(InvalidLimits, match=r"file: spin_score.notice = 0.51 is above spin_score.warn = 0.5"):
            limits_from(limits)
    assert limits_from([("file", {"spin_score.warn": 0.1})]).spin_notice == 0.1


def test_calls_made_while_it_was_off_do_not_count():
    """They were not looked at, so that nothing is known of them."""
    off, state = limits_from([("test", {"off": ["spin_score"]})]), SessionState()
    for event in SPINNING[:20]:
        observe(state, event, off)
    for event in SPINNING[20:23]:
        observe(state, event, Limits())
    assert state.spin.score is None
    observe(state, SPINNING[23], Limits())
    assert state.spin.score is not None
    assert len(window_of(state, state.recent[-1])) == MIN_CALLS


def test_a_notice_names_the_limit_of_the_warn():
    """Not that of a terminate, which it is far from."""
    alerts = [alert for alert in played(CATEGORY * 2)[0] if alert.detector == "category"]
    assert {(alert.level, alert.limits[0].name) for alert in alerts} == {("notice", "category.explore_warn")}


def test_a_thought_has_no_score():
    """The score is of the call of work before it."""
    alerts, state = played([*SPINNING, *(think(n, "once more") for n in range(40, 46))])
    said = [alert for alert in alerts if alert.seq >= len(SPINNING)]
    assert said
    assert {alert.spin_score for alert in said} == {None}
    assert state.spin.score is not None
