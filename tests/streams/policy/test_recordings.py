"""A policy is tried on recordings: `traction replay` and `traction backtest` judge each session by its own rules."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from click.testing import CliRunner

from schemas.common import Agent, Task
from streams.cli import traction
from streams.importers import Session, read_path
from streams.policy.conditions import Facts
from streams.replay import assume
from tests.streams import backtest_kit
from tests.streams.backtest_kit import ALERT, code, label, spinning, working, write

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

Write = Callable[..., "Path"]

LENIENT = """
[[rule]]
name = "docs"
when.repo = "acme/docs*"
limits.identical = { warn = 4, terminate = 9, window_warn = 9, window_terminate = 9 }
"""
WATCHED = """
[limits]
mode = "observe"
[[rule]]
name = "sensitive"
when = { paths = "**/auth/**", role = "code" }
limits.mode = "enforce"
"""
USUAL = [("warn", ALERT), ("terminate", ALERT + 2)]


def of(calls: list[dict[str, Any]], **facts: Any) -> list[dict[str, Any]]:
    """Have the first call of a session say whose it is."""
    return [calls[0] | facts, *calls[1:]]


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    """Write a session of the documentation's repository, one of another, and one that does not say."""
    calls = of(spinning("docs"), repo="acme/docs") + of(spinning("shop"), repo="acme/shop") + spinning("unsaid")
    file: Path = write(tmp_path / "calls.jsonl", calls)
    return file


@pytest.fixture
def policy(tmp_path: Path) -> Write:
    """Give what writes a policy."""

    def written(text: str, name: str = "policy.toml") -> Path:
        file = tmp_path / name
        file.write_text(text, "utf-8")
        return file

    return written


def replay(*words: object) -> Result:
    """Replay in this process."""
    return CliRunner().invoke(traction, ["replay", *map(str, words)], standalone_mode=False)


def alerts(*words: object) -> dict[str, list[tuple[str, int]]]:
    """Replay, and give levels and calls of the alerts by session."""
    result = replay("--json", *words)
    assert code(result) == 0, result.output
    found: dict[str, list[tuple[str, int]]] = {}
    for line in result.stdout.splitlines():
        row = json.loads(line)
        found.setdefault(row["session_id"], []).append((row["level"], row["seq"]))
    return found


def test_each_session_is_judged_by_its_own_rules(recordings: Path, policy: Write) -> None:
    """The rule moves the warning of its repository and no other; what a recording does not say can be said for it."""
    file = policy(LENIENT)
    assert alerts("--policy", file, recordings) == {"docs": [("warn", ALERT + 1)], "shop": USUAL, "unsaid": USUAL}
    said = alerts("--policy", file, "--repo", "acme/docs-old", recordings)
    assert said == {"docs": [("warn", ALERT + 1)], "shop": USUAL, "unsaid": [("warn", ALERT + 1)]}
    assert set(map(tuple, alerts(recordings).values())) == {tuple(USUAL)}


def test_modes_of_rules_are_told_apart(tmp_path: Path, policy: Write) -> None:
    """What is held back is said of those sessions only, above each of them and in the summary."""
    calls = of(spinning("auth"), role="code", paths=["src/auth/a.py"]) + spinning("other") + working("works")
    result = replay("--policy", policy(WATCHED), write(tmp_path / "calls.jsonl", calls))
    assert "\nWOULD BE TERMINATED  other" in result.stdout
    assert "TO BE TERMINATED  auth" in result.stdout
    assert "1 to be terminated, 1 would be terminated, 0 warned, 0 would be warned, 1 quiet\n" in result.stdout
    assert "  of 2 sessions the mode is observe: " in result.stdout


def test_a_backtest_plays_two_policies(recordings: Path, tmp_path: Path, policy: Write) -> None:
    """A change is tried before it is merged: what differs is named, and `--against` changes the limits below alone."""
    labels = write(tmp_path / "labels.jsonl", [label("docs", "healthy"), label("shop", "loop", first_loop_seq=8)])
    new, old = policy(LENIENT.replace("= 4", "= 7")), policy("# nothing\n", "old.toml")

    def backtest(*words: object) -> dict[str, Any]:
        result = backtest_kit.run("backtest", "--labels", labels, "--json", *words, recordings)
        assert code(result) == 0, result.output
        found: dict[str, Any] = json.loads(result.stdout)
        return found

    found = backtest("--policy", new, "--against-policy", old)
    assert [score["configuration"] for score in found["scores"]] == [str(new), str(old)]
    assert [score["groups"]["easy"]["warned"] for score in found["scores"]] == [0, 1]
    assert [score["groups"]["loop"]["warned"] for score in found["scores"]] == [1, 1]
    assert [change["session_id"] for change in found["changes"]] == ["docs"]

    limits = policy(
        "[limits]\nidentical = { warn = 8, terminate = 8, window_warn = 8, window_terminate = 8 }\n", "l.toml"
    )
    found = backtest("--policy", new, "--against", limits)
    assert [score["configuration"] for score in found["scores"]] == [str(new), f"{limits} + {new}"]
    assert [score["groups"]["loop"]["warned"] for score in found["scores"]] == [1, 0]


