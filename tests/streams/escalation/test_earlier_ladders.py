"""Ladders that earlier releases wrote: escalation goes on from one as if it had never been stored."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from schemas.common import Agent, Task
from schemas.outputs import Directive, Termination
from streams.escalation.state import VERSIONS, Climb, LadderState, decode_ladder, encode_ladder
from streams.policy.model import Candidate, Ladder
from tests.streams.escalation.ladder_kit import Desk, an_attempt

if TYPE_CHECKING:
    from streams.escalation.ladder import Output

FILES = sorted((Path(__file__).parent / "earlier").glob("ladder-*.bin"))


def climbed() -> Desk:
    """Give a task on which each part of a ladder is in use: guidance, a rotation, terminations, refusals."""
    desk = Desk(Ladder(candidates=(Candidate(name="other", model="m-2"),)), reload=False)
    desk.chosen = Candidate(name="other", model="m-2", config="c-2")
    who: dict[str, Any] = {
        "agent": Agent(name="first", model="m-1", config="c-1"),
        "task": Task(type="bug", repo="acme/shop", paths=("src/cart.py",)),
    }
    desk.event("s1", attempt=an_attempt("failed"), **who)
    desk.alert("n1", level="notice", detector="analysis", **who)
    for number in range(7):
        desk.now += timedelta(seconds=400)
        desk.alert(f"a{number}", **who)
    for number in range(3):  # guidance, a pause, a rotation: none is taken
        for each in desk.alert(f"b{number}", session_id="s4", **who):
            if isinstance(each, Directive):
                desk.word("refused", each.directive_id, session_id="s4", reason="busy")
    for session_id, word in (("s2", "refused"), ("s3", "obeyed")):
        told = desk.alert(f"{session_id}!", level="terminate", session_id=session_id, **who)
        for each in told:
            if isinstance(each, Termination):
                desk.word(word, each.termination_id, session_id=session_id, reason="busy")
    desk.alert("k1", level="terminate", loop_id="l5", scope="task", detector="circular_fix", **who)
    # Rare, and of use to nothing else here.
    desk.state.refused = ["abandon"]
    desk.state.climbs["s3"].unstopped = desk.state.climbs["s1"].pending
    return desk


def goes_on(desk: Desk) -> list[Output]:
    """Give what comes of what may come next: time passes, alerts, answers, and the end of it."""
    told = desk.later(minutes=2)
    told += desk.alert("a9")
    told += desk.alert("b1", session_id="s4")
    told += desk.alert("k2", level="terminate", loop_id="l5", scope="task", detector="circular_fix")
    told += desk.later(hours=1)
    told += desk.alert("r2", level="terminate", loop_id="l2", session_id="s2")
    told += desk.word("resume", session_id="s1")
    told += desk.event("s3", attempt=an_attempt("success"))
    return told + desk.later(days=30)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_escalation_goes_on_from_an_earlier_ladder(file: Path) -> None:
    """What comes out is what comes of an uninterrupted climb, to the last word; and so is what is kept."""
    straight, restored = climbed(), climbed()
    restored.state = decode_ladder(file.read_bytes())
    assert restored.state == straight.state
    expected = goes_on(straight)
    assert goes_on(restored) == expected
    assert len(expected) > len(FILES)
    assert encode_ladder(restored.state) == encode_ladder(straight.state)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_has_something_in_each_part(file: Path) -> None:
    """A part that is empty would not show that it is read."""
    state = decode_ladder(file.read_bytes())
    assert [
        name for name, empty in msgspec.structs.asdict(LadderState()).items() if getattr(state, name) == empty
    ] == []
    climbs = state.climbs.values()
    for name, empty in msgspec.structs.asdict(Climb()).items():
        assert any(getattr(climb, name) != empty for climb in climbs), name


def test_the_versions_that_are_read_have_files() -> None:
    """Each version that is read, today's among them, is tested with what a release wrote."""
    assert {int(file.stem.split("-")[1]) for file in FILES} >= set(range(VERSIONS.oldest, VERSIONS.current + 1))
