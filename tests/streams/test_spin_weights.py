"""`--spin-weights`: where the file may be named, which commands score with it, and what a wrong one is told like."""

from __future__ import annotations

import json

import msgspec
import pytest
from click.testing import CliRunner

from detectors.weights import DEFAULT_MODEL, write_weights
from schemas.events import Override
from streams.cli import replay, traction, worker
from streams.worker.overrides import Overrides
from tests.kit import BEGIN
from tests.streams.backtest_kit import spinning, write


def weights(path, intercept):
    """Write weights with which every call has one score, nearly 0 or 1."""
    features = {name: (0.0, usual) for name, (_, usual) in DEFAULT_MODEL.source.features.items()}
    source = msgspec.structs.replace(DEFAULT_MODEL.source, features=features, intercept=intercept)
    path.write_bytes(write_weights(source))
    return path


@pytest.fixture
def high(tmp_path):
    """Write weights with which every call scores 1.00."""
    return weights(tmp_path / "high.json", 20.0)


@pytest.fixture
def low(tmp_path):
    """Write weights with which every call scores 0.00."""
    return weights(tmp_path / "low.json", -20.0)


@pytest.fixture
def loop(tmp_path):
    """Write a session that spins."""
    return write(tmp_path / "loop.jsonl", spinning("s"))


def run(*words, **environment):
    """Run a command in this process, with the environment's variables named without their common beginning."""
    variables = {f"TRACTION_{name}": str(value) for name, value in environment.items()}
    return CliRunner().invoke(traction, [str(word) for word in words], env=variables, standalone_mode=False)


def score(*words, **environment):
    """Replay, and give the spin score of the alerts, which is the same at all."""
    result = run(*words, **environment)
    assert (result.exception, result.return_value, result.stderr) == (None, 0, "")
    (found,) = {round(row["spin_score"], 2) for row in map(json.loads, result.stdout.splitlines())}
    return found


def test_flag_variables_and_tables_name_the_file(high, low, loop, tmp_path):
    """The flag wins over the command's variable, over that of all commands, over its table, over the shared one."""
    config = tmp_path / "traction.toml"
    words = ["--config", config, "replay", "--json", loop]
    config.write_text(f'[traction]\nspin_weights = "{high}"\n')
    assert score(*words) == 1.0
    config.write_text(f'[traction]\nspin_weights = "{low}"\n[replay]\nspin_weights = "{high}"\n')
    assert score(*words) == 1.0
    assert score(*words, SPIN_WEIGHTS=low) == 0.0
    assert score(*words, SPIN_WEIGHTS=low, REPLAY_SPIN_WEIGHTS=high) == 1.0
    assert score(*words, "--spin-weights", low, SPIN_WEIGHTS=high, REPLAY_SPIN_WEIGHTS=high) == 0.0


def test_limits_of_a_file_do_not_bring_back_the_usual_weights(high, loop, tmp_path):
    """Weights and limits go together, from whichever places they come."""
    limits = tmp_path / "limits.toml"
    limits.write_text("[limits.identical]\nwarn = 2\n")
    assert score("replay", "--json", "--limits", limits, "--spin-weights", high, loop) == 1.0
    assert score("--config", limits, "replay", "--json", "--spin-weights", high, loop) == 1.0


@pytest.mark.parametrize("name", ["replay", "backtest", "worker"])
@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "make the file anew with traction train"),
        (b"\xff", "make the file anew with traction train"),
        (b'{"format": "1"}', "`$.format`; make the file anew with traction train"),
        (b"{}", "required field `format`; make the file anew with traction train"),
        (
            write_weights(msgspec.structs.replace(DEFAULT_MODEL.source, warn=0.0)),
            "fields `weak_needs`, `notice` and `warn` must rise in this order; correct them",
        ),
        (None, "is a directory"),
    ],
)
def test_a_wrong_file_is_wrong_use(name, content, told, loop, tmp_path):
    """It ends each command with 2 before anything is read, and file, field and remedy are told."""
    file = tmp_path / "wrong.json"
    if content is None:
        file.mkdir()
    else:
        file.write_bytes(content)
    labels = write(tmp_path / "labels.jsonl", [{"session_id": "s", "label": "healthy"}])
    rest = {"replay": [loop], "backtest": ["--labels", labels, loop], "worker": []}[name]
    result = run(name, "--spin-weights", file, *rest)
    assert result.stdout == ""
    assert getattr(result.exception, "exit_code", None) == 2
    words = result.exception.format_message()
    assert str(file) in words
    assert "--spin-weights" in words
    assert told in words


def test_a_file_that_cannot_be_read_is_wrong_use(high, loop, monkeypatch):
    """Reason and remedy are told."""

    def fail(_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(type(high), "read_bytes", fail)
    result = run("replay", "--spin-weights", high, loop)
    assert getattr(result.exception, "exit_code", None) == 2
    told = f"--spin-weights {high}: cannot be read (Input/output error); give it a file made by traction train"
    assert str(result.exception) == told


def test_publishing_scores_nothing(high, loop, monkeypatch):
    """With `--to-kafka` the flag is a mistake; a variable that is set for the worker beside it is none."""
    monkeypatch.setattr(replay, "to_topics", lambda *_: 0)
    refused = run("replay", "--to-kafka", "--spin-weights", high, loop)
    assert getattr(refused.exception, "exit_code", None) == 2
    assert "drop --json, --all, --fail-on, --limits, --spin-weights" in str(refused.exception)
    allowed = run("replay", "--to-kafka", loop, SPIN_WEIGHTS=high)
    assert (allowed.exception, allowed.return_value) == (None, 0)


@pytest.mark.parametrize("place", ["flag", "variable", "table"])
def test_the_worker_scores_with_it_and_so_do_overridden_sessions(high, place, tmp_path, monkeypatch):
    """What standing exceptions change is merged over limits with these weights."""
    settings = []

    async def take(given, *_):
        settings.append(given)
        return 0

    monkeypatch.setattr(worker, "run", take)
    config = tmp_path / "traction.toml"
    table = f'[worker]\nspin_weights = "{high}"\n' if place == "table" else ""
    config.write_text(f"{table}[limits.identical]\nwarn = 2\n")
    flags = ["--spin-weights", high] if place == "flag" else []
    result = run("--config", config, "worker", *flags, **({"SPIN_WEIGHTS": high} if place == "variable" else {}))
    assert (result.exception, result.return_value) == (None, 0)
    limits = settings[0].policy.common
    assert (limits.model.source.intercept, limits.identical.warn) == (20.0, 2)
    overrides = Overrides(settings[0].policy)
    overrides.put(Override(scope="session:s", set_at=BEGIN, limits={"spin_score.warn": 0.9}))
    found, _ = overrides.resolve(None, None, session_id="s", task_id="s", at=BEGIN)
    assert (found.spin_warn, found.identical.warn) == (0.9, 2)
    assert found.model is limits.model
