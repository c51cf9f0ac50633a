"""Simulates how unevenly sessions load partitions and workers: the busiest beside the mean, so how much room to plan.

    python -m tests.bench.skew
    python -m tests.bench.skew --sessions 20000 --partitions 64 --workers 4 8 16
    python -m tests.bench.skew --json

Sessions send at rates of a heavy tail and are hashed as producers hash them (murmur2). The rates are quantiles of their
distribution and the ids are made from numbers, so the figures are the same on every machine and each time; each trial
has other ids. Of n workers each has every n-th partition: as the group shares them, without regard to what they carry.
"""

from __future__ import annotations

import hashlib
import math
import statistics
from typing import TYPE_CHECKING, Any

from streams.reading import partition_of
from tests.bench.program import parser, run, say, show, table

if TYPE_CHECKING:
    from collections.abc import Sequence

RATES: dict[str, str] = {
    "even": "all sessions send equally much",
    "lognormal 1": "lognormal, sigma 1: one in a hundred sends 10 times the median; of recorded sessions it is 1.2",
    "lognormal 2": "lognormal, sigma 2: one in a hundred sends 105 times the median, as with people beside batch jobs",
    "zipf 1": "the n-th busiest sends 1/n of what the busiest sends, as where a few scripts drive most of it",
}
"""How much sessions send, by name, and in words."""

PARTITIONS = (8, 16, 32, 64, 128, 256)
WORKERS = (3, 6, 12, 24)
"""None of them divides the counts of partitions. Where n does, the busiest of n workers carries as much as the busiest
of n partitions, however many there are, since the same hashes fall together."""

TRIALS = 20
MAX_HASH = 2**31
"""Hashes are below this; the partition is the rest of a hash divided by their count."""


def rates(name: str, sessions: int) -> list[float]:
    """Give how much each session sends, the mean being 1, the busiest last.

    Args:
        name: one of RATES.
        sessions: how many.
    """
    if name.startswith("lognormal"):
        normal, sigma = statistics.NormalDist(), float(name.split()[1])
        found = [math.exp(sigma * normal.inv_cdf((number + 0.5) / sessions)) for number in range(sessions)]
    elif name.startswith("zipf"):
        found = [1 / (sessions - number) ** float(name.split()[1]) for number in range(sessions)]
    else:
        found = [1.0] * sessions
    mean = math.fsum(found) / sessions
    return [rate / mean for rate in found]


def hashes(trial: int, sessions: int) -> list[int]:
    """Give the hashes of sessions with ids like UUIDs, others in each trial."""
    ids = (hashlib.md5(f"{trial}/{number}".encode(), usedforsecurity=False).hexdigest() for number in range(sessions))
    return [partition_of(name.encode(), MAX_HASH) for name in ids]


def busiest(loads: Sequence[float]) -> float:
    """Give the largest load as a multiple of the mean."""
    return max(loads) / (math.fsum(loads) / len(loads))


def spread(sent: Sequence[float], hashed: Sequence[int], partitions: int) -> list[float]:
    """Give what each partition has to carry."""
    loads = [0.0] * partitions
    for rate, number in zip(sent, hashed, strict=True):
        loads[number % partitions] += rate
    return loads


def measure(
    sessions: Sequence[int], partitions: Sequence[int], workers: Sequence[int], trials: int = TRIALS
) -> list[dict[str, Any]]:
    """Simulate all of it.

    Returns:
        For each distribution, count of sessions and count of partitions the busiest partition and, for each count of
        workers that have at least a partition each, the busiest worker: as multiples of the mean, each the median and
        the worst of all trials.
    """
    found = []
    for count in sessions:
        say(f"hashing {count:,} sessions {trials} times")
        hashed = [hashes(trial, count) for trial in range(trials)]
        for name in RATES:
            sent = rates(name, count)
            for number in partitions:
                loads = [spread(sent, each, number) for each in hashed]
                ways = {"partition": [busiest(each) for each in loads]} | {
                    f"of {many} workers": [busiest([sum(each[first::many]) for first in range(many)]) for each in loads]
                    for many in workers
                    if many < number
                }
                found.append(
                    {
                        "rates": name,
                        "sessions": count,
                        "partitions": number,
                        "busiest": {
                            way: {"median": round(statistics.median(each), 3), "worst": round(max(each), 3)}
                            for way, each in ways.items()
                        },
                    }
                )
    return found


def text(found: dict[str, Any]) -> str:
    """Give the figures as a table."""
    ways = ["partition", *(f"of {many} workers" for many in found["workers"])]
    rows = [
        (
            each["rates"],
            f"{each['sessions']:,}",
            each["partitions"],
            *(f"{each['busiest'][way]['median']:.2f}" if way in each["busiest"] else "-" for way in ways),
            f"{each['busiest']['partition']['worst']:.2f}",
        )
        for each in found["found"]
    ]
    words = "\n".join(f"{name:12}{meaning}" for name, meaning in RATES.items())
    head = ("rates", "sessions", "partitions", *ways, "worst partition")
    return f"The busiest as a multiple of the mean: medians of {found['trials']} trials.\n\n{words}\n\n" + table(
        head, rows
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate and print."""
    options = parser(__doc__, "skew")
    options.add_argument(
        "--sessions", type=int, nargs="+", default=[1_000, 10_000], metavar="N", help="sessions that send at a time"
    )
    options.add_argument("--partitions", type=int, nargs="+", default=list(PARTITIONS), metavar="N", help="of an input")
    options.add_argument("--workers", type=int, nargs="+", default=list(WORKERS), metavar="N", help="that share them")
    options.add_argument("--trials", type=int, default=TRIALS, metavar="N", help=f"sets of ids (default: {TRIALS})")
    asked = options.parse_args(arguments)
    if min(*asked.sessions, *asked.partitions, *asked.workers, asked.trials) < 1:
        options.error("every number must be 1 or more")
    found = {
        "trials": asked.trials,
        "workers": asked.workers,
        "found": measure(asked.sessions, asked.partitions, asked.workers, asked.trials),
    }
    show(found, text, as_json=asked.json)
    return 0


if __name__ == "__main__":
    run(main)
