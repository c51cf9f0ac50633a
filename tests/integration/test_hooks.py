"""An agent with hooks, from `traction connect` to the end of its loop: real settings, command, gateway and brokers."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from schemas import topics
from schemas.decode import decode
from schemas.topics import Topic
from tests.kit import Wire, WorkerProcess
from tests.processes import TRACTION, TractionProcess
from tests.waiting import SOON_SECONDS

MOST_CALLS = 60
AWAY_CALLS = 2


@pytest.fixture
def beside(wire: Wire) -> Iterator[Callable[..., TractionProcess]]:
    """Give a starter of other commands on the test's topics; none outlives the test."""
    started: list[TractionProcess] = []

    def begin(command: str, *flags: str) -> TractionProcess:
        place = ("--bootstrap", wire.settings.bootstrap, "--prefix", wire.settings.prefix)
        started.append(TractionProcess(TRACTION, command, *place, *flags))
        return started[-1]

    yield begin
    for process in started:
        process.kill()


class Agent:
    """Does with hooks what Claude Code does: starts the commands of its settings through a shell.

    Args:
        home: the user's home.
        session: its session.
        url: of the gateway.
    """

    def __init__(self, home: Path, session: str, url: str) -> None:
        self._session = session
        self._settings = json.loads((home / ".claude" / "settings.json").read_text("utf-8"))
        own = {name: value for name, value in os.environ.items() if not name.startswith("TRACTION_")}
        self._environment = {**own, "HOME": str(home), "XDG_STATE_HOME": str(home / "state")}
        self._environment |= {"TRACTION_GATEWAY_URL": url, "TRACTION_HOOK_TIMEOUT_MS": "10000"}

    def hook(self, event: str, call: int, command: str, **fields: Any) -> dict[str, Any]:
        """Start the commands of one hook, and give the answer."""
        payload = {
            "session_id": self._session,
            "transcript_path": "/t.jsonl",
            "cwd": "/home/ada/shop",
            "hook_event_name": event,
            "tool_name": "Bash",
            "tool_input": {"command": command},
            "tool_use_id": f"{self._session}-{call}",
            **fields,
        }
        answers: list[dict[str, Any]] = []
        for group in self._settings["hooks"][event]:
            for handler in group["hooks"]:
                done = subprocess.run(
                    ["/bin/sh", "-c", handler["command"]],
                    input=json.dumps(payload).encode(),
                    capture_output=True,
                    env=self._environment,
                    check=True,
                    timeout=60,
                )
                assert done.stderr == b""
                answers += [json.loads(done.stdout)] if done.stdout else []
        assert len(answers) <= 1
        return answers[0] if answers else {}

    def call(self, number: int, command: str, result: str) -> list[dict[str, Any]]:
        """Call a tool unless that is denied, and give what the hooks answered."""
        before = self.hook("PreToolUse", number, command)
        said = before.get("hookSpecificOutput", {})
        if before.get("continue") is False or said.get("permissionDecision") == "deny":
            return [before]
        response = {"stdout": result, "stderr": "", "interrupted": False}
        return [before, self.hook("PostToolUse", number, command, tool_response=response)]


async def decoded(wire: Wire, topic: Topic) -> list[Any]:
    """Read what is on a topic, in order of time."""
    records = await wire.records(wire.settings.topic(topic))
    return [decode(topic, each.value, each.headers) for each in sorted(records, key=lambda each: each.timestamp)]


async def test_a_connected_agent_that_spins_is_stopped(
    wire: Wire, start: Callable[..., WorkerProcess], beside: Callable[..., TractionProcess], tmp_path: Path
) -> None:
    """An agent that repeats one call is told to do otherwise and then stopped, a healthy one hears nothing.

    What it did while the gateway was away counts too, once.
    """
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    connecting = [TRACTION, "connect", "claude-code", "--enforce", "--privacy", "full", "--yes"]
    await asyncio.to_thread(subprocess.run, connecting, env=environment, check=True, capture_output=True)
    away = Agent(tmp_path, "spinning", "http://127.0.0.1:9")
    for number in range(AWAY_CALLS):
        assert await asyncio.to_thread(away.call, number, "make test", "1 failed: test_a") == [{}, {}]

    worker, escalation = start(), beside("escalate", "--app-id", wire.app_id, "--port", "0")
    gateway = beside("ingest", "--port", "0")
    url = (await gateway.ready()).removeprefix("ingest ready: ")
    await worker.ready()
    await escalation.ready()
    spinning, healthy = Agent(tmp_path, "spinning", url), Agent(tmp_path, "healthy", url)
    said: list[dict[str, Any]] = []
    for number in range(AWAY_CALLS, MOST_CALLS):
        said += await asyncio.to_thread(spinning.call, number, "make test", "1 failed: test_a")
        if number % 5 == 0:
            assert await asyncio.to_thread(healthy.call, number, f"sed -n {number}p a.py", f"line {number}") == [{}, {}]
        if said[-1].get("continue") is False:
            break
    assert said[-1]["stopReason"].startswith("Traction has stopped this session.")
    assert [answer for answer in said if answer.get("continue") is False] == said[-1:]

    # That it was told is the answer to the termination: nothing is asked of anybody any more, and the incident is over.
    assert await asyncio.to_thread(spinning.hook, "SessionEnd", MOST_CALLS, "", reason="other") == {}
    notifications: list[Any] = []
    async with asyncio.timeout(SOON_SECONDS):
        while not notifications or notifications[-1].kind != "ended":
            notifications = await decoded(wire, topics.NOTIFICATIONS)
    assert [each.kind for each in notifications][-2:] == ["terminate", "ended"]
    assert {each.kind for each in notifications}.isdisjoint({"unanswered", "refused"})
    (termination,) = await decoded(wire, topics.TERMINATIONS)
    answers = [each for each in await decoded(wire, topics.CONTROL) if each.answers == termination.termination_id]
    assert [each.action for each in answers] == ["obeyed"]
    spool = tmp_path / "state" / "traction" / "spool" / "hooks"
    assert [file.name for file in spool.iterdir() if file.suffix == ".ndjson"] == []
