"""What is remembered of one task over all its sessions: bounded, versioned, and compact when encoded."""

from typing import Any, Final, TypeVar

import msgspec

from detectors.canonical import digest
from detectors.excerpt import named
from detectors.tasks.facts import Attempt, Spent, TaskEvent
from detectors.versions import Versions
from detectors.watch import Loop, Told
from schemas.common import Agent, Task

TASK_VERSION: Final = 2
"""Version of the encoded form of a task's state. A change of it needs a step in `VERSIONS`."""

EVENT_VERSION: Final = 2
"""Version of the encoded form of a task's events, likewise: `Attempt` and what it is made of is part of both."""

MAX_TASK_BYTES: Final = 16_000
"""Of a task's encoded state, whatever comes: `fitting` sees to it."""

MAX_ATTEMPTS: Final = 12  # latest attempts that are remembered
MAX_PULLS: Final = 4  # pull requests under review at once
MAX_FINDINGS: Final = 64  # remarks remembered of one pull request


class Pull(msgspec.Struct, array_like=True):
    """One pull request under review.

    ``rounds`` counts the rounds in a row in which an agent asked for changes. ``open`` are prints of the remarks of the
    latest round, each with the number of rounds in a row that made it; ``fixed`` prints of earlier ones that were gone
    since, ``returned`` of those that came back with the latest round. ``events`` are the latest rounds' event ids.
    ``number`` is that of the latest round, None where it was not sent; ``open_before`` and ``fixed_before`` are what
    was open and fixed when it began, ``step`` and ``round_ms`` the task's step and the time of the latest review.
    """

    pull_request: int
    name: str
    rounds: int = 0
    since_ms: int = 0
    comments: int = 0
    open: list[tuple[bytes, int]] = msgspec.field(default_factory=list)
    fixed: list[bytes] = msgspec.field(default_factory=list)
    returned: list[bytes] = msgspec.field(default_factory=list)
    events: list[str] = msgspec.field(default_factory=list)
    spent: Spent = Spent()
    number: int | None = None
    open_before: list[tuple[bytes, int]] = msgspec.field(default_factory=list)
    fixed_before: list[bytes] = msgspec.field(default_factory=list)
    step: int = 0
    round_ms: int = 0

    @property
    def shown(self) -> str:
        """Its name as it may stand in a sentence."""
        return named(self.name) if self.name else "a pull request"

    @property
    def commented(self) -> int:
        """What the loop of its comments is made of, as ``pull_request`` is that of its rounds."""
        return digest("comments", self.pull_request)

    @property
    def marks(self) -> frozenset[int]:
        """What all its loops are made of."""
        return frozenset({self.pull_request, self.commented})


class TaskState(msgspec.Struct, array_like=True):
    """All that detection remembers of one task.

    ``attempts`` are the latest, ``tried`` and ``failed`` how many there were, derived ones apart. ``place`` counts
    attempts and rounds of review, ``steps`` those of which something can be said: quiet stretches are measured in them.
    What was tried before ``settled_ms`` was settled by a person's word, and counts for nothing when it comes later;
    ``outdated`` ones came so in a row. ``numbered`` is the highest number given to an attempt.
    """

    task_id: str = ""
    first_ms: int = 0
    last_ms: int = 0
    place: int = 0
    steps: int = 0
    tried: int = 0
    failed: int = 0
    failed_derived: int = 0
    alerts: int = 0
    agent: Agent | None = None
    task: Task | None = None
    spent: Spent = Spent()
    attempts: list[Attempt] = msgspec.field(default_factory=list)
    pulls: list[Pull] = msgspec.field(default_factory=list)
    loops: list[Loop] = msgspec.field(default_factory=list)
    settled_ms: int = 0
    outdated: int = 0
    numbered: int = 0
    told: list[Told] = msgspec.field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Nothing of it needs to be remembered: the task was solved or merged, or nothing happened yet."""
        return not (self.attempts or self.pulls or self.loops or self.settled_ms) and self.spent == Spent()

    def forget(self) -> None:
        """Drop everything: the same events bring about the same, whether or not the state was stored in between."""
        for name, value in msgspec.structs.asdict(TaskState()).items():
            setattr(self, name, value)

    def forget_attempts(self) -> None:
        """Drop what was tried so far; loops already under watch stay."""
        self.attempts.clear()
        self.tried = self.failed = self.failed_derived = 0

    def pull(self, number: int) -> Pull | None:
        """Return what is known of a pull request; None when it is not under review."""
        return next((pull for pull in self.pulls if pull.pull_request == number), None)


VERSIONS: Final = Versions("a task's state", TaskState, TASK_VERSION)
"""What is read of earlier releases, and how it becomes what is written now."""

EVENT_VERSIONS: Final = Versions("a task's event", TaskEvent, EVENT_VERSION)
"""Likewise for what sessions tell their task."""

_T = TypeVar("_T", TaskState, TaskEvent)


def encode_task(value: TaskState | TaskEvent) -> bytes:
    """Return a task's state, or one of its events, in its compact form (MessagePack, fields by position)."""
    return VERSIONS.encode(value) if isinstance(value, TaskState) else EVENT_VERSIONS.encode(value)


def decode_task(data: bytes, kind: type[_T]) -> _T:
    """Return the task's state or event of a compact form, of this version or an earlier one that is still read.

    Raises UnsupportedState when it is damaged or of another version; the message says which, and what to do.
    """
    versions: Versions[Any] = VERSIONS if kind is TaskState else EVENT_VERSIONS
    decoded: _T = versions.decode(data)
    return decoded
