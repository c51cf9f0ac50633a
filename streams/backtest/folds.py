"""Leaves out each source of sessions in turn: plays its sessions with weights learned from all the others.

So every figure is one of sessions that nothing was learned from, nor any limit set by. The sessions are held in memory,
since they are measured before they are played. Prints nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, get_args

import msgspec

from detectors.limits import DetectorName
from detectors.spin_score import NAME
from streams.backtest.calibration import Calibration, calibrate
from streams.backtest.cases import source_of
from streams.backtest.extremes import Extreme, extremes
from streams.backtest.playing import Heard, hear
from streams.policy.policy import Policy
from streams.pool import PORTION_CALLS, run_all
from streams.timeline import counted
from streams.training import Untrainable, collect, fit_model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from detectors import Limits
    from detectors.weights import Model, Weights
    from streams.backtest.labels import Label
    from streams.importers import Session
    from streams.training import Examples

CONFIGURATIONS = ("rules alone", "score alone", "both")
"""What the sessions are played under, in this order."""

RULES, BOTH = 0, 2
"""Places of these configurations."""


@dataclass(frozen=True, slots=True)
class Fold:
    """What was learned without one source.

    Attributes:
        source: the source left out; None for those that have no label, and teach nothing in any case.
        sessions: labelled sessions of the other sources.
        loops: how many of them are loops.
        calls: tool calls that were scored.
        spinning: those of them that are part of a loop.
        notice: scores from here on are a notice.
        warn: scores from here on are a warn.
        weak_needs: what a weak rule found needs this score to be more than a notice.
        call_auc: how likely a call of a loop scores above a healthy one, within the other sources.
        session_auc: of sessions, by their highest scores, likewise.
    """

    source: str | None
    sessions: int
    loops: int
    calls: int
    spinning: int
    notice: float
    warn: float
    weak_needs: float
    call_auc: float
    session_auc: float


@dataclass(frozen=True, slots=True)
class Folds:
    """What came of leaving out each source in turn.

    Attributes:
        learned: what was learned, by source left out.
        calibration: of the calls of labelled sessions.
        lowest_loops: loops with the lowest highest scores.
        highest_healthy: healthy sessions with the highest scores.
    """

    learned: list[Fold]
    calibration: Calibration
    lowest_loops: list[Extreme]
    highest_healthy: list[Extreme]


def play_folds(
    sessions: Iterable[Session], labels: Mapping[str, Label], limits: Limits, jobs: int, tell: Callable[[str], None]
) -> tuple[list[Heard], Folds]:
    """Play every session under each of `CONFIGURATIONS`, with weights that were learned without its source.

    Steps: 1. measure the labelled sessions; 2. learn without each source; 3. play all sessions; 4. score the calls of
    labelled ones. The same comes out however many processes there are.

    Args:
        sessions: all sessions.
        labels: what a person said, by the session's id.
        limits: the limits; the spin score must not be off.
        jobs: how many processes work; with 1 it is this one.
        tell: called with words that say how far it is.

    Raises:
        Untrainable: without some source there is too little to learn from; the message names the source.
        ModuleNotFoundError: scikit-learn is not installed.
        WorkersLost: a process ended by itself.
    """
    held = list(sessions)
    # 1.
    examples = collect(held, labels, limits, jobs, _counting(tell, "measured", "session")).examples
    # 2.
    named = [source_of(session.session_id, session.source, labels.get(session.session_id)) for session in held]
    teaching = sorted({each.source for each in examples})
    left_out = [*teaching, *([None] if set(named) - set(teaching) else [])]
    models = run_all(
        left_out,
        lambda _: PORTION_CALLS,  # a portion of its own
        partial(learn_without, examples=examples),
        jobs,
        _counting(tell, "learned without", "source"),
    )
    played = {source: configurations(limits, each) for source, each in zip(left_out, models, strict=True)}
    # 3.
    heard = run_all(
        ((session, played[name if name in played else None]) for session, name in zip(held, named, strict=True)),
        lambda each: each[0].calls,
        _hear,
        jobs,
        _counting(tell, "played", "session"),
    )
    # 4.
    scored = [(each, played[each.source][BOTH]) for each in examples]
    calls = (
        (limits.model.score(row), spins)
        for each, limits in scored
        for row, spins in zip(each.measured.rows, each.spinning, strict=True)
    )
    learned = [_fold(source, each.source) for source, each in zip(left_out, models, strict=True)]
    return heard, Folds(learned, calibrate(calls), *extremes(scored, labels))


def learn_without(source: str | None, examples: Sequence[Examples]) -> Model:
    """Learn from the examples of all other sources.

    Raises:
        Untrainable: nothing can be learned from them; the message names the source left out.
        ModuleNotFoundError: scikit-learn is not installed.
    """
    rest = [each for each in examples if each.source != source]
    without = "" if source is None else f"without source {source}: "
    if not any(any(each.spinning) for each in rest):
        raise Untrainable(f"{without}there is no loop to learn from; label loops of several sources")
    try:
        return fit_model(rest)
    except Untrainable as problem:
        raise Untrainable(f"{without}{problem}") from None


def configurations(limits: Limits, model: Model) -> tuple[Limits, Limits, Limits]:
    """Give the limits with these weights: without the spin score, with nothing but it, and as they are."""
    both = msgspec.structs.replace(limits, model=model)
    others = tuple(name for name in get_args(DetectorName) if name != NAME)
    rules = msgspec.structs.replace(both, off=(*limits.off, NAME))
    return rules, msgspec.structs.replace(both, off=others), both


def _hear(each: tuple[Session, tuple[Limits, ...]]) -> Heard:
    session, played = each
    return hear(session, [Policy(limits) for limits in played])


def _counting(tell: Callable[[str], None], done: str, what: str) -> Callable[[object], None]:
    number = 0

    def count(_: object) -> None:
        nonlocal number
        number += 1
        tell(f"{done} {counted(number, what)}")

    return count


def _fold(source: str | None, weights: Weights) -> Fold:
    trained = weights.trained
    return Fold(
        source,
        trained.sessions,
        trained.loops,
        trained.calls,
        trained.spinning,
        weights.notice,
        weights.warn,
        weights.weak_needs,
        trained.call_auc,
        trained.session_auc,
    )
