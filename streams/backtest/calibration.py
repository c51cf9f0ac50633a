"""Holds scores against what came true: how many of the calls with such a score are of a session that spins. Pure."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

EDGES = tuple(tenth / 10 for tenth in range(1, 10))
"""Where one bin ends and the next one begins: a score exactly there belongs to the upper one."""


@dataclass(frozen=True, slots=True)
class Bin:
    """The calls whose scores lie between two bounds.

    Attributes:
        low: the least score in it.
        high: scores in it are below this one, but for the last bin, which ends with 1.
        calls: how many there are.
        spinning: those of them at which their session spins.
        mean: their mean score; None without calls.
        share: the share of them at which their session spins; None without calls.
    """

    low: float
    high: float
    calls: int
    spinning: int
    mean: float | None
    share: float | None


@dataclass(frozen=True, slots=True)
class Calibration:
    """How well scores tell the share of calls that spin.

    Attributes:
        bins: in the order of their scores.
        calls: in all bins.
        spinning: those of them at which their session spins.
        error: distance between mean score and share that spins, on the average of the calls (the expected calibration
            error); None without calls.
    """

    bins: list[Bin]
    calls: int
    spinning: int
    error: float | None


def calibrate(scored: Iterable[tuple[float, bool]]) -> Calibration:
    """Sort calls into bins.

    Args:
        scored: the score of each call, from 0 to 1, and whether its session spins at it.
    """
    sorted_in: list[list[tuple[float, bool]]] = [[] for _ in range(len(EDGES) + 1)]
    for score, spins in scored:
        sorted_in[bisect_right(EDGES, score)].append((score, spins))
    lows, highs = (0.0, *EDGES), (*EDGES, 1.0)
    bins = [_bin(low, high, inside) for low, high, inside in zip(lows, highs, sorted_in, strict=True)]
    calls = sum(each.calls for each in bins)
    away = sum(abs(sum(score for score, _ in inside) - sum(spins for _, spins in inside)) for inside in sorted_in)
    return Calibration(bins, calls, sum(each.spinning for each in bins), away / calls if calls else None)


def _bin(low: float, high: float, inside: list[tuple[float, bool]]) -> Bin:
    calls, spinning = len(inside), sum(spins for _, spins in inside)
    if not calls:
        return Bin(low, high, 0, 0, None, None)
    return Bin(low, high, calls, spinning, sum(score for score, _ in inside) / calls, spinning / calls)
