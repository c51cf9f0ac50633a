"""A follower over a folder of the test's own, a sink that remembers, and lines of transcripts."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from streams.follow import Follower, FollowSettings, Notes, Told
from streams.follow.sinks import Away

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from schemas.events import SessionInput
    from streams.follow.sinks import Outgoing

SESSION = "s1"


def asks(number: int, session: str = SESSION, **fields: Any) -> bytes:
    """Give the line of Claude Code with the n-th call."""
    block = {"type": "tool_use", "id": f"call{number}", "name": "Read", "input": {"file_path": f"{number}.py"}}
    return _line(session, number, "assistant", {"id": f"m{number}", "role": "assistant", "content": [block]}, fields)


def answers(number: int, session: str = SESSION, text: str = "fine", **fields: Any) -> bytes:
    """Give the line with its result."""
    block = {"type": "tool_result", "tool_use_id": f"call{number}", "content": text}
    return _line(session, number, "user", {"role": "user", "content": [block]}, fields)


def call(number: int, session: str = SESSION) -> bytes:
    """Give both lines."""
    return asks(number, session) + answers(number, session)


def calls(numbers: Sequence[int], session: str = SESSION) -> bytes:
    """Give the lines of some calls."""
    return b"".join(call(number, session) for number in numbers)


def neutral(number: int, session: str = SESSION, **fields: Any) -> bytes:
    """Give a line of the neutral form, of a call without an id."""
    line = {"session_id": session, "tool": "read", "args": {"path": f"{number}.py"}, "result": "fine", "error": False}
    return json.dumps(line | fields).encode() + b"\n"


def name(number: int, session: str = SESSION) -> str:
    """Give the event_id of a call."""
    return f"{session}/call{number}"


def names(numbers: Sequence[int], session: str = SESSION) -> list[str]:
    """Give the event_ids of some calls."""
    return [name(number, session) for number in numbers]


def _line(session: str, number: int, kind: str, message: dict[str, Any], fields: dict[str, Any]) -> bytes:
    at = f"2026-03-02T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"
    line = {"type": kind, "sessionId": session, "uuid": f"{session}{kind}{number}", "timestamp": at, "message": message}
    return json.dumps(line | fields).encode() + b"\n"


class Killed(Exception):
    """The process is gone."""


@dataclass
class Taking:
    """A sink that remembers.

    Attributes:
        batches: what was taken.
        away: raise this many times before anything is taken.
        killed: after it has taken the next batch, the process ends.
        refuse: identifiers that are never taken.
    """

    batches: list[list[SessionInput]] = field(default_factory=list)
    away: int = 0
    killed: bool = False
    refuse: tuple[str, ...] = ()

    @property
    def events(self) -> list[SessionInput]:
        """All that was taken, in order."""
        return [event for batch in self.batches for event in batch]

    @property
    def ids(self) -> list[str]:
        """The identifiers of it."""
        return [event.event_id for event in self.events]

    async def send(self, batch: Sequence[Outgoing]) -> list[tuple[str, str]]:
        """Take a batch."""
        if self.away:
            self.away -= 1
            raise Away("nobody is there")
        self.batches.append([each.event for each in batch if each.event.event_id not in self.refuse])
        if self.killed:
            self.killed = False
            raise Killed
        return [(each.event.event_id, "no") for each in batch if each.event.event_id in self.refuse]


class World:
    """A folder, and who follows it; may be ended and started again.

    Args:
        folder: the test's own.
        settings: how it is followed.
    """

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder / "watched"
        self.folder.mkdir()
        self.state = folder / "state"
        self.sink = Taking()
        self.told: list[Told] = []
        self._heard: dict[str, asyncio.Event] = {}
        self.settings: dict[str, Any] = {"roots": (str(self.folder),), "interval": 0.01} | settings
        self.stop = asyncio.Event()
        self.notes: Notes | None = None
        self._clock = 0

    def start(self, **settings: Any) -> Follower:
        """Begin to follow, as a new process."""
        self.end()
        self.settings |= settings
        self.notes = Notes(self.state)
        self.follower = Follower(FollowSettings(**self.settings), self.notes, self.sink, self._hear, self.stop)
        return self.follower

    def end(self) -> None:
        """End as after a kill: what is not noted is not."""
        if self.notes is not None:
            self.notes.__exit__()
            self.notes = None
            self.follower.close()

    async def turns(self, count: int = 4) -> None:
        """Let some turns go by: all that is there is found and read by then."""
        for _ in range(count):
            await self.follower.turn()

    async def started(self, **settings: Any) -> None:
        """Begin to follow, and see what is there."""
        self.start(**settings)
        await self.turns(2)

    def write(self, file: str, data: bytes, mode: str = "ab") -> Path:
        """Write to a file, at another time than all writes before."""
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open(mode) as stream:
            stream.write(data)
        self._clock += 1
        at = path.stat().st_mtime_ns // 10**9 * 10**9 + self._clock
        os.utime(path, ns=(at, at))
        return path

    async def until(self, what: str) -> None:
        """Wait until one thing was told."""
        await self._heard.setdefault(what, asyncio.Event()).wait()

    def _hear(self, told: Told) -> None:
        self.told.append(told)
        self._heard.setdefault(told.what, asyncio.Event()).set()

    def happened(self, what: str) -> list[Told]:
        """Give what was told of one kind."""
        return [told for told in self.told if told.what == what]
