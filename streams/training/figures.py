"""Puts what was learned into figures: lines for a terminal, and one object for programs. Prints nothing itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streams.timeline import counted
from streams.training.fitting import by_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from detectors.weights import Weights
    from streams.training.collecting import Collected

STRONGEST = 10
"""Weights that are told to people: those beyond carry little."""

LIMITS = ("notice", "warn", "weak_needs")
"""The limits among the weights, by the names of their fields."""


def strongest(weights: Weights) -> list[tuple[str, float]]:
    """Give the features that have a weight, the heaviest first."""
    each = [(name, weight) for name, (weight, _) in weights.features.items() if weight]
    return sorted(each, key=lambda pair: (-abs(pair[1]), pair[0]))


def figures(weights: Weights, collected: Collected) -> dict[str, Any]:
    """Give everything as one object.

    Args:
        weights: what was learned.
        collected: what it was learned from.
    """
    trained = weights.trained
    groups = [each.group for each in collected.scored]
    return {
        "sessions": trained.sessions,
        "loops": trained.loops,
        "easy": groups.count("easy"),
        "hard": groups.count("hard"),
        "sources": trained.sources,
        "calls": trained.calls,
        "spinning": trained.spinning,
        "too_short": [each.session_id for each in collected.examples if not each.measured.calls],
        "ambiguous": collected.cases.ambiguous,
        "repeated": collected.cases.repeated,
        "left_out": {
            "by_source": by_source(collected.scored),
            "call_auc": trained.call_auc,
            "session_auc": trained.session_auc,
            "found": trained.found,
            "easy": trained.easy,
            "hard": trained.hard,
        },
        "limits": {name: getattr(weights, name) for name in LIMITS},
        "weights": dict(strongest(weights)),
    }


def lines(weights: Weights, collected: Collected) -> Iterator[str]:
    """Write the same for people."""
    told = figures(weights, collected)
    left = told["left_out"]
    yield (
        f"learned from {counted(told['sessions'], 'session')}, {counted(told['loops'], 'loop')} among them, of "
        f"{counted(told['sources'], 'source')}: {counted(told['calls'], 'scored call')}, {told['spinning']:,} of them "
        "spinning"
    )
    if told["too_short"]:
        yield f"  left out {counted(len(told['too_short']), 'session')} too short to score"
    if told["ambiguous"]:
        yield f"  left out {counted(len(told['ambiguous']), 'session')} labelled ambiguous"
    if told["repeated"]:
        yield f"  left out {counted(len(told['repeated']), 'recording')} of a session that was read before"
    yield ""
    if left["by_source"]:
        yield "each session scored by what was learned from the other sources:"
    else:
        yield "each session scored by what was learned from others, some of its own source, since sources are too few:"
    yield f"  AUC of the calls      {left['call_auc']:.3f}"
    yield f"  AUC of the sessions   {left['session_auc']:.3f}"
    yield f"  loops found           {left['found']:,} of {told['loops']:,} reach warn"
    yield f"  healthy, easy         {left['easy']:,} of {told['easy']:,}"
    yield f"  healthy, hard         {left['hard']:,} of {told['hard']:,}"
    yield ""
    yield f"limits: {', '.join(f'{name} {value:g}' for name, value in told['limits'].items())}"
    yield ""
    yield "strongest weights, in log odds; more speaks for spinning:"
    for name, weight in strongest(weights)[:STRONGEST]:
        yield f"  {name:<16}  {weight:+.2f}"
