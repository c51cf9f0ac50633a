"""Transcripts that grow, followed by a process of its own that is killed, judged by a worker, on a real broker."""

from __future__ import annotations

import json
import shutil
import signal
from typing import TYPE_CHECKING

import pytest

from schemas import topics
from schemas.decode import decode
from schemas.events import ToolCall
from streams.importers import Session, read_path
from tests.kit import WorkerProcess, outcome, without_position
from tests.processes import TRACTION, TractionProcess
from tests.streams.follow.kit import answers, asks, call, name
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from schemas.events import SessionInput
    from tests.kit import Wire

SPINS = {"type": "tool_use", "name": "Bash", "input": {"command": "make test"}}


def spin(number: int) -> bytes:
    """Give the lines of a call that is made again and again, with the same result."""
    line = json.loads(asks(number))
    line["message"]["content"] = [SPINS | {"id": f"call{number}"}]
    return json.dumps(line).encode() + b"\n" + answers(number, text="2 failed")


@pytest.fixture
def follow(wire: Wire, tmp_path: Path) -> Iterator[Callable[[], TractionProcess]]:
    """Give a starter of followers of one folder; none outlives the test."""
    started: list[TractionProcess] = []
    (tmp_path / "watched").mkdir()

    def begin() -> TractionProcess:
        place = ("--bootstrap", wire.settings.bootstrap, "--prefix", wire.settings.prefix)
        flags = ("--state", str(tmp_path / "state"), "--interval", "0.1", str(tmp_path / "watched"))
        started.append(TractionProcess(TRACTION, "follow", *place, *flags))
        return started[-1]

    yield begin
    for process in started:
        process.kill()


async def test_a_loop_is_told_while_it_grows(
    wire: Wire, start: Callable[..., WorkerProcess], follow: Callable[[], TractionProcess], tmp_path: Path
) -> None:
    """A spinning agent without hooks is told of while it spins; kill -9 at any moment loses and doubles nothing.

    Among the moments: after events are acknowledged, and before anybody could note it.
    """
    worker = start()
    await worker.ready(wire.partitions)
    path = tmp_path / "watched" / "s1.jsonl"

    def write(data: bytes) -> None:
        with path.open("ab") as file:
            file.write(data)

    async def arrived(count: int) -> None:
        async def there() -> bool:
            return len({each.event_id for each in await sent(wire)}) >= count

        await until(there)

    following = follow()
    await following.ready()
    write(b"".join(map(call, range(5))) + b"".join(map(spin, range(5, 10))))
    await arrived(10)

    async def alerted() -> bool:
        return any(alert.level == "terminate" for alert in await wire.alerts())

    await until(alerted)
    following.kill()
    shutil.copytree(tmp_path / "state", tmp_path / "before")
    write(b"".join(map(spin, range(10, 20))) + asks(20)[:50])
    following = follow()
    await following.ready()
    await arrived(20)
    following.send(signal.SIGKILL)
    await following.exit()
    shutil.rmtree(tmp_path / "state")
    (tmp_path / "before").rename(tmp_path / "state")  # as it is where it was killed before it could note
    write(asks(20)[50:] + answers(20) + b"".join(map(spin, range(21, 30))))
    following = follow()
    await following.ready()
    await arrived(30)
    assert await following.end() == 0

    await wire.until_applied()
    records = await sent(wire)
    assert len(records) > 30  # some came twice
    assert list(dict.fromkeys(each.event_id for each in records)) == [name(number) for number in range(30)]
    (session,) = (found for found in read_path(path) if isinstance(found, Session))
    wanted = outcome(session.events)
    alerts = await wire.alerts()
    assert sorted(alert.alert_id for alert in alerts) == sorted(wanted.alerts)
    assert {alert.alert_id: without_position(alert) for alert in alerts} == wanted.alerts
    assert (await wire.states())["s1"].calls == 30
    assert await worker.end() == 0


async def sent(wire: Wire) -> list[SessionInput]:
    """Read the calls that were sent, in order."""
    records = await wire.records(wire.settings.topic(topics.TOOL_CALLS))
    events = [decode(topics.TOOL_CALLS, record.value, record.headers) for record in records]
    return [event for event in events if isinstance(event, ToolCall)]
