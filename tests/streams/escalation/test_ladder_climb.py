"""The rungs: which one an alert leads to, what is done there, and what holds it back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from schemas.outputs import KnownFlapping
from streams.policy.model import RUNGS, Budgets, Ladder, Rung
from tests.streams.escalation.ladder_kit import Desk, asked, directive, short, termination, told

NO_WAIT = Ladder(cooldown_seconds=0.001)


def climbed(desk: Desk, count: int, **fields: Any) -> list[str]:
    """Warn so often, a second apart, and name what was asked."""
    names = []
    for _ in range(count):
        names += asked(desk.alert(f"a{len(desk.state.seen)}", **fields))
        desk.now += timedelta(seconds=1)
    return names


# The order


def test_warnings_climb_to_the_person_and_no_further() -> None:
    """Each warning leads to the next rung with budget left; after the person was called, to nothing."""
    assert climbed(Desk(NO_WAIT), 9, detector="analysis") == [
        "inject_guidance s1",
        "cooldown s1",
        "rotate_strategy s1",
        "rotate_strategy s1",
        "force_implementation s1",
        "escalate_human s1",
    ]


@pytest.mark.parametrize("detector", ["analysis", "rereads", "fruitless_search", "revisits", "category", "same_answer"])
def test_to_implement_is_asked_of_what_only_looks(detector: str) -> None:
    """These detectors see a session that reads or asks without end."""
    desk = Desk(Ladder(order=("force_implementation",), warn_most="force_implementation"))
    assert desk.warn("a1", detector=detector) == ["force_implementation s1", "force_implementation!"]


def test_to_implement_is_not_asked_of_what_acts() -> None:
    """Who runs the same failing test does not need to be told to act: the rung is passed over, its budget kept."""
    desk = Desk(Ladder(order=("force_implementation", "escalate_human")))
    assert desk.warn("a1", detector="identical") == ["escalate_human s1", "escalate_human!"]
    assert desk.state.climbs["s1"].used == {}


def test_a_termination_is_asked_for_at_once() -> None:
    """An alert that asks for it is not made to climb: the session is stopped and its task listed."""
    outputs = Desk().alert("a1", level="terminate")
    assert short(outputs) == ["stop s1 #1", "list t1", "terminate!"]
    entry = next(output for output in outputs if isinstance(output, KnownFlapping))
    assert entry.termination_id == termination(outputs).termination_id == told(outputs).answers
    assert entry.expires_at - entry.since == timedelta(days=7)


def test_a_termination_may_begin_lower() -> None:
    """Where the policy begins it at the person, it is the person first, and then the rungs above without a cap."""
    desk = Desk(Ladder(on_terminate="escalate_human"))
    assert [name for each in "abcd" for name in asked(desk.alert(each, level="terminate"))] == [
        "escalate_human s1",
        "abandon s1",
        "list t1",
        "stop s1 #1",
        "list t1",
    ]


def test_a_termination_begins_where_the_climb_stands() -> None:
    """What lies below is not asked again, whatever the policy begins with."""
    desk = Desk(Ladder(on_terminate="inject_guidance", cooldown_seconds=0.001))
    climbed(desk, 3)
    assert asked(desk.alert("b", level="terminate")) == ["rotate_strategy s1"]


def test_without_the_rung_of_terminations_the_last_one_is_taken() -> None:
    """Where nobody is to be stopped, what asks for it leads to the gravest that there is."""
    desk = Desk(Ladder(order=("inject_guidance", "escalate_human")))
    assert asked(desk.alert("a", level="terminate")) == ["escalate_human s1"]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (("inject_guidance", "rotate_strategy", "abandon", "terminate"), ["inject_guidance s1", "rotate_strategy s1"]),
        (("inject_guidance", "rotate_strategy"), ["inject_guidance s1", "rotate_strategy s1"]),
        (("terminate", "inject_guidance"), []),
    ],
)
def test_without_its_highest_rung_a_warning_stays_below_the_end(order: tuple[Rung, ...], expected: list[str]) -> None:
    """Where `warn_most` is not in the order, no warning ends anything."""
    desk = Desk(Ladder(order=order, warn_most="escalate_human", budget=Budgets(rotate_strategy=1)))
    assert climbed(desk, 4) == expected


def test_a_warning_may_end_the_work_where_the_policy_says_so() -> None:
    """With `warn_most` at the top, warnings climb through to the termination."""
    desk = Desk(Ladder(order=("abandon", "terminate"), warn_most="terminate"))
    assert climbed(desk, 2) == ["abandon s1", "list t1", "stop s1 #1", "list t1"]


def test_a_part_may_be_left_out_instead_of_the_whole() -> None:
    """Where the detectors suggest it, abandoning becomes skipping, which does not list the task."""
    desk = Desk(Ladder(order=("abandon",), warn_most="abandon"))
    assert climbed(desk, 1, suggested_strategy="skip_subtask") == ["skip_subtask s1"]
    assert desk.state.flapping_ms == 0


# Mode, muting, repetition


@pytest.mark.parametrize("level", ["notice", "warn", "terminate"])
@pytest.mark.parametrize("fields", [{"mode": "observe"}, {"muted": True}])
def test_muted_and_observed_alerts_ask_nothing(level: str, fields: dict[str, Any]) -> None:
    """Nothing is asked of anyone, and nothing is climbed."""
    desk = Desk()
    assert desk.alert("a", level=level, **fields) == []
    assert desk.state.climbs == {}


def test_the_mode_warn_never_ends_anything() -> None:
    """A terminate climbs like a warning, and no policy leads it to the end."""
    assert climbed(Desk(NO_WAIT), 9, level="terminate", mode="warn")[-1] == "escalate_human s1"
    ending = Desk(Ladder(order=("abandon", "terminate"), warn_most="terminate", on_terminate="abandon"))
    assert climbed(ending, 3, level="terminate", mode="warn") == []


def test_an_alert_that_comes_again_leads_to_nothing() -> None:
    """A repeated alert is dropped by its id, whatever it led to before."""
    desk = Desk(NO_WAIT)
    assert desk.warn("a") != []
    before = desk.state
    assert desk.warn("a") == []
    assert desk.state == before


# Budgets


def test_a_rung_is_taken_as_often_as_its_budget_says() -> None:
    """One short of the budget it is taken once more; at the budget the next one is."""
    desk = Desk(Ladder(budget=Budgets(inject_guidance=3), cooldown_seconds=0.001))
    assert climbed(desk, 4) == ["inject_guidance s1"] * 3 + ["cooldown s1"]


def test_a_rung_without_a_budget_is_passed_over() -> None:
    """A budget of zero takes a rung out."""
    desk = Desk(Ladder(budget=Budgets(inject_guidance=0, cooldown=0)))
    assert climbed(desk, 1) == ["rotate_strategy s1"]


def test_the_task_s_budgets_are_shared_by_its_sessions() -> None:
    """Rotations of one session count for the other; guidance and pauses do not."""
    desk = Desk(NO_WAIT)
    assert climbed(desk, 4, session_id="s1") == ["inject_guidance s1", "cooldown s1", *["rotate_strategy s1"] * 2]
    second = climbed(desk, 3, session_id="s2")
    assert second == ["inject_guidance s2", "cooldown s2", "escalate_human s2"]


# Notices


def test_a_notice_becomes_guidance_and_is_no_step() -> None:
    """It opens no loop, is told to nobody, and the first warning still gives guidance; its budget is the policy's."""
    desk = Desk()
    assert desk.warn("n1", "n2", level="notice") == ["inject_guidance s1"]
    assert desk.state.climbs["s1"].loops == []
    assert desk.warn("a1") == ["inject_guidance s1", "inject_guidance!"]


