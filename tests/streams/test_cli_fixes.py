"""`traction fixes`, as a person or a script runs it: what it prints, its exit codes, settings, mistakes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from streams.cli import fixes, traction
from streams.fixes import CircularFixDetector
from tests.streams.fixes_kit import APART, failing
from tests.waiting import SOON_SECONDS

COMMAND = [sys.executable, "-P", "-m", "traction", "fixes"]
DIFF = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-timeout = 1\n+timeout = 2\n"
RECORD = ("record", "task", "--approach", "Raise the timeout", "--file", "a.py", "--outcome", "failed")
CHECK = ("check", "task", "--approach", "Raise the timeout")


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Give a file for the history, which is the one that commands use."""
    path = tmp_path / "state" / "fixes.sqlite3"
    monkeypatch.setenv("TRACTION_STORE", str(path))
    return path


def start(*arguments):
    """Start the command as a process."""
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def run(*arguments, **options):
    """Run the command in this process, and give its exit code, output and errors."""
    result = CliRunner().invoke(traction, ["fixes", *map(str, arguments)], standalone_mode=False, **options)
    problem = result.exception
    if problem is None:
        return result.return_value or 0, result.stdout, result.stderr
    return getattr(problem, "exit_code", None), result.stdout, getattr(problem, "message", repr(problem))


def test_the_way_of_a_subtask(path):
    """Recorded by two processes at once, asked about by a third, shown, counted, forgotten."""
    recording = [start(*RECORD) for _ in range(2)]
    recorded = sorted(each.communicate(timeout=SOON_SECONDS) for each in recording)
    assert recorded == [(f"recorded attempt #{number} of task: failed\n", "") for number in (1, 2)]

    asking = start(*CHECK)
    output, errors = asking.communicate(timeout=SOON_SECONDS)
    assert (asking.returncode, errors) == (3, "")
    assert output.startswith("circular: Very high similarity (100 %). Try a completely different approach.\n")
    assert "  strategy  different_method\n" in output

    assert "  Similarity to previous: [████████████████████] 100.00%\n" in run("timeline", "task")[1]
    assert "found circular 1 time\n" in run("summary")[1]
    assert run("forget", "task")[:2] == (0, "forgot 2 attempts\n")
    assert path.exists()


def test_a_change_is_read_from_standard_input(path):
    """As from `git diff`; the same change in other words is circular."""
    change = path.parent.parent / "change.diff"
    change.write_text(DIFF)
    for approach, diff in ((APART[0], "-"), (APART[1], change)):
        arguments = ("record", "task", "--approach", approach, "--outcome", "failed", "--diff", diff)
        assert run(*arguments, input=DIFF)[0] == 0
    code, output, _ = run("check", "task", "--approach", "whiskey", "--diff", "-", input=DIFF)
    assert code == 3
    assert "like      attempt #1: words 0.00%, changes 100.00%\n" in output
    assert "like      attempt #2: words 0.00%, changes 100.00%\n" in output
    assert "timeout" not in run("timeline", "task")[1]


def test_an_output_without_blocks_gets_other_bars(path):
    """And a question mark for what else it cannot show."""
    with CircularFixDetector(store=path) as detector:
        failing(detector, "Raise the timeout → more")
        failing(detector, "Raise the timeout")
    result = CliRunner(charset="ascii").invoke(traction, ["fixes", "timeline", "task"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert "  Approach: Raise the timeout ? more\n" in result.stdout
    assert "  Similarity to previous: [#############-------] 66.67%\n" in result.stdout


def test_json_is_for_programs(path):
    """One line each, with the names of the library."""
    del path
    code, output, _ = run(*RECORD, "--error", "TimeoutError: 5 s", "--failing", "test_a", "--json")
    assert code == 0
    assert {key: value for key, value in json.loads(output).items() if key != "recorded_at"} == {
        "subtask_id": "task",
        "number": 1,
        "approach": "Raise the timeout",
        "files_modified": ["a.py"],
        "files_total": 1,
        "outcome": "failed",
        "error_message": "TimeoutError: 5 s",
    }
    run(*RECORD)
    code, output, _ = run(*CHECK, "--json")
    assert code == 3
    answer = json.loads(output)
    assert (answer["is_circular"], answer["suggested_strategy"]) == (True, "different_method")
    assert answer["similar_attempts"][0] == {"number": 1, "word_similarity": 1.0, "diff_similarity": None}
    first, second = json.loads(run("timeline", "task", "--json")[1])
    assert (first["similarity_to_previous"], second["similarity_to_previous"]) == (None, 1.0)
    assert json.loads(run("summary", "--json")[1])["circular_count"] == 1
    assert json.loads(run("forget", "task", "--json")[1]) == {"forgotten": 2}


def test_going_on_is_no_error(path):
    """Exit code 0, also where there is no history, which is not made by asking."""
    code, output, errors = run(*CHECK)
    assert (code, errors) == (0, "")
    assert output == "go on: Attempts like it count 0 of the last 5 that failed; 2 make a circle.\n"
    assert run("timeline", "task")[1] == "=== Fix Attempt History for task ===\n\nTotal Attempts: 0\n"
    assert not path.parent.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("forget",), 2, "name the subtask to forget, or give --all"),
        (("forget", "a", "--all", "--yes"), 2, "name the subtask to forget, or give --all"),
        (("forget", "--all"), 2, "--all and --yes go together"),
        (("forget", "a", "--yes"), 2, "--all and --yes go together"),
        (("record", "a", "--approach", "x"), 2, "--outcome"),
        (("record", "a", "--outcome", "failed"), 2, "--approach"),
        (("record", "a", "--approach", "x", "--outcome", "broken"), 2, "'broken' is not one of 'failed', 'success'"),
        ((*CHECK, "--diff", "none.diff"), 2, "No such file"),
        (("check", "", "--approach", "x"), 2, "subtask_id: Expected `str` of length >= 1"),
        ((*CHECK, "--file", "p" * 1_025), 2, "files[0]: Expected `str` of length <= 1024; shorten it"),
        ((*CHECK, "--store", "/"), 1, "/: is a directory; name a file in it"),
    ],
)
def test_mistakes_are_told(path, monkeypatch, arguments, code, words):
    """Wrong use with 2 and what cannot be used with 1, and nothing is written."""
    monkeypatch.chdir(path.parent.parent)
    result = CliRunner().invoke(traction, ["fixes", *arguments])
    told = run(*arguments)
    assert told[0] == code
    assert words in told[2] + result.stderr
    assert not path.exists()


