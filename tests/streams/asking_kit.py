"""What the tests of the commands share that look things up: running one here, and ladders for it to find."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from streams.cli import traction
from streams.escalation.state import Climb, LadderState, Pending, encode_ladder
from streams.topics import ladders_name
from tests.streams.outputs_kit import alert, make, now, put_raw

if TYPE_CHECKING:
    from click.testing import Result

    from streams.kafka import KafkaSettings


def group(kafka: KafkaSettings) -> str:
    """Name the test's escalation group."""
    return f"{kafka.prefix}group"


async def ask(kafka: KafkaSettings, *words: str, ladders: bool = True) -> Result:
    """Run a command that looks things up, in a thread, since it has an event loop of its own."""
    where = ["--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix, "--log-level", "error"]
    where += ["--group", group(kafka)] if ladders else []
    command = [*words, *where]
    return await asyncio.to_thread(lambda: CliRunner().invoke(traction, command, standalone_mode=False))


async def lines(kafka: KafkaSettings, *words: str, ladders: bool = True, code: int = 0) -> list[Any]:
    """Run one with --json, and give what it prints."""
    ran = await ask(kafka, *words, "--json", ladders=ladders)
    assert (ran.return_value or 0, ran.exception) == (code, None), ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


async def told(kafka: KafkaSettings, *words: str, ladders: bool = True) -> str:
    """Run one that fails in words, and give them."""
    ran = await ask(kafka, *words, ladders=ladders)
    assert ran.exception is not None
    assert ran.stdout == ""
    return str(getattr(ran.exception, "message", ran.exception))


async def make_ladders(kafka: KafkaSettings) -> None:
    """Create the topic of ladders."""
    await make(kafka, ladders_name(group(kafka)))


async def put_ladder(kafka: KafkaSettings, state: LadderState | None, task_id: str = "t1") -> None:
    """Write a task's ladder, or that there is none any more."""
    await put_raw(kafka, ladders_name(group(kafka)), task_id, None if state is None else encode_ladder(state))


def ladder(session_id: str = "s1", task_id: str = "t1", **climb: Any) -> LadderState:
    """Make a ladder on which one session stands."""
    at = round(now().timestamp() * 1_000)
    climb = {"last_ms": at, "alert": alert(session_id=session_id, task_id=task_id), **climb}
    return LadderState(task_id=task_id, climbs={session_id: Climb(**climb)}, active={session_id: at})


def pending() -> Pending:
    """Make a termination that waits for an answer, due in a minute."""
    return Pending("x1", "alert-1", "l1", "identical", "why", now(), 2, round(now().timestamp() * 1_000) + 60_000)
