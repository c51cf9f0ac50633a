"""What was saved by cutting in: an estimate, made of what the loop had spent until then.

Nobody knows for how long a loop would have gone on. It is taken to be as long again as it had gone on already: of
something met at a random moment of its life that is the median of what is left. Pure; it counts each loop once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from streams.escalation.report import PERSON

if TYPE_CHECKING:
    from schemas.outputs import Alert, Report
    from streams.escalation.state import Climb, LadderState

Basis = Literal["measured", "estimated"]
"""Whether tokens were told by the agent, or are 1,000 for each call."""

By = Literal["termination", "directive"]
"""What ended the loop: its session was stopped, or it recovered after something was asked of the agent."""


@dataclass(frozen=True, slots=True)
class Saved:
    """What was saved with one loop.

    Attributes:
        by: what ended it.
        tokens: how many.
        kind: how they are known.
        cost: US dollars; None where no costs were sent.
    """

    by: By
    tokens: int
    kind: Basis
    cost: float | None


def basis(about: Alert | Report) -> Basis:
    """Tell how the tokens of an alert or report are known."""
    return "estimated" if about.wasted_estimated else "measured"


def saved_by_stopping(state: LadderState, session: str, climb: Climb) -> Saved | None:
    """Say what was saved since a session was stopped as it was asked; None when nothing is known of its loop.

    What a task spins is saved once, whatever number of its sessions are stopped for it: with the one that the alert
    came of.

    Args:
        state: the task's ladder.
        session: the session.
        climb: its climb, which still knows what was asked.
    """
    asked = climb.pending or climb.unstopped
    if asked is None:
        return None
    own, task = climb.alert, state.climbs.get("")
    if own is not None and (own.alert_id == asked.alert_id or (asked.detector == PERSON and climb.loops)):
        return _saved(own, "termination")
    whole = None if task is None else task.alert
    if whole is not None and whole.alert_id == asked.alert_id and whole.session_id == session:
        return _saved(whole, "termination")
    return None


def saved_by_recovery(climb: Climb, loop: str) -> Saved | None:
    """Say what was saved since a loop ended after something was asked of its agent; None when nothing was.

    What is to be stopped, of which no directive is left, counts when it is.

    Args:
        climb: what was climbed for it.
        loop: the loop, as the climb knows it.
    """
    alert = climb.alert
    if alert is None or alert.loop_id != loop or not climb.directive_id:
        return None
    return _saved(alert, "directive")


def _saved(alert: Alert, by: By) -> Saved:
    return Saved(by, alert.tokens_wasted, basis(alert), alert.cost_wasted)
