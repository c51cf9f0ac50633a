"""What every framework's agent is made to do, whatever its scripted model looks like, and what is told of it."""

from __future__ import annotations

import json
import sys

LOOPING = ["pytest"] * 40
HEALTHY = [f"step {n}" for n in range(25)]


class Shell:
    """The tool that agents have."""

    def __init__(self) -> None:
        self.made = 0

    def run(self, command: str) -> str:
        """Run a command."""
        self.made += 1
        if command == "fail":
            raise RuntimeError("it failed")
        return "1 failed" if command == "pytest" else f"done: {command} {self.made}"


def outcome(guard, shell, results, last="", error=None):
    """Tell what came of a run."""
    return {
        "made": shell.made,
        "results": results,
        "last": last,
        "error": error,
        "stopped": guard.stopped,
        "alerts": [alert.level for alert in guard.alerts],
    }


def tell(run):
    """Run the cases, and print what came of them."""
    cases = {
        "loop": run(LOOPING),
        "observed": run(LOOPING, enforce=False),
        "healthy": run(HEALTHY),
        "failing": run(["fail"]),
    }
    json.dump(cases, sys.stdout)
