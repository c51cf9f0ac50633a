"""`traction settings`: what is in force and where it comes from, no secret told, misspelt variables pointed out."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
from click.testing import CliRunner

from streams import cli
from streams.cli.inforce import OF_DEVELOPERS
from streams.cli.secrets import SECRETS

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.testing import Result

SECRET = "hush-hush-4711"  # noqa: S105 - of these tests


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """Give a way to ask for settings, with a settings file and an environment of one's own."""
    import os  # noqa: PLC0415 - for this only

    for name in [name for name in os.environ if name.startswith("TRACTION_")]:
        monkeypatch.delenv(name)

    def ask(*words: str, toml: str | None = None, environment: dict[str, str] | None = None) -> Result:
        file = tmp_path / "traction.toml"
        file.write_text(toml or "")
        options = [] if toml is None else ["--config", str(file)]
        return CliRunner().invoke(
            cli.traction, [*options, "settings", *words], env=environment, prog_name="traction", standalone_mode=False
        )

    return ask


def told(result: Result) -> dict[str, Any]:
    """Read what was told as JSON."""
    assert result.exception is None, result.exception
    read: dict[str, Any] = json.loads(result.stdout)
    return read


TOML = '[traction]\nbootstrap = "shared-table:1"\n'
OWN = f'{TOML}[worker]\nbootstrap = "own-table:1"\n'
FOR_ALL = {"TRACTION_BOOTSTRAP": "shared-variable:1"}
BOTH = {**FOR_ALL, "TRACTION_WORKER_BOOTSTRAP": "own-variable:1"}


@pytest.mark.parametrize(
    ("toml", "environment", "value", "source"),
    [
        (None, {}, "127.0.0.1:9092", "default"),
        (TOML, {}, "shared-table:1", "FILE [traction]"),
        (OWN, {}, "own-table:1", "FILE [worker]"),
        (OWN, FOR_ALL, "shared-variable:1", "TRACTION_BOOTSTRAP"),
        (OWN, BOTH, "own-variable:1", "TRACTION_WORKER_BOOTSTRAP"),
        (OWN, {**FOR_ALL, "TRACTION_WORKER_BOOTSTRAP": ""}, "shared-variable:1", "TRACTION_BOOTSTRAP"),
    ],
)
def test_the_source_that_wins_is_told(
    run: Callable[..., Result],
    tmp_path: Path,
    *,
    toml: str | None,
    environment: dict[str, str],
    value: str,
    source: str,
) -> None:
    """Each setting has the value that the command would have, and names the very variable or table."""
    rows = told(run("worker", "--json", toml=toml, environment=environment))["commands"]["worker"]
    assert rows["bootstrap"] == {"value": value, "from": source.replace("FILE", str(tmp_path / "traction.toml"))}
    assert rows["port"] == {"value": 9401, "from": "default"}


def test_a_commands_command_has_its_own_table(run: Callable[..., Result], tmp_path: Path) -> None:
    """Words name a command as they do on the command line; a group alone means all in it."""
    toml = "[topics.create]\npartitions = 3\n[limits]\nidentical.warn = 4\n"
    read = told(run("topics", "create", "--json", toml=toml))
    source = f"{tmp_path / 'traction.toml'} [topics.create]"
    assert read["commands"]["topics create"]["partitions"] == {"value": 3, "from": source}
    assert read["limits"] == {"identical.warn": 4}
    assert set(told(run("topics", "--json"))["commands"]) > {"topics create", "topics check"}


def test_without_a_command_only_what_is_set_is_told(run: Callable[..., Result]) -> None:
    """For every command that the setting concerns; where nothing is set, that is said."""
    rows = told(run("--json", environment={"TRACTION_WORKER_PORT": "9", "TRACTION_STORE": "s.sqlite3"}))["commands"]
    assert rows["worker"] == {"port": {"value": 9, "from": "TRACTION_WORKER_PORT"}}
    assert rows["escalate"] == {}
    assert {name for name in rows if "store" in rows[name]} == {name for name in rows if name.startswith("fixes ")}
    assert run().stdout == "everything is as it is by default\n"


@pytest.mark.parametrize("command", ["worker", "escalate", "topics create", ""])
@pytest.mark.parametrize("words", [[], ["--json"]])
def test_secrets_are_never_told(run: Callable[..., Result], command: str, words: list[str], tmp_path: Path) -> None:
    """Whether they are set, and from where, is all."""
    file = tmp_path / "secret"
    file.write_text(SECRET)
    for environment in (
        dict.fromkeys(SECRETS, SECRET),
        {f"TRACTION_{each.file.upper()}": str(file) for each in SECRETS.values()},
    ):
        result = run(*command.split(), *words, environment=environment)
        assert result.exception is None
        assert "set" in result.stdout
        assert SECRET not in result.output