@pytest.mark.parametrize("notices", [0, 2])
def test_notices_have_a_budget_of_their_own(notices: int) -> None:
    """As many as the policy says become guidance."""
    desk = Desk(Ladder(notices=notices))
    assert desk.warn("n1", "n2", "n3", level="notice") == ["inject_guidance s1"] * notices


def test_after_more_than_guidance_a_notice_says_nothing() -> None:
    """Nor does it during a pause, or where the order has no guidance."""
    desk = Desk(Ladder(notices=9, cooldown_seconds=60))
    climbed(desk, 2)
    assert desk.warn("n1", level="notice") == []
    desk.later(seconds=60)
    assert desk.warn("n2", level="notice") == []
    assert Desk(Ladder(order=("escalate_human",))).warn("n1", level="notice") == []
    paused = Desk(Ladder(order=("cooldown", "inject_guidance"), on_terminate="inject_guidance"))
    paused.warn("a")
    assert asked(paused.alert("b", level="terminate")) == ["inject_guidance s1"]
    assert paused.warn("n1", level="notice") == []


# Cooldown


def test_during_a_pause_warnings_only_open_loops() -> None:
    """A millisecond before its end nothing is asked, at its end the climb goes on."""
    desk = Desk(Ladder(cooldown_seconds=60))
    climbed(desk, 1)
    pause = directive(desk.alert("b"))
    assert pause.parameters == {"seconds": 60.0, "until": "2026-12-01T03:01:01Z"}
    assert pause.expires_at == desk.now + timedelta(seconds=60)
    desk.later(seconds=59, milliseconds=999)
    assert desk.warn("c", loop_id="l2") == []
    assert desk.state.climbs["s1"].loops == ["l1", "l2"]
    desk.now += timedelta(milliseconds=1)
    assert desk.warn("d")[0] == "rotate_strategy s1"


