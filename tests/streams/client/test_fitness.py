"""Rankings put what converges first and what flaps last, and do not trust a single task."""

from __future__ import annotations

from streams.client import FitnessTotals, rank
from streams.escalation.fitness import best
from streams.policy.model import Candidate


def test_what_flaps_comes_last() -> None:
    """Of two that converge alike the one that flaps is behind; one that nobody tried is between good and bad."""
    steady = FitnessTotals(model="steady", tasks=10, converged=6)
    flapping = FitnessTotals(model="flapping", tasks=10, converged=6, flapped=4)
    bad = FitnessTotals(model="bad", tasks=10, flapped=6)
    new = FitnessTotals(model="new")
    assert [each.model for each in rank([bad, new, flapping, steady])] == ["steady", "flapping", "new", "bad"]


def test_one_task_says_little() -> None:
    """A single success does not outrank nine of ten, nor one failure six of ten."""
    lucky, proven = FitnessTotals(model="lucky", tasks=1, converged=1), FitnessTotals(model="p", tasks=10, converged=9)
    unlucky, poor = FitnessTotals(model="unlucky", tasks=1, flapped=1), FitnessTotals(model="q", tasks=10, flapped=6)
    assert [each.model for each in rank([poor, lucky, unlucky, proven])] == ["p", "lucky", "unlucky", "q"]


def test_types_are_put_together_or_chosen() -> None:
    """Without a type each configuration is once in it, with all that it did; with one only that counts."""
    totals = [
        FitnessTotals(model="a", task_type="docs", tasks=2, converged=2, tokens=5, cost_usd=1.5),
        FitnessTotals(model="a", task_type="bugfix", tasks=3, flapped=3, attempts=7),
        FitnessTotals(model="b", task_type="bugfix", tasks=1),
    ]
    b, a = rank(totals)
    assert (b.model, a.tasks, a.converged, a.flapped, a.attempts) == ("b", 5, 2, 3, 7)
    assert (a.tokens, a.cost_usd, a.task_type) == (5, 1.5, "")
    assert [(each.model, each.task_type) for each in rank(totals, "docs")] == [("a", "docs")]


def test_rates_and_names() -> None:
    """Rates are shares of the tasks, 0 where there are none; what is not known is left out of the label."""
    each = FitnessTotals(name="n", config="c", tasks=4, converged=3, flapped=1)
    assert (each.convergence_rate, each.flapping_rate, each.label) == (0.75, 0.25, "n/c")
    empty = FitnessTotals()
    assert (empty.convergence_rate, empty.flapping_rate, empty.score, empty.label) == (0, 0, 0.5, "unknown")


def test_rotations_choose_alike() -> None:
    """What is ranked first is what the ladder would rotate to, of the same counts."""
    counts = {"a": (6, 4), "b": (9, 1), "c": (1, 0), "d": (0, 0), "e": (0, 3)}
    totals = [
        FitnessTotals(model=name, tasks=20, converged=one, flapped=other) for name, (one, other) in counts.items()
    ]
    for left in range(1, len(counts) + 1):
        some = totals[-left:]
        chosen = best([Candidate(model=each.model) for each in some], set(), lambda each: counts[each.model])
        assert chosen is not None
        assert rank(some)[0].model == chosen.model
