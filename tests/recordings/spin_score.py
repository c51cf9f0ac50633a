"""Checks what the spin score is worth on recorded sessions: it must help the rules, and its weights come from there.

Each source is left out in turn. Both together must find no fewer loops than the rules alone, no later, with no more
false alarms, and do better in one of these. Where the labels are those that the shipped weights name, training on them
must give these weights.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import click

from detectors import Limits
from detectors.weights import DEFAULT_MODEL
from streams.backtest import InvalidLabels, match, read_labels, score
from streams.backtest.folds import BOTH, CONFIGURATIONS, RULES, play_folds
from streams.backtest.words import total_lines
from streams.importers import Session, read_path
from streams.training import Untrainable, collect, fit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from streams.backtest import Label, Score

_LIMITS = ("intercept", "weak_needs", "notice", "warn")

CLOSE = 0.002
"""How far a weight or limit may be from the shipped one: other processors round otherwise."""


def check(top: Path) -> list[str]:
    """Check, tell the figures, and give the faults.

    Args:
        top: the directory with the sessions in the neutral form, and `labels.jsonl`.
    """
    file = top / "labels.jsonl"
    try:
        labels = read_labels(file)
        faults = [*_worth(top, labels), *_origin(top, labels, hashlib.sha256(file.read_bytes()).hexdigest())]
    except (InvalidLabels, Untrainable) as problem:
        return [str(problem)]
    return faults


def _sessions(top: Path) -> Iterator[Session]:
    return (found for found in read_path(top) if isinstance(found, Session))


def _jobs() -> int:
    return os.cpu_count() or 1


def _worth(top: Path, labels: Mapping[str, Label]) -> Iterator[str]:
    """Compare both together with the rules alone, on sources that nothing was learned from."""
    heard, _ = play_folds(_sessions(top), labels, Limits(), _jobs(), lambda _: None)
    cases = match(heard, labels)
    scores = [score(cases.cases, place, name) for place, name in enumerate(CONFIGURATIONS)]
    click.echo("each source with weights learned without it:")
    for line in total_lines(scores, cases):
        click.echo(line)
    yield from compare(scores[RULES], scores[BOTH])


def compare(rules: Score, both: Score) -> Iterator[str]:
    """Give what is worse with the score than without it, or that nothing is better."""
    figures = [
        ("loops found", rules.groups["loop"].warned, both.groups["loop"].warned),
        ("loops found in time", rules.in_time, both.in_time),
        *(
            (f"{group} sessions {what}", -getattr(rules.groups[group], what), -getattr(both.groups[group], what))
            for group in ("easy", "hard", "unlabelled")
            for what in ("warned", "terminated")
        ),
    ]
    for name, before, after in figures:
        if after < before:
            yield f"spin score: {name}: {abs(after)} with it, {abs(before)} by the rules alone"
    if all(after <= before for _, before, after in figures):
        yield "spin score: nothing is better with it than by the rules alone"


def _origin(top: Path, labels: Mapping[str, Label], digest: str) -> Iterator[str]:
    """Compare what is learned from the sessions with the shipped weights."""
    shipped = DEFAULT_MODEL.source
    if digest != shipped.trained.labels_sha256:
        click.echo("spin score: the shipped weights come from other labels, and are not compared")
        return
    learned = fit(collect(_sessions(top), labels, Limits(), _jobs(), lambda _: None).examples, digest)
    pairs = [
        *((name, pair[0], learned.features[name][0]) for name, pair in shipped.features.items()),
        *((f"typical {name}", pair[1], learned.features[name][1]) for name, pair in shipped.features.items()),
        *((name, getattr(shipped, name), getattr(learned, name)) for name in _LIMITS),
    ]
    for name, here, there in pairs:
        if abs(here - there) > CLOSE:
            yield f"spin score: {name} is {here} in spin_weights.json, and training gives {there}"
    click.echo(f"spin score: learned anew from {learned.trained.sessions} sessions, {learned.trained.calls:,} calls")
