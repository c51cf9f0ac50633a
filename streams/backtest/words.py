"""Puts scores into words for a terminal: what to read, tables by detector and source, totals. Prints nothing itself.

With two configurations every cell has both figures, the first one's before the bar.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, TypeVar

import click

from streams.backtest.cases import PROMPT_CALLS
from streams.backtest.scoring import Delays, DetectorRow, SourceRow
from streams.timeline import COLOURS, counted, ending, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from streams.backtest.cases import Cases, Group
    from streams.backtest.changes import Change
    from streams.backtest.playing import FirstAlert
    from streams.backtest.scoring import Entry, Score

GROUP_WORDS: dict[Group, str] = {
    "loop": "loop",
    "easy": "healthy, easy",
    "hard": "healthy, hard",
    "unlabelled": "unlabelled",
}
"""The groups in words."""

Row = TypeVar("Row")

NAME_CHARS = 40
"""Characters of a name that are shown, its last ones."""

INDENT = " " * 8
"""What stands before what a label says."""

_NO_DELAYS = Delays(None, None)


def entry_lines(score: Score, *, unlabelled: bool) -> Iterator[str]:
    """Write what a person should read: loops missed or found late, false alarms.

    Args:
        score: the score.
        unlabelled: whether sessions without a label that are warned are written too.
    """
    missed = [entry for entry in score.loops if entry.first is None]
    late = [entry for entry in score.loops if entry.first is not None and not entry.in_time]
    parts = [("MISSED", "red", missed), ("LATE", "yellow", late), ("FALSE ALARM", "red", score.false_alarms)]
    if unlabelled:
        parts.append(("UNLABELLED", "cyan", score.unlabelled))
    for word, colour, entries in parts:
        for entry in entries:
            yield f"{click.style(word, fg=colour, bold=True)}  {plain(entry.session_id)}  ({_about(entry)})"
            for alert in dict.fromkeys((entry.earliest, entry.first, entry.terminate)):
                if alert is not None:
                    yield _alert_line(alert)
            if entry.why:
                yield f"{INDENT}label     {plain(entry.why)}"


def _about(entry: Entry) -> str:
    if entry.onset is None or entry.group != "loop":
        return GROUP_WORDS[entry.group]
    pattern = f", {plain(entry.pattern)}" if entry.pattern else ""
    late = "" if entry.delay is None else f", found {counted(entry.delay, 'call')} later"
    return f"loop from #{entry.onset}{pattern}{late}"


def _alert_line(alert: FirstAlert) -> str:
    level = click.style(f"{alert.level:<9}", fg=COLOURS[alert.level])
    return f"  call #{alert.seq:<5}  {level}  {alert.detector}: {plain(alert.reasoning)}"


def change_lines(
    changes: Iterable[Change], words: tuple[str, str] = ("first", "second"), *, unlabelled: bool
) -> Iterator[str]:
    """Write which sessions the second configuration changes, with the first alerts under both.

    Args:
        changes: the sessions.
        words: what the configurations are called.
        unlabelled: whether those without a label are written too.
    """
    for change in changes:
        if unlabelled or change.group != "unlabelled":
            what = click.style(change.what.upper(), bold=True)
            yield f"{what}  {plain(change.session_id)}  ({GROUP_WORDS[change.group]})"
            for word, alert in zip(words, (change.first, change.second), strict=True):
                yield f"  {word:<6}{'  quiet' if alert is None else _alert_line(alert)}"


def detector_lines(scores: Sequence[Score]) -> list[str]:
    """Write the table by detector and level."""
    found = [{(row.detector, row.level): row for row in score.detectors} for score in scores]
    keys = list(dict.fromkeys(key for rows in found for key in rows))
    order = {"notice": 0, "warn": 1, "terminate": 2}
    rows = [("detector", "reached", "loops", "alone", "easy", "hard", "unlabelled", "delay", "p90")]
    for detector, level in sorted(keys, key=lambda key: (key[0], order[key[1]])):
        nothing = DetectorRow(detector, level, 0, 0, 0, 0, 0, _NO_DELAYS)
        each = [of.get((detector, level), nothing) for of in found]
        counts = (
            _cell(each, lambda row: row.found),
            _cell(each, lambda row: row.alone),
            _cell(each, lambda row: row.easy),
            _cell(each, lambda row: row.hard),
            _cell(each, lambda row: row.unlabelled),
        )
        rows.append((detector, level, *counts, *_delay_cells([row.delays for row in each])))
    return table(rows, left=2)


def source_lines(scores: Sequence[Score]) -> list[str]:
    """Write the table by source."""
    head = (
        "source", "loops", f"within {PROMPT_CALLS}", "easy", "hard", "unlabelled", "delay", "p90", "found by",
    )  # fmt: skip
    rows = [_source_row(each) for each in zip(*(score.sources for score in scores), strict=True)]
    return table([head, *rows], left=1, right_text=True)


def _source_row(each: Sequence[SourceRow]) -> tuple[str, ...]:
    return (
        ending(each[0].source, NAME_CHARS),
        warned_cell(each, "loop"),
        of_cell(each, lambda row: row.in_time, each[0].groups["loop"].sessions),
        warned_cell(each, "easy"),
        warned_cell(each, "hard"),
        warned_cell(each, "unlabelled"),
        *_delay_cells([row.delays for row in each]),
        _cell(each, lambda row: ", ".join(f"{name} {number}" for name, number in row.found_by.items()) or "-"),
    )


def total_lines(scores: Sequence[Score], cases: Cases) -> Iterator[str]:
    """Write the totals, a column for each configuration, and what was scored."""
    rows = [("", *(ending(score.configuration, NAME_CHARS) for score in scores))]
    loops = scores[0].groups["loop"].sessions
    rows.append(("loops found", *(f"{score.groups['loop'].warned:,} of {loops:,}" for score in scores)))
    rows.append((f"  within {PROMPT_CALLS} calls", *(f"{score.in_time:,} of {loops:,}" for score in scores)))
    for group in ("easy", "hard", "unlabelled"):
        tallies = [score.groups[group] for score in scores]
        share = group == "unlabelled"
        rows.append((f"{GROUP_WORDS[group]}: warned", *(_counted(t.warned, t.sessions, share=share) for t in tallies)))
        rows.append(("  to be terminated", *(_counted(t.terminated, t.sessions, share=share) for t in tallies)))
    noticed = [sum(tally.noticed for tally in score.groups.values()) for score in scores]
    if any(noticed):
        rows.append(("only noticed, of all", *(f"{number:,} of {len(cases.cases):,}" for number in noticed)))
    yield from table(rows, left=1)
    calls = sum(case.heard.calls for case in cases.cases)
    yield f"{counted(len(cases.cases), 'session')} scored, {counted(calls, 'tool call')}"
    if cases.ambiguous:
        yield f"  left out {counted(len(cases.ambiguous), 'session')} labelled ambiguous"
    if cases.repeated:
        yield f"  left out {counted(len(cases.repeated), 'recording')} of a session that was read before"


def _counted(number: int, of: int, *, share: bool) -> str:
    return f"{number:,} of {of:,}" + (f" ({number / of:.1%})" if share and of else "")


def _cell(rows: Iterable[Row], figure: Callable[[Row], object]) -> str:
    return " | ".join(str(figure(row)) for row in rows)


def of_cell(rows: Sequence[SourceRow], figure: Callable[[SourceRow], int], of: int) -> str:
    """Write a figure of each configuration, of so many."""
    return f"{_cell(rows, figure)} of {of}" if of else "-"


def warned_cell(rows: Sequence[SourceRow], group: Group) -> str:
    """Write how many sessions of a group were warned under each configuration."""
    return of_cell(rows, lambda row: row.groups[group].warned, rows[0].groups[group].sessions)


def _delay_cells(delays: Sequence[Delays]) -> tuple[str, str]:
    def said(number: float | None) -> str:
        return "-" if number is None else f"{number:+g}"

    return _cell(delays, lambda each: said(each.median)), _cell(delays, lambda each: said(each.p90))


def table(rows: Sequence[tuple[str, ...]], *, left: int, right_text: bool = False) -> list[str]:
    """Lay out a table: so many columns to the left, the others to the right, but a last one of text."""
    widths = [max(map(len, column)) for column in zip_longest(*rows, fillvalue="")]
    last = len(widths) - 1
    lines = []
    for row in rows:
        cells = [
            f"{cell:<{width}}" if place < left or (right_text and place == last) else f"{cell:>{width}}"
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines
