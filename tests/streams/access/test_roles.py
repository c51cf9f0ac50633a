"""What the roles may do agrees with the contract, with the processes, and with what is written about it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from schemas import topics as contract
from streams.access.roles import Names, roles, rules, topic_rights
from streams.access.rules import Kind, Operation, Pattern
from streams.escalation import outgoing, process
from streams.gateway import bridge_process
from streams.gateway import process as ingest
from streams.inspection.facts import NEEDED, OPTIONAL
from streams.kafka import KafkaSettings
from streams.letters import returns
from streams.letters.replay import Replay
from streams.topics import plan, task_events_name, worker_topics
from streams.worker import run

NAMES = Names("p.", "app", "grp", "orc")
ROOT = Path(__file__).parents[3]

INSIDE = {"worker", "escalation", "sinks"}
"""Roles of our processes."""


def may(role: str, operation: Operation) -> set[str]:
    """Give the topics with which a role may do something."""
    return {topic for topic, found in topic_rights(roles()[role], NAMES).items() if operation in found}


def writers(topic: str) -> set[str]:
    """Give the roles that may write a topic."""
    return {role for role in roles() if topic in may(role, Operation.WRITE)}


def on(topics: tuple[contract.Topic, ...]) -> set[str]:
    """Give the names of topics of the contract."""
    return {f"p.{topic.name}" for topic in topics}


def test_every_topic_that_is_there_is_known_and_none_else() -> None:
    """A topic that is added to the contract, or that processes make, has to be thought of here."""
    wanted = {each.name for each in plan(KafkaSettings(prefix="p."), partitions=1, app_id="app", group="grp")}
    assert set(NAMES.topics) == wanted
    collectors = {NAMES.spans_topic, NAMES.logs_topic}
    assert {topic for role in roles() for topic in topic_rights(roles()[role], NAMES)} == wanted | collectors


@pytest.mark.parametrize("topic", contract.TOPICS, ids=lambda topic: topic.name)
def test_inputs_are_written_outside_and_outputs_inside(topic: contract.Topic) -> None:
    """No process of ours can forge what agents and people said, nor others what we say; letters go back to both."""
    who = writers(f"p.{topic.name}") - {"letters"}
    if topic is contract.DEAD_LETTERS:
        who -= {"bridge"}  # which tells, as a harness does, and sets aside what of that cannot be read
    assert who
    assert not who & INSIDE if topic.direction == "in" else who <= INSIDE


def test_no_two_of_our_processes_write_the_same() -> None:
    """But for the dead letters, to which everybody writes what it could not read or deliver."""
    shared = {topic for topic in NAMES.topics if len(writers(topic) & INSIDE) > 1}
    assert shared == {"p.dead-letters"}


def test_processes_may_do_what_they_do() -> None:
    """The lists that the processes themselves go by are covered, and reading is where it is needed."""
    assert on(run.TOPICS) | set(worker_topics("app")) == set(topic_rights(roles()["worker"], NAMES))
    assert on(contract.SESSION_INPUTS) | on((contract.OVERRIDES,)) <= may("worker", Operation.READ)
    assert {task_events_name("app"), *worker_topics("app")} <= may("worker", Operation.READ) & may(
        "worker", Operation.WRITE
    )
    assert on(tuple(outgoing.TOPICS.values())) <= may("escalation", Operation.WRITE)
    assert on(process.TOPICS) <= set(topic_rights(roles()["escalation"], NAMES))
    assert on((contract.DIRECTIVES, contract.TERMINATIONS)) <= may("orchestrator", Operation.READ)
    assert on((contract.CONTROL,)) == may("orchestrator", Operation.WRITE)
    assert on((*NEEDED, *OPTIONAL)) <= may("operator", Operation.READ)
    gateway = on(ingest.TOPICS) - {"p.reviews"}  # for which it needs the role of that name as well
    assert gateway == set(topic_rights(roles()["gateway"], NAMES))
    assert on(bridge_process.TOPICS) == may("bridge", Operation.WRITE)


def test_letters_are_put_back_where_they_may_be() -> None:
    """By one transactional id, which is the command's."""
    assert may("letters", Operation.WRITE) == on((*returns.BACK, contract.DEAD_LETTERS))
    ignore: Any = None
    order = Replay(KafkaSettings(prefix="p."), ignore, 1.0, ignore, ignore)
    found = rules({"letters": ("User:l",)}, NAMES)
    assert [rule.name for rule in found if rule.kind is Kind.TRANSACTIONAL_ID] == [order.transactional_id]


