"""Examples of the tests of the training, made without sessions."""

from __future__ import annotations

import random

from detectors.features import FEATURES
from streams.training.examples import Examples, Measured

CALLS = 8
"""Scored calls of an example."""

NAMES = [feature.name for feature in FEATURES]


def row(**values):
    """Give the features of a call, 0.5 where nothing is said of them."""
    return tuple(values.get(name, 0.5) for name in NAMES)


def example(name, group, rows, source="a", *, onset=0, speaks=True):
    """Give what one session teaches."""
    measured = Measured(tuple(range(len(rows))), tuple(rows), (speaks,) * len(rows))
    return Examples(f"{source}/{name}", source, group, onset if group == "loop" else None, measured)


def tell_apart(loop, healthy, sources="abc", each=4):
    """Give loops and healthy sessions of some sources, whose calls have these features but for some noise.

    Args:
        loop: features of a call of a loop, by their names.
        healthy: those of a healthy session.
        sources: their names, a letter each.
        each: sessions of each group and source.
    """
    noise = random.Random(1)  # noqa: S311 - noise
    found = []
    for source in sources:
        for group, centre in (("loop", loop), ("easy", healthy), ("hard", healthy)):
            for number in range(each):
                rows = [
                    row(**{name: value + noise.uniform(-0.1, 0.1) for name, value in centre.items()})
                    for _ in range(CALLS)
                ]
                found.append(example(f"{group}-{number}", group, rows, source))
    return found


LOOP = {"again_result": 0.8, "distinct_results": 0.2}
HEALTHY = {"again_result": 0.2, "distinct_results": 0.8}
