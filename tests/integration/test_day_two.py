"""What happens to sessions where there are to be more partitions, on a real broker; tests/docs has the rest of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from aiokafka.admin import NewPartitions

from schemas import topics
from schemas.common import Task
from streams.kafka import admin, running
from streams.topics import create_topics
from tests.integration.conftest import run
from tests.kit import Wire, WorkerInside, outcome, tool_call, without_position
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from schemas.events import ToolCall
    from tests.kit import WorkerProcess

MORE = 6
"""Partitions that there are to be, in place of the 4 of the tests."""


def looping(sessions: int) -> list[list[ToolCall]]:
    """Give sessions that loop, of a task of their own each: what they do first, and what they do then."""
    each = [
        [
            tool_call(f"s{session}", number, arguments={"path": "a"}, result="the same", task=Task(id=f"t{session}"))
            for session in range(sessions)
        ]
        for number in range(6)
    ]
    return [[event for row in part for event in row] for part in (each[:2], each[2:])]


async def test_more_partitions_beside_the_old(wire: Wire) -> None:
    """The command tells how many would be split; with topics of their own for new sessions, nobody is."""
    first, then = looping(12)
    beside = Wire(replace(wire.settings, prefix=f"{wire.settings.prefix}more."), f"{wire.app_id}-more", MORE)
    later = [tool_call("new", number, arguments={"path": "a"}, result="the same") for number in range(6)]
    assert (await run(wire, "topics", "plan-partitions", str(MORE)))["safe"] is True  # nothing is remembered yet
    async with WorkerInside(wire):
        await wire.send(first)
        await wire.until_applied()
        told = await run(wire, "topics", "plan-partitions", str(MORE), code=1)
        (sessions,) = [each for each in told["moves"] if each["topic"] == wire.changelog]
        assert sessions["kept"] == 12
        assert 0 < sessions["moved"] < 12
        assert (told["problems"], sessions["astray"]) == ([], 0)
        assert (await run(wire, "topics", "plan-partitions", "4"))["safe"] is True
        assert "can be taken away" in (await run(wire, "topics", "plan-partitions", "2", code=1))["problems"][0]

        await create_topics(beside.settings, partitions=MORE, replication=1, app_id=beside.app_id)
        async with WorkerInside(beside):
            await asyncio.gather(wire.send(then), beside.send(later))
            await asyncio.gather(wire.until_applied(), beside.until_applied())
    wanted = outcome([*first, *then, *later])
    found = [*await wire.alerts(), *await beside.alerts()]
    assert {alert.alert_id: without_position(alert) for alert in found} == wanted.alerts != {}
    assert len(found) == len(wanted.alerts)


async def enlarge(wire: Wire, names: set[str], count: int) -> None:
    """Give topics so many partitions, and wait until the brokers know of them."""
    async with running(admin(wire.settings), wire.settings) as client:
        await client.create_partitions({name: NewPartitions(count) for name in names})

        async def enlarged() -> bool:
            found = await client.describe_topics()
            return {len(each["partitions"]) for each in found if each["topic"] in names} == {count}

        await until(enlarged)


class Refusing(WorkerInside):
    """A worker that is told now what others learn within minutes: how many partitions there are."""

    said: tuple[int, str] | None = None

    def _abandon(self, code: int, message: str) -> NoReturn:  # type: ignore[override]  # it is called on the instance
        self.said = self.said or (code, message)
        raise AssertionError(message)

    async def refresh(self) -> tuple[int, str]:
        """Have it learn that, and give how it ends."""
        thread: Any = self.worker.consumer._thread
        await thread.call_thread(thread._consumer._client.force_metadata_update)

        async def ends() -> bool:
            return self.said is not None

        await until(ends)
        assert self.said is not None
        return self.said


async def test_added_partitions_are_refused_and_told(wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """A worker at work ends, and the command finds what was split; on inputs that differ none starts."""
    async with Refusing(wire) as one:
        await wire.send(looping(12)[0])
        await wire.until_applied()
        told = await run(wire, "topics", "plan-partitions", "4")
        await enlarge(wire, set(told["partitions"]), MORE)
        code, why = await one.refresh()
    assert (code, f"started with {wire.partitions}" in why, "plan-partitions 6" in why) == (3, True, True)
    told = await run(wire, "topics", "plan-partitions", str(MORE), code=1)
    assert told["problems"] == []
    assert sum(each["astray"] for each in told["moves"]) > 0
    await enlarge(wire, {wire.settings.topic(topics.TOOL_CALLS)}, MORE + 1)
    worker = start()
    assert await worker.exit() == 1
    assert "these must have equally many partitions" in worker.log
    told = await run(wire, "topics", "plan-partitions", str(MORE + 1), code=1)
    assert "these must have equally many partitions" in told["problems"][0]
