"""The job that each engine does, and what is told to the process of one: which engine, where, how much.

An event is decoded and its session's state changed; what it means to its task changes the task's; alerts go to their
topic. This module imports no Kafka client: stock Faust must find aiokafka as it is, and ours is changed in places.
"""

from __future__ import annotations

import mmap
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

import detectors
from detectors import Limits, SessionState, Step, TaskState
from schemas.decode import check_key, decode
from schemas.encode import encode
from schemas.outputs import Alert, Position
from schemas.topics import TOOL_CALLS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from detectors import TaskEvent
    from schemas.events import SessionInput
    from schemas.topics import Topic
    from streams.forwarded import Origin

INPUT: Final[Topic] = TOOL_CALLS
"""The one topic of the load: of several, nobody could tell in which order a session's events are applied."""

FIELDS: Final = ("applied", "told", "began", "last", "cpu_seconds", "owned")
"""What a process tells of itself: events applied to sessions and to tasks; when the first and the last was, in seconds
since 1970; the processor time that it had used when the first came; and of Traction's worker how many partitions it has
and is ready for."""


class Plan(msgspec.Struct, frozen=True):
    """What the process of an engine is told.

    Attributes:
        engine: its name.
        bootstrap: the broker.
        prefix: of the topics' names.
        app_id: the group, and what the names of its own topics start with.
        partitions: of the input.
        empty: whether events are only counted.
        progress: file to tell in how far it is.
        directory: for its files.
        cores: processor cores that it may use; all when there are none.
    """

    engine: str
    bootstrap: str
    prefix: str
    app_id: str
    partitions: int
    empty: bool
    progress: str
    directory: str
    cores: tuple[int, ...] = ()

    @property
    def input(self) -> str:
        """Name of the topic of events."""
        return f"{self.prefix}{INPUT.name}"


def take_plan() -> Plan:
    """Read the plan from the command line, and keep to its cores."""
    plan = msgspec.json.decode(sys.argv[1], type=Plan)
    pin(plan.cores)
    return plan


def pin(cores: Sequence[int]) -> None:
    """Keep this process, and what it starts, to some cores, where the system can."""
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)


class Meter:
    """The detectors, or what only counts, noting in a shared file what was applied and when.

    Args:
        plan: names the file, and says which of the two.
    """

    def __init__(self, plan: Plan) -> None:
        with Path(plan.progress).open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 8 * len(FIELDS))
        self._told = memoryview(self._map).cast("d")
        self._step = count if plan.empty else detectors.step

    def owns(self, partitions: int) -> None:
        """Note that so many partitions are owned, and their states read back."""
        self._told[FIELDS.index("owned")] = partitions

    def step(self, state: SessionState, event: SessionInput, limits: Limits) -> Step:
        """Apply an event to its session."""
        told = self._told
        if not told[0]:
            told[4] = time.process_time()
            told[2] = time.time()
        found = self._step(state, event, limits)
        told[0] += 1
        told[3] = time.time()
        return found

    def observe_task(self, state: TaskState, event: TaskEvent, limits: Limits) -> list[Alert]:
        """Apply an event to its task."""
        found = detectors.observe_task(state, event, limits)
        self._told[1] += 1
        self._told[3] = time.time()
        return found


def count(state: SessionState, event: SessionInput, limits: Limits) -> Step:
    """Count an event and do nothing else: the empty detector."""
    del event, limits
    state.calls += 1
    return Step([])


class Job:
    """Judges events one after the other, as the engines but Traction's do: the task at once, after the session.

    That is allowed since here each session is a task of its own, so that both have one key and one order.

    Args:
        meter: has the detectors.
    """

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._limits = Limits()

    def read(self, key: Any, value: Any, headers: Any) -> SessionInput:
        """Decode an event and check its key."""
        event = cast("SessionInput", decode(INPUT, value, headers))
        check_key(INPUT, event, key)
        return event

    def judge(self, state: SessionState, event: SessionInput) -> Step:
        """Apply an event to its session."""
        return self._meter.step(state, event, self._limits)

    def judge_task(self, state: TaskState, told: TaskEvent) -> list[Alert]:
        """Apply to the task what an event means to it."""
        return self._meter.observe_task(state, told, self._limits)


def placed(alert: Alert, place: Origin) -> Alert:
    """Say in an alert where the event stands that brought it about."""
    position = Position(topic=place.topic, partition=place.partition, offset=place.offset)
    return msgspec.structs.replace(alert, evidence=msgspec.structs.replace(alert.evidence, position=position))


def records(alerts: Sequence[Alert], place: Origin) -> Iterator[tuple[bytes, bytes]]:
    """Give key and value of the alerts' records."""
    for alert in alerts:
        yield alert.task_id.encode(), encode(placed(alert, place))
