"""Writes numbers as Grafana does, for the units that the dashboards use."""

from __future__ import annotations

import math
import time

SUFFIXES = {"eps": " evt/s", "cps": " c/s", "reqps": " req/s", "Bps": "B/s", "bytes": "B"}


def shown(value: float, unit: str, decimals: int | None = None) -> str:  # noqa: PLR0911 - one for each kind
    """Write a number with its unit.

    Args:
        value: the number.
        unit: Grafana's name of the unit.
        decimals: digits after the point; None for three significant ones.
    """
    if math.isinf(value) or math.isnan(value):
        return "+Inf" if value > 0 else "NaN"
    if unit == "bool_yes_no":
        return "Yes" if value else "No"
    if unit == "dateTimeFromNow":
        return f"{_seconds(time.time() - value / 1000, None)} ago"
    if unit == "percentunit":
        return f"{_plain(100 * value, decimals)}%"
    if unit == "currencyUSD":
        return f"${_plain(value, decimals)}"
    if unit == "s":
        return _seconds(value, decimals)
    if unit in {"none", *SUFFIXES} - {"bytes", "Bps"}:
        return _plain(value, decimals) + SUFFIXES.get(unit, "")
    base, steps = (
        (1024, ("", "Ki", "Mi", "Gi")) if unit == "bytes" else (1000, ("", "k" if unit == "Bps" else " K", "M", "B"))
    )
    power = 0 if abs(value) < 1 else min(int(math.log(abs(value), base)), 3)
    return f"{_plain(value / base**power, decimals)}{steps[power]}{SUFFIXES.get(unit, '')}"


def _seconds(value: float, decimals: int | None) -> str:
    if value and abs(value) < 1:
        return f"{_plain(value * 1000, decimals)} ms"
    for limit, length, name in ((60, 1, "s"), (3600, 60, "min"), (86400, 3600, "h")):
        if abs(value) < limit:
            return f"{_plain(value / length, decimals)} {name}"
    return f"{_plain(value / 86400, decimals)} days"


def _plain(value: float, decimals: int | None) -> str:
    if decimals is not None:
        return f"{value:.{decimals}f}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
