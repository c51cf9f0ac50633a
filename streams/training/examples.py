"""Measures the calls of recorded sessions as the spin score does. Knows no weights, and changes no label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from detectors import SessionState, observe
from detectors.features import measure, window_of
from detectors.spin_score import may_speak

if TYPE_CHECKING:
    from detectors import Limits
    from streams.backtest.cases import Group
    from streams.importers import Session


@dataclass(frozen=True, slots=True)
class Measured:
    """The calls of one session that have a score, in their order.

    Attributes:
        calls: their positions, from 0, among the session's calls.
        rows: for each the features, in the order of `detectors.features.FEATURES`.
        speaks: for each whether a high score would be an alert.
    """

    calls: tuple[int, ...]
    rows: tuple[tuple[float, ...], ...]
    speaks: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Examples:
    """What one labelled session teaches.

    Attributes:
        session_id: its id.
        source: where it comes from.
        group: `loop`, or healthy: `easy` or `hard`.
        onset: position of the call from which on a loop spins; None for a healthy session.
        measured: its calls.
    """

    session_id: str
    source: str
    group: Group
    onset: int | None
    measured: Measured

    @property
    def spinning(self) -> list[bool]:
        """For each call whether the session spins at it."""
        return [self.onset is not None and call >= self.onset for call in self.measured.calls]


def measure_session(session: Session, limits: Limits) -> Measured:
    """Play a session and measure each call that has a score.

    Args:
        session: the session.
        limits: say what tools are for; the spin score must not be off.
    """
    state = SessionState()
    calls: list[int] = []
    rows: list[tuple[float, ...]] = []
    speaks: list[bool] = []
    for event in session.events:
        before = state.calls
        observe(state, event, limits)
        # A call that only talks, or repeats within its batch, is not added to the latest ones and has no score.
        if state.calls > before and state.latest_score is not None:
            window = window_of(state, state.recent[-1])
            calls.append(window[-1].seq)
            rows.append(tuple(measure(state, window)))
            speaks.append(may_speak(window, limits))
    return Measured(tuple(calls), tuple(rows), tuple(speaks))
