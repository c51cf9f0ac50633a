"""`traction policy`: faults and exit codes of `check`, and what `explain` says without a broker."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click
import pytest
from click.testing import CliRunner

from streams.cli import traction
from tests.streams.backtest_kit import code

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

TEXT = """
[ladder]
budget.cooldown = 3
[limits]
ping_pong.warn = 4
tools.names.deploy = "check"
[[rule]]
name = "docs"
when.repo = "acme/docs"
ladder.order = ["inject_guidance", "escalate_human"]
limits.ping_pong.warn = 2
[[rule]]
name = "sensitive"
when = { paths = "auth/", role = "code" }
limits.identical.warn = 2
[sinks.chat]
type = "slack"
url_env = "CHAT"
"""


def run(*words: object, before: tuple[object, ...] = ()) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(traction, [*map(str, before), "policy", *map(str, words)], standalone_mode=False)


def rows(*words: object) -> dict[str, Any]:
    """Explain, and give the object."""
    result = run("explain", "--json", *words)
    assert code(result) in {None, 0}, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.fixture
def good(file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a policy, the secret of whose sink is there."""
    monkeypatch.setenv("CHAT", "https://hooks.slack.com/services/T0/B0/x")
    file.write_text(TEXT, "utf-8")
    return file


def test_a_good_policy(good: Path) -> None:
    """It exits with 0 and says what is in it."""
    result = run("check", good)
    assert (code(result), result.stdout, result.stderr) == (0, f"{good} can be used: 2 rules, 1 sink\n", "")
    assert json.loads(run("check", "--json", good).stdout) == {
        "ok": True,
        "file": str(good),
        "problems": [],
        "unchecked": [],
        "rules": ["docs", "sensitive"],
        "sinks": ["chat"],
    }


def test_faults_end_with_3(good: Path) -> None:
    """Each is an own line on standard error, or of the JSON; nothing in a name steers the terminal."""
    good.write_text(TEXT.replace("url_env", "url") + '["\\u001b[2J"]\n', "utf-8")
    result = run("check", good)
    assert (code(result), result.stdout) == (3, "")
    assert len(result.stderr.splitlines()) == 2
    assert all(line.startswith(f"error: {good}: ") for line in result.stderr.splitlines())
    assert "\x1b" not in result.stderr
    assert "sinks.chat" in result.stderr
    found = run("check", "--json", good)
    assert (code(found), found.stderr) == (3, "")
    assert (json.loads(found.stdout)["ok"], len(json.loads(found.stdout)["problems"])) == (False, 2)


