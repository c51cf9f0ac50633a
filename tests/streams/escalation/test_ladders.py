"""Ladders are kept as bytes, due when they say so, and counted right."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detectors import UnsupportedState
from streams.escalation.ladders import RETRY_MS, SLACK, Ladders, Totals
from streams.escalation.state import Climb, LadderState, Pending, encode_ladder
from streams.escalation.timers import IDLE_MS
from streams.policy.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Sequence

RESOLVE = Policy().ladder
WEEK_MS = timedelta(days=7) // timedelta(milliseconds=1)


def ladder(task: str, last_ms: int = 1, **climb: object) -> LadderState:
    """Give a ladder with one climb."""
    return LadderState(task_id=task, last_ms=last_ms, climbs={"s": Climb(**climb)})  # type: ignore[arg-type]


def pending(due_ms: int) -> Pending:
    """Give a termination that waits for an answer."""
    return Pending("t", "a", "l", "identical", "r", datetime(2026, 3, 1, tzinfo=UTC), 1, due_ms)


def save(ladders: Ladders, state: LadderState, now_ms: int = 0) -> tuple[bool, bytes | None]:
    """Save a ladder under its task."""
    return ladders.save(state.task_id or "a", state, RESOLVE, now_ms)


def test_only_changes_are_written() -> None:
    """What is as it was is not written again, what is empty is removed, and what never was is not removed."""
    ladders = Ladders()
    state = ladder("a", loops=["l"])
    assert save(ladders, state) == (True, encode_ladder(state))
    assert ladders.load("a") == state
    assert save(ladders, ladders.load("a"))[0] is False
    assert save(ladders, LadderState()) == (True, None)
    assert ladders.load("a") == LadderState(task_id="a")
    assert save(ladders, ladders.load("a"))[0] is False


def test_what_was_read_back_is_due_at_once_and_then_when_it_says() -> None:
    """Whatever came due while nobody looked is found; later ones wait for their time."""
    ladders = Ladders()
    ladders.restore("a", encode_ladder(ladder("a", cooldown_ms=500)))
    assert ladders.due(1, 10) == ["a"]
    save(ladders, ladders.load("a"), 1)
    assert ladders.due(499, 10) == []
    assert ladders.due(500, 10) == ["a"]


def test_so_many_are_given_at_once_longest_due_first() -> None:
    """The others come with the next call."""
    ladders = Ladders()
    for task, due in (("c", 30), ("a", 10), ("b", 20), ("d", 40)):
        save(ladders, ladder(task, cooldown_ms=due))
    assert ladders.due(35, 2) == ["a", "b"]
    assert ladders.due(35, 2) == ["c"]


def test_one_that_stays_due_does_not_come_again_at_once() -> None:
    """A ladder that is still due when it was asked does not keep a process busy."""
    ladders = Ladders()
    save(ladders, ladder("a", cooldown_ms=500), 600)
    assert ladders.due(600 + RETRY_MS - 1, 10) == []
    assert ladders.due(600 + RETRY_MS, 10) == ["a"]


def test_all_are_looked_at_when_the_clock_or_the_policy_changed() -> None:
    """Each comes once, whatever its time."""
    ladders = Ladders()
    for task in "abc":
        save(ladders, ladder(task))
    assert ladders.due(IDLE_MS, 10) == []
    ladders.look_at_all()
    assert sorted(ladders.due(1, 10)) == ["a", "b", "c"]
    assert ladders.due(1, 10) == []


def test_the_schedule_stays_small() -> None:
    """A ladder that changes again and again leaves a bounded number of entries that are out of date."""
    ladders = Ladders()
    for number in range(3 * SLACK):
        save(ladders, ladder("a", last_ms=number + 1))
    assert len(ladders._schedule) <= 2 + SLACK + 1
    assert ladders.due(3 * SLACK + IDLE_MS, 10) == ["a"]


@given(
    steps=st.lists(
        st.tuples(st.sampled_from("abc"), st.booleans(), st.booleans(), st.booleans(), st.booleans()), max_size=20
    )
)
def test_totals_are_those_of_what_is_held(steps: Sequence[tuple[str, bool, bool, bool, bool]]) -> None:
    """After any saves the totals equal a count of the ladders that are there."""
    ladders, model = Ladders(), dict[str, LadderState]()
    for task, there, loop, cooling, waiting in steps:
        state = ladder(task, loops=["l"] * loop, cooldown_ms=9 * cooling, pending=pending(9) if waiting else None)
        model[task] = state if there else LadderState()
        ladders.save(task, model[task], RESOLVE, 0)
    held = [state for state in model.values() if state.task_id]
    climbs = [state.climbs["s"] for state in held]
    assert ladders.totals == Totals(
        ladders=len(held),
        size=sum(len(encode_ladder(state)) for state in held),
        climbs=sum(bool(climb.loops) for climb in climbs),
        cooldowns=sum(climb.cooldown_ms > 0 for climb in climbs),
        pending=sum(climb.pending is not None for climb in climbs),
    )


@pytest.mark.parametrize("value", [b"", b"junk", encode_ladder(LadderState())[:-1]])
def test_what_cannot_be_read_is_not_guessed(value: bytes) -> None:
    """A damaged ladder is refused when it is read back."""
    with pytest.raises(UnsupportedState):
        Ladders().restore("a", value)
