"""Compares the rules that principals need with those that brokers have. Talks to nobody and changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streams.access.rules import ANYBODY, Kind, Operation, Pattern, Rule

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from streams.access.roles import Names


@dataclass(frozen=True, slots=True)
class Difference:
    """How the brokers' rules differ from what is needed.

    Attributes:
        missing: what is needed and not allowed.
        denied: what is needed, and denied by a rule.
        more: what our principals, or everybody, may do with what is ours, and need not.
        others: what principals may change of what is ours that were not named to us; no fault by itself.
    """

    missing: list[Rule]
    denied: list[Rule]
    more: list[Rule]
    others: list[Rule]

    @property
    def any(self) -> bool:
        """Tell whether something is not as it should be."""
        return bool(self.missing or self.denied or self.more)


def compare(wanted: Collection[Rule], there: Collection[Rule], names: Names) -> Difference:
    """Compare.

    Args:
        wanted: the rules that are needed.
        there: all rules of the brokers.
        names: what things are called: other topics, groups and ids are not looked at.
    """
    principals = {rule.principal for rule in wanted} | {ANYBODY}
    ours = list(_ours(names))
    touching = [rule for rule in there if any(rule.touches(each) for each in ours)]
    allowing = [rule for rule in touching if not rule.deny]
    return Difference(
        missing=sorted(rule for rule in wanted if not any(each.covers(rule) for each in there)),
        denied=sorted(rule for rule in touching if any(rule.takes(each) for each in wanted)),
        more=sorted(rule for rule in allowing if rule.principal in principals and not _needed(rule, wanted)),
        others=sorted(rule for rule in allowing if rule.principal not in principals and rule.changes),
    )


def _needed(rule: Rule, wanted: Iterable[Rule]) -> bool:
    """Tell whether a rule allows nothing that is not needed: describing what may be read does no harm."""
    return any(each.principal == rule.principal and each.names(rule) and each.gives(rule.operation) for each in wanted)


def _ours(names: Names) -> Iterable[Rule]:
    """Give rules that name all that is ours: who can use it may take part."""
    nobody = ("", Operation.ALL)
    for topic in names.topics:
        yield Rule(nobody[0], Kind.TOPIC, topic, Pattern.LITERAL, nobody[1])
    for name in (names.app_id, names.group, names.orchestrator_group, names.bridge_group):
        yield Rule(nobody[0], Kind.GROUP, name, Pattern.LITERAL, nobody[1])
    yield Rule(nobody[0], Kind.GROUP, f"{names.group}-sink-", Pattern.PREFIXED, nobody[1])
    for name in (names.app_id, names.group, names.bridge_group):
        yield Rule(nobody[0], Kind.TRANSACTIONAL_ID, f"{name}-", Pattern.PREFIXED, nobody[1])
    yield Rule(nobody[0], Kind.TRANSACTIONAL_ID, f"{names.prefix}dead-letters-replay", Pattern.LITERAL, nobody[1])
    yield Rule(nobody[0], Kind.CLUSTER, "kafka-cluster", Pattern.LITERAL, nobody[1])
