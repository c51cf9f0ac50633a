"""Plays the sessions and follows what Traction says of them; stops a session when its termination comes.

The player takes the places of the agents and of their orchestrator: it publishes calls as they are made, and obeys.
What came of it is kept and compared with what was expected.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from schemas import topics
from schemas.events import Control, ToolCall
from schemas.outputs import Alert, Directive, Termination
from streams.kafka import KafkaSettings, consumer, producer, running
from streams.publish import Sender

if TYPE_CHECKING:
    from schemas.events import SessionInput
    from streams.demo.cast import Part, Role
    from streams.demo.screen import Screen

PLAY_SECONDS = 28.0
"""How long the longest session is played."""

THINKING_SECONDS = 1.5
"""How long the agents take, told their tasks, until their first calls."""

SETTLE_SECONDS = 15.0
"""How long is waited, after the last call, for what is still expected."""

QUIET_SECONDS = 2.0
"""How long is watched, when all that is expected has come, for what should not."""


@dataclass(slots=True)
class Account:
    """What came of the sessions.

    Attributes:
        made: calls made, by session.
        alerts: levels and call positions of the alerts, by session.
        directives: actions of the directives, by session.
        terminations: records on the topic of terminations, by session.
        stopped: sessions that were stopped by their termination.
    """

    made: Counter[str] = field(default_factory=Counter)
    alerts: defaultdict[str, list[tuple[str, int]]] = field(default_factory=lambda: defaultdict(list))
    directives: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    terminations: Counter[str] = field(default_factory=Counter)
    stopped: set[str] = field(default_factory=set)

    def levels(self, name: str) -> set[str]:
        """Give the levels that a session's alerts have reached."""
        return {level for level, _ in self.alerts[name]} - {"recovered"}

    def as_expected(self, role: Role) -> bool:
        """Tell whether what happened to a session is what was expected, no less and no more."""
        levels = {"warn"} if role.warned else set()
        levels |= {"terminate"} if role.terminated else set()
        return (
            self.levels(role.name) == levels
            and self.terminations[role.name] == role.terminated
            and bool(self.directives[role.name]) == role.warned
            and (role.name in self.stopped) == role.terminated
        )

    def words(self, name: str) -> str:
        """Say in words what happened to a session."""
        said = [f"{level} at #{position}" for level, position in self.alerts[name]]
        if self.terminations[name]:
            times = "" if self.terminations[name] == 1 else f" {self.terminations[name]} times"
            said.append(f"stopped{times}" if name in self.stopped else f"terminated{times}, not stopped")
        return ", ".join(said) or "silence"


class Story:
    """The play, and the audience's view of it.

    Attributes:
        account: what came of it so far.
    """

    def __init__(self, kafka: KafkaSettings, parts: list[Part], screen: Screen, *, speed: float = 1.0) -> None:
        self.account = Account()
        self._kafka = kafka
        self._parts = parts
        self._screen = screen
        self._factor = PLAY_SECONDS / max(part.seconds for part in parts) / speed
        self._verdicts: dict[str, str] = {}
        self._stops = {part.role.name: asyncio.Event() for part in parts}
        self._complete = asyncio.Event()

    async def run(self) -> None:
        """Play to the end, and wait for what is expected and for what is not."""
        client = producer(self._kafka, acks="all")
        async with running(client, self._kafka):
            sender = Sender(self._kafka, client, lambda _: None)
            following = asyncio.create_task(self._follow())
            playing = asyncio.create_task(self._perform(sender))
            try:
                await asyncio.wait({playing, following}, return_when=asyncio.FIRST_COMPLETED)
                if following.done():
                    following.result()  # it only ends by failing
                await playing
            finally:
                following.cancel()
                playing.cancel()

    async def _perform(self, sender: Sender) -> None:
        """Play all sessions, then wait for what is expected, and watch for what is not."""
        for part in self._parts:
            for event in part.opening:
                await self._send(event, sender)
        await sender.settle()
        await asyncio.sleep(THINKING_SECONDS)
        await asyncio.gather(*(self._play(part, sender) for part in self._parts))
        await sender.settle()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SETTLE_SECONDS):
                await self._complete.wait()
        await asyncio.sleep(QUIET_SECONDS)

    async def _play(self, part: Part, sender: Sender) -> None:
        """Play one session; it ends early when it is terminated."""
        name = part.role.name
        start = asyncio.get_running_loop().time()
        for seconds, position, event in part.cues():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(start + seconds * self._factor):
                    await self._stops[name].wait()
            if self._stops[name].is_set():
                await self._obey(part, position, sender)
                return
            await self._send(event, sender)
            if isinstance(event, ToolCall):
                self.account.made[name] += 1
                self._screen.call(name, position, event)

    async def _send(self, event: SessionInput, sender: Sender) -> None:
        """Publish an event as happening now."""
        await sender.send(msgspec.structs.replace(event, occurred_at=datetime.now(UTC)))

    async def _obey(self, part: Part, position: int, sender: Sender) -> None:
        """Stop a session as its orchestrator would, and say so on the control topic."""
        name = part.role.name
        answers = self._verdicts[name]
        await sender.send(
            Control(
                event_id=f"{answers}:obeyed",
                session_id=name,
                occurred_at=datetime.now(UTC),
                action="obeyed",
                answers=answers,
                actor="demo",
            )
        )
        self.account.stopped.add(name)
        self._screen.obeyed(name, position, part.calls)
        self._check()

    async def _follow(self) -> None:
        """Read what Traction writes, committed records only, and show it."""
        alerts, directives, terminations = (
            self._kafka.topic(topic) for topic in (topics.ALERTS, topics.DIRECTIVES, topics.TERMINATIONS)
        )
        client = consumer(self._kafka, fetch_max_wait_ms=100)
        client.subscribe([alerts, directives, terminations])
        async with running(client, self._kafka):
            async for record in client:
                if record.topic == alerts:
                    self._alert(msgspec.json.decode(record.value, type=Alert))
                elif record.topic == directives:
                    self._directive(msgspec.json.decode(record.value, type=Directive))
                else:
                    self._termination(msgspec.json.decode(record.value, type=Termination))

    def _alert(self, alert: Alert) -> None:
        self.account.alerts[alert.session_id].append((alert.level, alert.seq))
        self._screen.alert(alert)
        self._check()

    def _directive(self, directive: Directive) -> None:
        self.account.directives[directive.session_id].append(directive.action)
        self._screen.directive(directive)
        self._check()

    def _termination(self, termination: Termination) -> None:
        self.account.terminations[termination.session_id] += 1
        self._screen.termination(termination)
        self._check()
        self._verdicts.setdefault(termination.session_id, termination.termination_id)
        if termination.session_id in self._stops:
            self._stops[termination.session_id].set()

    def _check(self) -> None:
        if all(self.account.as_expected(part.role) for part in self._parts):
            self._complete.set()
