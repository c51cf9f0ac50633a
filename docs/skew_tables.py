# ruff: noqa: INP001 - part of `docs/generate.py`
"""Writes the table of skew for the page on sizing: what the simulation gives, which is the same each time.

It decides nothing about the simulation; see `tests.bench.skew`.
"""

from __future__ import annotations

import functools
from typing import Any

from docs.limit_tables import table
from tests.bench.skew import PARTITIONS, RATES, measure

SESSIONS = 10_000
WORKERS = 12
TYPICAL = "lognormal 1"
TRIALS = 10


@functools.cache
def skew() -> str:
    """Write the busiest partition beside the mean for each distribution, and the busiest of some workers for one."""
    found = {(each["rates"], each["partitions"]): each["busiest"] for each in _measured()}
    rows = []
    for count in PARTITIONS:
        workers = found[TYPICAL, count].get(f"of {WORKERS} workers")
        busiest = (f"{found[name, count]['partition']['median']:.2f}" for name in RATES)
        rows.append((str(count), *busiest, "-" if workers is None else f"{workers['median']:.2f}"))
    return table(("partitions", *RATES, f"{TYPICAL}: busiest of {WORKERS} workers"), rows)


def _measured() -> list[dict[str, Any]]:
    return measure([SESSIONS], PARTITIONS, [WORKERS], TRIALS)
