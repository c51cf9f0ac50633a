"""Measures what is stored of a session and of a task, in bytes of its changelog record, and as it is in memory.

    python -m tests.bench.state_bytes
    python -m tests.bench.state_bytes --json recordings/

Plays recordings (synthetic sessions unless some are named), and looks at each session every ten calls and at its end,
at each task after each of its events. The figures are the same each time; nothing is timed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from detectors import SessionState, TaskState, encode_state, encode_task, limits_from, observe_task, step
from schemas.events import ToolCall
from streams.importers import Session, read_path
from streams.worker.records import SESSION, TASK, encode_stored
from tests.bench.program import parser, run, show
from tests.kit import traffic

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from schemas.events import SessionInput

EVERY_CALLS = 10
APPLIED = {"tool-calls": (1_000_000, 1_800_000_000_000), "sessions": (1_000_000, 1_800_000_000_000)}
"""What a record says of two inputs, as most do."""


@dataclass(slots=True)
class Sizes:
    """Bytes of the records, and of the states in them before they are compressed."""

    stored: list[int] = field(default_factory=list)
    encoded: list[int] = field(default_factory=list)

    def add(self, kind: int, state: bytes) -> None:
        """Add one state."""
        self.stored.append(len(encode_stored(kind, APPLIED, state)))
        self.encoded.append(len(state))


def figures(name: str, sizes: list[int]) -> dict[str, int]:
    """Give median, 99th percentile and maximum."""
    rising = sorted(sizes) or [0]
    return {
        f"{name}_median": rising[len(rising) // 2],
        f"{name}_p99": rising[min(len(rising) - 1, len(rising) * 99 // 100)],
        f"{name}_max": rising[-1],
    }


def synthetic() -> list[list[SessionInput]]:
    """Give healthy, looping and quiet sessions, and such that try at tasks."""
    sessions: dict[str, list[SessionInput]] = {}
    for event in traffic(sessions=200, episodes=6):
        sessions.setdefault(event.session_id, []).append(event)
    return list(sessions.values())


def recorded(paths: Sequence[Path]) -> list[list[SessionInput]]:
    """Read the events of all sessions."""
    return [list(found.events) for path in paths for found in read_path(path) if isinstance(found, Session)]


def measure(played: Iterable[Sequence[SessionInput]]) -> dict[str, int]:
    """Play sessions and give the figures."""
    limits, sessions, tasks, count = limits_from([]), Sizes(), Sizes(), 0
    of_tasks: dict[str, TaskState] = {}
    for events in played:
        state, calls = SessionState(), 0
        count += 1
        for event in events:
            told = step(state, event, limits).task_event
            if told is not None:
                task = of_tasks.setdefault(told.task_id, TaskState())
                observe_task(task, told, limits)
                if not task.empty:
                    tasks.add(TASK, encode_task(task))
            calls += isinstance(event, ToolCall)
            if isinstance(event, ToolCall) and calls % EVERY_CALLS == 0:
                sessions.add(SESSION, encode_state(state))
        sessions.add(SESSION, encode_state(state))
    return {
        "sessions": count,
        "looks_at_sessions": len(sessions.stored),
        **figures("session_stored", sessions.stored),
        **figures("session_in_memory", sessions.encoded),
        "looks_at_tasks": len(tasks.stored),
        **figures("task_stored", tasks.stored),
        **figures("task_in_memory", tasks.encoded),
    }


def text(found: dict[str, int]) -> str:
    """Give the figures line by line."""
    return "\n".join(f"{name:26} {figure:,}" for name, figure in found.items())


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and tell."""
    options = parser(__doc__, "state_bytes")
    options.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="recordings (default: synthetic sessions)")
    asked = options.parse_args(arguments)
    played = recorded(asked.paths) if asked.paths else synthetic()
    if not any(played):
        options.error("there is no session in these paths")
    show(measure(played), text, as_json=asked.json)
    return 0


if __name__ == "__main__":
    run(main)
