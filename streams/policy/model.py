"""The ladder of responses as a policy sets it: its rungs, their budgets, their times, and their defaults.

Pure: what stands in a file is read elsewhere, and so is what its layers make together.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

Rung = Literal[
    "inject_guidance",
    "cooldown",
    "rotate_strategy",
    "force_implementation",
    "escalate_human",
    "abandon",
    "terminate",
]
"""A step of the ladder, named after the directive that it becomes."""

RUNGS: tuple[Rung, ...] = get_args(Rung)
"""All of them, in the order of the default ladder."""

BY_TASK: frozenset[Rung] = frozenset({"rotate_strategy", "escalate_human", "abandon"})
"""Rungs whose budget is the task's, over all its sessions: what changes the course of the whole task."""

ENDING: frozenset[Rung] = frozenset({"abandon", "terminate"})
"""Rungs that end the work: only the mode `enforce` allows them, and a warning stays below unless it is told to."""

Budget = Annotated[int, Meta(ge=0, le=1_000)]


class Budgets(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often each rung is taken before the next one: in one climb of a session; those of `BY_TASK`, of a task."""

    inject_guidance: Budget = 1
    cooldown: Budget = 1
    rotate_strategy: Budget = 2
    force_implementation: Budget = 1
    escalate_human: Budget = 1
    abandon: Budget = 1
    terminate: Budget = 1_000


class Candidate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A configuration of an agent that a rotation may change to; empty: as it is."""

    name: Annotated[str, Meta(max_length=256)] = ""
    model: Annotated[str, Meta(max_length=256)] = ""
    config: Annotated[str, Meta(max_length=256)] = ""


class Ladder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is done about a loop, step by step (flapping and convergence, "Response strategies").

    ``order`` are the rungs from the mildest to the gravest. A warning climbs to ``warn_most`` at most; an alert that
    asks for termination begins at ``on_terminate``. ``notices`` is how many notices of one climb become guidance.
    ``notify`` names the sinks that are told, None for all. Times are in the unit that their name ends with.
    """

    order: tuple[Rung, ...] = RUNGS
    budget: Budgets = Budgets()
    warn_most: Rung = "escalate_human"
    on_terminate: Rung = "terminate"
    notices: Budget = 1
    guidance_minutes: Annotated[float, Meta(gt=0, le=5_256_000)] = 15.0
    directive_minutes: Annotated[float, Meta(gt=0, le=5_256_000)] = 60.0
    cooldown_seconds: Annotated[float, Meta(gt=0, le=604_800)] = 300.0
    answer_seconds: Annotated[float, Meta(gt=0, le=604_800)] = 60.0
    answer_attempts: Annotated[int, Meta(ge=1, le=100)] = 3
    flapping_days: Annotated[float, Meta(gt=0, le=3_650)] = 7.0
    candidates: tuple[Candidate, ...] = ()
    notify: tuple[str, ...] | None = None