def test_who_may_read_dead_letters_may_little_else() -> None:
    """They hold secrets: neither agents' harness nor orchestrators nor our own processes read them."""
    assert {role for role in roles() if "p.dead-letters" in may(role, Operation.READ)} == {"letters"}


def test_transactional_ids_of_one_process_are_not_those_of_another() -> None:
    """By default one name begins with the other, `traction` and `traction-escalation`."""
    found = rules({"worker": ("User:w",), "escalation": ("User:e",)}, Names())
    ids = {(rule.principal, rule.name) for rule in found if rule.kind is Kind.TRANSACTIONAL_ID}
    for number in (0, 9, 10, 255):
        for principal, name in (("User:w", "traction"), ("User:e", "traction-escalation")):
            fitting = {who for who, beginning in ids if f"{name}-{number}".startswith(beginning)}
            assert fitting == {principal}


def test_no_role_may_delete_or_alter() -> None:
    """Neither records nor topics, groups, configurations, or anything of the cluster; only `admin` makes topics."""
    found = rules({role: (f"User:{role}",) for role in roles()}, NAMES)
    for kind, operations in {
        Kind.TOPIC: {Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS},
        Kind.GROUP: {Operation.READ},
        Kind.TRANSACTIONAL_ID: {Operation.WRITE},
        Kind.CLUSTER: set(),
    }.items():
        assert {rule.operation for rule in found if rule.kind is kind} == operations
    assert {rule.principal for rule in found if rule.operation is Operation.CREATE} == {"User:admin"}


def _of(prefix: str, app: str) -> Names:
    """Give the names of an installation."""
    named = (f"{app}-{what}" for what in ("escalation", "orc", "bridge", "spans", "logs"))
    return Names(prefix, app, *named)


@pytest.mark.parametrize("other", ["traction2", "traction-staging", "traction.two", "traction_0", "tractio"])
def test_installations_do_not_touch_each_other(other: str) -> None:
    """Names that begin with those of another installation are nevertheless others."""
    fleets = [
        rules({role: (f"User:{role}",) for role in roles()}, _of(prefix, app))
        for prefix, app in (("agent.", "traction"), ("agent2.", other))
    ]
    assert not [(one, two) for one in fleets[0] for two in fleets[1] if one.touches(two)]


def test_a_name_that_was_given_is_no_beginning() -> None:
    """Only the file says which group's name is one."""
    names = Names("p.", "app", "grp", "orc*")
    found = rules({"orchestrator": ("User:o",)}, names)
    assert [(rule.name, rule.pattern) for rule in found if rule.kind is Kind.GROUP] == [("orc*", Pattern.LITERAL)]


def test_groups_of_sinks_are_a_beginning_and_others_are_whole() -> None:
    """A sink has the group of its name, which nobody knows before the policy is read."""
    found = rules({role: (f"User:{role}",) for role in roles()}, NAMES)
    groups = {(rule.principal, rule.name, rule.pattern) for rule in found if rule.kind is Kind.GROUP}
    assert groups == {
        ("User:worker", "app", Pattern.LITERAL),
        ("User:escalation", "grp", Pattern.LITERAL),
        ("User:sinks", "grp-sink-", Pattern.PREFIXED),
        ("User:orchestrator", "orc", Pattern.LITERAL),
        ("User:bridge", "traction-bridge", Pattern.LITERAL),
    }


def test_the_table_of_who_may_write_what_says_the_same() -> None:
    """SECURITY.md names for each topic who writes it; the roles are that table."""
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    rows = re.findall(r"^\| (`agent\.[^|]+) \| ([^|]+) \|", text, re.MULTILINE)
    words = {
        "harness": "harness", "the forge": "reviews", "orchestrators": "orchestrator", "people's tools": "operator",
        "operators": "operator", "workers": "worker", "escalation consumer": "escalation", "gateway": "gateway",
        "bridge": "bridge",
    }  # fmt: skip
    own = {"<app id>-task-events": "app-task-events", "<group>-ladders": "grp-ladders"}
    told: dict[str, set[str]] = {}
    for topics, who in rows:
        for name in re.findall(r"`([^`]+)`", topics):
            topic = own.get(name, name.replace("agent.", "p."))
            told[topic] = {role for word, role in words.items() if word in who}
    told.pop("p.dead-letters", None)
    assert set(told) >= on(contract.TOPICS) - {"p.dead-letters"}
    for topic, named in told.items():
        assert writers(topic) - {"letters", "rekey"} == named, topic
