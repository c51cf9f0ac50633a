"""Whatever writers, rotation, cuts and kills do: every event is sent, in order, the same each time, and few twice."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from streams.follow.batch import MOST_EVENTS
from streams.plain import encoded
from tests.streams.follow.kit import Killed, World, call, name

FILES = st.sampled_from(["a", "b", "c"])


class Following(RuleBasedStateMachine):
    """Three transcripts, each of one session, whose calls are numbered on whatever becomes of the file."""

    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.TemporaryDirectory()
        self.loop = asyncio.Runner()
        self.world = World(Path(self.place.name))
        self.next = dict.fromkeys("abc", 0)
        self.left = dict.fromkeys("abc", b"")
        self.rotations = 0
        self.kills = 0

    @initialize(tails=st.integers(1, 3), turn_bytes=st.sampled_from([1, 700, 10**6]))
    def begin(self, tails: int, turn_bytes: int) -> None:
        """Follow with few files open, and reading little at a time, or not."""
        self.world.start(tails=tails, turn_bytes=turn_bytes)
        self.turns()

    @rule(file=FILES, count=st.integers(1, 50))
    def talk(self, file: str, count: int) -> None:
        """Have the agent say more than is written yet."""
        numbers = range(self.next[file], self.next[file] + count)
        self.left[file] += b"".join(call(number, file) for number in numbers)
        self.next[file] += count

    @rule(file=FILES, share=st.floats(0, 1))
    def write(self, file: str, share: float) -> None:
        """Write some of it, up to anywhere in a line."""
        count = round(len(self.left[file]) * share)
        data, self.left[file] = self.left[file][:count], self.left[file][count:]
        if data:
            self.world.write(f"{file}.jsonl", data)

    @rule(file=FILES)
    def write_all(self, file: str) -> None:
        """Write all of it."""
        self.write(file, 1.0)

    @rule()
    def turn(self) -> None:
        """Let the follower look once."""
        self.loop.run(self.turning(1))

    @rule(file=FILES)
    def rotate(self, file: str) -> None:
        """Rename a file that was noticed, and perhaps not read to its end, and begin another."""
        self.write_all(file)
        path = self.world.folder / f"{file}.jsonl"
        self.turn()
        if path.exists():
            self.rotations += 1
            path.rename(path.with_name(f"{path.name}.{self.rotations}"))

    @rule(file=FILES)
    def cut(self, file: str) -> None:
        """Cut a file that was read."""
        self.write_all(file)
        self.turns()
        if (self.world.folder / f"{file}.jsonl").exists():
            self.world.write(f"{file}.jsonl", b"", "wb")

    @rule(file=FILES, count=st.integers(0, 3))
    def write_anew(self, file: str, count: int) -> None:
        """Put a copy with more in it in the place of a file."""
        self.write_all(file)
        self.turns()
        path = self.world.folder / f"{file}.jsonl"
        if path.exists():
            self.world.write("new", path.read_bytes(), "wb")
            self.talk(file, count)
            more, self.left[file] = self.left[file], b""
            self.world.write("new", more).rename(path)

    @rule()
    def restart(self) -> None:
        """End the process, and start another."""
        self.world.start()

    @rule()
    def kill(self) -> None:
        """End the process after the brokers have the next batch, and before that is noted."""
        self.world.sink.killed = True
        try:
            self.loop.run(self.turning(2))
        except Killed:
            self.kills += 1
            self.world.start()
        self.world.sink.killed = False

    def turns(self) -> None:
        """Let the follower read all that there is."""
        self.loop.run(self.turning(3))
        while self.world.follower._due:
            self.turn()

    async def turning(self, count: int) -> None:
        """Let so many turns go by."""
        await self.world.turns(count)

    @invariant()
    def nothing_is_told_wrong(self) -> None:
        """No half line is a fault, and nothing is refused."""
        assert not self.world.happened("fault")
        assert not self.world.happened("refused")

    def teardown(self) -> None:
        """See in the end that all was sent."""
        try:
            for file in self.next:
                self.write_all(file)
            self.turns()
            contents: dict[str, bytes] = {}
            for event in self.world.sink.events:
                assert contents.setdefault(event.event_id, encoded(event, "full")[1]) == encoded(event, "full")[1]
            assert len(self.world.sink.events) - len(contents) <= self.kills * MOST_EVENTS
            for file, count in self.next.items():
                assert [each for each in contents if each.startswith(file)] == [name(n, file) for n in range(count)]
        finally:
            self.world.end()
            self.loop.close()
            self.place.cleanup()


Following.TestCase.settings = settings(
    max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestFollowing = Following.TestCase
