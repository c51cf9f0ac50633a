"""Revisits: going round without any order, by the calls among the latest that brought only what was known."""

import random

import pytest
from msgspec import UNSET

from detectors.state import MAX_KNOWN
from schemas.testing import tool_call
from tests.detectors.traces import PAGE_TEXT, click, edit, found, numbered, reached, shell, think, view

ROOMS = 12
ROOM = "There is a table with a lamp and a bowl on it, and doors lead to the other rooms."


def go(place, result=None):
    """An action in a world made of text: going somewhere and being told what is there."""
    return tool_call(0, "act", {"command": f"go to room {place}"}, result or f"You are in room {place}. {ROOM}")


def tour(seed, places=ROOMS):
    """Every room once, in some order."""
    return [go(place) for place in random.Random(seed).sample(range(places), places)]  # noqa: S311 -- no secret


@pytest.mark.parametrize(("again", "count"), [(9, 0), (10, 1), (12, 1)])
def test_ten_of_the_last_twelve_calls_that_bring_nothing_new_warn(play, again, count):
    """Whatever the order: nine are not enough, ten are."""
    for seed in range(6):
        alerts = play(numbered([*tour(0), *tour(7 + seed)[:again]]))
        assert found(alerts) == [("warn", "revisits", 21)] * count
        assert {alert.limits[0].name for alert in alerts} <= {"revisits.warn"}


def test_the_first_tour_is_exploring(play):
    """What is new in each call is progress, however alike the calls are."""
    assert play(numbered(tour(0, 49))) == []


def test_going_round_for_long_warns_again_and_never_terminates(play):
    """Not having found anything new is weak evidence."""
    events = [*tour(0), *(step for seed in range(9, 18) for step in tour(seed))]
    assert {alert.level for alert in play(numbered(events)) if alert.detector == "revisits"} == {"warn"}


@pytest.mark.parametrize(
    ("limits", "seq"), [({"warn": 9}, 20), ({"window": 10, "warn": 9}, 20), ({"window": 8, "warn": 8}, 19)]
)
def test_window_and_count_are_limits(play, limits, seq):
    """Fewer calls that bring nothing are enough where a setting says so."""
    alerts = play(numbered([*tour(0), *tour(5)]), {"revisits": limits})
    assert found(alerts)[0] == ("warn", "revisits", seq)


@pytest.mark.parametrize("new", range(3))
def test_new_things_in_between_make_it_progress(play, new):
    """Two of twelve may be new; with three the agent is still getting somewhere."""
    old = tour(3)
    fresh = [shell(0, f"./inspect {n}", f"part {n}") for n in range(new + 1)]
    alerts = play(numbered([*tour(0), *old[:4], *fresh, *old[4 : 11 - new]]))
    assert len(found(alerts)) == (new < 2)


def test_an_answer_that_changed_is_new(play):
    """The same places, but something else in them."""
    changed = [go(place, f"You are in room {place}, the lamp is lit. {ROOM}") for place in range(ROOMS)]
    assert play(numbered([*tour(0), *changed])) == []
    assert found(play(numbered([*tour(0), *changed, *reversed(changed)]))) == [("warn", "revisits", 33)]


@pytest.mark.parametrize("place", [11, 14, 20])
def test_an_accepted_edit_makes_everything_new(play, place):
    """After a change one looks at everything again; that is silent, a second round after it is not."""
    events = [*tour(0), *tour(5)]
    changed = [*events[:place], edit(0, "world.json", "door: open"), *events[place:]]
    assert play(numbered(changed)) == []
    assert found(play(numbered([*changed, *tour(6), *tour(8)])), "revisits")


def test_an_accepted_edit_in_the_window_silences(play):
    """What comes back after it is not judged before the edit has left the window."""
    few = [go(place) for place in (0, 1, 2, 1, 0, 2, 0, 1, 2, 2, 1)]
    events = numbered([edit(0, "world.json", "door: open"), *few])
    assert found(play(events, {"revisits.warn": 8}), "revisits") == []
    assert found(play(events[1:], {"revisits.warn": 8}), "revisits") == [("warn", "revisits", 10)]


def test_a_refused_edit_changes_nothing(play):
    """Only what was accepted makes things new; the refusal itself is one call that brought something."""
    refused = edit(0, "world.json", "door: open", "no such text in the file", error="no_match")
    assert found(play(numbered([*tour(0), *tour(5)[:5], refused, *tour(5)[5:10]])), "revisits") == [
        ("warn", "revisits", 22)
    ]


@pytest.mark.parametrize("wait", [shell(0, "sleep 60", ""), tool_call(0, "wait_for_build", {"id": 4}, "still running")])
def test_waiting_silences(play, wait):
    """Who waits for something looks at the same things again and again."""
    events = [*tour(0), *tour(5)]
    assert play(numbered([*events[:16], wait, *events[16:]])) == []


def test_calls_whose_results_were_not_recorded_are_neither_new_nor_known(play):
    """Nobody saw what they brought."""
    blind = [tool_call(0, "act", {"command": f"go to room {place}"}, UNSET, status=None) for place in range(ROOMS)]
    clicks = [click(0, f"door {place}") for place in range(ROOMS)]
    assert play(numbered([*blind, *reversed(blind)])) == []
    assert play(numbered([*clicks, *reversed(clicks)])) == []


def test_plans_and_thoughts_are_no_revisits(play):
    """Talk neither adds nor clears."""
    thoughts = [think(0, f"idea {n}") for n in range(ROOMS)]
    assert play(numbered([*thoughts, *reversed(thoughts)])) == []


def test_a_thought_before_each_step_does_not_hide_the_round(play):
    """An agent that thinks before each step goes round like any other: the steps are what is counted."""
    events = [step for n, go_on in enumerate([*tour(0), *tour(5), *tour(6)]) for step in (think(0, f"hm {n}"), go_on)]
    assert found(play(numbered(events)), "revisits")


@pytest.mark.parametrize(("places", "count"), [(MAX_KNOWN, 1), (MAX_KNOWN + 1, 0)])
def test_what_is_known_is_bounded(play, places, count):
    """A round of as many calls as are remembered is recognised, a longer one is not."""
    lap = [view(0, f"docs/{n}.md", f"chapter {n}") for n in range(places)]
    alerts = play(numbered(lap * 2), {"session_mode": "explore"})
    assert found(alerts, "revisits")[:1] == [("warn", "revisits", places + 9)] * count


def test_pages_of_the_web_in_any_order_are_revisits(play):
    """Following links round a site, each page as it was."""
    order = [0, 3, 1, 4, 2, 0, 4, 1, 3, 0, 2, 4, 3, 1, 2]
    steps = [
        tool_call(
            0, "goto", {"url": f"https://wiki.example/{n}"}, f"Page URL: https://wiki.example/{n}\n{n} {PAGE_TEXT}"
        )
        for n in order
    ]
    assert reached(play(numbered(steps)), "") == [("warn", "revisits.warn", 14)]


def test_the_evidence_names_the_calls_and_their_number(play):
    """A person can check what was gone round."""
    (alert,) = play(numbered([*tour(0), *tour(5)]))
    assert alert.count == 10
    assert "10 of the last 12 calls brought only what was known before" in alert.reasoning
    assert len(alert.evidence.calls) == 10
    assert alert.evidence.event_ids[-1] == "s1-21"
