"""Yardsticks of a round: what no engine can do without, in processor time of this process, to judge the others by.

It knows neither brokers nor engines.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import orjson

from schemas.decode import decode
from schemas.encode import encode
from tests.bench.engines.job import INPUT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from schemas.events import ToolCall

TIMES = 3
"""Each is timed so often, and the shortest time counts."""


def yardsticks(events: Sequence[ToolCall]) -> dict[str, float]:
    """Give processor seconds for a million events, by what is done with each: parsed as JSON, decoded as an event."""
    values = [encode(event) for event in events]
    return {
        "orjson.loads": _seconds(orjson.loads, values),
        "decode": _seconds(lambda value: decode(INPUT, value), values),
    }


def _seconds(done: Callable[[bytes], object], values: Sequence[bytes]) -> float:
    times = list[float]()
    for _ in range(TIMES):
        began = time.process_time()
        for value in values:
            done(value)
        times.append(time.process_time() - began)
    return min(times) / len(values) * 1e6
