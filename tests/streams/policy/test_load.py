"""A policy file is checked completely: every fault is told with its key and a remedy, and all of them at once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from detectors import Limits, limits_from
from streams.policy import limits as policy_limits
from streams.policy.load import (
    MAX_BYTES,
    MAX_NAME_CHARS,
    MAX_PROBLEMS,
    MAX_RULES,
    InvalidPolicy,
    UnreadablePolicy,
    read_policy,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.streams.policy.conftest import Faults, Read

WHOLE = """
[ladder]
order = ["inject_guidance", "cooldown", "escalate_human", "terminate"]
warn_most = "cooldown"
notify = ["chat"]
candidates = [{ model = "large" }, { name = "other", config = "careful" }]
[ladder.budget]
cooldown = 2

[limits]
mode = "warn"
ping_pong.warn = 4
tools.names.deploy = "check"
tools.volatile.deploy = ['build-\\d+']

[[rule]]
name = "docs"
when.repo = ["acme/docs", "acme/*-docs"]
ladder.notify = []
limits.ping_pong.warn = 2

[[rule]]
name = "sensitive"
when = { paths = "**/auth/**", role = "code" }
ladder = { order = ["escalate_human", "terminate"], warn_most = "escalate_human" }

[sinks.chat]
type = "slack"
url_env = "CHAT"
"""


def rule(body: str, name: str = "r", when: str = 'when.repo = "a/b"') -> str:
    """Write a rule."""
    return f'[[rule]]\nname = "{name}"\n{when}\n{body}\n'


def test_a_whole_policy_is_read(read: Read) -> None:
    """Every table is taken over; sinks are handed on as they are."""
    policy = read(WHOLE)
    assert [found.name for found in policy.rules] == ["docs", "sensitive"]
    assert policy.sinks == {"chat": {"type": "slack", "url_env": "CHAT"}}
    assert (policy.common.mode, policy.common.ping_pong.warn) == ("warn", 4)
    assert policy.ladder(None, None).budget.cooldown == 2
    assert [each.model for each in policy.ladder(None, None).candidates] == ["large", ""]
    assert policy.common.tools.volatile["deploy"]


def test_a_file_that_sets_nothing_is_a_policy(read: Read, faults: Faults) -> None:
    """It leaves everything as it is; without a single byte it is one that is just being written."""
    assert read("# nothing\n").common == Limits()
    assert read("[ladder.budget]\n[limits.identical]\n# warn = 4\n").common == Limits()
    assert faults("") == ["is empty; write a comment into it if it is to set nothing"]


@pytest.mark.parametrize(
    ("text", "key", "told"),
    [
        ("[rules]\n", "rules: ", "did you mean `rule`?"),
        ("ladder = 1\n", "ladder: ", "is no table"),
        ("limits = 1\n", "limits: ", "is no table"),
        ("sinks = 1\n", "sinks: ", "begin each with [sinks.NAME]"),
        ("[sinks]\nchat = 1\n", "sinks: ", "begin each with [sinks.NAME]"),
        ("[rule]\nname = 'x'\n", "rule: ", "begin each rule with [[rule]]"),
        ("rule = [1]\n", "rule: ", "begin each rule with [[rule]]"),
        ("[ladder]\nnotces = 1\n", "ladder.notces: ", "did you mean `notices`?"),
        ("[ladder]\ncooldown = 1\n", "ladder.cooldown: ", "write budget.cooldown"),
        ("[ladder]\nnotices = '1'\n", "ladder.notices: ", "Expected `int`, got `str`; for example notices = 1"),
        ("[ladder]\nnotices = -1\n", "ladder.notices: ", "Expected `int` >= 0"),
        ("[ladder]\nnotices = true\n", "ladder.notices: ", "got `bool`"),
        ("[ladder]\ncooldown_seconds = nan\n", "ladder.cooldown_seconds: ", "Expected `float`"),
        ("[ladder]\ncooldown_seconds = inf\n", "ladder.cooldown_seconds: ", "Expected `float` <= 604800"),
        ("[ladder]\nbudget = 1\n", "ladder.budget: ", "is no table"),
        ("[ladder]\nbudget.cooldown = 1001\n", "ladder.budget.cooldown: ", "Expected `int` <= 1000"),
        ("[ladder]\nbudget.coldown = 1\n", "ladder.budget.coldown: ", "did you mean `budget.cooldown`?"),
        ("[ladder]\norder = []\n", "ladder.order: ", "is empty; name a rung"),
        ("[ladder]\norder = ['cooldown', 'coldown']\n", "ladder.order[1]: ", "did you mean `cooldown`?"),
        ("[ladder]\norder = ['cooldown', 'abandon', 'cooldown']\n", "ladder.order[2]: ", "stands there before"),
        ("[ladder]\norder = ['cooldown']\non_terminate = 'abandon'\n", "ladder.on_terminate: ", "is not in order"),
        ("[ladder]\norder = ['cooldown']\nwarn_most = 'abandon'\n", "ladder.warn_most: ", "is not in order (cooldown)"),
        ("[ladder]\nwarn_most = 'abandn'\n", "ladder.warn_most: ", "did you mean `abandon`?"),
        ("[ladder]\ncandidates = [{ modl = 'x' }]\n", "ladder.candidates[0].modl: ", "did you mean `model`?"),
        ("[ladder]\ncandidates = [{ model = 'x' }, {}]\n", "ladder.candidates[1]: ", "changes nothing"),
        ("[ladder]\nnotify = ['chta']\n[sinks.chat]\ntype = 'file'\npath = 'x'\n", "ladder.notify[0]: ", "`chat`?"),
        ("[sinks.chat]\ntype = 'slak'\n", "[sinks.chat]", "slack"),
        ("[limits]\nidentical.wran = 1\n", "limits: ", "there is no limit 'identical.wran'; nearest are identical"),
        ("[limits]\nnope = 1\n", "limits: ", "there is no limit 'nope'; the nearest is mode"),
        ("[limits.identicl]\n", "limits.identicl: ", "there is no such table; did you mean `identical`?"),
        ("[limits.tools.name]\n", "limits.tools.name: ", "did you mean `tools.names`?"),
        ("[limits]\nidentical.warn = {}\n", "limits.identical.warn: ", "is a limit and no table"),
        ("[limits]\n'a\\b\u2028c' = {}\n", "limits.a\\b\\u2028c: ", "there is no such table"),
        ("[limits]\n" + "a." * 5_000 + "a = 1\n", "has keys of too many parts", "make them fewer"),
        ("[limits]\nidentical = 1\n", "limits: ", "there is no limit 'identical'"),
        ("[limits]\nidentical.warn = 0\n", "limits.identical.warn: ", "for example identical.warn = 3"),
        ("[limits]\nmode = 'x'\n", "limits.mode: ", "allowed are 'observe', 'warn', 'enforce'"),
        ("[limits]\nidentical.warn = 6\n", "limits.identical.warn = 6 ", "lower the first or raise the second"),
        ("[limits]\ntools.names.Bash = 'run'\n", "limits.tools.names: ", "write 'bash'"),
        ("[limits]\ntools.volatile.bash = ['(']\n", "limits.tools.volatile: ", "regular expression"),
        ("[[rule]]\nwhen.repo = 'x'\nlimits.mode = 'warn'\n", "rule 1: name: ", "is missing"),
        (rule("limits.mode = 'warn'", name=" "), "rule 1: name: ", "choose another"),
        (rule("limits.mode = 'warn'") * 2, 'rule "r": name: ', "another rule has this name"),
        (rule("limits.mode = 'warn'\nladdr = 1"), 'rule "r": laddr: ', "did you mean `ladder`?"),
        (rule("limits.mode = 'warn'\nrepo = 'x'"), 'rule "r": repo: ', "write when.repo"),
        (rule("", when="when.repo = 'x'"), 'rule "r": ', "sets nothing"),
        (rule("limits.identical = {}\nladder.budget = {}"), 'rule "r": ', "sets nothing"),
        (rule("limits.mode = 'warn'", when=""), 'rule "r": when: ', "asks for nothing"),
        (rule("limits.mode = 'warn'", when="when = 'x'"), 'rule "r": when: ', "is no table"),
        (rule("limits.mode = 'warn'", when="when.rpo = 'x'"), 'rule "r": when.rpo: ', "did you mean `repo`?"),
        (rule("limits.mode = 'warn'", when="when.repo = []"), 'rule "r": when.repo: ', "matches nothing"),
        (rule("limits.mode = 'warn'", when="when.repo = 1"), 'rule "r": when.repo: ', "is no text"),
        (rule("limits.mode = 'warn'", when="when.paths = ['a', '']"), 'rule "r": when.paths[1]: ', "is empty"),
        (rule("ladder.order = ['cooldown', 'x']"), 'rule "r": ladder.order[1]: ', "there is no such rung"),
        ("[ladder]\non_terminate = 'abandon'\n" + rule("ladder.order = ['cooldown']"),
         'rule "r": ladder.on_terminate: ', "abandon is not in order (cooldown)"),
        (rule("limits.ping_pong.warn = 9"), 'rule "r": limits.ping_pong.warn = 9 ', "is above ping_pong.terminate = 5"),
        (rule("limits.tasks.retention_days = 1"), 'rule "r": limits.tasks.retention_days: ', "table [limits]"),
        (rule("limits.sessions.idle_days = 1"), 'rule "r": limits.sessions.idle_days: ', "table [limits]"),
        (rule("limits.sessions.ended_hours = 1"), 'rule "r": limits.sessions.ended_hours: ', "table [limits]"),
    ],
)  # fmt: skip
def test_every_fault_is_told(faults: Faults, text: str, key: str, told: str) -> None:
    """One fault, one line: it begins with where it is, and ends with what to do."""
    (fault,) = faults(text)
    assert fault.startswith(key)
    assert told in fault


def test_all_faults_are_told_at_once(faults: Faults) -> None:
    """Those of all tables and rules, several of one table; nothing is told that only follows from another fault."""
    found = faults(
        "[ladder]\nnotices = -1\norder = ['x']\non_terminate = 'cooldown'\n"
        "[limits]\nidentical.warn = 'x'\nidentical.terminate = 2\nping_pong.wran = 1\n"
        + rule("limits.same_write.warn = 99", name="one")
        + rule("limits.mode = 1", name="two", when="when.x = 1")
    )
    assert [fault.partition(" ")[0] for fault in found if not fault.startswith("rule")] == [
        "ladder.notices:", "ladder.order[0]:", "limits.identical.warn:", "limits:",
    ]  # fmt: skip
    assert [": ".join(fault.split(": ")[:2]) for fault in found if fault.startswith("rule")] == [
        'rule "one": limits.same_write.warn', 'rule "two": when.x', 'rule "two": limits.mode',
    ]  # fmt: skip


def test_what_contradicts_the_settings_file_is_refused(read: Read, faults: Faults) -> None:
    """A policy lies over the limits of the settings file; what is fine over the defaults may not be over these."""
    text = "[limits]\nping_pong.terminate = 4\n"
    assert read(text).common.ping_pong.terminate == 4
    (fault,) = faults(text, limits_from([("file:x", {"ping_pong.warn": 5})]))
    assert fault.startswith("limits.ping_pong.warn = 5 is above ping_pong.terminate = 4")


def test_rules_that_contradict_each_other_are_refused(read: Read, faults: Faults) -> None:
    """Where both may hold, limits and ladders must fit together, unless the later one says all of it again."""
    high = rule("limits.ping_pong.warn = 5", name="high", when='when.role = "code"')
    low = rule("limits.ping_pong.terminate = 4", name="low", when='when.repo = "a/*"')
    (fault,) = faults(high + low)
    assert fault.startswith('rule "low": limits: where rule "high" holds too, ping_pong.warn = 5 is above')
    assert fault.endswith("or set both here")
    read(high.replace("when.role", "when.repo") + low)
    read(high + low.replace("terminate = 4", "warn = 3\nlimits.ping_pong.terminate = 4"))

    ends = rule('ladder.on_terminate = "terminate"', name="ends", when='when.role = "code"')
    short = rule('ladder.order = ["cooldown"]', name="short", when='when.repo = "a/*"')
    (fault,) = faults(ends + short)
    assert fault.startswith('rule "short": ladder.on_terminate: where rule "ends" holds too, terminate is not in order')
    read(ends + short + 'ladder.on_terminate = "cooldown"\n')


def test_only_rules_that_set_the_ends_of_a_pair_apart_are_tried_together(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred rules that each set both ends, or other limits, are checked at once, while a worker goes on."""
    tried: list[set[str]] = []

    def spy(layers: Sequence[tuple[str, Mapping[str, Any]]], base: Limits | None = None) -> Limits:
        tried.append({key for _, values in layers for key in values})
        return limits_from(layers, base)

    monkeypatch.setattr(policy_limits, "limits_from", spy)
    both = "limits.ping_pong = { warn = 3, terminate = 4 }"
    rules = [rule(both, name=f"r{number}", when=f"when.paths = 'a{number}'") for number in range(MAX_RULES - 1)]
    read("".join(rules) + rule("limits.ping_pong.warn = 2\nlimits.same_write.warn = 2", name="low"))
    together = tried[MAX_RULES + 1 :]  # after each alone, and what holds for everything
    assert together == [{"ping_pong.warn", "ping_pong.terminate"}] * (MAX_RULES - 1)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"[ladder\n", "line 1, column 8"),
        (b"a = 1\na = 2\n", "is not TOML"),
        (b"a = " + b"9" * 5_000, "is not TOML"),
        (b"\xff", "is not UTF-8"),
    ],
)
def test_what_is_no_toml(file: Path, content: bytes, told: str) -> None:
    """The place is told, where there is one."""
    file.write_bytes(content)
    with pytest.raises(InvalidPolicy) as refused:
        read_policy(file, Limits())
    assert told in str(refused.value)


