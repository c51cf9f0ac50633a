"""The figures of a run: as a table for people, as one line of JSON for machines, and whether the faults did bite."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from tests.torture.stories import LOOPS

if TYPE_CHECKING:
    from collections.abc import Iterator

DETECTORS = {*LOOPS, "task_budget"}
REASONS = {
    *("empty", "not_utf8", "not_json", "too_deep", "missing_field", "wrong_type", "invalid_value"),
    *("unsupported_version", "key_missing", "key_mismatch"),
}
"""Of all but CloudEvents, huge records and detectors that fail."""

LEVELS = {"notice", "warn", "terminate", "recovered"}

MOST_SHOWN = 20

REBALANCES = ("join", "leave", "crash", "thaw")

IN_FLIGHT = ("alerts", "sessions-changelog", "task-events", "ladders")
"""Ends of the names of topics on which something must have been rolled back."""


@dataclass
class Figures:
    """What was done, what came of it, and what differs.

    Attributes:
        seed: repeats the load and the choice of faults.
        seconds: how long it took.
        events: records on the inputs.
        unknown: records of the load of which the producer does not know whether they arrived.
        sessions: sessions of the load.
        tasks: tasks that something was forwarded to.
        forgotten: what was to be forgotten on demand, by kind.
        faults: how often each kind of fault did bite.
        rebalances: how often partitions moved, by cause.
        processes: how many were started.
        ends: processes that ended, by kind and exit code.
        fenced: processes that ended since they were fenced, by kind.
        rolled_back: records by topic that only readers of uncommitted ones see.
        alerts: by detector.
        levels: alerts by level.
        dead_letters: records that were refused, by reason.
        directives: what was asked of orchestrators.
        terminations: likewise to stop sessions, repetitions counted.
        notifications: what people were told.
        differences: what is not as the oracle has it.
        failures: what else must not happen.
    """

    seed: int
    seconds: float = 0.0
    events: int = 0
    unknown: int = 0
    sessions: int = 0
    tasks: int = 0
    forgotten: dict[str, int] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    rebalances: dict[str, int] = field(default_factory=dict)
    processes: int = 0
    ends: dict[str, int] = field(default_factory=dict)
    fenced: dict[str, int] = field(default_factory=dict)
    rolled_back: dict[str, int] = field(default_factory=dict)
    alerts: dict[str, int] = field(default_factory=dict)
    levels: dict[str, int] = field(default_factory=dict)
    dead_letters: dict[str, int] = field(default_factory=dict)
    directives: int = 0
    terminations: int = 0
    notifications: int = 0
    differences: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def table(self) -> str:
        """All of it, a line each."""
        fields = msgspec.to_builtins(self)
        fields |= {"differences": len(self.differences), "failures": len(self.failures)}
        return "\n".join(f"{name.replace('_', ' '):<14} {_shown(value)}" for name, value in fields.items())

    @property
    def line(self) -> str:
        """The same as JSON, of differences and failures the first."""
        shown = {"differences": self.differences[:MOST_SHOWN], "failures": self.failures[:MOST_SHOWN]}
        return msgspec.json.encode(msgspec.to_builtins(self) | shown).decode()

    @property
    def toothless(self) -> Iterator[str]:
        """Say what did not bite, so that the run shows less than it should."""
        yield from (f"no alert of {name}" for name in sorted(DETECTORS - self.alerts.keys()))
        yield from (f"no alert is a {level}" for level in sorted(LEVELS - self.levels.keys()))
        yield from (f"no rebalance by {cause}" for cause in REBALANCES if not self.rebalances.get(cause))
        yield from (f"no {kind} was fenced" for kind in ("worker", "escalation") if not self.fenced.get(kind))
        for end in IN_FLIGHT:
            if not any(name.endswith(end) for name in self.rolled_back):
                yield f"nothing was rolled back on {end}: no fault hit a transaction in flight"
        yield from (f"no dead letter says {reason}" for reason in sorted(REASONS - self.dead_letters.keys()))
        yield from (f"no {kind} was forgotten" for kind in ("session", "task") if not self.forgotten.get(kind))
        counts = {"directive": self.directives, "termination": self.terminations}
        yield from (f"there is no {name}" for name, number in counts.items() if not number)


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {number}" for name, number in sorted(value.items())) or "none"
    return f"{value:,.0f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
