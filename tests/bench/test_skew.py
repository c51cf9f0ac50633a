"""The simulation of skew: its figures are those that can be reckoned otherwise, and the same each time."""

from __future__ import annotations

import json
import math

import pytest

from streams.reading import partition_of
from tests.bench.skew import RATES, busiest, hashes, main, measure, rates, spread


@pytest.mark.parametrize("name", RATES)
def test_the_mean_is_one(name: str) -> None:
    """However heavy the tail, sessions send as much together, and the busiest is the last."""
    found = rates(name, 1_000)
    assert math.fsum(found) == pytest.approx(1_000)
    assert found == sorted(found)


def test_tails_are_what_they_are_called() -> None:
    """One in a hundred sends exp(2.326 sigma) times the median; of Zipf's the n-th sends 1/n of the first."""
    for sigma in (1, 2):
        found = rates(f"lognormal {sigma}", 100_000)
        assert found[98_999] / found[50_000] == pytest.approx(math.exp(2.326 * sigma), rel=0.01)
    found = rates("zipf 1", 1_000)
    assert found[-1] / found[-10] == pytest.approx(10)


def test_loads_are_those_of_the_partitions() -> None:
    """Each session's load is in the partition that producers hash it to."""
    name = b"5e4d7f0c6f0d4c3b8a3e2a1908f7e6d5"
    loads = spread([3.0], [partition_of(name, 2**31)], 48)
    assert loads.index(3.0) == partition_of(name, 48)
    assert sum(loads) == 3.0
    assert busiest([1.0, 1.0, 4.0]) == 2.0


def test_known_figures() -> None:
    """The same as ever, on every machine; one session alone is all that its partition carries."""
    (even, one, two, zipf) = (
        {way: each["median"] for way, each in found["busiest"].items()} for found in measure([1_000], [32], [8, 12])
    )
    assert even == {"partition": 1.376, "of 8 workers": 1.12, "of 12 workers": 1.266}
    assert one["partition"] < two["partition"] < zipf["partition"]
    assert busiest(spread([1.0], hashes(0, 1), 32)) == 32


def test_workers_that_divide_the_partitions(capsys: pytest.CaptureFixture[str]) -> None:
    """More partitions do not even out what eight workers carry where eight divides their number."""
    assert main(["--json", "--sessions", "500", "--partitions", "16", "64", "--workers", "8", "--trials", "3"]) == 0
    found = json.loads(capsys.readouterr().out)["found"]
    of_eight = [each["busiest"]["of 8 workers"] for each in found if each["rates"] == "lognormal 1"]
    assert of_eight[0] == of_eight[1]
