"""The figures of a comparison: least, median and greatest over the rounds, and ratios that are taken within each round.

As a table for people and as an object for machines; both say the same.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from tests.bench.engines.catalogue import ENGINES
from tests.bench.engines.latency import LOAD

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.bench.engines.once import Measured
    from tests.bench.engines.rounds import Asked, Results

MIB = 2**20

FIGURES: dict[str, Callable[[Measured], float]] = {
    "events_per_second": lambda each: each.rate,
    "cpu_seconds_per_million": lambda each: each.cpu_seconds / each.events * 1e6,
    "peak_mib": lambda each: each.peak_bytes / MIB,
    "changelog_bytes_per_event": lambda each: each.changelog_bytes / each.events,
    "changelog_records_per_event": lambda each: each.changelog_records / each.events,
}
TITLES = {
    "events_per_second": "events/s",
    "cpu_seconds_per_million": "CPU s/million",
    "peak_mib": "peak MiB",
    "changelog_bytes_per_event": "log B/event",
    "changelog_records_per_event": "log rec/event",
    "latency_p50_ms": "p50 ms",
    "latency_p99_ms": "p99 ms",
    "behind_ms": "behind ms",
}


def spread(values: Sequence[float]) -> dict[str, float]:
    """Give least, median and greatest."""
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def summary(asked: Asked, results: Results) -> dict[str, Any]:
    """Give all figures."""
    found: dict[str, Any] = {
        "events": asked.events,
        "events_of_slow_engines": min(asked.short, asked.events),
        "sessions": asked.load.sessions,
        "looping": asked.load.looping,
        "rounds": asked.rounds,
        "complete": results.complete,
        "engines": {letter: {"name": ENGINES[letter].name, "does": ENGINES[letter].does} for letter in asked.engines},
        "yardsticks": {name: spread(each) for name, each in results.yardsticks.items()},
        "modes": {mode: _mode(asked, results, mode) for mode in results.measured},
    }
    if results.delays:
        found["latency"] = {
            "events_per_second": results.rate,
            "sessions": LOAD.sessions,
            "looping": LOAD.looping,
            "alerts": {letter: each[0].alerts for letter, each in results.delays.items()},
            "engines": {
                letter: {
                    "latency_p50_ms": spread([delays.p50 for delays in each]),
                    "latency_p99_ms": spread([delays.p99 for delays in each]),
                    "behind_ms": spread([delays.behind for delays in each]),
                }
                for letter, each in results.delays.items()
            },
        }
    return found


def _mode(asked: Asked, results: Results, mode: str) -> dict[str, Any]:
    measured = results.measured[mode]
    found: dict[str, Any] = {
        "alerts": {letter: each[0].alerts for letter, each in measured.items()},
        "engines": {
            letter: {name: spread([of(run) for run in each]) for name, of in FIGURES.items()}
            for letter, each in measured.items()
        },
        "ratios": {},
    }
    ours = measured.get("a", [])
    for letter, each in measured.items():
        if ours and letter != "a":
            found["ratios"][f"a/{letter}"] = _ratios(ours, each)
    if mode in results.several:
        found["ratios"][f"{asked.workers} workers/1"] = _ratios(results.several[mode], ours)
    return found


def _ratios(ours: Sequence[Measured], theirs: Sequence[Measured]) -> dict[str, dict[str, float]]:
    """Compare within each round that both ran in: events a second, and events for a second of processor time."""
    pairs = list(zip(ours, theirs, strict=False))
    return {
        "events_per_second": spread([one.rate / other.rate for one, other in pairs]),
        "events_per_cpu_second": spread(
            [one.events / one.cpu_seconds / (other.events / other.cpu_seconds) for one, other in pairs]
        ),
    }


def table(found: dict[str, Any]) -> str:
    """Give them as text: median (least to greatest)."""
    less = found["events_of_slow_engines"] < found["events"]
    fewer = [letter for letter in found["engines"] if ENGINES[letter].slow and less]
    short, slow = f"{found['events_of_slow_engines']:,}", " and ".join(fewer)
    head = (
        f"{found['events']:,} events{f' ({short} for {slow})' if fewer else ''} of {_sessions(found)}; "
        f"{found['rounds']} rounds: median (least-greatest)"
    )
    lines = [
        *([] if found["complete"] else ["ENDED EARLY: these are the figures of what was measured until then"]),
        head,
        "",
        *(f"{letter}  {each['name']}: {each['does']}" for letter, each in found["engines"].items()),
    ]
    lines += ["", "for each million events, in this process, CPU seconds"]
    lines += [f"  {name:16}{_told(each):>24}" for name, each in found["yardsticks"].items()]
    names = {letter: f"{letter}  {each['name']}" for letter, each in found["engines"].items()}
    for mode, each in found["modes"].items():
        lines += ["", f"{mode} (alerts and states as the detectors alone give them)", *_rows(each["engines"], names)]
        lines += [
            f"  {name:16}{_told(ratio['events_per_second']):>24}  times the events a second,"
            f"{_told(ratio['events_per_cpu_second']):>22} a CPU second"
            f"{f'; {name[2:]} had the first {short} events' if name[2:] in fewer else ''}"
            for name, ratio in each["ratios"].items()
        ]
    if "latency" in found:
        latency = found["latency"]
        lines += ["", f"from append to alert, at {latency['events_per_second']:,.0f} events/s of {_sessions(latency)}"]
        lines += _rows(latency["engines"], names)
    return "\n".join(lines)


def _sessions(load: dict[str, Any]) -> str:
    return f"{load['sessions']:,} sessions at once, {100 * load['looping']:.3g}% looping"


def _rows(engines: dict[str, Any], names: dict[str, str]) -> list[str]:
    columns = list(next(iter(engines.values())))
    head = f"  {'':16}" + "".join(f"{TITLES[column]:>24}" for column in columns)
    rows = ["".join(f"{_told(figures[column]):>24}" for column in columns) for figures in engines.values()]
    return [head, *(f"  {names[letter]:16}{row}" for letter, row in zip(engines, rows, strict=True))]


def _told(figure: dict[str, float]) -> str:
    least, median, greatest = figure["min"], figure["median"], figure["max"]
    return f"{_number(median)} ({_number(least)}-{_number(greatest)})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.3g}"
