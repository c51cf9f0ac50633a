"""Runs the commands of the page on policies, in a repository as it says; holds the example policy to its comments."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from detectors import Limits
from schemas.common import Agent, Task
from streams.cli import traction
from streams.policy.load import read_policy
from tests.streams.backtest_kit import label, spinning, working, write

if TYPE_CHECKING:
    from tests.docs.conftest import Find

BIN = Path(sys.executable).parent
GIT = shutil.which("git") or "git"


@pytest.fixture
def repository(block: Find, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a repository with the page's policy on its branch main, and recordings with labels."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recordings").mkdir()
    (tmp_path / "policy.toml").write_text(block("policy").text, "utf-8")
    calls = spinning("loop") + working("well") + spinning("polls", times=4)
    calls[0] |= {"repo": "acme/docs"}
    write(tmp_path / "recordings" / "calls.jsonl", calls)
    write(tmp_path / "labels.jsonl", [label("loop", "loop", first_loop_seq=8), label("polls", "healthy")])
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    git(tmp_path, "add", "policy.toml")
    git(tmp_path, "-c", "user.name=n", "-c", "user.email=e@example.org", "commit", "--quiet", "--message=policy")
    return tmp_path


def git(directory: Path, *words: str) -> None:
    """Run git, untouched by the settings of whoever runs the tests."""
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run([GIT, "-C", str(directory), *words], check=True, env=environment)


def shell(text: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Run a block as it stands, stopping at the first command that fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRACTION_")}
    environment["PATH"] = f"{BIN}{os.pathsep}{environment['PATH']}"
    return subprocess.run(
        ["/bin/sh", "-e", "-c", text], cwd=directory, env=environment, capture_output=True, text=True, check=False
    )


def test_the_policy_can_be_used_and_is_explained_as_shown(block: Find, repository: Path) -> None:
    """Check says that it can be used, and of which sink the secret is not here; explain prints what stands below it."""
    checked = shell(block("policy-check").text, repository)
    assert checked.returncode == 0
    unchecked, used = checked.stdout.splitlines()
    assert unchecked.startswith("not checked: policy.toml: [sinks.on-call]: ")
    assert used == "policy.toml can be used: 2 rules, 1 sink"
    explained = shell(block("policy-explain").text, repository)
    assert (explained.returncode, explained.stderr) == (0, "")
    assert explained.stdout == block("policy-explain-output").text


def test_a_change_is_tried_against_the_branch(block: Find, repository: Path) -> None:
    """Without a change nothing differs; one that terminates healthy sessions ends with 3 and names them."""
    text = block("policy-backtest").text
    unchanged = shell(text, repository)
    assert (unchanged.returncode, unchanged.stderr) == (0, "")
    assert "TERMINATED" not in unchanged.stdout
    file = repository / "policy.toml"
    file.write_text(file.read_text("utf-8").replace("[limits]", "[limits]\nidentical.terminate = 4"), "utf-8")
    tried = shell(text, repository)
    assert tried.returncode == 3
    assert "NEWLY TERMINATED  polls" in tried.stdout
    assert "--max-terminated 0" in tried.stderr


def test_the_example_does_what_its_comments_say(root: Path) -> None:
    """Reviews of documentation are short, those of complex services long; sensitive paths call a person first."""
    policy = read_policy(root / "deploy" / "policy.toml", Limits())

    def warn(repo: str, *paths: str) -> int:
        return policy.limits(None, Task(repo=repo, paths=paths)).ping_pong.warn

    assert (warn("acme/docs"), warn("acme/api-docs"), warn("acme/billing"), warn("acme/other")) == (2, 2, 5, 3)
    assert warn("acme/billing", "README.md", "src/auth/login.py") == 2
    usual, sensitive = policy.ladder(None, None), policy.ladder(None, Task(paths=("db/migrations/1.sql",)))
    assert usual.order.index("rotate_strategy") < usual.order.index("escalate_human")
    assert sensitive.order.index("escalate_human") < sensitive.order.index("rotate_strategy")
    assert sensitive.order.index("escalate_human") < usual.order.index("escalate_human")
    for ladder in (usual, sensitive):  # warnings reach both
        assert {"rotate_strategy", "escalate_human"} <= {*ladder.order[: ladder.order.index(ladder.warn_most) + 1]}
    assert policy.limits(Agent(role="review"), None).session_mode == "explore"


def test_what_the_example_only_shows_can_be_used(root: Path, tmp_path: Path) -> None:
    """Lines that are commented out are a policy, too, once they are not."""
    lines = (root / "deploy" / "policy.toml").read_text("utf-8").splitlines()
    starts = ("# candidates", "# [sinks", "# type", "# routing_key_env")
    shown = [line.removeprefix("# ") if line.startswith(starts) else line for line in lines]
    assert sum(line.startswith(starts) for line in lines) == len(starts)
    file = tmp_path / "policy.toml"
    file.write_text("\n".join(shown) + "\n", "utf-8")
    result = CliRunner().invoke(traction, ["policy", "check", "--json", str(file)], standalone_mode=False)
    found: dict[str, Any] = json.loads(result.stdout)
    assert (found["problems"], found["sinks"]) == ([], ["on-call"])
