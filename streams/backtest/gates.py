"""Gates: figures that a score must reach or must not exceed, for builds to fail by. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streams.backtest.scoring import Score

_FIGURES: dict[str, tuple[str, Callable[[Score], int]]] = {
    "min_found": ("loops found", lambda score: score.groups["loop"].warned),
    "min_prompt": ("loops found in time", lambda score: score.in_time),
    "max_warned_easy": ("easy healthy sessions warned", lambda score: score.groups["easy"].warned),
    "max_warned_hard": ("hard healthy sessions warned", lambda score: score.groups["hard"].warned),
    "max_terminated": ("healthy sessions to be terminated", lambda score: score.terminated),
}
"""What each gate is about, by the name of its setting; `min_` is the least, `max_` the most that is allowed."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A figure and its bound.

    Attributes:
        name: the setting, for example `min_found`.
        bound: what was asked for.
        figure: what came of it.
        least: whether the bound is the least that is allowed, rather than the most.
        passed: whether the figure is good enough.
        words: what the figure is, in words.
    """

    name: str
    bound: int
    figure: int
    least: bool
    passed: bool
    words: str


def gates(score: Score, bounds: Mapping[str, int | None]) -> list[Gate]:
    """Hold a score against bounds.

    Args:
        score: the score.
        bounds: by the names of the settings; None where none was set.
    """
    found = []
    for name, (words, figure) in _FIGURES.items():
        bound = bounds.get(name)
        if bound is not None:
            number, least = figure(score), name.startswith("min_")
            found.append(Gate(name, bound, number, least, number >= bound if least else number <= bound, words))
    return found