def test_where_a_secret_comes_from_is_told(run: Callable[..., Result], tmp_path: Path) -> None:
    """The file comes before the variable, as it does for the command; what is not there is not set."""
    file = tmp_path / "token"
    file.write_text(SECRET)
    environment = {"TRACTION_PAGE_TOKEN": SECRET}

    def row(**more: str) -> dict[str, Any]:
        read = told(run("worker", "--json", environment={**environment, **more}))["commands"]["worker"]
        assert "page_token_file" not in read
        assert read["sasl_password"] == {"value": "not set", "from": "default"}
        answer: dict[str, Any] = read["page_token"]
        return answer

    assert row() == {"value": "set", "from": "TRACTION_PAGE_TOKEN"}
    assert row(TRACTION_PAGE_TOKEN_FILE=str(file)) == {"value": "set", "from": str(file)}


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"TRACTION_WORKER_PORT": "x"}, "Invalid value for '--port'"),
        ({"TRACTION_BOOTSTRAP": "nowhere"}, "Invalid value for '--bootstrap'"),
        ({"TRACTION_SPIN_WEIGHTS": "/nowhere"}, "Invalid value for '--spin-weights'"),
        ({"TRACTION_PAGE_TOKEN_FILE": "EMPTY"}, "--page-token-file: .* is empty"),
        ({"TRACTION_SASL_TOKEN_URL": f"https://me:{SECRET}@idp/token"}, "without a user name, password"),
    ],
)
def test_what_the_command_would_refuse_is_refused(
    run: Callable[..., Result], tmp_path: Path, environment: dict[str, str], words: str
) -> None:
    """Wrong use, in the command's own words."""
    (tmp_path / "empty").touch()
    given = {name: value.replace("EMPTY", str(tmp_path / "empty")) for name, value in environment.items()}
    result = run("worker", environment=given)
    assert isinstance(result.exception, click.UsageError)
    said = result.exception.format_message()
    assert (bool(re.search(words, said)), SECRET in said) == (True, False)


def test_a_command_that_is_not_there_is_named(run: Callable[..., Result]) -> None:
    """Also below a group, and below what is no group."""
    for words in (["wrker"], ["topics", "crate"], ["worker", "now"]):
        result = run(*words)
        assert isinstance(result.exception, click.UsageError)
        assert f"there is no command `traction {' '.join(words)}`" in result.exception.message


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("TRACTION_BOOTSTRP", "did you mean `TRACTION_BOOTSTRAP`?"),
        ("TRACTION_WORKER_BOOTSTRP", "did you mean `TRACTION_WORKER_BOOTSTRAP`?"),
        ("TRACTION_METRICS_TOKEN_FILE", "did you mean `TRACTION_"),
        ("TRACTION_SASL_PASWORD", "did you mean `TRACTION_SASL_PASSWORD`?"),
        ("TRACTION_CONFIGS", "did you mean `TRACTION_CONFIG`?"),
        ("TRACTION_ZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZ", "traction settings lists what there is"),
    ],
)
def test_variables_that_set_nothing_are_pointed_out(run: Callable[..., Result], name: str, meant: str) -> None:
    """A variable that is misspelt changes nothing silently: it is named with the nearest one, its value is not."""
    for words in (["worker"], [], ["worker", "--json"]):
        result = run(*words, environment={name: SECRET})
        assert (result.return_value, result.exception) == (1, None)
        assert SECRET not in result.output
        assert f"{name} is no setting: {meant}" in result.stderr or meant in json.loads(result.stdout)["unknown"][name]


def test_variables_of_others_confuse_nothing(run: Callable[..., Result], tmp_path: Path) -> None:
    """What the tests read, what a policy names for its sinks, other commands' settings and other programs' names."""
    policy = tmp_path / "policy.toml"
    policy.write_text('[sinks.team]\ntype = "slack"\nurl_env = "TRACTION_TEAM_URL"\n')
    environment = {
        **dict.fromkeys(OF_DEVELOPERS, "x"),
        **dict.fromkeys(SECRETS, SECRET),
        "TRACTION_TEAM_URL": SECRET,
        "TRACTION_POLICY": str(policy),
        "TRACTION_DEMO_SPEED": "x",
        "TRACTIONS": "x",
        "OTHER": "x",
    }
    result = run("escalate", environment=environment)
    assert "TRACTION_TEAM_URL" not in result.stderr
    assert "is no setting" not in result.stderr.replace("TRACTION_DEMO_SPEED is no setting", "")
    policy.write_text("not a policy")
    assert "TRACTION_TEAM_URL is no setting" in run("worker", environment=environment).stderr


def test_variables_of_developers_are_known_and_read_by_no_command(run: Callable[..., Result]) -> None:
    """Those that the Makefile, the build and the tests read; the list has no setting in it."""
    root = Path(__file__).parents[2]
    files = [root / "Makefile", root / ".ci" / "run", *(root / "tests").rglob("*.py")]
    read = re.compile(
        r"environ(?:\.get\(|\[)\s*\"(TRACTION_\w+)\"|^\s+(TRACTION_\w+)=|\$\{(TRACTION_\w+)", re.MULTILINE
    )
    found = {name for file in files for names in read.findall(file.read_text("utf-8")) for name in names if name}
    assert found >= {"TRACTION_TEST_KAFKA", "TRACTION_RECORDINGS", "TRACTION_MATRIX_EXAMPLES"}
    result = run("worker", environment=dict.fromkeys(found, "x"))
    assert (result.stderr, result.return_value) == ("", 0)
    assert not OF_DEVELOPERS & set(SECRETS)


@pytest.mark.parametrize("name", [name for name in cli.COMMANDS if name != "settings"])
def test_every_command_can_be_asked(run: Callable[..., Result], name: str) -> None:
    """Nothing that a command has as an option is left out or cannot be said."""
    rows = told(run(name, "--json"))["commands"]
    assert rows
    assert all(each["from"] == "default" for settings in rows.values() for each in settings.values())
