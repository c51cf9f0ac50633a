"""Exactly once, wherever the consumer is killed or frozen: what it wrote equals what one uninterrupted pass writes."""

from __future__ import annotations

import asyncio
import os
import signal
import uuid
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from detectors import TaskEvent
from schemas import topics
from schemas.common import Agent
from streams.escalation.consumer import EscalationSettings
from streams.kafka import KafkaSettings
from streams.topics import create_topics, ladders_name
from tests.streams.escalation import crash_kit
from tests.streams.escalation.conftest import SESSION_SECONDS, Inside, Wire, names
from tests.streams.escalation.crash_kit import NOW, Point
from tests.waiting import until

if TYPE_CHECKING:
    from schemas.topics import Topic
    from tests.streams.escalation.conftest import MakeAlert

LATER = NOW + timedelta(minutes=2)
"""Past the first answer that is waited for."""

OUTPUTS = (topics.DIRECTIVES, topics.TERMINATIONS, topics.NOTIFICATIONS, topics.KNOWN_FLAPPING, topics.DEAD_LETTERS)


SENDS = 11
"""Records of the first transaction."""

AT_ONCE = 10
"""Points that are tried at a time: each waits for a session timeout, and more would wait for each other."""

POINTS = [
    *(Point(step) for step in ("fence", "restore", "begin", "offsets", "before commit", "commit")),
    *(Point("send", number) for number in range(1, SENDS + 1)),
    *(Point(step, freeze=True) for step in ("fence", "begin", "send", "before commit")),
    *(Point(step, now=LATER) for step in ("send", "before commit", "commit")),
    Point("begin", freeze=True, now=LATER),
]
"""Frozen at `begin`, all is decided and nothing said to the brokers yet: only fencing keeps it from being written."""


class Written(NamedTuple):
    """All that a reader of committed records finds: values by topic, in any order, and what is kept by key."""

    outputs: dict[str, Counter[bytes | None]]
    kept: dict[str, dict[bytes, bytes | None]]


async def written(wire: Wire) -> Written:
    """Read everything that was written, as if under one prefix."""
    ours, common = wire.settings.prefix.encode(), b"common."

    async def values(topic: Topic) -> list[bytes | None]:
        return [record.value and record.value.replace(ours, common) for record in await wire.records(topic)]

    outputs = {each.name: Counter(await values(each)) for each in OUTPUTS}
    kept: dict[str, Any] = {}
    for name in (ladders_name(wire.group), wire.settings.topic(topics.FITNESS)):
        kept[name.removeprefix(wire.settings.prefix)] = {each.key: each.value for each in await wire.records(name)}
    return Written(outputs, kept)


async def set_up(bootstrap: str, records: list[Any]) -> Wire:
    """Make topics of one partition, and write what is to be answered."""
    kafka = KafkaSettings(bootstrap=bootstrap, prefix=f"t{uuid.uuid4().hex[:12]}.")
    await create_topics(kafka, partitions=1, replication=1, **names(kafka.prefix))
    wire = Wire(kafka)
    await wire.send(records)
    return wire


async def passed(wire: Wire, now: datetime, consumer: Inside | None = None) -> None:
    """Have a consumer in this process answer everything, and do what is due, at a time."""
    async with consumer or Inside(wire, clock=lambda: now) as running:
        unit = running.escalation._ownerships.current()[0]

        async def done() -> bool:
            due = unit.ladders._schedule and unit.ladders._schedule[0][0] <= now.timestamp() * 1000
            return unit.caught_up and unit.alerts.done == unit.alerts.end and not due

        await until(done)


async def die(wire: Wire, point: Point) -> Any:
    """Have a consumer die at a point, another one go on, and a frozen one thaw; give the exit code of the first."""
    if point.now > NOW:
        await passed(wire, NOW)
    settings = EscalationSettings(wire.group, wire.app_id, session_timeout_ms=SESSION_SECONDS * 1000)
    process = crash_kit.begin(wire.settings, settings, point)
    try:
        if point.freeze:
            await until(lambda: frozen(process.pid))
        else:
            await asyncio.to_thread(process.join, 20)
        await passed(wire, point.now)
        if point.freeze:
            os.kill(process.pid, signal.SIGCONT)
            await asyncio.to_thread(process.join, 3 if point.step == "fence" else 20)
        return process.exitcode
    finally:
        process.kill()
        await asyncio.to_thread(process.join)


def codes(point: Point) -> set[int | None]:
    """Give with what a process may end: one that was frozen in a transaction, by no other word than that of fencing."""
    if not point.freeze:
        return {-signal.SIGKILL}
    return {crash_kit.EXIT_FENCED} if point.step != "fence" else {crash_kit.EXIT_FENCED, None}


async def frozen(number: int) -> bool:
    """Tell whether a process is stopped."""
    stat = await asyncio.to_thread(Path(f"/proc/{number}/stat").read_text)
    return stat.rpartition(") ")[2][0] == "T"


@pytest.mark.timeout(240)
async def test_dying_at_any_step_repeats_and_loses_nothing(bootstrap: str, alert: MakeAlert) -> None:
    """Killed or frozen at each step of answers and of timers: outputs, ladders and counts are those of one pass."""
    agent = Agent(name="a", role="coder", model="m", config="c")
    records = [
        alert("a1", agent=agent),
        alert("a2", level="terminate", agent=agent),
        TaskEvent("e1", "s1", "task of s1", 1_000, agent=agent, word="user_message"),
        alert("b1", session_id="s2", agent=agent),
        b"junk",
    ]
    once = await set_up(bootstrap, records)
    await passed(once, NOW)
    expected = {NOW: await written(once)}
    assert sum(map(Counter.total, expected[NOW].outputs.values())) + sum(map(len, expected[NOW].kept.values())) == SENDS
    await passed(once, LATER)
    expected[LATER] = await written(once)
    assert {each.name for each in OUTPUTS if expected[NOW].outputs[each.name]} == {each.name for each in OUTPUTS}
    assert expected[LATER].outputs["terminations"].total() == 1 + expected[NOW].outputs["terminations"].total()

    turns = asyncio.Semaphore(AT_ONCE)

    async def differences(point: Point) -> str:
        async with turns:
            wire = await set_up(bootstrap, records)
            code = await die(wire, point)
            assert code in codes(point), (point, code)
            same = await written(wire) == expected[point.now]
            return "" if same else f"{point}"

    assert not list(filter(None, await asyncio.gather(*map(differences, POINTS))))
