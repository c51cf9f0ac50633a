"""What a rule covers, and how the brokers' rules are compared with those that are needed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from streams.access.compared import compare
from streams.access.roles import Names
from streams.access.rules import Kind, Operation, Pattern, Rule

WANTED = Rule("User:w", Kind.TOPIC, "p.alerts", Pattern.LITERAL, Operation.READ)
NAMES = Names("p.", "app", "grp", "orc")


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"operation": Operation.ALL},
        {"principal": "User:*"},
        {"name": "*"},
        {"name": "p.", "pattern": Pattern.PREFIXED},
        {"name": "p.alerts", "pattern": Pattern.PREFIXED},
    ],
)
def test_what_is_allowed_is_not_missing(fields: dict[str, Any]) -> None:
    """By the rule itself, for everybody, for every topic or operation, or by a beginning."""
    assert replace(WANTED, **fields).covers(WANTED)


@pytest.mark.parametrize(
    "fields",
    [
        {"operation": Operation.WRITE},
        {"operation": Operation.DESCRIBE},
        {"principal": "User:x"},
        {"name": "p.alert"},
        {"name": "p.alerts.", "pattern": Pattern.PREFIXED},
        {"host": "10.0.0.1"},
        {"kind": Kind.GROUP},
        {"deny": True},
    ],
)
def test_what_is_something_else_is_missing(fields: dict[str, Any]) -> None:
    """Another operation, principal, name or kind, one host alone, or a denial."""
    assert not replace(WANTED, **fields).covers(WANTED)
    assert compare([WANTED], [replace(WANTED, **fields)], NAMES).missing == [WANTED]


def test_a_beginning_is_covered_by_a_shorter_one_alone() -> None:
    """A rule for the whole name is no rule for all names that begin so."""
    wanted = Rule("User:w", Kind.GROUP, "grp-sink-", Pattern.PREFIXED, Operation.READ)
    assert replace(wanted, name="grp-").covers(wanted)
    assert not replace(wanted, pattern=Pattern.LITERAL).covers(wanted)
    assert not replace(wanted, name="grp-sink-x").covers(wanted)


def test_describing_comes_with_what_needs_it() -> None:
    """As brokers have it: who may read or write may describe."""
    described = replace(WANTED, operation=Operation.DESCRIBE)
    for operation in (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER):
        assert replace(WANTED, operation=operation).covers(described)
    assert compare([WANTED], [WANTED, described], NAMES).any is False


def test_who_may_not_describe_may_not_use() -> None:
    """Clients ask where a topic, group or transactional id is, before anything else."""
    denial = replace(WANTED, operation=Operation.DESCRIBE, deny=True)
    assert compare([WANTED], [WANTED, denial], NAMES).denied == [denial]
    configs = replace(WANTED, operation=Operation.DESCRIBE_CONFIGS)
    assert compare([configs], [configs, denial], NAMES).denied == []


@pytest.mark.parametrize(
    ("kind", "name", "operation", "told"),
    [
        (Kind.GROUP, "app", Operation.READ, True),  # joins the group, takes partitions, commits other offsets
        (Kind.GROUP, "app", Operation.DESCRIBE, False),
        (Kind.GROUP, "grp-sink-", Operation.DELETE, True),
        (Kind.TRANSACTIONAL_ID, "app-", Operation.WRITE, True),
        (Kind.CLUSTER, "kafka-cluster", Operation.CLUSTER_ACTION, True),
        (Kind.CLUSTER, "kafka-cluster", Operation.DESCRIBE, False),
    ],
)
def test_others_who_may_meddle_are_told(kind: Kind, name: str, operation: Operation, *, told: bool) -> None:
    """Not only by writing a topic."""
    other = Rule("User:x", kind, name, Pattern.PREFIXED, operation)
    assert compare([WANTED], [WANTED, other], NAMES).others == ([other] if told else [])


def test_denied_beyond_and_of_others() -> None:
    """A denial of what is needed, what is not needed, and what others may change; nothing about foreign topics."""
    denial = replace(WANTED, name="p.", pattern=Pattern.PREFIXED, deny=True)
    harmless = replace(WANTED, name="p.control", deny=True)
    beyond = replace(WANTED, operation=Operation.WRITE)
    everybody = replace(WANTED, principal="User:*")
    other = replace(WANTED, principal="User:x", operation=Operation.ALTER_CONFIGS)
    reading = replace(WANTED, principal="User:x")
    foreign = replace(WANTED, name="q", operation=Operation.WRITE)
    found = compare([WANTED], [WANTED, denial, harmless, beyond, everybody, other, reading, foreign], NAMES)
    assert (found.missing, found.denied, found.more, found.others) == ([], [denial], [everybody, beyond], [other])
    assert found.any


def test_rules_are_said_in_words() -> None:
    """Whoever reads a list of them needs no manual."""
    assert str(WANTED) == "User:w may Read the topic p.alerts"
    assert str(replace(WANTED, name="p.", pattern=Pattern.PREFIXED, deny=True, host="10.0.0.1")) == (
        "User:w may not Read the topic everything beginning with p. from 10.0.0.1"
    )
    cluster = Rule("User:w", Kind.CLUSTER, "kafka-cluster", Pattern.LITERAL, Operation.ALTER)
    assert str(cluster) == "User:w may Alter the cluster"
    wanted = Rule("User:w", Kind.TRANSACTIONAL_ID, "a-0", Pattern.LITERAL, Operation.DESCRIBE_CONFIGS)
    assert str(wanted) == "User:w may DescribeConfigs the transactional id a-0"
