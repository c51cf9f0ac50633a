"""How far a task and its sessions have climbed, as it is kept in the compacted topic of ladders: bounded, versioned.

One record per task, in the partition that the task's alerts come in. Times are in milliseconds since 1970, by the
consumer's clock; 0 stands for never.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from detectors.versions import Versions
from schemas.common import Agent, Task
from schemas.outputs import Alert

LADDER_VERSION: Final = 1
"""Version of the encoded form. A change of it needs a step in `VERSIONS`."""

MAX_CLIMBS: Final = 16  # sessions of a task under watch, and the task itself; the one that was quiet longest makes room
MAX_LOOPS: Final = 8  # open loops of one climb, and alerts of it that a person may answer
MAX_SEEN: Final = 64  # alert ids of a task
MAX_ACTIVE: Final = MAX_CLIMBS - 1  # sessions of a task heard of lately: each has a climb beside the task's own
MAX_TRIED: Final = 16  # configurations that were rotated away from or to
MAX_CONFIGS: Final = 8  # configurations counted of one task


class Pending(msgspec.Struct, array_like=True):
    """A termination that nobody has answered yet. It is due to be repeated, or a person to be called, at ``due_ms``.

    It is kept without its report, which is worded again from the alert.
    """

    termination_id: str
    alert_id: str
    loop_id: str
    detector: str
    reason: str
    issued_at: datetime
    attempt: int
    due_ms: int


class Climb(msgspec.Struct, array_like=True):
    """How far one session has climbed; for what spins as a task, the task itself (its key is empty).

    ``at`` is the highest rung taken, ``used`` how often each was taken, ``notices`` how many notices became guidance.
    ``loops`` are the open ones that it climbs for. ``alert`` is the latest that was answered, without what is long,
    ``directive_id`` and ``rung`` what the answer was. ``incident`` is common to what people are told; empty while they
    were told nothing. ``stopped_ms`` is when a termination was obeyed, or the session ended, for the last time.
    ``alerts`` are the ids of the latest alerts that it climbed for. ``joint`` is the task's incident while the session
    is to be stopped for the task, ``unstopped`` the termination that it was to be stopped by and, for all that is
    known, was not: refused, or not answered. ``refused`` are the rungs that an orchestrator refused, which have no
    budget left.
    """

    last_ms: int = 0
    at: str = ""
    used: dict[str, int] = msgspec.field(default_factory=dict)
    notices: int = 0
    loops: list[str] = msgspec.field(default_factory=list)
    cooldown_ms: int = 0
    alert: Alert | None = None
    directive_id: str = ""
    rung: str = ""
    incident: str = ""
    pending: Pending | None = None
    stopped_ms: int = 0
    alerts: list[str] = msgspec.field(default_factory=list)
    joint: str = ""
    unstopped: Pending | None = None
    refused: list[str] = msgspec.field(default_factory=list)

    def restart(self) -> None:
        """Begin at the bottom again, as what is over did; what waits for an answer goes on waiting."""
        self.at = self.rung = self.directive_id = ""
        self.used, self.refused, self.notices, self.loops, self.cooldown_ms = {}, [], 0, [], 0


class Tried(msgspec.Struct, array_like=True):
    """What one configuration did for this task, as far as it was counted in its fitness; long names are digests.

    ``alert_id`` is the alert by which it counted as flapped, which a person may call wrong.
    """

    name: str
    model: str
    config: str
    task_type: str
    converged: bool = False
    flapped: bool = False
    alert_id: str = ""


class LadderState(msgspec.Struct, array_like=True):
    """All that escalation remembers of one task.

    ``climbs`` are by session, the empty key being the task's own. ``used`` counts what the task was taken to over all
    its sessions, ``refused`` names what of it was refused. ``active`` are the sessions heard of lately, with the time.
    ``seen`` are the latest alerts' ids, so that a repeated one is dropped. ``flapping_ms`` is when the task's entry
    among the known-flapping ones expires.
    """

    task_id: str = ""
    last_ms: int = 0
    agent: Agent | None = None
    task: Task | None = None
    climbs: dict[str, Climb] = msgspec.field(default_factory=dict)
    used: dict[str, int] = msgspec.field(default_factory=dict)
    active: dict[str, int] = msgspec.field(default_factory=dict)
    seen: list[str] = msgspec.field(default_factory=list)
    flapping_ms: int = 0
    flapping_alert: str = ""
    rotated: list[str] = msgspec.field(default_factory=list)
    configs: list[Tried] = msgspec.field(default_factory=list)
    refused: list[str] = msgspec.field(default_factory=list)

    def forget(self) -> None:
        """Drop everything, so that it equals a fresh one: nothing of it needs to be kept."""
        for name, value in msgspec.structs.asdict(LadderState()).items():
            setattr(self, name, value)


VERSIONS: Final = Versions("a task's ladder", LadderState, LADDER_VERSION)
"""What is read of earlier releases, and how it becomes what is written now."""


def encode_ladder(state: LadderState) -> bytes:
    """Return a task's ladder in its compact form (MessagePack, fields by position)."""
    return VERSIONS.encode(state)


def decode_ladder(data: bytes) -> LadderState:
    """Return the ladder of a compact form, of this version or an earlier one that is still read.

    Raises UnsupportedState when it is damaged or of another version; the message says which, and what to do.
    """
    return VERSIONS.decode(data)
