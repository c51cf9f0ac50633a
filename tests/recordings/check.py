"""Plays a collection of real recordings and checks that all are read and that the labelled plain loops are noticed.

The recordings are other people's data and no part of the project: the variable TRACTION_RECORDINGS names a directory
with `sessions/` (neutral form, and `labels.jsonl`) and `raw/` (agents' own formats). Without it nothing is checked, and
that is said. Run by `.ci/run`; exits with 1 when something is missing, unreadable or not noticed.

A label is `{session_id, label: loop | healthy | ambiguous, pattern, first_loop_seq}`. Loops of the patterns
`exact_repeat` and `cycle_…` must raise an alert; what becomes of the others, and of the healthy ones, is told.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from detectors import Limits
from streams.importers import Damaged, Session, Unreadable, read_path
from streams.replay import Played, play
from streams.timeline import damaged_line

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE = "TRACTION_RECORDINGS"
REQUIRED = ("exact_repeat", "cycle")
"""How the patterns begin that must be noticed."""

PROMPT_CALLS = 5
"""A loop counts as noticed in time when the first alert comes no later than so many calls after its onset."""


def main() -> int:
    """Check, tell, and give the exit code."""
    place = os.environ.get(VARIABLE)
    if not place:
        say(f"recordings: not checked, since {VARIABLE} names no directory with sessions/ and raw/")
        return 0
    top = Path(place)
    missing = [name for name in ("sessions", "raw") if not (top / name).is_dir()]
    if missing:
        say(f"recordings: {top} has no {' and no '.join(missing)}")
        return 1
    started = time.monotonic()
    faults: list[str] = []
    played = list(play_all(top / "sessions", faults))
    faults += unread(top / "sessions", {each.session.session_id for each in played})
    raw = list(play_all(top / "raw", faults))
    read_files = {each.session.source for each in raw if each.session.calls}
    faults += [f"{path}: no session with calls" for path in files(top / "raw") if str(path) not in read_files]
    say(f"recordings: {len(played)} sessions of the neutral form and {len(raw)} of the agents' own formats scored")
    faults += judge({each.session.session_id: each for each in played}, labels(top / "sessions" / "labels.jsonl"))
    say(f"recordings: {time.monotonic() - started:.1f} s, {len(faults)} faults")
    for fault in faults:
        say(f"  FAULT {fault}")
    return 1 if faults else 0


def play_all(top: Path, faults: list[str]) -> Iterator[Played]:
    """Play every session, and note what cannot be read."""
    for found in read_path(top):
        if isinstance(found, Session):
            yield play(found, Limits())
        elif isinstance(found, Unreadable):
            faults.append(f"{found.source}:{found.line}: {found.reason}")
        elif isinstance(found, Damaged):
            say(f"  {damaged_line(found)}")


def files(top: Path) -> list[Path]:
    """Give the files below a directory."""
    return sorted(path for path in top.rglob("*") if path.is_file())


def unread(top: Path, read: set[str]) -> list[str]:
    """Give the sessions that are in the files, as a plain reader finds them, and were not played."""
    there: set[str] = set()
    for path in files(top):
        if path.name != "labels.jsonl":
            opener = gzip.open if path.suffix == ".gz" else open
            with opener(path, "rt", encoding="utf-8") as file:
                there.update(json.loads(line)["session_id"] for line in file)
    return [f"session {name} was not played" for name in sorted(there - read)]


def labels(path: Path) -> list[dict[str, Any]]:
    """Read the labels."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def judge(played: dict[str, Played], labelled: list[dict[str, Any]]) -> list[str]:
    """Compare with the labels: tell the figures, and give the loops that had to be noticed and were not."""
    faults: list[str] = []
    figures: Counter[str] = Counter()
    for label in labelled:
        session = played.get(label["session_id"])
        if session is None:
            faults.append(f"labelled session {label['session_id']} was not played")
            continue
        at = next((alert.seq for alert in session.alerts if alert.level in {"warn", "terminate"}), None)
        figures[label["label"]] += 1
        if label["label"] == "healthy" and at is not None:
            figures["false"] += 1
            say(f"  false alarm at call #{at}: {label['session_id']}")
        elif label["label"] == "loop":
            pattern = str(label["pattern"])
            figures["found"] += at is not None
            figures["prompt"] += at is not None and at <= label["first_loop_seq"] + PROMPT_CALLS
            if at is None:
                say(f"  not noticed ({pattern}): {label['session_id']}")
                if pattern.startswith(REQUIRED):
                    faults.append(f"the loop of {label['session_id']} ({pattern}) raised no alert")
    say(f"  loops noticed: {figures['found']} of {figures['loop']}, in time: {figures['prompt']}")
    say(f"  false alarms on healthy sessions: {figures['false']} of {figures['healthy']}")
    return faults


def say(text: str) -> None:
    """Write a line."""
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
