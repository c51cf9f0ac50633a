"""Forgetting a session and a task, by the command, with a worker and escalation at work on a real broker."""

from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from click.testing import CliRunner

from schemas import topics
from schemas.common import Task
from schemas.encode import encode
from schemas.events import Override
from streams.cli import forget as command
from streams.cli import traction
from streams.cli.looking import EXIT_UNSEEN
from streams.kafka import KafkaSettings
from streams.topics import default_group, ladders_name
from tests.integration.conftest import run
from tests.kit import BEGIN, WorkerProcess, attempt, tool_call
from tests.processes import TRACTION, TractionProcess
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from schemas.events import SessionInput
    from tests.kit import Wire

DIES = """
import os, signal
from aiokafka import AIOKafkaProducer
from streams.cli import main

send, commit, told = AIOKafkaProducer.send, AIOKafkaProducer.commit_transaction, []

async def sends(self, topic, *args, **given):
    if b"forget" in (given.get("value") or b""):
        told.append(self)
    return await send(self, topic, *args, **given)

async def commits(self):
    if self in told:
        os.kill(os.getpid(), signal.SIGKILL)
    await commit(self)

AIOKafkaProducer.send, AIOKafkaProducer.commit_transaction = sends, commits
main()
"""
"""A worker that dies when all that a word to forget brings about was sent, and before it is committed."""

MINE, OTHER, SHARED = "session-mine", "session-other", "task-shared"


def story(session: str, task: str) -> list[SessionInput]:
    """Give a session that is to be stopped for its loop, and tried twice at the task that both work for."""
    calls: list[SessionInput] = [
        tool_call(session, number, arguments={"path": "a"}, result="the same", task=Task(id=task))
        for number in range(8)
    ]
    return [*calls, *(attempt(session, number, SHARED) for number in range(2))]


@pytest.fixture
async def escalating(wire: Wire) -> Iterator[TractionProcess]:  # type: ignore[misc]  # pytest gives what it yields
    """Have escalation at work."""
    settings = wire.settings
    process = TractionProcess(
        TRACTION, "escalate", "--bootstrap", settings.bootstrap, "--prefix", settings.prefix,
        "--app-id", wire.app_id, "--port", "0",
    )  # fmt: skip
    try:
        await process.ready()
        yield process
    finally:
        process.kill()


async def forget(wire: Wire, *words: str, code: int = 0) -> Any:
    """Run the command, and give what it tells."""
    return await run(wire, "forget", *words, "--by", "ann", code=code)


async def kept(wire: Wire) -> dict[tuple[str, str], bytes]:
    """Give what is left, after compaction, in the topics where something is remembered: by topic and key."""
    ladders = ladders_name(default_group(wire.app_id))
    named = [wire.settings.topic(topic) for topic in (topics.KNOWN_FLAPPING, topics.OVERRIDES, topics.TERMINATIONS)]
    found: dict[tuple[str, str], bytes] = {}
    for name in (wire.changelog, wire.tasks_changelog, ladders, *named):
        for record in await wire.records(name):
            place = (name.removeprefix(wire.settings.prefix), (record.key or b"").decode("utf-8", "replace"))
            if record.value is None:
                found.pop(place, None)
            else:
                found[place] = record.value
    return found


def named(found: dict[tuple[str, str], bytes], name: str) -> set[str]:
    """Name the topics in which something is kept under an id."""
    return {topic for topic, key in found if key.removeprefix("session:") == name}


async def settled(wire: Wire) -> None:
    """Wait until both sessions' alerts were answered."""

    async def stopped() -> bool:
        records = await wire.records(wire.settings.topic(topics.TERMINATIONS))
        return {record.key.decode() for record in records} == {MINE, OTHER}

    await wire.until_applied()
    await until(stopped)


