"""What the tests of circular fixes share: attempts that fail, and approaches with nothing in common."""

from __future__ import annotations

import json

from streams.fixes import CircularFixDetector, FixOutcome

FAILED = FixOutcome.FAILED
APART = ("november oscar", "papa quebec", "romeo sierra", "tango uniform", "victor zulu", "yankee lima", "mike kilo")


def failing(detector, approach, file="", error=None, subtask="task"):
    """Record an attempt that failed."""
    return detector.record_attempt(subtask, approach, [file] if file else [], FAILED, error)


def configured(directory, values, store=None):
    """Give a detector with a configuration file."""
    path = directory / "fix.json"
    path.write_text(json.dumps(values), "utf-8")
    return CircularFixDetector(path, store=store)
