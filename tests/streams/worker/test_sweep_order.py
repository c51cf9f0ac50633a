"""Sweeps change nothing while inputs lag behind one another, commits are under way and clocks differ."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from aiokafka import TopicPartition
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.topics import MS_PER_HOUR, TASK_EVENTS
from streams.worker.keeping import SLACK_MS
from streams.worker.sweep import reached_ms
from tests.streams.worker.conftest import SETTINGS, TELLING, Bench
from tests.streams.worker.test_keeping import BEGIN_MS, HOURS, WHAT, kept_of, not_too_old, records_of

if TYPE_CHECKING:
    from aiokafka.structs import ConsumerRecord

    from streams.worker.partition import Snapshot

MOVES = st.tuples(
    st.sampled_from(["apply", "apply", "wait", "sweep", "sweep", "take", "settle", "commit", "own"]),
    st.integers(0, 5),
)
WAITS = (1, 23, 24, 25, 168, 169)
"""Hours: around the times that are kept."""


class Run:
    """Two partitions that apply the same records in one order, of which one is swept.

    Args:
        records: in the order in which the brokers append them.
        skew_ms: by how much the worker's clock is ahead.
    """

    def __init__(self, records: list[ConsumerRecord], skew_ms: int) -> None:
        self.logs: dict[str, list[ConsumerRecord]] = defaultdict(list)
        for each in records:
            self.logs[each.topic].append(each)
        self.read = dict.fromkeys(self.logs, 0)
        self.now_ms, self.skew_ms = BEGIN_MS, skew_ms
        self.plain, self.swept = Bench(TELLING), Bench(TELLING)
        self.put: tuple[list[Any], list[Any]] = ([], [])
        self.on_its_way: Snapshot | None = None

    def move(self, what: str, number: int) -> None:
        """Do one thing, or nothing where it cannot be done now."""
        if what == "apply":
            self.apply(number)
        elif what == "wait":
            self.now_ms += WAITS[number % len(WAITS)] * MS_PER_HOUR
        elif what == "sweep":
            self.sweep(number)
        elif what == "settle" and self.on_its_way is not None:
            self.settle(number)
        elif what == "take" and self.on_its_way is None:
            self.on_its_way = self.swept.partition.snapshot()
        elif what == "commit" and self.on_its_way is None:
            self._note(1, self.swept.commit())
        elif what == "own" and self.on_its_way is None:
            self._note(1, self.swept.commit())
            positions = self.swept.partition.positions
            self.swept.own().positions = positions

    def apply(self, number: int) -> None:
        """Apply the next record of one of the inputs of which any is there, or wait for the next one to come."""
        nexts = {name: each.timestamp for name in self.logs if (each := self._next(name))}
        if not nexts:
            return
        self.now_ms = max(self.now_ms, min(nexts.values()))
        waiting = [name for name, at_ms in nexts.items() if at_ms <= self.now_ms]
        name = waiting[number % len(waiting)]
        record = self.logs[name][self.read[name]]
        self.read[name] += 1
        for bench in (self.plain, self.swept):
            bench.apply([record])
        assert _state(self.swept, record) == _state(self.plain, record)
        self._note(0, self.plain.commit())

    def sweep(self, number: int) -> None:
        """Sweep, and have a record applied between asking for the ends and removing anything, now and then."""
        ends = dict.fromkeys((TopicPartition(name, 0) for name in SETTINGS.inputs), 0)
        for name, log in self.logs.items():
            there = [each.offset + 1 for each in log if each.timestamp <= self.now_ms]
            ends[TopicPartition(name, 0)] = max(there, default=0)
        now_ms = self.now_ms + self.skew_ms
        if number % 3 == 0:
            self.apply(number)
        partition = self.swept.partition
        for table, stored, of_tasks in (
            (partition.sessions, self.swept.stored, False),
            (partition.tasks, self.swept.stored_tasks, True),
        ):
            inputs = {name: topic for name, topic in SETTINGS.inputs.items() if (topic is TASK_EVENTS) is of_tasks}
            kept = kept_of(self.swept, stored)
            partition.expire(table, list(table.stored_keys()), kept, reached_ms(partition, inputs, ends, now_ms))

    def settle(self, most: int) -> None:
        """Have the transaction that is under way committed, and what is not needed dropped from memory."""
        assert self.on_its_way is not None
        self.swept.partition.settle(self.on_its_way)
        self._note(1, self.on_its_way)
        self.on_its_way = None
        self.swept.partition.trim(most)

    def finish(self) -> None:
        """Apply what is left, and commit."""
        self.now_ms = max(self.now_ms, *(log[-1].timestamp for log in self.logs.values()))
        while any(self._next(name) for name in self.logs):
            self.apply(0)
        if self.on_its_way is not None:
            self.settle(0)
        self._note(1, self.swept.commit())

    def _next(self, name: str) -> ConsumerRecord | None:
        log, read = self.logs[name], self.read[name]
        return log[read] if read < len(log) else None

    def _note(self, which: int, taken: Snapshot | None) -> None:
        if taken is not None:
            self.put[which].extend((out.topic, out.key, out.value, out.headers) for out in taken.outgoing)


def _state(bench: Bench, record: ConsumerRecord) -> Any:
    """Give what is kept of the session or task that a record belongs to."""
    live = bench.partition.table(SETTINGS.inputs[record.topic]).get(record.key)
    return (live.form.encode(live.state), live.applied) if live.kept else None


@settings(max_examples=200, deadline=None)
@given(
    steps=st.lists(st.tuples(WHAT, st.sampled_from("ab"), HOURS), min_size=2, max_size=25),
    moves=st.lists(MOVES, max_size=80),
    skew_ms=st.sampled_from([0, -SLACK_MS, SLACK_MS]),
)
def test_sweeps_change_nothing_whichever_input_is_behind(
    steps: list[tuple[str, str, int]], moves: list[tuple[str, int]], skew_ms: int
) -> None:
    """One input hours before another, sweeps before, during and after commits, restarts, a clock an hour off."""
    run = Run(list(records_of(steps)), skew_ms)
    for what, number in moves:
        run.move(what, number)
    run.finish()
    assert run.put[0] == run.put[1]
    assert not_too_old(run.plain, run.now_ms) == not_too_old(run.swept, run.now_ms)
