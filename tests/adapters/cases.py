"""What every framework's agent is made to do, whatever its scripted model looks like, and what is told of it."""

from __future__ import annotations

import json
import sys

from streams.guard import Guard

LOOPING = ["pytest"] * 40
CIRCLING = ["pytest", "lint"] * 20
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
        return "1 failed" if command in LOOPING + CIRCLING else f"done: {command} {self.made}"


class Heard(Guard):
    """A guard that keeps what was answered."""

    def __init__(self) -> None:
        super().__init__()
        self.answered: list[str] = []

    def obeyed(self, verdict) -> None:
        """Keep it."""
        self.answered.append(verdict.action)


def outcome(guard, shell, results, last="", error=None):
    """Tell what came of a run."""
    return {
        "made": shell.made,
        "results": results,
        "last": last,
        "error": error,
        "stopped": guard.stopped,
        "alerts": [alert.level for alert in guard.alerts],
        "answered": guard.answered,
    }


def tell(run, **more):
    """Run the cases, and more of them where a framework has its own, and print what came of them."""
    cases = {
        "loop": run(LOOPING),
        "circle": run(CIRCLING),
        "observed": run(LOOPING, enforce=False),
        "healthy": run(HEALTHY),
        "failing": run(["fail"]),
        **{name: run(commands) for name, commands in more.items()},
    }
    json.dump(cases, sys.stdout)