def test_a_secret_that_is_not_here_is_no_fault(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy is checked where no secret is: which were not looked at is told."""
    monkeypatch.delenv("CHAT")
    result = run("check", good)
    assert (code(result), result.stderr) == (0, "")
    assert result.stdout.splitlines()[0].startswith(f"not checked: {good}: [sinks.chat]: `url_env`")
    found = json.loads(run("check", "--json", good).stdout)
    assert (found["ok"], found["problems"], len(found["unchecked"])) == (True, [], 1)


WRONG = "no secret of that kind"


@pytest.mark.parametrize(
    ("sink", "secret", "wrong"),
    [
        ('type = "webhook"\nurl = "https://example.com"\nsecret_env = "KEY"', WRONG, True),
        ('type = "webhook"\nurl = "https://example.com"\nsecret_env = "KEY"', "whsec_" + "A" * 32, False),
        ('type = "pagerduty"\nrouting_key_env = "KEY"', WRONG, True),
        ('type = "slack"\nurl_env = "KEY"', WRONG, True),
        ('type = "github"\ntoken_env = "KEY"', WRONG, True),
    ],
)
def test_what_the_start_refuses_the_check_refuses(
    file: Path, monkeypatch: pytest.MonkeyPatch, sink: str, secret: str, *, wrong: bool
) -> None:
    """A secret that is no such is a fault in the words of `traction escalate`, not quoted; a good one is none."""
    file.write_text(f"[sinks.out]\n{sink}\n", "utf-8")
    monkeypatch.setenv("KEY", secret)
    checked = run("check", file)
    words = ["escalate", "--bootstrap", "127.0.0.1:1", "--policy", str(file)]
    started = CliRunner().invoke(traction, words, standalone_mode=False).exception
    assert code(checked) == (3 if wrong else 0)
    assert isinstance(started, click.UsageError) == wrong
    if wrong:
        told = checked.stderr.removeprefix("error: ").strip()
        assert told in str(started)
        assert secret not in checked.stderr


def test_what_cannot_be_read_ends_with_1(tmp_path: Path) -> None:
    """It is no fault of the policy."""
    result = run("check", tmp_path / "none.toml")
    assert code(result) == 1
    assert "cannot be read" in result.stderr
    assert json.loads(run("check", "--json", tmp_path).stdout)["ok"] is False


def test_the_settings_file_lies_below(good: Path, tmp_path: Path) -> None:
    """What is fine alone is checked over the limits that it would lie over."""
    settings = tmp_path / "traction.toml"
    settings.write_text("[limits]\nping_pong.terminate = 3\nping_pong.warn = 1\n", "utf-8")
    assert code(run("check", good, before=("--config", settings))) == 3
    assert code(run("check", good)) == 0


def test_explain_says_who_set_what(good: Path) -> None:
    """Only what is not as by default, with the layer: the policy, or the last rule that set it."""
    found = rows("--policy", good, "--repo", "acme/docs", "--role", "code", "--path", "auth/login.py")
    assert found["rules"] == ["docs", "sensitive"]
    limits = {row["name"]: (row["value"], row["layer"]) for row in found["limits"]}
    assert limits == {
        "ping_pong.warn": (2, f"policy:{good}:rule docs"),
        "identical.warn": (2, f"policy:{good}:rule sensitive"),
        "tools.names.deploy": ("check", f"policy:{good}"),
    }
    ladder = {row["name"]: (row["value"], row["layer"]) for row in found["ladder"]}
    assert ladder == {
        "order": (["inject_guidance", "escalate_human"], f"policy:{good}:rule docs"),
        "on_terminate": ("escalate_human", f"policy:{good}:rule docs"),
        "budget.cooldown": (3, f"policy:{good}"),
    }
    assert (found["repo"], found["role"], found["paths"]) == ("acme/docs", "code", ["auth/login.py"])
    assert rows("--policy", good, "--role", "code")["rules"] == []


def test_explain_shows_all_when_asked(good: Path) -> None:
    """Then every limit and every key of the ladder is there, those that nobody set as default."""
    found = rows("--policy", good, "--all")
    limits = {row["name"]: row["layer"] for row in found["limits"]}
    assert limits["ping_pong.terminate"] == "default"
    assert limits["ping_pong.warn"] == f"policy:{good}"
    assert {row["layer"] for row in found["ladder"]} == {"default", f"policy:{good}"}
    assert {"notify", "order", "budget.terminate"} <= {row["name"] for row in found["ladder"]}
    names = next(row for row in found["limits"] if row["name"] == "tools.names")
    assert (names["layer"], "cat" in names["value"], "deploy" in names["value"]) == ("default", True, False)
    assert limits["tools.names.deploy"] == f"policy:{good}"


@pytest.mark.parametrize("everything", [[], ["--all"]])
def test_entries_of_a_table_are_told_with_who_set_each(good: Path, everything: list[str]) -> None:
    """Whoever set another entry later."""
    with good.open("a", encoding="utf-8") as stream:
        stream.write("[[rule]]\nname = 'more'\nwhen.role = 'code'\nlimits.tools.names.check_it = 'check'\n")
    found = rows("--policy", good, "--role", "code", *everything)
    layers = {row["name"]: row["layer"] for row in found["limits"] if row["name"].startswith("tools.names.")}
    assert layers == {
        "tools.names.deploy": f"policy:{good}",
        "tools.names.check_it": f"policy:{good}:rule more",
    }


def test_explain_for_people(good: Path, tmp_path: Path) -> None:
    """For whom, which rules, and tables; the settings file's limits are told as such, without a policy too."""
    told = run("explain", "--policy", good, "--repo", "acme/docs").stdout
    assert told.startswith(f"for: repository acme/docs\npolicy: {good}\nrules that hold: docs\n")
    assert f"ping_pong.warn      2        policy:{good}:rule docs" in told
    settings = tmp_path / "traction.toml"
    settings.write_text("[limits]\nidentical.warn = 2\n", "utf-8")
    told = run("explain", before=("--config", settings)).stdout
    assert "for: whoever says nothing" in told
    assert f"identical.warn  2      file:{settings}" in told
    assert "ladder: everything as by default; --all shows it" in told


def test_wrong_use(good: Path, tmp_path: Path) -> None:
    """A session is not also described by hand; a policy with faults is told as by the worker."""
    result = run("explain", "--policy", good, "--session", "s", "--repo", "a/b")
    assert code(result) == 2
    assert "drop --repo" in str(result.exception)
    bad = tmp_path / "bad.toml"
    bad.write_text("[limits\n", "utf-8")
    assert code(run("explain", "--policy", bad)) == 2
