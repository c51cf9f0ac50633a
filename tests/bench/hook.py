"""Measures what `traction-hook` takes at each hook of an agent, beside a Python process that does nothing.

    python -m tests.bench.hook
    python -m tests.bench.hook --runs 200 --json

The two are started in turn, so that a busy machine slows both. The gateway is a stand-in that answers at once: what the
real one and its brokers take comes on top. "away" is a port at which nobody listens, with the payload kept on disk.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench.program import parser, run, show, table

if TYPE_CHECKING:
    from collections.abc import Sequence

HOOK = str(Path(sys.executable).parent / "traction-hook")
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
PAYLOAD = json.dumps(
    {
        "session_id": "5f0c2a4e-6a0e-4a7f-9a53-2f1d0a3b7c11",
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_use_id": "toolu_01",
        "tool_input": {"command": "make test"},
        "tool_response": {"stdout": "x" * 2_000, "stderr": "", "interrupted": False},
    }
).encode()
"""A call as most are, of some two kilobytes."""

LEAST_RUNS = 5


def answer(listening: socket.socket) -> None:
    """Answer every request at once, until the socket is closed."""
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        with connection:
            data = b""
            while PAYLOAD not in data:
                data += connection.recv(1 << 16)
            connection.sendall(ANSWER)


def once(command: Sequence[str], environment: dict[str, str]) -> tuple[float, float]:
    """Run a command once, and give its time and the processor's, in milliseconds."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, input=PAYLOAD, env=environment, check=True, stdout=subprocess.PIPE)
    elapsed, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return elapsed * 1_000, used * 1_000


def measure(runs: int) -> dict[str, Any]:
    """Run all kinds in turn and give, for each, median and 95th percentile and what it takes over an empty process."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as listening, socket.socket() as silent:
        for each in (listening, silent):
            each.bind(("127.0.0.1", 0))
        listening.listen(64)
        threading.Thread(target=answer, args=(listening,), daemon=True).start()
        there, away = (f"http://127.0.0.1:{each.getsockname()[1]}" for each in (listening, silent))
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TRACTION_")}
        kinds: dict[str, tuple[list[str], str]] = {
            "empty Python": ([sys.executable, "-c", ""], folder),
            "hook": ([HOOK, "claude-code", "--enforce", "--gateway", there], f"{folder}/there"),
            "hook, gateway away": ([HOOK, "claude-code", "--enforce", "--gateway", away], f"{folder}/away"),
        }
        found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
        for number in range(runs + 1):
            for kind, (command, spool) in kinds.items():
                told = once(command, {**environment, "TRACTION_SPOOL_DIR": spool})
                if number:  # the first brings everything into memory
                    found[kind].append(told)
        listening.shutdown(socket.SHUT_RDWR)
    empty = found["empty Python"]
    return {
        kind: {
            "median_ms": middle([each[0] for each in times]),
            "p95_ms": sorted(each[0] for each in times)[len(times) * 95 // 100],
            "over_empty_ms": middle([each[0] - base[0] for each, base in zip(times, empty, strict=True)]),
            "processor_over_empty_ms": middle([each[1] - base[1] for each, base in zip(times, empty, strict=True)]),
            "of_empty": middle([each[0] / base[0] for each, base in zip(times, empty, strict=True)]),
        }
        for kind, times in found.items()
    }


def middle(numbers: list[float]) -> float:
    """Give the median."""
    return sorted(numbers)[len(numbers) // 2]


def text(found: dict[str, Any]) -> str:
    """Give the figures as a table."""
    head = ("", "median ms", "95 % ms", "over empty ms", "processor ms", "times empty")
    rows = [(kind, *(f"{figure:.1f}" for figure in figures.values())) for kind, figures in found.items()]
    return table(head, rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and tell."""
    options = parser(__doc__, "hook")
    options.add_argument("--runs", type=int, default=50, metavar="N", help="how often each is started (default: 50)")
    asked = options.parse_args(arguments)
    if asked.runs < LEAST_RUNS:
        options.error(f"--runs: from {LEAST_RUNS} on")
    show(measure(asked.runs), text, as_json=asked.json)
    return 0


if __name__ == "__main__":
    run(main)