async def test_nothing_is_left_of_a_session_and_then_of_a_task(
    wire: Wire, start: Callable[..., WorkerProcess], escalating: TractionProcess
) -> None:
    """Nowhere but where records only age, which is told; others are untouched; what goes on begins anew."""
    del escalating
    worker = start()
    await worker.ready(4)
    await wire.send([*story(MINE, "task-mine"), *story(OTHER, "task-other")])
    override = Override(scope=f"session:{MINE}", set_at=BEGIN, mode="explore")
    await wire.raw(topics.OVERRIDES, encode(override), key=override.scope.encode())
    await settled(wire)
    before = await kept(wire)
    sessions = wire.changelog.removeprefix(wire.settings.prefix)
    assert named(before, MINE) == {sessions, "overrides", "terminations"}

    dry = await forget(wire, "session", MINE, "--dry-run")
    assert (dry["written"], await wire.inputs(topics.CONTROL)) == (False, [])
    told = await forget(wire, "session", MINE, "--terminations", "--wait", "30")
    assert told["seen"] is True
    stays = {each["topic"].removeprefix(wire.settings.prefix): each for each in told["stays"]}
    assert stays["tool-calls"]["hours"] == 7 * 24
    assert stays["terminations"]["hours"] == 4 * 7 * 24
    after = await kept(wire)
    assert named(after, MINE) == set()
    # What is told of a task, or of another session, because of several of them goes with the task.
    saying = {key for (_, key), value in after.items() if MINE.encode() in value}
    assert saying <= {SHARED, OTHER}
    assert not any(MINE.encode() in value for (topic, _), value in after.items() if topic.endswith("changelog"))
    assert after[sessions, OTHER] == before[sessions, OTHER]
    assert named(after, "task-other") == named(before, "task-other")
    assert (await wire.tasks())[SHARED].tried == 2

    async def forgotten() -> bool:
        return (await worker.metrics())["traction_live_sessions",] == 1

    await until(forgotten)

    assert (await forget(wire, "session", MINE, "--wait", "30"))["seen"] is True  # once more
    assert named(await kept(wire), MINE) == set()
    await wire.send([tool_call(MINE, 20)])
    await wire.until_applied()
    assert (await wire.states())[MINE].calls == 1

    assert (await forget(wire, "task", SHARED, "--sessions", "--wait", "30"))["seen"] is True

    async def gone() -> bool:  # of the task's id as a session's there was nothing to wait for
        left = await kept(wire)
        return named(left, SHARED) | named(left, OTHER) == {"terminations"}

    await until(gone)


async def test_a_crash_leaves_it_done_or_not_begun(wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """Killed before the commit, the state is as it was; the next worker does it whole, and who waited so long sees it.

    Without a worker the wait comes to its end, and says so.
    """
    named_so = ("--instance-id", "one")  # else the group would wait for the one that is gone
    dies = start(*named_so, program=DIES)
    await dies.ready(4)
    await wire.send(story(MINE, "task-mine"))
    await wire.until_applied()
    before = await wire.stored()
    assert (await forget(wire, "session", MINE))["written"] is True
    await dies.exit()
    assert await wire.stored() == before
    assert (await forget(wire, "session", MINE, "--wait", "1", code=EXIT_UNSEEN))["seen"] is False
    words = len(await wire.inputs(topics.CONTROL))
    waiting = asyncio.create_task(forget(wire, "session", MINE, "--wait", "90"))

    async def said() -> bool:
        return len(await wire.inputs(topics.CONTROL)) > words

    await until(said)
    assert not waiting.done()
    await start(*named_so).ready(4)
    assert (await waiting)["seen"] is True
    await wire.until_applied()

    async def gone() -> bool:
        return await wire.stored() == {}

    await until(gone)
    told = [record for record in await wire.records(wire.task_events) if b"forget" in record.value]
    assert {record.key.decode() for record in told} == {"task-mine", SHARED, MINE}


@pytest.mark.parametrize(("seconds", "seen"), [(3.0, False), (3.1, True)])
async def test_the_end_of_the_wait(monkeypatch: pytest.MonkeyPatch, seconds: float, seen: bool) -> None:  # noqa: FBT001
    """One wait is for all places: the last of four is looked at a moment before the end, and not at the end."""
    clock = SimpleNamespace(now=100.0, looked=0)

    class Slow:
        def __init__(self, *_: object) -> None:
            pass

        async def stands(self, *_: object) -> bool:
            clock.now, clock.looked = clock.now + 1.0, clock.looked + 1
            return True

    @contextlib.asynccontextmanager
    async def reading(*_: object) -> AsyncIterator[Any]:
        yield SimpleNamespace(has=lambda _: True)

    monkeypatch.setattr(command, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(command, "Effect", Slow)
    monkeypatch.setattr(command, "_reading", reading)
    asked = command.Asked(KafkaSettings(), "a", "g", 1.0, "session", "s", sessions=False, terminations=False)
    found = await command._wait(asked, [("session", "s")], cast("Any", SimpleNamespace(tasks=())), seconds)
    assert (found, clock.looked) == (seen, 3 + seen)


async def test_an_id_that_nobody_knows(wire: Wire) -> None:
    """Nothing is written unless it is forced: a misspelt id would otherwise stay remembered unnoticed."""
    assert "nothing is known of session nobody" in await forget(wire, "session", "nobody", code=1)
    assert await wire.inputs(topics.CONTROL) == []
    await forget(wire, "session", "nobody", "--force")
    assert len(await wire.inputs(topics.CONTROL)) == 2
    told = await forget(wire, "task", "nobody", "--force", "--wait", "5")
    assert told["seen"] is True  # there was nothing


@pytest.mark.parametrize("words", [("session", "s", "--sessions"), ("task", "t", "--terminations"), ("agent", "a")])
def test_wrong_use(words: tuple[str, ...]) -> None:
    """Options that mean nothing for what is named are refused, before anything is asked of the brokers."""
    assert CliRunner().invoke(traction, ["forget", *words]).exit_code == 2
