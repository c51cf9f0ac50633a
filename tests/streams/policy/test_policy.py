"""What a policy says of a session: rules over what holds for all, later over earlier, and who set what."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest

from detectors import Limits, limits_from
from schemas.common import OBSERVED, Agent, Task
from streams.policy import policy as module
from streams.policy.conditions import When, read_glob
from streams.policy.ladder import merge
from streams.policy.model import RUNGS, Ladder
from streams.policy.policy import Policy, Rule

if TYPE_CHECKING:
    from pathlib import Path

    from tests.streams.policy.conftest import Read

TEXT = """
[ladder]
cooldown_seconds = 60
budget.cooldown = 3
[limits]
ping_pong.warn = 4
ping_pong.terminate = 6
[[rule]]
name = "docs"
when.repo = "acme/docs"
ladder.cooldown_seconds = 30
limits.ping_pong.warn = 2
[[rule]]
name = "reviewers"
when.role = "review"
ladder.budget.cooldown = 0
limits.ping_pong.warn = 3
limits.identical.warn = 4
"""
DOCS, REVIEW = Task(repo="acme/docs"), Agent(role="review")


def test_later_rules_win_and_every_layer_is_remembered(read: Read, file: Path) -> None:
    """Defaults, the settings file, the policy, its rules in their order: each value is the last one's, and says so."""
    policy = read(TEXT, limits_from([("file:settings", {"ping_pong.terminate": 9, "same_write.warn": 2})]))
    warn = {who: policy.limits(*who).ping_pong.warn for who in ((None, None), (None, DOCS), (REVIEW, DOCS))}
    assert list(warn.values()) == [4, 2, 3]

    explained = policy.explain(REVIEW, DOCS)
    assert explained.rules == ("docs", "reviewers")
    assert explained.limits.layers == {
        "same_write.warn": "file:settings",
        "ping_pong.terminate": f"policy:{file}",
        "ping_pong.warn": f"policy:{file}:rule reviewers",
        "identical.warn": f"policy:{file}:rule reviewers",
    }
    assert (explained.ladder.cooldown_seconds, explained.ladder.budget.cooldown) == (30, 0)
    assert explained.ladder_layers == {
        "cooldown_seconds": f"policy:{file}:rule docs",
        "budget.cooldown": f"policy:{file}:rule reviewers",
    }
    assert policy.ladder(None, DOCS).budget.cooldown == 3


def test_without_a_file_everything_is_as_it_was() -> None:
    """The very limits that it lies over, and the default ladder."""
    base = limits_from([("file", {"identical.warn": 2})])
    assert Policy(base).limits(REVIEW, DOCS) is base
    assert Policy().ladder(REVIEW, DOCS) == Ladder()
    assert Policy().explain(None, None).ladder_layers == {}


def test_the_same_rules_give_the_same_object(read: Read) -> None:
    """What is asked at every event is merged once for each set of rules, whoever asks."""
    policy = read(TEXT)
    first = policy.limits(None, DOCS)
    assert policy.limits(Agent(role="code"), Task(repo="acme/docs", type="x", paths=("a",))) is first
    assert policy.ladder(None, DOCS) is policy.ladder(None, DOCS)
    assert policy.limits(None, Task(repo="other/one")) is policy.common


def test_only_what_rules_ask_for_is_remembered(read: Read) -> None:
    """Tasks with paths of their own share an entry where no rule asks for paths."""
    policy = read(TEXT)
    for number in range(5):
        policy.limits(None, Task(repo="acme/docs", paths=(str(number),)))
    assert len(policy._held) == 1


def test_what_is_remembered_of_one_session_is_bounded(read: Read) -> None:
    """However long the names and paths are that agents send."""
    policy = read(TEXT + "[[rule]]\nname = 'p'\nwhen.paths = 'y/'\nladder.notices = 5\n")
    agent, task = Agent(role="r" * 10_000), Task(repo="r" * 10_000, type="t" * 10_000, paths=("p" * 10_000,) * 1_000)
    policy.limits(agent, task)
    (facts,) = policy._held
    assert len(repr(facts)) < 2_000