def test_files_that_cannot_be_read(file: Path, tmp_path: Path) -> None:
    """None, a directory, a pipe that would be waited for for ever, one that is too large: each in words."""
    with pytest.raises(UnreadablePolicy, match="No such file"):
        read_policy(file, Limits())
    with pytest.raises(UnreadablePolicy, match="no regular file"):
        read_policy(tmp_path, Limits())
    os.mkfifo(file)
    with pytest.raises(UnreadablePolicy, match="no regular file"):
        read_policy(file, Limits())
    file.unlink()
    file.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(UnreadablePolicy, match="more than"):
        read_policy(file, Limits())
    file.write_bytes(b"#" * MAX_BYTES)
    read_policy(file, Limits())


def test_the_most_rules(read: Read, faults: Faults) -> None:
    """As many as are allowed are read; one more is told, and nothing else."""
    most = "".join(rule("limits.mode = 'warn'", name=f"r{number}") for number in range(MAX_RULES))
    assert len(read(most).rules) == MAX_RULES
    (fault,) = faults(most + rule("limits.mode = 'warn'", name="more"))
    assert fault.startswith("rule: there are more than")


def test_the_longest_name(read: Read, faults: Faults) -> None:
    """A name as long as allowed is taken; a longer one, and one that could forge a line of a log, are not."""
    assert read(rule("limits.mode = 'warn'", name="n" * MAX_NAME_CHARS)).rules
    for name in ("n" * (MAX_NAME_CHARS + 1), "a\\nb"):
        assert [fault.partition(" is")[0] for fault in faults(rule("limits.mode = 'warn'", name=name))] == [
            "rule 1: name:"
        ]


def test_the_most_problems(faults: Faults) -> None:
    """As many faults as are told at once are; of more, their number."""
    assert len(faults("".join(f"[x{number}]\n" for number in range(MAX_PROBLEMS)))) == MAX_PROBLEMS
    found = faults("".join(f"[x{number}]\n" for number in range(MAX_PROBLEMS + 2)))
    assert len(found) == MAX_PROBLEMS + 1
    assert found[-1] == "has 2 more problems at least; mend these first"


def test_a_table_of_something_else_is_given_up(faults: Faults) -> None:
    """However many limits are in it that there are not."""
    most = policy_limits.MOST_PROBLEMS
    for number in (most, most + 1, 10 * most):
        found = faults("[limits]\n" + "".join(f"x{each} = 1\n" for each in range(number)))
        assert found[-1] == f"has {most - MAX_PROBLEMS} more problems at least; mend these first"
