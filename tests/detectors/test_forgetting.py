"""What a session remembers after the word to forget it: nothing, whatever came before, and it may begin anew."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from detectors import Limits, SessionState, step
from schemas.common import Task
from schemas.events import Control
from tests.kit import BEGIN, attempt, spinning, tool_call

if TYPE_CHECKING:
    from schemas.events import SessionInput

LATE = BEGIN - timedelta(days=1)
"""Far behind the session's own clock: a word to forget is never too late."""


def played(events: list[SessionInput]) -> SessionState:
    """Give the state after some events."""
    state = SessionState()
    for event in events:
        step(state, event, Limits())
    return state


@pytest.mark.parametrize("named", [None, "other"])
def test_nothing_is_left_and_the_task_is_told(named: str | None) -> None:
    """The task that the word names, else the one that the session worked for; what was spent is not told any more."""
    events: list[SessionInput] = [*spinning("s", 2), attempt("s", 20, "T")]
    state = played(events)
    word = Control(
        event_id="s:1", session_id="s", occurred_at=LATE, action="forget", task=Task(id=named) if named else None
    )
    alerts, told = step(state, word, Limits())
    assert told is not None
    assert (alerts, told.task_id, told.session_id, told.word) == ([], named or "T", "s", "forget")
    assert told.spent.calls == 0
    assert state == SessionState()
    step(state, word, Limits())
    assert state == SessionState()


def test_what_follows_is_as_of_a_new_session() -> None:
    """The same events give the same state as if there had been none before, with ids that were seen before too."""
    again: list[SessionInput] = [tool_call("s", number) for number in range(3)]
    word = Control(event_id="f", session_id="s", occurred_at=BEGIN, action="forget")
    assert played([*spinning("s", 2), word, *again]) == played(again)
