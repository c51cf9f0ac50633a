"""Tasks that flap can be seen, asked for by scripts, and cleared with what the worker needs to know them again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from schemas import topics
from schemas.common import Task
from streams.escalation.state import LadderState
from tests.streams.asking_kit import ask, ladder, lines, make_ladders, put_ladder, told
from tests.streams.outputs_kit import alert, answers, directive, known_flapping, put, put_raw, soon, termination

if TYPE_CHECKING:
    from streams.kafka import KafkaSettings

TASK = Task(id="t1", type="bugfix", repo="acme/shop")


async def test_tasks_are_listed(kafka: KafkaSettings) -> None:
    """Those that flap first, then those that climb; an entry that has expired or was removed is none."""
    assert (await ask(kafka, "tasks", "list")).stdout.startswith("no task is known to flap")
    await put(kafka, known_flapping(), known_flapping("gone"), known_flapping("old", expires_at=soon(seconds=-1)))
    await put_raw(kafka, kafka.topic(topics.KNOWN_FLAPPING), "gone", None)
    await make_ladders(kafka)
    await put_ladder(kafka, ladder("s2", "a2", rung="cooldown"), "a2")
    rows = await lines(kafka, "tasks", "list")
    assert [(row["task_id"], row["state"]) for row in rows] == [("t1", "known_flapping"), ("a2", "climbing")]
    shown = (await ask(kafka, "tasks", "list")).stdout.splitlines()
    assert [line.split()[0] for line in shown] == ["TASK", "t1", "a2"]


async def test_a_task_is_shown_with_its_sessions(kafka: KafkaSettings) -> None:
    """Over all its sessions and of no other task; the exit code tells whether it may be tried again."""
    await put(
        kafka,
        alert("a1"), alert("a2", session_id="s2"), alert("a3", session_id="s3", task_id="t2"),
        directive(session_id="s2"), directive("d2", task_id="t2"), termination(), known_flapping(),
    )  # fmt: skip
    (shown,) = await lines(kafka, "tasks", "show", "t1", code=4)
    assert {entry["id"] for entry in shown["timeline"]} == {"a1", "a2", "d1", "x1"}
    assert shown["standing"]["state"] == "known_flapping"
    ran = await ask(kafka, "tasks", "show", "t1")
    assert ran.return_value == 4
    assert "s2: warn identical" in ran.stdout

    (other,) = await lines(kafka, "tasks", "show", "t2", code=0)
    assert other["standing"]["state"] == "quiet"
    assert await told(kafka, "tasks", "show", "t") == (
        "nothing is known of task t. No alert, ladder or list names it. Did you mean t1?"
    )


async def test_clearing_names_task_and_session(kafka: KafkaSettings) -> None:
    """Of the entry, else of the ladder; the task with all that is known of it, since it takes its place."""
    await put(kafka, known_flapping(session_id="s7", task=TASK))
    await make_ladders(kafka)
    await put_ladder(kafka, ladder("s2", "t2"), "t2")
    await put_ladder(kafka, LadderState(task_id="t3", used={"abandon": 1}), "t3")
    for task_id in ("t1", "t2"):
        ran = await ask(kafka, "tasks", "clear", task_id, "--by", "dana", "--reason", "fixed")
        assert f"wrote clear of {task_id}" in ran.stdout
    one, two = sorted(await answers(kafka), key=lambda each: each.session_id, reverse=True)
    assert (one.action, one.session_id, one.task, one.actor, one.reason) == ("clear", "s7", TASK, "dana", "fixed")
    assert (two.session_id, two.task) == ("s2", Task(id="t2"))

    assert "nothing was written" in (await ask(kafka, "tasks", "clear", "t3")).stdout
    assert "nothing is known of task t9" in await told(kafka, "tasks", "clear", "t9")
    assert len(await answers(kafka)) == 2


async def test_waiting_ends_when_the_task_is_cleared(kafka: KafkaSettings) -> None:
    """When its entry is removed, or without an entry its ladder; 3 when that does not come in time."""
    await put(kafka, known_flapping())
    await make_ladders(kafka)
    await put_ladder(kafka, ladder("s2", "t2"), "t2")
    for task_id in ("t1", "t2"):
        assert (await ask(kafka, "tasks", "clear", task_id, "--wait", "0.5")).return_value == 3

    async def clear(task_id: str) -> None:
        before = len(await answers(kafka))
        while len(await answers(kafka)) == before:  # noqa: ASYNC110 - Kafka tells nobody
            await asyncio.sleep(0.1)
        if task_id == "t1":
            await put_raw(kafka, kafka.topic(topics.KNOWN_FLAPPING), "t1", None)
        else:
            await put_ladder(kafka, None, "t2")

    for task_id in ("t1", "t2"):
        clearing = asyncio.create_task(clear(task_id))
        ran = await ask(kafka, "tasks", "clear", task_id, "--wait", "60")
        await clearing
        assert (ran.return_value, ran.stdout.splitlines()[-1]) == (0, f"done: {task_id} may be tried again")
