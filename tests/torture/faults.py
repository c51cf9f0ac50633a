"""What is done to the processes and the brokers while the load goes on: four lanes, each one fault after another.

A lane goes through its faults in an order that the seed gives, again and again, until it is told to end. Brokers have
trouble one at a time, and the next one only when all replicas are in sync: nothing that was acknowledged is lost.
"""

from __future__ import annotations

import asyncio
import logging
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError

from tests.torture.fleet import EXIT_FAILED, EXIT_LOST, SESSION_SECONDS, Fleet, Kind, Member

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.cluster import Cluster
    from tests.processes import TractionProcess

logger = logging.getLogger(__name__)

FROZEN_SECONDS = SESSION_SECONDS + 3.0
"""Past the session timeout: the group gives a frozen one up, and its partitions go to others."""

STALLED_SECONDS = SESSION_SECONDS + 2.0

PAUSED_SECONDS = 8.0
"""Past the time after which the controller gives a broker up, so that its partitions get other leaders."""

DOWN_SECONDS = 3.0

QUOTA_BYTES = 2**12
"""Largest file of a worker whose disk is full: less than its store writes before it has taken a state over."""

CALM = 0.2, 2.0
"""Seconds between two faults of a lane, at least and at most."""

BROKERS_CALM = 2.0, 7.0
"""Likewise of brokers: while these have trouble, processes wait for them, and cannot be hit at work."""

MOST_WORKERS = 4
FEWEST_WORKERS = 2

PATIENCE = 20.0
"""Seconds in which what a fault should bring about comes about; otherwise it did not bite, and is not counted."""


