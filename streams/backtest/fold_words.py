"""Puts into words for a terminal what came of leaving out each source in turn. Prints nothing itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from streams.backtest.cases import PROMPT_CALLS
from streams.backtest.folds import BOTH, CONFIGURATIONS, RULES
from streams.backtest.words import GROUP_WORDS, INDENT, NAME_CHARS, of_cell, table, warned_cell
from streams.timeline import COLOURS, ending, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streams.backtest.extremes import Extreme
    from streams.backtest.folds import Folds
    from streams.backtest.scoring import Score, SourceRow

SOURCES = f"Each source with weights learned without it: {' | '.join(CONFIGURATIONS)}"
DETECTORS = f"Detectors: {CONFIGURATIONS[RULES]} | {CONFIGURATIONS[BOTH]}"


def source_lines(scores: Sequence[Score], folds: Folds) -> Iterator[str]:
    """Write the table by source: the figures of the three configurations, and the limit that was learned for it."""
    limits = {fold.source: fold.warn for fold in folds.learned}
    rows = [
        ("source", "loops", f"within {PROMPT_CALLS}", "easy", "hard", "unlabelled", "terminated", "warn from"),
        *(_source_row(each, limits) for each in zip(*(score.sources for score in scores), strict=True)),
    ]
    yield SOURCES
    yield from table(rows, left=1)


def _source_row(each: Sequence[SourceRow], limits: dict[str | None, float]) -> tuple[str, ...]:
    source, groups = each[BOTH].source, each[BOTH].groups
    return (
        ending(source, NAME_CHARS),
        warned_cell(each, "loop"),
        of_cell(each, lambda row: row.in_time, groups["loop"].sessions),
        warned_cell(each, "easy"),
        warned_cell(each, "hard"),
        warned_cell(each, "unlabelled"),
        of_cell(
            each,
            lambda row: row.groups["easy"].terminated + row.groups["hard"].terminated,
            groups["easy"].sessions + groups["hard"].sessions,
        ),
        f"{limits[source] if source in limits else limits[None]:.2f}",
    )


def extreme_lines(folds: Folds) -> Iterator[str]:
    """Write which labelled sessions to read: loops of low scores and healthy sessions of high ones, the worst first."""
    for word, found in (("LOW SCORE", folds.lowest_loops), ("HIGH SCORE", folds.highest_healthy)):
        for each in found:
            yield f"{click.style(word, bold=True)}  {plain(each.session_id)}  ({_about(each)})"
            yield _call_line(each)
            if each.why:
                yield f"{INDENT}label     {plain(each.why)}"


def _about(each: Extreme) -> str:
    if each.onset is None:
        return GROUP_WORDS[each.group]
    return f"loop from #{each.onset}" + (f", {plain(each.pattern)}" if each.pattern else "")


def _call_line(each: Extreme) -> str:
    if each.seq is None:
        return "  no call at which the score could be an alert"
    level = click.style(f"{each.reached:<9}", fg=COLOURS[each.reached]) if each.reached else f"{'quiet':<9}"
    told = f": {plain(each.told)}" if each.told else ""
    return f"  call #{each.seq:<5}  {level}  {each.score:.2f}{told}"