def test_a_termination_does_not_wait_for_a_pause_to_end() -> None:
    """What is grave enough to be stopped is not left alone because it is paused."""
    desk = Desk()
    climbed(desk, 2)
    assert asked(desk.alert("b", level="terminate")) == ["stop s1 #1", "list t1"]


# Recovery


def test_the_last_recovery_ends_the_climb() -> None:
    """As long as a loop is open the climb stands; then the incident is over, and the next loop begins below."""
    desk = Desk(NO_WAIT)
    climbed(desk, 2, loop_id="l1")
    desk.warn("b", loop_id="l2")
    assert desk.alert("r1", level="recovered", loop_id="l1") == []
    assert short(desk.alert("r2", level="recovered", loop_id="l2")) == ["recovered over!"]
    assert desk.warn("c", loop_id="l3") == ["inject_guidance s1", "inject_guidance!"]


def test_a_recovery_leaves_what_the_task_used_up() -> None:
    """Rotations are the task's: a loop that is broken does not give them back."""
    desk = Desk(NO_WAIT)
    climbed(desk, 4)
    desk.alert("r", level="recovered")
    assert climbed(desk, 3) == [
        "inject_guidance s1",
        "cooldown s1",
        "escalate_human s1",
    ]


def test_a_recovery_ends_a_pause_but_no_termination() -> None:
    """What was asked of the orchestrator waits for its answer whatever the session does."""
    desk = Desk()
    climbed(desk, 2)
    desk.alert("r", level="recovered")
    assert desk.warn("c")[0] == "inject_guidance s1"
    desk.alert("d", level="terminate")
    assert short(desk.alert("r2", level="recovered")) == ["recovered over!"]
    assert desk.state.climbs["s1"].pending is not None
    assert desk.warn("e") == []


def test_a_muted_recovery_still_closes_the_incident() -> None:
    """People mute what they were called about: it must not stay open because of that."""
    desk = Desk()
    desk.warn("a")
    assert short(desk.alert("r", level="recovered", muted=True)) == ["recovered over!"]


@pytest.mark.parametrize("loop", ["l1", "other"])
def test_a_recovery_of_nothing_known_is_nothing(loop: str) -> None:
    """Neither a climb nor a loop comes about by it."""
    desk = Desk()
    assert desk.alert("r", level="recovered", loop_id=loop) == []
    desk.warn("a", loop_id="l2")
    assert desk.alert("r2", level="recovered", loop_id=loop) == []
    assert desk.state.climbs["s1"].loops == ["l2"]


# A policy that was loaded anew


def test_a_rung_that_the_new_order_lacks_is_where_it_begins() -> None:
    """The climb stands nowhere in the new order, so it begins at its first rung with budget left."""
    desk = Desk(NO_WAIT)
    climbed(desk, 3)
    desk.policy = Ladder(order=("force_implementation", "escalate_human"))
    assert asked(desk.alert("x")) == ["escalate_human s1"]
    assert desk.state.climbs["s1"].at == "escalate_human"


def test_a_larger_budget_below_does_not_lead_back_down() -> None:
    """What was passed is passed until the loop is over."""
    desk = Desk(NO_WAIT)
    climbed(desk, 3)
    desk.policy = Ladder(budget=Budgets(inject_guidance=9, cooldown=9))
    assert asked(desk.alert("x")) == ["rotate_strategy s1"]


def test_an_empty_order_asks_nothing() -> None:
    """Then alerts are only counted, terminations among them."""
    desk = Desk(Ladder(order=()))
    assert desk.warn("a") == []
    assert desk.alert("b", level="terminate") == []
    assert desk.alert("c", level="notice") == []


def test_every_rung_is_known_to_the_budgets() -> None:
    """The names in a state are those of the policy."""
    assert set(RUNGS) == set(Budgets.__struct_fields__)
