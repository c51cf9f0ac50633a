"""Counts over sessions and their labels: loops found and missed, false alarms, delays; by detector and by source.

A session is warned when it has a warn or terminate at any call; notices do not count. A loop is found when its session
is warned, and in time when the first of these comes no later than `PROMPT_CALLS` calls after the onset. Pure.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streams.backtest.cases import Case, Group
    from streams.backtest.playing import FirstAlert
    from streams.replay import Verdict

GROUPS: tuple[Group, ...] = ("loop", "easy", "hard", "unlabelled")

_LEVELS: tuple[Verdict, ...] = ("notice", "warn", "terminate")
_NINE_TENTHS = 0.9


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of the sessions of one group.

    Attributes:
        sessions: how many there are.
        noticed: with a notice and nothing above it.
        warned: with a warn or terminate.
        terminated: with a terminate.
    """

    sessions: int
    noticed: int
    warned: int
    terminated: int


@dataclass(frozen=True, slots=True)
class Delays:
    """Calls from the onset of loops to an alert, negative when it comes before.

    Attributes:
        median: None when there is none.
        p90: nine tenths are no longer than this one of them.
    """

    median: float | None
    p90: int | None


@dataclass(frozen=True, slots=True)
class DetectorRow:
    """What one detector's alerts of one level or above it came to.

    Attributes:
        detector: its name.
        level: the level that is reached.
        found: loops in which it reached it.
        alone: those in which no other detector did.
        easy: healthy sessions in which it reached it.
        hard: healthy sessions that repeat a lot, likewise.
        unlabelled: sessions without a label, likewise.
        delays: from the loops' onsets to the first of these alerts.
    """

    detector: str
    level: Verdict
    found: int
    alone: int
    easy: int
    hard: int
    unlabelled: int
    delays: Delays


@dataclass(frozen=True, slots=True)
class SourceRow:
    """What became of the sessions of one source.

    Attributes:
        source: its name.
        groups: by group.
        in_time: loops found in time.
        delays: from the loops' onsets to the first warn or terminate.
        found_by: loops found, by detector; several may find one.
    """

    source: str
    groups: dict[Group, Tally]
    in_time: int
    delays: Delays
    found_by: dict[str, int]


@dataclass(frozen=True, slots=True)
class Entry:
    """One session to be read by a person.

    Attributes:
        session_id: its id.
        source: where it comes from.
        group: what it is.
        pattern: what kind of loop, as the label says.
        onset: position of the call at which a loop begins, likewise.
        why: the label's reason.
        delay: calls from the onset to the first warn or terminate; None when there is none, or no onset.
        in_time: whether it is a loop found in time.
        earliest: the first alert, be it a notice.
        first: the first warn or terminate.
        terminate: the first terminate.
    """

    session_id: str
    source: str
    group: Group
    pattern: str | None
    onset: int | None
    why: str | None
    delay: int | None
    in_time: bool
    earliest: FirstAlert | None
    first: FirstAlert | None
    terminate: FirstAlert | None


@dataclass(frozen=True, slots=True)
class Score:
    """How one configuration did.

    Attributes:
        configuration: its name.
        groups: what became of the sessions, by group; of the group `loop`, those warned are those found.
        in_time: loops found in time.
        delays: from the loops' onsets to the first warn or terminate.
        detectors: by detector and level.
        sources: by source.
        loops: all loops.
        false_alarms: healthy sessions warned.
        unlabelled: sessions without a label warned.
    """

    configuration: str
    groups: dict[Group, Tally]
    in_time: int
    delays: Delays
    detectors: list[DetectorRow]
    sources: list[SourceRow]
    loops: list[Entry]
    false_alarms: list[Entry]
    unlabelled: list[Entry]

    @property
    def terminated(self) -> int:
        """Healthy sessions with a terminate."""
        return self.groups["easy"].terminated + self.groups["hard"].terminated


def score(cases: Sequence[Case], configuration: int, name: str) -> Score:
    """Score one configuration.

    Args:
        cases: the sessions.
        configuration: its place among those that the sessions were played under.
        name: its name.
    """
    entries = [_entry(case, configuration) for case in cases]
    sources = sorted({case.source for case in cases})
    return Score(
        name,
        _tallies(cases, configuration),
        sum(case.in_time(configuration) for case in cases),
        _delays(cases, configuration),
        _detector_rows(cases, configuration),
        [_source_row(source, [c for c in cases if c.source == source], configuration) for source in sources],
        [entry for entry in entries if entry.group == "loop"],
        [entry for entry in entries if entry.group in {"easy", "hard"} and entry.first],
        [entry for entry in entries if entry.group == "unlabelled" and entry.first],
    )


def _entry(case: Case, configuration: int) -> Entry:
    label = case.label
    return Entry(
        case.session_id,
        case.source,
        case.group,
        None if label is None else label.pattern,
        None if label is None else label.first_loop_seq,
        None if label is None else label.why,
        case.delay(configuration),
        case.in_time(configuration),
        case.first(configuration, "notice"),
        case.first(configuration),
        case.first(configuration, "terminate"),
    )


def _tallies(cases: Iterable[Case], configuration: int) -> dict[Group, Tally]:
    reached: Counter[tuple[Group, Verdict | None]] = Counter()
    for case in cases:
        reached.update((case.group, level) for level in _LEVELS if case.first(configuration, level))
        reached[case.group, None] += 1
    return {
        group: Tally(
            reached[group, None],
            reached[group, "notice"] - reached[group, "warn"],
            reached[group, "warn"],
            reached[group, "terminate"],
        )
        for group in GROUPS
    }


def _delays(cases: Iterable[Case], configuration: int, level: Verdict = "warn", detector: str | None = None) -> Delays:
    delays = sorted(d for case in cases if (d := case.delay(configuration, level, detector)) is not None)
    if not delays:
        return Delays(None, None)
    return Delays(statistics.median(delays), delays[math.ceil(_NINE_TENTHS * len(delays)) - 1])


def _detector_rows(cases: Sequence[Case], configuration: int) -> list[DetectorRow]:
    """Give a row for each detector and each level that it raised an alert of."""
    raised = {(a.detector, a.level) for case in cases for a in case.heard.alerts[configuration]}
    names = sorted({detector for detector, _ in raised})
    return [
        _detector_row(cases, configuration, name, level)
        for name in names
        for level in _LEVELS
        if (name, level) in raised
    ]


def _detector_row(cases: Sequence[Case], configuration: int, detector: str, level: Verdict) -> DetectorRow:
    reached: Counter[str] = Counter()
    for case in cases:
        detectors = case.detectors(configuration, level)
        if detector in detectors:
            reached[case.group] += 1
            reached["alone"] += case.group == "loop" and len(detectors) == 1
    return DetectorRow(
        detector,
        level,
        reached["loop"],
        reached["alone"],
        reached["easy"],
        reached["hard"],
        reached["unlabelled"],
        _delays(cases, configuration, level, detector),
    )


def _source_row(source: str, cases: Sequence[Case], configuration: int) -> SourceRow:
    by = Counter(name for case in cases if case.group == "loop" for name in case.detectors(configuration, "warn"))
    return SourceRow(
        source,
        _tallies(cases, configuration),
        sum(case.in_time(configuration) for case in cases),
        _delays(cases, configuration),
        dict(sorted(by.items())),
    )
