"""A worker goes by its policy file and by what changes in it; what holds for a session can be asked from outside."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import TYPE_CHECKING, Any

from schemas import topics
from schemas.common import Agent, Task
from schemas.encode import encode
from schemas.events import Override
from tests.kit import BEGIN, tool_call
from tests.processes import TRACTION
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from schemas.events import ToolCall
    from schemas.outputs import Alert
    from tests.kit import Wire, WorkerProcess

DOCS = Task(repo="acme/docs", paths=("guide.md",))


def policy(warn: int) -> str:
    """Write a policy whose rule warns the repository's sessions at so many equal calls."""
    return f'[[rule]]\nname = "docs"\nwhen.repo = "acme/docs"\nlimits.identical.warn = {warn}\n'


def write(file: Path, text: str) -> None:
    """Write a file."""
    file.write_text(text, "utf-8")


def loop(session: str, task: Task | None = DOCS) -> list[ToolCall]:
    """Give four equal calls, of which only the first says who acts for which task."""
    said = {"agent": Agent(role="code"), "task": task}
    return [
        tool_call(session, number, arguments={"path": "a"}, result="the same", **({} if number else said))
        for number in range(4)
    ]


def explain(wire: Wire, session: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Ask what holds for a session, as a person does."""
    settings = wire.settings
    return subprocess.run(
        [TRACTION, "policy", "explain", "--session", session, "--json", "--app-id", wire.app_id, "--prefix",
         settings.prefix, "--bootstrap", settings.bootstrap, *words],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


async def test_a_worker_follows_its_policy(wire: Wire, start: Callable[..., WorkerProcess], tmp_path: Path) -> None:
    """A rule's limit holds for its sessions alone; a bad file changes nothing; a good one holds from then on."""
    file = tmp_path / "policy.toml"
    write(file, policy(2))
    worker = start("--policy", str(file))
    await worker.ready(4)
    await wire.send([*loop("first"), *loop("other", Task(repo="acme/shop"))])
    await wire.until_applied()

    write(file, "[limits]\nidentical.wran = 3\n")
    worker.send(signal.SIGHUP)
    await reloaded(worker, refused=1, applied=1)
    await wire.send(loop("second"))
    await wire.until_applied()

    write(file, policy(4))
    await reloaded(worker, refused=1, applied=2)  # without a signal
    await wire.send(loop("third"))
    await wire.until_applied()

    found: dict[str, Alert] = {}
    for alert in await wire.alerts():
        if alert.detector == "identical":
            found.setdefault(alert.session_id, alert)
    assert {name: alert.count for name, alert in found.items()} == {"first": 2, "other": 3, "second": 2, "third": 4}
    layers = {name: alert.limits[0].layer for name, alert in found.items()}
    assert layers.pop("other") == "default"
    assert set(layers.values()) == {f"policy:{file}:rule docs"}
    assert "there is no limit 'identical.wran'" in worker.log
    await told(wire, file)
    assert await worker.end() == 0


async def reloaded(worker: WorkerProcess, *, refused: int, applied: int) -> None:
    """Wait until a worker has judged its file so often."""

    async def judged() -> bool:
        metrics = await worker.metrics()
        reloads = {result: metrics["traction_policy_reloads_total", result] for result in ("refused", "applied")}
        return reloads == {"refused": refused, "applied": applied}

    await until(judged)


async def told(wire: Wire, file: Path) -> None:
    """Ask what holds for a session: its rule and what was set for it, and nothing that has expired or is unreadable."""
    own = Override(scope="session:third", set_at=BEGIN, mute=True, limits={"identical.terminate": 9})
    expired = Override(scope="repo:acme/docs", set_at=BEGIN, expires_at=BEGIN, limits={"same_write.warn": 1})
    for override in (own, expired):
        await wire.raw(topics.OVERRIDES, encode(override), key=override.scope.encode())
    await wire.raw(topics.OVERRIDES, b"{}", key=b"session:unreadable")
    misplaced = Override(scope="task:third", set_at=BEGIN, limits={"same_write.warn": 1})
    await wire.raw(topics.OVERRIDES, encode(misplaced), key=b"task:other")  # the workers ignore it
    asked = explain(wire, "third", "--policy", str(file))
    assert (asked.returncode, asked.stderr) == (0, "")
    found: dict[str, Any] = json.loads(asked.stdout)
    assert (found["repo"], found["role"], found["paths"]) == ("acme/docs", "code", ["guide.md"])
    assert (found["rules"], found["muted"]) == (["docs"], True)
    assert {row["name"]: row["layer"] for row in found["limits"]} == {
        "identical.warn": f"policy:{file}:rule docs",
        "identical.terminate": "override:session:third",
    }
    unknown = explain(wire, "nobody")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "have not heard of session nobody: check the id, --app-id" in unknown.stderr
