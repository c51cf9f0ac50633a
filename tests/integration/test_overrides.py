"""Overrides hold for the sessions they name, from the first event a worker applies on, and until they expire."""

from __future__ import annotations

import signal
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from schemas import topics
from schemas.common import Agent, Task
from schemas.encode import encode
from schemas.events import Override, ToolCall
from tests.kit import BEGIN, tool_call
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.kit import Wire, WorkerProcess


async def put(wire: Wire, scope: str, **fields: Any) -> None:
    """Write an override."""
    value = encode(Override(scope=scope, set_at=BEGIN, **fields))
    await wire.raw(topics.OVERRIDES, value, key=scope.encode())


def loop(session: str, count: int = 3, **fields: Any) -> list[ToolCall]:
    """Give equal calls of a session: 3 bring a warning by default."""
    return [tool_call(session, number, arguments={"path": "a"}, result="the same", **fields) for number in range(count)]


async def test_overrides(wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """Scopes, precedence, mute, expiry by the event's time, and removal, all set before the worker starts."""
    await put(wire, "role:debugger", limits={"identical.warn": 4})
    await put(wire, "session:both", limits={"identical.warn": 2})
    await put(wire, "repo:o/docs", mute=True)
    await put(wire, "task:t1", limits={"mode": "observe"})
    await put(wire, "session:expired", mute=True, expires_at=BEGIN + timedelta(seconds=1))
    await put(wire, "session:removed", mute=True)
    await wire.raw(topics.OVERRIDES, None, key=b"session:removed")
    await start().ready(4)
    debugger = Agent(role="debugger")
    await wire.send(
        [
            *loop("role", 4, agent=debugger),
            *loop("both", 2, agent=debugger),
            *loop("repo", task=Task(repo="o/docs")),
            *loop("task", task=Task(id="t1")),
            *loop("expired"),
            *loop("removed"),
        ]
    )
    await wire.until_applied()
    found = {alert.session_id: alert for alert in await wire.alerts()}
    assert {name: (alert.count, alert.muted, alert.mode) for name, alert in found.items()} == {
        "role": (4, False, "enforce"),
        "both": (2, False, "enforce"),
        "repo": (3, True, "enforce"),
        "task": (3, False, "observe"),
        "expired": (3, False, "enforce"),
        "removed": (3, False, "enforce"),
    }
    assert found["role"].limits[0].layer == "override:role:debugger"
    assert found["both"].limits[0].layer == "override:session:both"


async def test_overrides_are_followed(wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """An override set while workers run reaches all of them, and the session's own word of its agent is remembered.

    A SIGHUP ends none of them, though there is no policy to read.
    """
    one, two = start(), start()
    await one.ready(2)
    await two.ready(2)
    two.send(signal.SIGHUP)
    names = [f"s{number}" for number in range(8)]
    await wire.send([tool_call(name, 100, agent=Agent(role="debugger")) for name in names])
    await put(wire, "role:debugger", mute=True)

    async def told() -> bool:
        return all("override for role:debugger is in force" in worker.log for worker in (one, two))

    await until(told)
    await wire.send([call for name in names for call in loop(name)])  # these do not say the role
    await wire.until_applied()
    assert [alert.muted for alert in await wire.alerts()] == [True] * 8
    assert "SIGHUP: there is no policy file to read" in two.log
    assert two.popen.poll() is None


async def test_overrides_that_cannot_be_used(wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """They are ignored and in the dead letters once, whatever number of workers read them, and restart."""
    await put(wire, "session:a", limits={"identical.wran": 4})
    await wire.raw(topics.OVERRIDES, b"{}", key=b"session:b")
    one, two = start(), start()
    await one.ready(2)
    await two.ready(2)
    await put(wire, "session:c", limits={"identical.warn": 0})

    async def written() -> bool:
        return len(await wire.dead_letters()) >= 3

    await until(written)
    assert await one.end() == 0
    await two.ready(4, after=1)
    three = start()
    await three.ready(2)
    await wire.send(loop("a"))
    await wire.until_applied()
    letters = {record.key: dict(record.headers) for record in await wire.dead_letters()}
    assert len(await wire.dead_letters()) == 3
    assert letters.keys() == {b"session:a", b"session:b", b"session:c"}
    message = letters[b"session:a"]["__traction.errors.message"].decode()
    assert "there is no limit 'identical.wran'" in message
    assert len(await wire.alerts()) == 1