@dataclass
class Faults:
    """The lanes.

    Attributes:
        fleet: the processes under test.
        cluster: the brokers.
        chance: gives victims and times.
        flags: of a further worker.
        bitten: how often each fault did what it is for.
        rebalances: how often partitions moved since a member joined, left, crashed, or came back from a freeze.
        ending: no further round is begun.
    """

    fleet: Fleet
    cluster: Cluster
    chance: random.Random
    flags: Callable[[], tuple[str, ...]]
    bitten: Counter[str] = field(default_factory=Counter)
    rebalances: Counter[str] = field(default_factory=Counter)
    ending: bool = False

    def __post_init__(self) -> None:
        self._lanes: dict[str, dict[str, Callable[[], Awaitable[bool]]]] = {
            "worker": {
                "kill in flight": lambda: self._kill_in_flight("worker"),
                "freeze": lambda: self._freeze("worker", signal.SIGSTOP),
                "add": self._add,
                "term": lambda: self._term("worker"),
            },
            "another worker": {
                "freeze in flight": lambda: self._freeze("worker", signal.SIGUSR2),
                "kill": lambda: self._kill("worker"),
                "remove": self._remove,
                "disk full": self._disk_full,
            },
            "escalation": {
                "kill": lambda: self._kill("escalation"),
                "kill in flight": lambda: self._kill_in_flight("escalation"),
                "term": lambda: self._term("escalation"),
                "freeze in flight": lambda: self._freeze("escalation", signal.SIGUSR2),
            },
            "broker": {
                "kill": lambda: self._restart(self.cluster.kill),
                "stop": lambda: self._restart(self.cluster.stop),
                "pause": self._pause,
                "cut": self._cut,
                "stall": self._stall,
            },
        }

    @property
    def left(self) -> list[str]:
        """The faults that did not bite yet."""
        names = (f"{lane}: {kind}" for lane, kinds in self._lanes.items() for kind in kinds)
        return [name for name in names if not self.bitten[name]]

    async def run(self) -> None:
        """Run all lanes, until told to end."""
        async with asyncio.TaskGroup() as group:
            for name, kinds in self._lanes.items():
                group.create_task(self._lane(name, kinds, random.Random(self.chance.random())))  # noqa: S311

    async def _lane(self, name: str, kinds: dict[str, Callable[[], Awaitable[bool]]], chance: random.Random) -> None:
        waiting: list[str] = []
        while not self.ending:
            if not waiting:
                waiting = chance.sample(list(kinds), len(kinds))
            kind = waiting.pop()
            await asyncio.sleep(chance.uniform(*(BROKERS_CALM if name == "broker" else CALM)))
            bit = await kinds[kind]()
            self.bitten[f"{name}: {kind}"] += bit
            logger.info("%s: %s %s", name, kind, "did bite" if bit else "did not bite")
            if name == "broker":
                await self.in_sync()

    async def _kill(self, kind: Kind) -> bool:
        member = await self.fleet.pick(kind, self.chance)
        process = member.process
        await self._moved("crash", kind, member, process.kill)
        return process.popen.poll() == -signal.SIGKILL

    async def _kill_in_flight(self, kind: Kind) -> bool:
        member = await self.fleet.pick(kind, self.chance)
        process = member.process
        await self._moved("crash", kind, member, lambda: process.send(signal.SIGUSR1))
        # What moved may have moved for another reason, before it came to its next transaction.
        return await self._ended(process) == -signal.SIGKILL

    async def _term(self, kind: Kind) -> bool:
        member = await self.fleet.pick(kind, self.chance)
        process = member.process
        await self._moved("leave", kind, member, member.end)
        return await self._ended(process) == 0  # others have its partitions before it is gone

    async def _add(self) -> bool:
        if len(self.fleet.of("worker")) >= MOST_WORKERS:
            await self._remove()
        return await self._moved("join", "worker", None, lambda: self.fleet.add("worker", *self.flags()))

    async def _remove(self) -> bool:
        if len(self.fleet.of("worker")) <= FEWEST_WORKERS:
            await self._add()
        member = await self.fleet.pick("worker", self.chance)
        member.leaving = True
        return await self._moved("leave", "worker", member, member.end)

    async def _freeze(self, kind: Kind, how: signal.Signals) -> bool:
        """Have a process freeze until others have its partitions; in a transaction, it has to be fenced then."""
        member = await self.fleet.pick(kind, self.chance)
        process, member.busy = member.process, True
        process.send(how)
        frozen = await self._within(lambda: member.frozen)
        if not frozen:
            process.kill()  # else it froze later, when nobody wakes it
            member.busy = False
            return False
        others = [each for each in self.fleet.of(kind) if each is not member]
        heard = {id(each.process): len(each.process.lines) for each in others}
        await asyncio.sleep(FROZEN_SECONDS)
        await self._within(lambda: any(len(each.process.lines) > heard.get(id(each.process), 0) for each in others))
        said, member.busy = len(process.lines), False
        process.send(signal.SIGCONT)
        back = await self._within(lambda: member.process is not process or len(process.lines) > said)
        self.rebalances["thaw"] += back
        fenced = how is signal.SIGSTOP or await self._ended(process) == EXIT_LOST
        return back and fenced

    async def _disk_full(self) -> bool:
        workers = [each for each in self.fleet.of("worker") if each.ready and not each.busy]
        members = [member for member in workers if "rocksdb" in member.flags]
        if not members:
            return False
        member = self.chance.choice(members)
        member.full = True
        process = member.process
        self.fleet.limit(member, QUOTA_BYTES)
        ended = await self._within(lambda: process.popen.poll() is not None)
        if not ended:
            self.fleet.limit(member, -1)
        return ended and process.popen.poll() == EXIT_FAILED

    async def _moved(self, cause: str, kind: Kind, member: Member | None, act: Callable[[], object]) -> bool:
        """Do something, and wait until partitions have moved to one of the others."""
        others = [each for each in self.fleet.of(kind) if each is not member]
        said = {id(each.process): len(each.process.lines) for each in others}
        act()
        moved = await self._within(
            lambda: any(len(each.process.lines) > said.get(id(each.process), 10**6) for each in others)
        )
        self.rebalances[cause] += moved
        return moved

    async def _ended(self, process: TractionProcess) -> int | None:
        """Give the exit code of a process that is about to end; None where it goes on."""
        await self._within(lambda: process.popen.poll() is not None)
        code: int | None = process.popen.poll()
        return code

    @staticmethod
    async def _within(condition: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.05)
        return True

    async def _restart(self, end: Callable[[int], None]) -> bool:
        number = self._broker()
        await asyncio.to_thread(end, number)
        await asyncio.sleep(self.chance.uniform(0.5, DOWN_SECONDS))
        await asyncio.to_thread(self.cluster.start, number)
        return True

    async def _pause(self) -> bool:
        number = self._broker()
        self.cluster.pause(number)
        try:
            await asyncio.sleep(PAUSED_SECONDS)
        finally:
            self.cluster.resume(number)
        return True

    async def _cut(self) -> bool:
        cut = 0
        for _ in range(3):
            proxy = self.cluster.nodes[self._broker()].proxy
            assert proxy is not None
            cut += await asyncio.to_thread(proxy.cut)
            await asyncio.sleep(self.chance.uniform(0.2, 1.0))
        return cut > 0

    async def _stall(self) -> bool:
        proxy = self.cluster.nodes[self._broker()].proxy
        assert proxy is not None
        stalled = await asyncio.to_thread(proxy.stall)
        try:
            await asyncio.sleep(STALLED_SECONDS)
        finally:
            await asyncio.to_thread(proxy.flow)
        return stalled > 0

    def _broker(self) -> int:
        return self.chance.choice(list(self.cluster.nodes))

    async def in_sync(self) -> None:
        """Wait until all brokers are back and all replicas in sync."""
        client = AIOKafkaClient(bootstrap_servers=self.cluster.bootstrap, request_timeout_ms=5_000)
        try:
            while True:
                # Of a broker that is starting aiokafka takes it for sure that it knows others.
                with suppress(KafkaError, AssertionError):
                    if not client.cluster.brokers():
                        await client.bootstrap()
                    found = await client.fetch_all_metadata()
                    parts = [part for topic in found._partitions.values() for part in topic.values()]
                    if len(found.brokers()) == len(self.cluster.nodes) and all(
                        len(part.isr) == len(part.replicas) for part in parts
                    ):
                        return
                await asyncio.sleep(0.3)
        finally:
            await client.close()
