"""All targets by name, and the seeds of each: those of the corpus, and valid ones that the project has elsewhere."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from tests.fuzz import agents, telemetry, texts, wire

ROOT = Path(__file__).parents[2]
CORPUS = Path(__file__).parent / "corpus"
TARGETS = {**wire.TARGETS, **texts.TARGETS, **telemetry.TARGETS, **agents.TARGETS}

ELSEWHERE = {
    "alert": ("schemas/examples/alert",),
    "control": ("schemas/examples/control",),
    "directive": ("schemas/examples/directive",),
    "fitness": ("schemas/examples/fitness",),
    "fix-attempts": ("schemas/examples/fix-attempt",),
    "known-flapping": ("schemas/examples/known-flapping",),
    "notification": ("schemas/examples/notification",),
    "override": ("schemas/examples/override",),
    "policy": ("deploy/policy.toml",),
    "recording": ("tests/streams/importers/data",),
    "reviews": ("schemas/examples/review",),
    "sessions": ("schemas/examples/session-event",),
    "termination": ("schemas/examples/termination",),
    "tool-calls": ("schemas/examples/tool-call", "schemas/examples/invalid", "schemas/examples/cloudevents"),
    "weights": ("detectors/spin_weights.json",),
}
"""Where a target's valid inputs are that the project has anyway: files, or folders of them."""


def seeds(name: str) -> list[Path]:
    """Give the files that a target begins with."""
    places = [CORPUS / name, *(ROOT / place for place in ELSEWHERE.get(name, ()))]
    files = (sorted(place.iterdir()) if place.is_dir() else [place] for place in places)
    return [path for path in chain.from_iterable(files) if path.is_file()]


ALL = "all"
"""Stands for all targets in one process: the first byte of an input says which one it is for."""


def any_target(data: bytes) -> None:
    """Hand an input to the target that its first byte says."""
    if data:
        list(TARGETS.values())[data[0] % len(TARGETS)](data[1:])


def contents(name: str) -> list[bytes]:
    """Give what a target, or all of them, begins with."""
    if name != ALL:
        return [path.read_bytes() for path in seeds(name)]
    return [bytes([number]) + each for number, known in enumerate(TARGETS) for each in contents(known)]
