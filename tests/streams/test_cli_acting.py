"""What people and orchestrators decide has its effect, through a worker and an escalation consumer at work."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from schemas import topics
from schemas.common import Task
from schemas.events import ToolCall
from streams.client import Directive, Item, Orchestrator, Termination
from streams.topics import create_topics
from tests.processes import TRACTION, TractionProcess
from tests.streams.asking_kit import ask, group, lines
from tests.streams.outputs_kit import found, now, put
from tests.waiting import SOON_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from streams.kafka import KafkaSettings

POLICY = """
[ladder]
answer_seconds = 0.5
answer_attempts = 100
"""


@pytest.fixture
async def at_work(kafka: KafkaSettings, tmp_path: Path) -> AsyncIterator[KafkaSettings]:
    """Give topics that a worker and an escalation consumer work on; what is not answered is repeated at once."""
    app = kafka.prefix.rstrip(".")
    await create_topics(kafka, partitions=2, replication=1, app_id=app, group=group(kafka))
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY, "utf-8")
    where = ("--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix, "--app-id", app, "--port", "0")
    processes = [
        TractionProcess(TRACTION, "worker", *where),
        TractionProcess(TRACTION, "escalate", *where, "--group", group(kafka), "--policy", str(policy)),
    ]
    try:
        for process in processes:
            await process.ready()
        yield kafka
    finally:
        for process in processes:
            process.kill()


async def loop(kafka: KafkaSettings, session: str, times: int) -> None:
    """Have a session make one call with one result so many times."""
    calls = [
        ToolCall(
            event_id=f"{session}-{n}", session_id=session, occurred_at=now(), tool="read_file",
            arguments={"path": "a.py"}, result="x", status="ok", task=Task(id=f"task of {session}"),
        )
        for n in range(times)
    ]  # fmt: skip
    await put(kafka, *calls)


async def standing(kafka: KafkaSettings, session: str, **wanted: Any) -> dict[str, Any]:
    """Wait until a session stands as it should, and give its row."""
    async with asyncio.timeout(SOON_SECONDS):
        while True:
            rows = {row["session_id"]: row for row in await lines(kafka, "sessions", "list")}
            row: dict[str, Any] = rows.get(session, {})
            if row and wanted.items() <= {name: row[name] for name in wanted}.items():
                return row
            await asyncio.sleep(0.1)


async def test_a_loop_is_stopped_and_people_have_their_say(at_work: KafkaSettings) -> None:
    """A loop is shown, stopped and forgiven; another session is stopped by a person; an alert is taken back."""
    kafka = at_work
    await loop(kafka, "looping", 5)
    async with Orchestrator(kafka, group=f"{kafka.prefix}fleet") as orchestrator, asyncio.timeout(SOON_SECONDS):
        items: dict[type[Item], Item] = {}
        while len(items) < 2:
            item = await anext(orchestrator)
            items[type(item)] = item
        await orchestrator.answer(items[Directive], "obeyed")
        termination = items[Termination]
        assert isinstance(termination, Termination)
        row = await standing(kafka, "looping", state="waiting")
        assert (row["task_id"], row["detector"], row["rung"]) == ("task of looping", "identical", "terminate")
        while max(each.attempt for each in await found(kafka, topics.TERMINATIONS)) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.1)

        await orchestrator.answer(termination, "obeyed", reason="stopped it")
        await standing(kafka, "looping", state="stopped", attempt=None, until=None)  # nobody waits for an answer
        (shown,) = await lines(kafka, "sessions", "show", "looping")
        kinds = [entry["kind"] for entry in shown["timeline"]]
        assert {"alert", "directive", "termination", "control"} <= set(kinds)
        assert shown["report"]["title"]

        assert await orchestrator.known_flapping("task of looping")
        assert (await ask(kafka, "tasks", "show", "task of looping")).return_value == 4
        assert (await ask(kafka, "tasks", "clear", "task of looping", "--wait", "60")).return_value == 0
        assert await orchestrator.known_flapping("task of looping") is None

        await loop(kafka, "calm", 1)
        ran = await ask(kafka, "sessions", "terminate", "calm", "--force", "--reason", "enough", "--wait", "60")
        assert ran.return_value == 0, ran.stderr
        while not isinstance(item := await anext(orchestrator), Termination):
            pass
        assert (item.session_id, item.detector) == ("calm", "person")
        await orchestrator.answer(item, "ended")
        await standing(kafka, "calm", state="stopped")

        await loop(kafka, "wronged", 3)
        row = await standing(kafka, "wronged", state="warned", rung="inject_guidance")
        ran = await ask(kafka, "alerts", "wrong", row["alert_id"], "--quiet-for", "1d", ladders=False)
        assert "identical says nothing of this loop until" in ran.stdout
        await standing(kafka, "wronged", rung="")
