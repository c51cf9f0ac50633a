"""`traction sinks` lists and tries out sinks, in words and as JSON, and shows no secret."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from streams.cli import traction
from tests.streams.sinks.conftest import Receiver, status

SECRET = "T0ps3cret"  # noqa: S105 - opens nothing


@pytest.fixture
def policy(tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a policy with three sinks, of which one has no secret."""
    monkeypatch.setenv("URL", f"{receiver.url}/{SECRET}")
    monkeypatch.delenv("NOT_SET", raising=False)
    file = tmp_path / "policy.toml"
    file.write_text(
        '[sinks.hooks]\ntype = "webhook"\nformat = "alertmanager"\nurl_env = "URL"\n'
        f'[sinks.log]\ntype = "file"\npath = "{tmp_path}/log"\nkinds = ["terminate"]\n'
        '[sinks.team]\ntype = "slack"\nurl_env = "NOT_SET"\n',
        "utf-8",
    )
    return file


@pytest.fixture
def run(policy: Path) -> Callable[..., Result]:
    """Give what runs the command with the policy."""

    def run(*words: str) -> Result:
        result = CliRunner().invoke(traction, ["sinks", *words, "--policy", str(policy)], standalone_mode=False)
        assert SECRET not in result.output
        return result

    return run


def test_sinks_are_listed(run: Callable[..., Result]) -> None:
    """Each is there with its type and kinds; a secret that is missing is told, and makes the exit code 1."""
    result = run("list")
    assert result.return_value == 1
    lines = result.stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["hooks", "webhook"], ["log", "file"], ["team", "slack"]]
    assert lines[2].endswith("ready      terminate")
    assert "[sinks.team]: `url_env`: the variable NOT_SET is not set" in result.stderr


def test_sinks_are_listed_as_json(run: Callable[..., Result]) -> None:
    """The same for machines."""
    told = json.loads(run("list", "--json").stdout)
    assert (told["ok"], [each["state"] for each in told["sinks"]]) == (False, ["ready", "ready", "not ready"])
    assert len(told["problems"]) == 1


async def in_thread(run: Callable[..., Result], *words: str) -> Result:
    """Run the command beside the receiver."""
    return await asyncio.to_thread(run, *words)


async def test_a_sink_is_tried_out(run: Callable[..., Result], receiver: Receiver) -> None:
    """A sample is sent that says what it is, then what resolves it, and the answers are shown."""
    result = await in_thread(run, "test", "hooks", "--resolve")
    assert (result.return_value, result.stdout) == (0, "delivered: answered 200\n" * 2)
    first, second = (each.json["alerts"][0] for each in receiver.received)
    assert "This is a test of the sink hooks" in first["annotations"]["description"]
    assert first["labels"] == second["labels"]
    assert (first["status"], second["status"]) == ("firing", "resolved")


async def test_what_came_back_is_shown(run: Callable[..., Result], receiver: Receiver) -> None:
    """What is not taken is told with the answer, secrets masked, once, with exit code 1."""
    receiver.replies = [status(503, f"no room at {receiver.url}/{SECRET} \x1b[31m"), status(404)]
    result = await in_thread(run, "test", "hooks")
    assert result.return_value == 1
    assert f"not taken: {receiver.url} answered 503\nit said: no room at …" in result.stderr
    assert "\x1b" not in result.stderr

    told = json.loads((await in_thread(run, "test", "hooks", "--json")).stdout)
    assert (told["ok"], told["sent"][0]["status"]) == (False, 404)
    assert len(receiver.received) == 2


def test_a_file_is_tried_out(run: Callable[..., Result], tmp_path: Path) -> None:
    """A kind that the sink does not tell is sent all the same, since it was asked for."""
    assert run("test", "log", "--kind", "cooldown").return_value == 0
    assert json.loads((tmp_path / "log").read_text("utf-8"))["kind"] == "cooldown"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["test", "pager"], "the policy has no sink 'pager'; it has: hooks, log, team"),
        (["test", "log", "--kind", "recovered"], "is not one of"),
    ],
)
def test_wrong_use_is_told(run: Callable[..., Result], words: list[str], told: str) -> None:
    """What is not there is named with what there is."""
    assert told in str(run(*words).exception)


def test_a_missing_secret_is_told(run: Callable[..., Result]) -> None:
    """Without its secret a sink is not tried."""
    result = run("test", "team")
    assert (result.return_value, "the variable NOT_SET is not set" in result.stderr) == (1, True)


@pytest.mark.parametrize("command", ["list", "test"])
def test_without_a_policy(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy has to be named, by the option or the variable."""
    monkeypatch.delenv("TRACTION_POLICY", raising=False)
    words = ["sinks", command, *(["x"] if command == "test" else [])]
    assert "no policy is named" in str(CliRunner().invoke(traction, words, standalone_mode=False).exception)
