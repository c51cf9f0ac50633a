"""What the ladder drops when a session or task is to be forgotten, and what it leaves of others."""

from __future__ import annotations

from streams.escalation.state import LadderState
from tests.streams.escalation.ladder_kit import Desk, short


def test_the_only_session_takes_the_ladder_with_it() -> None:
    """Nothing is left, the task is no longer listed, and people are told that its incident is over."""
    desk = Desk()
    desk.alert("a", level="terminate", session_id="s1")
    assert short(desk.word("forget", session_id="s1")) == ["unlist t1", "resumed over!"]
    assert desk.state == LadderState()


def test_others_stay_where_they_are() -> None:
    """Of several sessions only the forgotten one goes; the task's entry stays where another one led to it."""
    desk = Desk()
    desk.warn("w", session_id="s1")
    desk.alert("a", level="terminate", session_id="s2")
    before = desk.state.climbs["s2"]
    assert short(desk.word("forget", session_id="s1")) == ["resumed over!"]
    assert (list(desk.state.climbs), list(desk.state.active)) == (["s2"], ["s2"])
    assert desk.state.climbs["s2"] == before
    assert desk.state.flapping_ms > 0
    assert short(desk.word("forget", session_id="s1")) == []


def test_an_entry_that_it_led_to_goes() -> None:
    """The list of known-flapping tasks names the session."""
    desk = Desk()
    desk.warn("w", session_id="s2")
    desk.alert("a", level="terminate", session_id="s1")
    assert short(desk.word("forget", session_id="s1"))[0] == "unlist t1"
    assert list(desk.state.climbs) == ["s2"]
    assert desk.state.flapping_ms == 0


def test_what_the_task_climbed_for_because_of_it_goes() -> None:
    """The task's own climb keeps an alert with its evidence; one because of another session stays."""
    desk = Desk()
    desk.warn("v", session_id="s2")
    desk.warn("w", scope="task", session_id="s1")
    assert set(desk.state.climbs) == {"s2", ""}
    desk.word("forget", session_id="s3")
    assert set(desk.state.climbs) == {"s2", ""}
    desk.word("forget", session_id="s1")
    assert set(desk.state.climbs) == {"s2"}


def test_the_task_itself() -> None:
    """A word under the task's own id leaves nothing of it and its sessions; a second one does nothing."""
    desk = Desk()
    desk.warn("w", session_id="s1")
    desk.alert("a", level="terminate", session_id="s2")
    assert short(desk.word("forget", session_id="t1"))[0] == "unlist t1"
    assert desk.state == LadderState()
    assert short(desk.word("forget", session_id="t1")) == []
    assert desk.state == LadderState()
