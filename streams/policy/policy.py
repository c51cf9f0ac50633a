"""What a policy says of one session or task: its limits, its ladder, and which layer set what.

Pure: no file is read here. Rules are taken in the order in which they are written, later ones over earlier ones, so
that a reader can follow them from top to bottom. What was merged once is kept, since it is asked for at every event.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from detectors import InvalidLimits, Limits, limits_from
from schemas.common import OBSERVED
from streams.policy.conditions import facts_of
from streams.policy.ladder import Merged, merge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from schemas.common import Agent, Task
    from streams.policy.conditions import Facts, When
    from streams.policy.model import Ladder

logger = logging.getLogger(__name__)

MAX_REMEMBERED = 10_000
"""Sessions' facts for which it is remembered which rules hold, and merged limits; beyond that memory begins anew."""

OBSERVED_LAYER = f"role:{OBSERVED}"
"""Who set that mode, as alerts name it."""

Held = tuple[int, ...]
"""The rules that hold, by their place in the file."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What holds for some sessions and tasks only.

    Attributes:
        name: unique in the file.
        when: for whom it holds.
        ladder: keys of the ladder by dotted name.
        limits: limits by dotted name.
    """

    name: str
    when: When
    ladder: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)


def is_observed(agent: Agent | None) -> bool:
    """Tell whether an agent is only watched."""
    return agent is not None and agent.role == OBSERVED


class Explained(NamedTuple):
    """What holds for one session or task, and why.

    ``rules`` are the names of those that hold. ``limits`` remember the layer that set each; ``ladder_layers`` do so
    for the keys of the ladder that are not defaults.
    """

    rules: tuple[str, ...]
    limits: Limits
    ladder: Ladder
    ladder_layers: Mapping[str, str]


class Policy:
    """A policy; without arguments one that leaves everything at its default.

    Args:
        base: the limits that it lies over: those of the settings file.
        path: the file that it was read from.
        ladder: keys of the ladder for everything, by dotted name.
        limits: limits for everything, by dotted name.
        rules: what holds for some, in the order of the file.
        sinks: tables of where people are told, as the file has them; their own code reads them.

    Raises:
        InvalidLimits: the limits for everything do not fit on the base.
    """

    def __init__(
        self,
        base: Limits | None = None,
        *,
        path: Path | None = None,
        ladder: Mapping[str, Any] | None = None,
        limits: Mapping[str, Any] | None = None,
        rules: Sequence[Rule] = (),
        sinks: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.base = base or Limits()
        self.path = path
        self.rules = tuple(rules)
        self.sinks = sinks or {}
        self.common = limits_from([(self._layer(), limits)], self.base) if limits else self.base
        """The limits of whoever no rule holds for."""
        self._ladder = ladder or {}
        asked = frozenset[str]().union(*(rule.when.asks for rule in self.rules))
        self._asks_agent = "role" in asked
        self._asks_task = bool(asked - {"role"})
        self._asks_paths = "paths" in asked
        self._held: dict[Facts, Held] = {}
        self._limits: dict[tuple[Held, bool], Limits] = {((), False): self.common}
        self._ladders: dict[Held, Merged] = {}

    def held(self, agent: Agent | None, task: Task | None) -> Held:
        """Tell which rules hold for a session or task.

        Args:
            agent: who acts, as far as known.
            task: for which task, likewise.
        """
        if not self.rules:
            return ()
        # Only what rules ask for, so that tasks of one repository share an entry where no rule asks for paths.
        facts = facts_of(agent if self._asks_agent else None, task if self._asks_task else None, paths=self._asks_paths)
        held = self._held.get(facts)
        if held is None:
            held = tuple(number for number, rule in enumerate(self.rules) if rule.when.holds(facts))
            if len(self._held) >= MAX_REMEMBERED:
                self._held.clear()
            self._held[facts] = held
        return held

    def limits(self, agent: Agent | None, task: Task | None) -> Limits:
        """Give the limits by which a session or task is judged; the same object for the same rules."""
        key = self.held(agent, task), is_observed(agent)
        limits = self._limits.get(key)
        if limits is None:
            if len(self._limits) >= MAX_REMEMBERED:
                self._limits.clear()
            limits = self._limits[key] = self._merge_limits(*key)
        return limits

    def check(self, layer: str, limits: Mapping[str, Any]) -> None:
        """See that limits can lie over this policy: over what holds for everything, or over what one of its rules sets.

        Args:
            layer: who sets them, for the message.
            limits: the limits, nested or by dotted name.

        Raises:
            InvalidLimits: they fit on nothing of it.
        """
        try:
            limits_from([(layer, limits)], self.common)
        except InvalidLimits as problem:
            rules = [rule for rule in self.rules if not rule.limits.keys().isdisjoint(problem.keys)]
            if not any(_fits([(self._layer(rule), rule.limits), (layer, limits)], self.common) for rule in rules):
                raise

    def ladder(self, agent: Agent | None, task: Task | None) -> Ladder:
        """Give the ladder that is climbed for a session or task; the same object for the same rules."""
        return self._merged_ladder(self.held(agent, task)).ladder

    def explain(self, agent: Agent | None, task: Task | None) -> Explained:
        """Say what holds for a session or task, and which layer set it."""
        held = self.held(agent, task)
        merged = self._merged_ladder(held)
        names = tuple(self.rules[number].name for number in held)
        return Explained(names, self.limits(agent, task), merged.ladder, merged.layers)

    def _merged_ladder(self, held: Held) -> Merged:
        merged = self._ladders.get(held)
        if merged is None:
            if len(self._ladders) >= MAX_REMEMBERED:
                self._ladders.clear()
            rules = [self.rules[number] for number in held]
            merged = merge([(self._layer(), self._ladder), *((self._layer(rule), rule.ladder) for rule in rules)])
            self._ladders[held] = merged
        return merged

    def _merge_limits(self, held: Held, observed: bool) -> Limits:  # noqa: FBT001 - part of the key
        limits = limits_from([(OBSERVED_LAYER, {"mode": "observe"})], self.common) if observed else self.common
        for number in held:
            rule = self.rules[number]
            try:
                limits = limits_from([(self._layer(rule), rule.limits)], limits)
            except InvalidLimits as problem:  # only who builds a policy without reading a file can get here
                logger.warning("%s is ignored beside the other rules that hold: %s", self._layer(rule), problem)
        return limits

    def _layer(self, rule: Rule | None = None) -> str:
        """Name a layer as alerts do."""
        return f"policy:{self.path}" if rule is None else f"policy:{self.path}:rule {rule.name}"


def _fits(layers: Sequence[tuple[str, Mapping[str, Any]]], base: Limits) -> bool:
    try:
        limits_from(layers, base)
    except InvalidLimits:
        return False
    return True
