"""The processes under test, and what starts them again when they end, as a supervisor would.

Each is the product, run by `tests.torture.armed`, behind the brokers' proxies. One that ends with a code that nobody
expects fails the run, with its log.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
import resource
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tests.processes import TractionProcess

if TYPE_CHECKING:
    from tests.torture.ledger import Place

logger = logging.getLogger(__name__)

Kind = Literal["worker", "escalation"]

SESSION_SECONDS = 6
"""The shortest session timeout that brokers allow by default."""

EXIT_FAILED = 1
EXIT_LOST = 3

EXPECTED = {0, EXIT_LOST, -signal.SIGKILL, -signal.SIGUSR1, -signal.SIGUSR2}
"""Exit codes of a process that was told to end, was fenced or lost its brokers, or was killed; the last two are of one
that was ending already, when Python handles signals no more."""

FENCED = re.compile(r"fenced: another worker owns|was taken over")
"""What is logged by one whose partitions another one has."""

DEFECT = re.compile(r"must never happen|please report it")
"""What no log may contain."""

AWAY = re.compile(r"Kafka at .+ cannot be used")
"""What a process says that finds no brokers when it starts: whatever runs it has to start it again."""

START_SECONDS = 90.0
END_SECONDS = 60.0


@dataclass
class Member:
    """One place in the fleet, in which a process is kept running.

    Attributes:
        kind: what runs there.
        flags: of its command.
        process: the one that runs now.
        leaving: it is not started again.
        full: its disk is.
        busy: something is being done to it.
        told: the process that was told to end.
    """

    kind: Kind
    flags: tuple[str, ...]
    process: TractionProcess
    leaving: bool = False
    full: bool = False
    busy: bool = False
    told: TractionProcess | None = None

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self.process.popen.poll() is None

    @property
    def ready(self) -> bool:
        """Whether its process has said that it is ready."""
        return self.alive and bool(self.process.lines)

    def end(self) -> None:
        """Tell its process to end, once: a second signal ends it at once, with another exit code."""
        if self.told is not self.process:
            self.told = self.process
            self.process.send(signal.SIGTERM)

    @property
    def frozen(self) -> bool:
        """Whether its process is stopped."""
        try:
            stat = Path(f"/proc/{self.process.popen.pid}/stat").read_text()
        except OSError:
            return False
        return stat.rpartition(") ")[2][:1] == "T"


@dataclass
class Fleet:
    """Workers and escalation consumers.

    Attributes:
        place: where they work.
        files: directory of the settings, the policy and the states.
        point: where a signal makes them die or freeze; see `tests.torture.armed`.
        unfenced: whether fencing is switched off.
        members: the places.
        ends: processes that ended, by kind and exit code.
        fenced: those that ended since they were fenced, by kind.
        failures: what must not have happened.
        starts: how many were started.
    """

    place: Place
    files: Path
    point: str = "sent"
    unfenced: bool = False
    members: list[Member] = field(default_factory=list)
    ends: Counter[tuple[Kind, int]] = field(default_factory=Counter)
    fenced: Counter[Kind] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    starts: int = 0

    def add(self, kind: Kind, *flags: str) -> Member:
        """Add a place, and start its process."""
        member = Member(kind, flags, self._start(kind, flags))
        self.members.append(member)
        return member

    def of(self, kind: Kind) -> list[Member]:
        """Give the places of one kind that are to stay."""
        return [member for member in self.members if member.kind == kind and not member.leaving]

    async def pick(self, kind: Kind, chance: random.Random) -> Member:
        """Choose one that is at work and left alone; wait for one where there is none."""
        while True:
            members = [each for each in self.of(kind) if each.ready and not each.busy and each.told is not each.process]
            if members:
                return chance.choice(members)
            await asyncio.sleep(0.1)

    async def supervise(self) -> None:
        """Start again what ended, until cancelled."""
        while True:
            for member in list(self.members):
                if not member.alive:
                    await self._ended(member)
            await asyncio.sleep(0.1)

    async def shared(self, kind: Kind, seconds: float = START_SECONDS) -> bool:
        """Wait until all are at work and each partition is one's; False when that does not come about."""
        wanted = list(range(self.place.partitions))
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            members = self.of(kind)
            owned = [number for member in members for number in member.process.partitions]
            if sorted(owned) == wanted and all(member.ready for member in members):
                return True
            await asyncio.sleep(0.1)
        return False

    async def end(self) -> None:
        """Have all end in order, while they are supervised."""
        for member in self.members:
            member.leaving = True
            member.end()
        deadline = time.monotonic() + END_SECONDS
        while self.members:
            assert time.monotonic() < deadline, f"{[member.kind for member in self.members]} do not end"
            await asyncio.sleep(0.1)

    def kill(self) -> None:
        """End all at once, and keep what they told."""
        for member in self.members:
            member.process.kill()
            self._keep(member)

    def limit(self, member: Member, size: int) -> None:
        """Let a process's files grow no further than so many bytes."""
        resource.prlimit(member.process.popen.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    async def _ended(self, member: Member) -> None:
        process = member.process
        code = await process.exit()
        self.ends[member.kind, code] += 1
        logger.info("%s %d ended with %d", member.kind, process.popen.pid, code)
        self._keep(member)
        self.fenced[member.kind] += code == EXIT_LOST and FENCED.search(process.log) is not None
        expected = code in EXPECTED or (code == EXIT_FAILED and (member.full or AWAY.search(process.log)))
        if not expected or DEFECT.search(process.log):
            self.failures.append(f"{member.kind} {process.popen.pid} ended with {code}: {process.log[-8_000:]}")
        member.full = False
        if member.leaving:
            self.members.remove(member)
        else:
            member.process = self._start(member.kind, member.flags)

    def _keep(self, member: Member) -> None:
        (self.files / f"{member.kind}-{member.process.popen.pid}.log").write_text(member.process.log)

    def _start(self, kind: Kind, flags: tuple[str, ...]) -> TractionProcess:
        place = self.place
        self.starts += 1
        settings = (
            *("--bootstrap", place.bootstrap, "--prefix", place.kafka.prefix, "--app-id", place.app_id),
            *("--port", "0", "--session-timeout", str(SESSION_SECONDS)),
        )
        command = {
            "worker": ("--config", str(self.files / "settings.toml"), "worker", *settings),
            "escalation": ("escalate", *settings, "--policy", str(self.files / "policy.toml")),
        }[kind]
        unfenced = ("--unfenced",) if self.unfenced else ()
        return TractionProcess(sys.executable, "-m", "tests.torture.armed", *unfenced, self.point, *command, *flags)
