"""Growth is measured on what a worker has: the figures are there, and the states are those of the sessions."""

from __future__ import annotations

import pytest

from tests.bench.growth import BUSY, Case, cases, measure, records, text

pytestmark = pytest.mark.usefixtures("collector")

EVENTS = 300


@pytest.mark.parametrize("store", ["memory", "rocksdb"])
def test_figures_of_both_stores(store: str) -> None:
    """With either store events are applied, states are kept and dropped, and every column has a figure."""
    found = [measure(Case(200, name, store, live=50, busy=200, events=EVENTS)) for name in ("none", "all")]
    assert all(each["multiple"] > 1 for each in found)
    assert found[0]["multiple"] < found[1]["multiple"]
    assert len(text(found).splitlines()) == 3


def test_few_at_a_time() -> None:
    """Where few send at a time, events are of no more sessions; else they are of all of them."""
    few, everyone = Case(10_000, "none", "memory", 10, 7), Case(50, "none", "memory", 10, 50)
    assert len({record.key for record in records(few, "t")}) == 7
    assert len({record.key for record in records(everyone, "t")}) == 50


def test_what_is_measured() -> None:
    """Each count of sessions is measured with all of them alike, and with few at a time where it is more than these."""
    found = [(case.sessions, case.busy) for case in cases([1_000, 100_000], ["none"], ["memory"], 10)]
    assert found == [(1_000, 1_000), (100_000, 100_000), (100_000, BUSY)]


def test_progress_is_in_words() -> None:
    """What is being measured is told to people, not as a program writes it."""
    everyone, few = cases([10_000], ["all"], ["rocksdb"], 10)
    assert everyone.told() == "20,000 events from all of 10,000 sessions, all detectors, states in RocksDB"
    assert few.told() == "20,000 events from 5,000 of 10,000 sessions, all detectors, states in RocksDB"
