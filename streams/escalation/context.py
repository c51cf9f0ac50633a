"""What the ladder needs from whoever runs it, and the kinds of what it puts out: plain values and two callbacks.

It must know neither Kafka nor a clock, so that a replay of the same records gives the same outputs with the same ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from detectors.excerpt import cut
from schemas.outputs import Directive, KnownFlapping, Notification, Termination
from streams.escalation.text import line
from streams.policy.model import Candidate

if TYPE_CHECKING:
    from streams.escalation.savings import Saved
    from streams.escalation.state import LadderState
    from streams.policy.model import Ladder

UNKNOWN = "unknown"
"""Label of a configuration of which nothing is known."""

_MOST_LABEL_BYTES = 160
_MOST_LABEL_PART = 64
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Cleared:
    """The task's entry among the known-flapping ones is to be removed."""

    task_id: str


Output = Directive | Termination | KnownFlapping | Cleared | Notification


@dataclass(frozen=True, slots=True)
class Tally:
    """What is to be added to the fitness of one configuration with one type of task; see `schemas.outputs.Fitness`.

    Repository and role are for the metrics alone.
    """

    name: str
    model: str
    config: str
    task_type: str
    repo: str = ""
    role: str = ""
    tasks: int = 0
    attempts: int = 0
    converged: int = 0
    flapped: int = 0
    tokens: int = 0
    cost: float = 0.0


Choose = Callable[[tuple[Candidate, ...], AbstractSet[str], str], Candidate | None]
"""Picks a rotation's target: candidates without gaps, labels (see `label`) that must not be picked, type of task."""


@dataclass(frozen=True, slots=True)
class Context:
    """What the ladder leaves to whoever runs it.

    Attributes:
        control_topic: where orchestrators answer, by its name on the brokers.
        choose: picks a rotation's target by fitness; None when no candidate is left.
        count: takes what is to be added to fitness.
        save: takes what was saved.
    """

    control_topic: str
    choose: Choose
    count: Callable[[Tally], None]
    save: Callable[[Saved], None]


def output_id(kind: str, *parts: str) -> str:
    """Derive an output's id from what led to it: 32 hexadecimal digits.

    Args:
        kind: what the output is.
        parts: ids of what led to it; never a time, so that a replay gives the same id.
    """
    named = "\0".join((kind, *parts))
    return hashlib.blake2b(named.encode("utf-8", "replace"), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Turn:
    """What is at hand while one record, or the time, is answered.

    Attributes:
        state: the task's ladder, which is changed in place.
        now: when this is decided.
        policy: what holds for the task.
        context: see `Context`.
    """

    state: LadderState
    now: datetime
    policy: Ladder
    context: Context

    @property
    def now_ms(self) -> int:
        """The time in milliseconds since 1970, exactly: a float of seconds may fall one short."""
        return (self.now - _EPOCH) // timedelta(milliseconds=1)


def length_ms(length: timedelta) -> int:
    """Return a length in milliseconds, at least one, so that what begins now is not over now.

    Args:
        length: how long.
    """
    return max(1, round(length / timedelta(milliseconds=1)))


def label(name: str, model: str, config: str) -> str:
    """Return a configuration's label, name/model/config without the empty ones, fit to be one of a list with commas.

    Args:
        name: product name of the agent.
        model: its language model.
        config: its configuration.
    """
    parts = (line(part, _MOST_LABEL_PART).replace(",", ";") for part in (name, model, config))
    return cut("/".join(part for part in parts if part), _MOST_LABEL_BYTES) or UNKNOWN
