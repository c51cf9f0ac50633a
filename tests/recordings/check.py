"""Scores the detectors on a collection of real recordings and checks that all are read and the score is good enough.

The recordings are other people's data and no part of the project: the variable TRACTION_RECORDINGS names a directory
with `sessions/` (neutral form, and `labels.jsonl` as `traction backtest` takes it) and `raw/` (agents' own formats),
and perhaps `scenarios/scenarios.jsonl`, short sequences of which each must hold. The spin score is checked on sources
left out of its training (`spin_score`). Without the variable nothing is checked, and that is said. Run by `.ci/run`;
exits with 1 when something is missing, unreadable or worse than the bounds below.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streams.backtest import Heard, InvalidLabels, gates, match, play_all, read_labels, score
from streams.backtest.words import detector_lines, entry_lines, total_lines
from streams.importers import Damaged, Session, Unreadable, read_path
from streams.policy.policy import Policy
from streams.timeline import damaged_line, unreadable_line
from tests.recordings import scenarios, spin_score

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

VARIABLE = "TRACTION_RECORDINGS"

MIN_FOUND = 28
MIN_PROMPT = 27
"""Of the 28 loops that are labelled."""

MAX_WARNED_EASY = 0
MAX_WARNED_HARD = 1
MAX_TERMINATED = 0
"""Of the healthy ones, 62 of them easy and 37 hard."""

BOUNDS = {
    "min_found": MIN_FOUND,
    "min_prompt": MIN_PROMPT,
    "max_warned_easy": MAX_WARNED_EASY,
    "max_warned_hard": MAX_WARNED_HARD,
    "max_terminated": MAX_TERMINATED,
}


def main() -> int:
    """Check, tell, and give the exit code."""
    place = os.environ.get(VARIABLE)
    if not place:
        say([f"recordings: not checked, since {VARIABLE} names no directory with sessions/ and raw/"])
        return 0
    top = Path(place)
    missing = [name for name in ("sessions", "raw") if not (top / name).is_dir()]
    if missing:
        say([f"recordings: {top} has no {' and no '.join(missing)}"])
        return 1
    started = time.monotonic()
    faults: list[str] = []
    heard = play(top / "sessions", faults)
    raw = play(top / "raw", faults)
    there, played = ids(top / "sessions"), {each.session_id for each in heard}
    faults += [f"session {name} was not played" for name in sorted(there - played)]
    played_files, raw_files = {each.file for each in raw if each.calls}, [str(path) for path in files(top / "raw")]
    faults += [f"{path}: no session with calls" for path in raw_files if path not in played_files]
    say(judge(heard, top / "sessions" / "labels.jsonl", faults))
    count = (
        f"{len(there & played)} of {len(there)} sessions of the neutral form and {len(raw)} of the agents' own formats"
    )
    faults += spin_score.check(top / "sessions")
    suite = top / "scenarios" / "scenarios.jsonl"
    if suite.is_file():
        faults += scenarios.check(suite)
    say([f"recordings: {count} scored in {time.monotonic() - started:.1f} s, {len(faults)} faults"])
    say(f"  FAULT {fault}" for fault in faults)
    return 1 if faults else 0


def play(top: Path, faults: list[str]) -> list[Heard]:
    """Play every session, and note what cannot be read."""

    def sessions() -> Iterator[Session]:
        for found in read_path(top):
            if isinstance(found, Session):
                yield found
            elif isinstance(found, Unreadable):
                faults.append(unreadable_line(found))
            elif isinstance(found, Damaged):
                say([f"  {damaged_line(found)}"])

    return play_all(sessions(), [Policy()], os.cpu_count() or 1, lambda _: None)


def files(top: Path) -> list[Path]:
    """Give the files below a directory."""
    return sorted(path for path in top.rglob("*") if path.is_file())


def ids(top: Path) -> set[str]:
    """Give the sessions that are in the files, as a plain reader finds them."""
    there: set[str] = set()
    for path in files(top):
        if path.name != "labels.jsonl":
            opener = gzip.open if path.suffix == ".gz" else open
            with opener(path, "rt", encoding="utf-8") as file:
                there.update(json.loads(line)["session_id"] for line in file)
    return there


def judge(heard: list[Heard], labels_file: Path, faults: list[str]) -> Iterator[str]:
    """Compare with the labels: give what to read and the figures, and note what is not good enough."""
    try:
        cases = match(heard, read_labels(labels_file))
    except InvalidLabels as problem:
        faults.append(str(problem))
        return
    scored = score(cases.cases, 0, "defaults")
    faults += [f"labelled session {name} was not played" for name in cases.missing]
    for gate in gates(scored, BOUNDS):
        if not gate.passed:
            faults.append(f"{gate.words}: {gate.figure}, and {gate.name} is {gate.bound}")
    yield from entry_lines(scored, unlabelled=True)
    yield from detector_lines([scored])
    yield from total_lines([scored], cases)


def say(lines: Iterable[str]) -> None:
    """Write lines."""
    for line in lines:
        click.echo(line)


if __name__ == "__main__":
    sys.exit(main())
