"""What an event costs: no step takes more than its bound says, as a multiple of reading the same JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.bench.micro import BOUNDS, Times, checked, figures, text, too_slow

if TYPE_CHECKING:
    from collections.abc import Callable

EVENTS, ROUNDS = 1_500, 2


def times(step: int, yardstick: int, name: str = "decode") -> Times:
    """Give the times of ten events."""
    found = Times()
    for each in BOUNDS:
        found.steps[each] = [1] * 10
        found.yardsticks[each] = [1] * 10
    found.steps[name] = [step] * 10
    found.yardsticks[name] = [yardstick] * 10
    return found


@pytest.mark.timeout(300)
def test_no_step_costs_more_than_its_bound(record_property: Callable[[str, object], None]) -> None:
    """Decoding, detection and encoding keep to their multiples of the yardstick, whatever the machine does besides."""
    found, slow = checked(EVENTS, ROUNDS)
    record_property("figures", text(found))
    assert found.keys() == BOUNDS.keys()
    assert not slow


def test_a_step_at_its_bound_is_quick_enough() -> None:
    """A step may cost as much as its bound says, and no more."""
    most = min(BOUNDS["decode"].median, BOUNDS["decode"].mean)
    assert not too_slow(figures(times(round(most * 1_000), 1_000)))
    assert list(too_slow(figures(times(round(most * 1_000) + 1, 1_000)))) == ["decode"]


def test_the_shortest_times_count() -> None:
    """What the machine did besides in one round does not show where another round was quicker."""
    found = times(5_000, 1_000).least(times(2_000, 4_000))
    assert figures(found)["decode"]["median"] == 2
