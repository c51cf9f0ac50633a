"""Plays sessions under one or several configurations, in several processes, and keeps what a score needs of them.

The sessions are read here, a tenth of the work; what comes back is in the order of the reading however many processes
there are. Nothing here knows a label.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from streams.pool import run_all
from streams.replay import play

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from schemas.outputs import Level
    from streams.importers import Session
    from streams.policy.policy import Policy


@dataclass(frozen=True, slots=True)
class FirstAlert:
    """The first alert of one detector and level in a session.

    Attributes:
        level: how grave.
        detector: which detector raised it.
        seq: position, from 0, of the call that brought it about.
        reasoning: its sentence for people.
    """

    level: Level
    detector: str
    seq: int
    reasoning: str


@dataclass(frozen=True, slots=True)
class Heard:
    """What the detectors said of one session.

    Attributes:
        session_id: the session's id.
        file: the file it was read from, as it was named.
        calls: tool calls in it.
        alerts: for each configuration the first alerts of each detector and level, in the order in which they came.
    """

    session_id: str
    file: str
    calls: int
    alerts: tuple[tuple[FirstAlert, ...], ...]


def hear(session: Session, configurations: Sequence[Policy]) -> Heard:
    """Play one session under each configuration."""
    return Heard(
        session.session_id,
        session.source,
        session.calls,
        tuple(_first_alerts(session, policy) for policy in configurations),
    )


def _first_alerts(session: Session, policy: Policy) -> tuple[FirstAlert, ...]:
    first: dict[tuple[str, str], FirstAlert] = {}
    played = play(session, policy)
    for alert in played.alerts:
        heard = FirstAlert(alert.level, alert.detector, played.call_of(alert), alert.reasoning)
        first.setdefault((alert.detector, alert.level), heard)
    return tuple(first.values())


def play_all(
    sessions: Iterable[Session], configurations: Sequence[Policy], jobs: int, tell: Callable[[Heard], None]
) -> list[Heard]:
    """Play sessions, and give what was heard in their order.

    Args:
        sessions: read as they are needed.
        configurations: each session is played under every one.
        jobs: how many processes play; with 1 it is this one.
        tell: called with what was heard of each session, in their order.

    Raises:
        WorkersLost: a process ended by itself.
    """
    work = partial(hear, configurations=configurations)
    return run_all(sessions, lambda session: session.calls, work, jobs, tell)