def test_memory_is_bounded(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any number of repositories takes no more room than is allowed, and the answers stay right."""
    monkeypatch.setattr(module, "MAX_REMEMBERED", 3)
    more = "[[rule]]\nname = 'r{0}'\nwhen.repo = 'acme/{0}'\nlimits.same_write.warn = 2\nladder.notices = {0}\n"
    policy = read(TEXT + "".join(more.format(number) for number in range(6)))
    for number in range(10):
        task = Task(repo=f"acme/{number}")
        assert policy.limits(None, task).same_write.warn == (2 if number < 6 else 3)
        assert policy.ladder(None, task).notices == (number if number < 6 else 1)
        assert policy.limits(REVIEW, DOCS).ping_pong.warn == 3
        assert policy.ladder(REVIEW, DOCS).budget.cooldown == 0
        assert max(len(policy._held), len(policy._limits), len(policy._ladders)) <= 3


def test_agents_that_are_observed_are_asked_nothing_unless_a_rule_says_so(read: Read) -> None:
    """Their mode is observe also where one is set for everyone, and a rule may set another; the ladder is the same."""
    watched = Agent(role=OBSERVED)
    for policy in (Policy(), read('[limits]\nmode = "enforce"\nping_pong.warn = 4')):
        assert (policy.limits(watched, DOCS).mode, policy.limits(REVIEW, DOCS).mode) == ("observe", "enforce")
        assert policy.limits(watched, DOCS) is policy.limits(watched, None)
        assert policy.limits(watched, None).layers["mode"] == "role:observed"
        assert policy.limits(None, None) is policy.common
        assert policy.ladder(watched, None) == policy.ladder(None, None)
    some = read('[[rule]]\nname = "here"\nwhen = { role = "observed", repo = "acme/docs" }\nlimits.mode = "warn"')
    assert (some.limits(watched, DOCS).mode, some.limits(watched, None).mode) == ("warn", "observe")


def test_a_rule_that_does_not_fit_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """A policy that was built without the check of a file must not stop a worker: told once, the others hold."""
    when = When(repo=(read_glob("acme/*"),))
    rules = [
        Rule("one", when, limits={"ping_pong.terminate": 3}),
        Rule("two", when, limits={"ping_pong.warn": 4}),
        Rule("three", when, limits={"mode": "warn"}),
    ]
    policy = Policy(rules=rules)
    for _ in range(2):
        limits = policy.limits(None, DOCS)
        assert (limits.ping_pong.terminate, limits.ping_pong.warn, limits.mode) == (3, 3, "warn")
    assert caplog.text.count("rule two is ignored") == 1


def test_other_processes_get_the_same_answers(read: Read) -> None:
    """A backtest hands the policy to its processes."""
    policy = read(TEXT)
    copy = pickle.loads(pickle.dumps(policy))  # noqa: S301 - made a line before
    assert copy.limits(REVIEW, DOCS) == policy.limits(REVIEW, DOCS)
    assert copy.explain(REVIEW, DOCS) == policy.explain(REVIEW, DOCS)


@pytest.mark.parametrize(
    ("order", "on_terminate", "warn_most"),
    [
        (list(RUNGS), "terminate", "escalate_human"),
        (["inject_guidance", "escalate_human"], "escalate_human", "escalate_human"),
        (["inject_guidance", "cooldown", "terminate"], "terminate", "cooldown"),
        (["inject_guidance", "abandon"], "abandon", "inject_guidance"),
        (["terminate"], "terminate", "escalate_human"),
        (["inject_guidance", "abandon", "cooldown", "terminate"], "terminate", "inject_guidance"),
        (["abandon", "cooldown", "terminate"], "terminate", "escalate_human"),
    ],
)
def test_a_shorter_ladder_needs_no_other_key(order: list[str], on_terminate: str, warn_most: str) -> None:
    """Where terminations begin and warnings end moves with the order; a warning is never led to a gravest rung."""
    found = merge([("policy", {"order": tuple(order)})])
    assert (found.ladder.on_terminate, found.ladder.warn_most) == (on_terminate, warn_most)
    moved = {key for key in ("on_terminate", "warn_most") if getattr(found.ladder, key) != getattr(Ladder(), key)}
    assert found.layers.keys() == {"order", *moved}


def test_the_base_is_unchanged(read: Read) -> None:
    """Reading a policy changes none of the limits that it lies over."""
    base = Limits()
    read(TEXT, base)
    assert base == Limits()