@pytest.mark.parametrize("jobs", [1, 2])
def test_other_processes_go_by_the_policy(recordings: Path, tmp_path: Path, policy: Write, jobs: int) -> None:
    """Also where a session is played in a process of its own."""
    labels = write(tmp_path / "labels.jsonl", [label("docs", "healthy")])
    words = [
        "--labels",
        labels,
        "--json",
        "--jobs",
        jobs,
        "--policy",
        policy(LENIENT.replace("= 4", "= 7")),
        recordings,
    ]
    found = json.loads(backtest_kit.run("backtest", *words).stdout)
    assert found["scores"][0]["groups"]["easy"]["warned"] == 0


def test_wrong_use(recordings: Path, tmp_path: Path, policy: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy that is none, and options that do not go together, are refused with 2; one for all commands is not."""
    labels = write(tmp_path / "labels.jsonl", [label("docs", "healthy")])
    bad, good = policy("[limits]\nmode = 'x'\n", "bad.toml"), policy(LENIENT)
    for result, told in (
        (replay("--policy", bad, recordings), f"--policy: {bad}: limits.mode: "),
        (backtest_kit.run("backtest", "--labels", labels, "--against-policy", bad, recordings), "--against-policy: "),
        (
            backtest_kit.run("backtest", "--labels", labels, "--folds", "source", "--policy", good, recordings),
            "--folds",
        ),
        (replay("--policy", good, "--to-kafka", "--bootstrap", "localhost:1", recordings), "leaves the judging"),
    ):
        assert code(result) == 2
        assert told in str(result.exception)
    monkeypatch.setenv("TRACTION_POLICY", str(good))
    assert alerts(recordings)["docs"] == [("warn", ALERT + 1)]
    assert code(replay("--to-kafka", "--bootstrap", "localhost:1", recordings)) == 1


def test_the_neutral_form_says_whose_a_session_is(tmp_path: Path) -> None:
    """Whichever line says it first, it holds for the whole session; who says nothing is nobody's."""
    calls = working("a")
    calls[1] |= {"role": "code", "paths": ["a", "b"]}
    calls[3] |= {"repo": "acme/shop", "task_type": "bugfix", "role": "late"}
    said, unsaid = (found for found in read_path(write(tmp_path / "c.jsonl", calls + working("b"))))
    assert isinstance(said, Session)
    assert isinstance(unsaid, Session)
    task = Task(repo="acme/shop", type="bugfix", paths=("a", "b"))
    assert {(event.agent, event.task) for event in said.events} == {(Agent(role="code"), task)}
    assert {(event.agent, event.task) for event in unsaid.events} == {(None, None)}


def test_what_is_assumed_leaves_what_is_said(tmp_path: Path) -> None:
    """Only what is missing is filled in, and only what is assumed."""
    calls = of(working("a"), repo="acme/shop") + working("b")
    said, unsaid = (found for found in read_path(write(tmp_path / "c.jsonl", calls)) if isinstance(found, Session))
    facts = Facts("other/one", "code", None, ("x",))
    assert {event.task for event in assume(said, facts).events} == {Task(repo="acme/shop", paths=("x",))}
    assert {(event.agent, event.task) for event in assume(unsaid, Facts(role="code")).events} == {
        (Agent(role="code"), None)
    }
    assert {(event.agent, event.task) for event in assume(unsaid, Facts(repo="o/r")).events} == {
        (None, Task(repo="o/r"))
    }


def test_what_was_said_once_is_not_assumed_away(tmp_path: Path) -> None:
    """An event that does not repeat who acts for which task is of the same, in a worker, too."""
    (said,) = (found for found in read_path(write(tmp_path / "c.jsonl", working("a"))) if isinstance(found, Session))
    first, *others = said.events
    agent, task = Agent(model="m", role="code"), Task(id="t", repo="acme/shop")
    told = replace(said, events=[msgspec.structs.replace(first, agent=agent, task=task), *others])
    events = assume(told, Facts("other/one", "review", "bugfix", ())).events
    assert {(event.agent, event.task) for event in events} == {(agent, Task(id="t", repo="acme/shop", type="bugfix"))}