def test_a_diff_that_is_too_long_is_refused(path, tmp_path):
    """A million characters are taken, as in a stream, and not one more."""
    change = tmp_path / "change.diff"
    change.write_text("x" * 1_000_000)
    assert run(*CHECK, "--diff", change)[0] == 0
    change.write_text("x" * 1_000_001)
    code, _, told = run(*CHECK, "--diff", change)
    assert (code, told) == (2, "diff: Expected `str` of length <= 1000000; shorten it, or leave a part out")
    assert not path.exists()


def test_everything_is_forgotten_only_when_it_is_meant(path):
    """Every subtask, and the figures of the summary."""
    with CircularFixDetector(store=path) as detector:
        failing(detector, "x", subtask="a")
        failing(detector, "x", subtask="b")
    assert run("forget", "--all", "--yes") == (0, "forgot 2 attempts\n", "")
    assert run("summary")[1].startswith("0 attempts of 0 subtasks, 0.00 on average\n")


def test_the_configuration_is_used(path, tmp_path, monkeypatch):
    """From the flag, the environment or the settings file; a mistake in it is wrong use and names the key."""
    with CircularFixDetector(store=path) as detector:
        failing(detector, "Raise the timeout")
    file = tmp_path / "fix.json"
    file.write_text('{"pattern_detection": {"min_similar_attempts": 1}}')
    settings = tmp_path / "traction.toml"
    settings.write_text(f'[traction]\nfix_config = "{file}"\nstore = "{path}"\n')

    assert run(*CHECK)[0] == 0
    assert run(*CHECK, "--fix-config", file)[0] == 3
    monkeypatch.delenv("TRACTION_STORE")
    result = CliRunner().invoke(traction, ["--config", str(settings), "fixes", *CHECK], standalone_mode=False)
    assert result.return_value == 3
    monkeypatch.setenv("TRACTION_STORE", str(path))
    monkeypatch.setenv("TRACTION_FIX_CONFIG", str(file))
    assert run(*CHECK)[0] == 3

    file.write_text('{"pattern_detection": {"min_similar": 1}}')
    code, _, told = run(*CHECK)
    assert code == 2
    assert told == (f"{file}: there is no key `pattern_detection.min_similar`; did you mean `min_similar_attempts`?")


@pytest.mark.parametrize("variable", ["XDG_STATE_HOME", "HOME"])
def test_the_history_is_in_the_state_directory(tmp_path, monkeypatch, variable):
    """Where the platform has it, unless told otherwise."""
    for name in ("TRACTION_STORE", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv(variable, str(tmp_path))
    inside = "" if variable == "XDG_STATE_HOME" else ".local/state"
    assert run(*RECORD)[0] == 0
    assert (tmp_path / inside / "traction" / "fixes.sqlite3").exists()
    assert fixes.default_store() == tmp_path / inside / "traction" / "fixes.sqlite3"


def test_the_help_says_how_to_use_it_in_a_script():
    """The exit codes, and an `if`."""
    code, output, _ = run("check", "--help")
    assert code == 0
    assert "3  circular" in output
    assert 'if traction fixes check fix-login --approach "$next"; then' in output
