"""Picks the sessions to read where the spin score erred most: loops it took for healthy, healthy ones for loops. Pure.

Of each session the highest score counts at which it could have been alerted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from detectors.features import WINDOW_CALLS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from detectors import Limits
    from streams.backtest.cases import Group
    from streams.backtest.labels import Label
    from streams.training import Examples

MOST_LISTED = 10
"""Sessions of each kind that are listed: what a person reads at once."""


@dataclass(frozen=True, slots=True)
class Extreme:
    """A labelled session and its highest score, of weights that were learned without its source.

    Attributes:
        session_id: the session's id.
        source: where it comes from.
        group: what it is.
        pattern: what kind of loop, as the label says.
        onset: position of the call at which a loop begins, likewise.
        why: the label's reason.
        seq: position of the first call with the highest score; None when it could be alerted at no call.
        score: that score; 0 when there is none.
        reached: the limit that it reaches.
        told: what carried the score, in words.
    """

    session_id: str
    source: str
    group: Group
    pattern: str | None
    onset: int | None
    why: str | None
    seq: int | None
    score: float
    reached: Literal["notice", "warn"] | None
    told: str


def extremes(
    left_out: Iterable[tuple[Examples, Limits]], labels: Mapping[str, Label]
) -> tuple[list[Extreme], list[Extreme]]:
    """Give the loops with the lowest highest scores, and the healthy sessions with the highest ones.

    Args:
        left_out: labelled sessions, and limits with weights that were learned without their source.
        labels: what a person said, by the session's id.
    """
    found = [_extreme(each, limits, labels[each.session_id]) for each, limits in left_out]
    loops = sorted((each for each in found if each.group == "loop"), key=lambda each: (each.score, each.session_id))
    others = sorted((each for each in found if each.group != "loop"), key=lambda each: (-each.score, each.session_id))
    return loops[:MOST_LISTED], others[:MOST_LISTED]


def _extreme(examples: Examples, limits: Limits, label: Label) -> Extreme:
    measured = examples.measured
    scored = [
        (limits.model.score(row), call, row)
        for call, row, speaks in zip(measured.calls, measured.rows, measured.speaks, strict=True)
        if speaks
    ]
    score, seq, row = max(scored, key=lambda each: each[0], default=(0.0, None, None))
    return Extreme(
        examples.session_id,
        examples.source,
        examples.group,
        label.pattern,
        examples.onset,
        label.why,
        seq,
        score,
        "warn" if score >= limits.spin_warn else "notice" if score >= limits.spin_notice else None,
        "" if row is None else limits.model.told(row, WINDOW_CALLS),
    )
