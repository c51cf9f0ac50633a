"""`traction backtest`: tables, lists, pictures and exit codes, on sessions written here."""

from __future__ import annotations

import json
import multiprocessing
import os
import xml.etree.ElementTree as ET
from functools import partial
from pathlib import Path

import pytest

from streams import pool
from streams.cli import backtest as command
from tests.streams import backtest_kit
from tests.streams.backtest_kit import ALERT, LABELS, code, label, line, spinning, working, write

run = partial(backtest_kit.run, "backtest")

QUIET = "[limits]\nidentical = { warn = 9, terminate = 9, window_warn = 9, window_terminate = 9 }\n"
"""Limits under which a call may come six times."""


@pytest.fixture
def labels(tmp_path):
    """Write labels of seven sessions."""
    return write(tmp_path / "labels.jsonl", LABELS)


@pytest.fixture
def recordings(tmp_path):
    """Write these sessions and two without a label, in two files."""
    folder = tmp_path / "recordings"
    folder.mkdir()
    loops = [call for name in ("x/at-five", "x/at-six") for call in spinning(name)]
    write(folder / "a.jsonl", loops + working("x/missed") + spinning("x/false", times=4) + spinning("x/hard"))
    write(folder / "b.jsonl", working("x/well") + spinning("x/unclear") + spinning("lonely") + working("y/quiet"))
    return folder


def table(text):
    """Give the rows of the totals as words after their first."""
    rows = [row.rsplit("  ", 1) for row in text.splitlines() if " of " in row and row.count("  ") >= 1]
    return {row[0].strip(): row[1].strip() for row in rows}


def test_everything_is_told(recordings, labels):
    """Totals, rows by detector and source, and what to read; exactly five calls after the onset is still in time."""
    result = run("--labels", labels, recordings)
    assert code(result) == 0
    assert result.stderr == ""
    totals = table(result.stdout)
    assert totals["loops found"] == "2 of 3"
    assert totals["within 5 calls"] == "1 of 3"
    assert totals["healthy, easy: warned"] == "1 of 2"
    assert totals["healthy, hard: warned"] == "1 of 1"
    assert totals["unlabelled: warned"] == "1 of 2 (50.0%)"
    assert "8 sessions scored, 86 tool calls" in result.stdout
    assert "left out 1 session labelled ambiguous" in result.stdout
    rows = {tuple(words[:2]): words[2:] for row in result.stdout.splitlines() if len(words := row.split()) == 9}
    assert rows["identical", "warn"] == ["2", "2", "1", "1", "1", "+5.5", "+6"]
    assert rows["identical", "terminate"] == ["2", "2", "0", "1", "1", "+7.5", "+8"]
    assert "MISSED  x/missed  (loop from #2, subtle)" in result.stdout
    assert "says the same in other words" in result.stdout
    assert "LATE  x/at-six  (loop from #4, exact_repeat, found 6 calls later)" in result.stdout
    assert "FALSE ALARM  x/false  (healthy, easy)" in result.stdout
    assert "call #10" in result.stdout
    assert "x/at-five" not in result.stdout
    assert "x/unclear" not in result.stdout
    assert "UNLABELLED" not in result.stdout
    assert "UNLABELLED  lonely  (unlabelled)" in run("--labels", labels, "--unlabelled", recordings).stdout


def test_one_object_has_everything(recordings, labels):
    """`--json` prints one object and nothing else: scores, what to read, and what was left out."""
    result = run("--labels", labels, "--json", "--min-found", 2, recordings)
    found = json.loads(result.stdout)
    (score,) = found["scores"]
    assert score["configuration"] == "defaults"
    assert score["groups"]["loop"] == {"sessions": 3, "noticed": 0, "warned": 2, "terminated": 2}
    assert score["groups"]["unlabelled"]["warned"] == 1
    assert score["in_time"] == 1
    assert [row["source"] for row in score["sources"]] == [str(recordings), "x", "y"]
    assert [(loop["session_id"], loop["delay"], loop["in_time"]) for loop in score["loops"]] == [
        ("x/at-five", 5, True),
        ("x/at-six", 6, False),
        ("x/missed", None, False),
    ]
    assert [entry["session_id"] for entry in score["false_alarms"]] == ["x/false", "x/hard"]
    assert score["false_alarms"][0]["first"]["seq"] == ALERT
    assert [entry["session_id"] for entry in score["unlabelled"]] == ["lonely"]
    assert (found["sessions"], found["ambiguous"], found["missing"], found["repeated"]) == (8, ["x/unclear"], [], [])
    assert found["misplaced"] == []
    assert [(gate["name"], gate["passed"]) for gate in found["gates"]] == [("min_found", True)]
    assert (found["changes"], found["unreadable"], code(result)) == ([], 0, 0)


def test_two_configurations_are_shown_beside_each_other(recordings, labels, tmp_path):
    """`--against` gives both columns and names the sessions that differ, with the alert under each."""
    other = tmp_path / "other.toml"
    other.write_text("[limits.identical]\nwarn = 2\n")
    quiet = tmp_path / "quiet.toml"
    quiet.write_text(QUIET)
    result = run("--labels", labels, "--limits", quiet, "--against", other, recordings)
    assert "0 of 3" in result.stdout
    assert "2 of 3" in result.stdout
    assert "NEWLY FOUND  x/at-five  (loop)" in result.stdout
    assert "NEW FALSE ALARM  x/hard  (healthy, hard)" in result.stdout
    assert "first   quiet" in result.stdout
    assert "NEWLY WARNED" not in result.stdout
    assert "NEWLY WARNED  lonely" in run(
        "--labels", labels, "--limits", quiet, "--against", other, "--unlabelled", recordings
    ).stdout  # fmt: skip
    found = json.loads(run("--labels", labels, "--against", other, "--json", recordings, before=()).stdout)
    assert [score["configuration"] for score in found["scores"]] == ["defaults", str(other)]
    assert [score["in_time"] for score in found["scores"]] == [1, 2]
    assert [(change["what"], change["session_id"]) for change in found["changes"]] == [("newly within 5", "x/at-six")]


def test_the_limits_of_the_configuration_file_hold_too(recordings, labels, tmp_path):
    """`--config` sets limits for both configurations, and names the first when nothing goes over it."""
    config = tmp_path / "traction.toml"
    config.write_text(QUIET)
    found = json.loads(run("--labels", labels, "--json", recordings, before=("--config", config)).stdout)
    assert found["scores"][0]["configuration"] == str(config)
    assert found["scores"][0]["groups"]["loop"]["warned"] == 0


@pytest.mark.parametrize(
    "gate",
    [
        ("--min-found", 2, 3, "loops found: 2, fewer than"),
        ("--min-prompt", 1, 2, "loops found in time: 1, fewer than"),
        ("--max-warned-easy", 1, 0, "easy healthy sessions warned: 1, more than"),
        ("--max-warned-hard", 1, 0, "hard healthy sessions warned: 1, more than"),
        ("--max-terminated", 1, 0, "healthy sessions to be terminated: 1, more than"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_gates_fail_a_build(recordings, labels, gate, as_json):
    """Each gate lets its bound pass, and exits with 3 one beyond and says which it was, on standard error."""
    option, at, beyond, told = gate
    flags = ["--labels", labels, *(["--json"] if as_json else []), recordings]
    passed, failed = run(option, at, *flags), run(option, beyond, *flags)
    assert (code(passed), passed.stderr) == (0, "")
    assert (code(failed), failed.stderr) == (3, f"error: {told} {option} {beyond}\n")
    assert passed.stdout == failed.stdout or as_json


def test_labelled_sessions_that_are_missing_are_named(recordings, labels):
    """A score of less than all that is labelled is no score: 1, whatever the gates say, and the session is named."""
    (recordings / "b.jsonl").unlink()
    result = run("--labels", labels, "--min-found", 3, recordings)
    assert code(result) == 1
    assert "error: labelled session x/well is not among the recordings" in result.stderr
    assert "error: labelled session x/unclear is not among the recordings" in result.stderr
    assert "2 of 3" in result.stdout


@pytest.mark.parametrize("as_json", [False, True])
def test_a_loop_that_would_begin_after_the_end_is_not_scored(recordings, tmp_path, as_json):
    """Its alerts would all be in time: it is left out and named with the remedy, and the code is 1."""
    last = len(spinning("s")) - 1
    ids = {"x/at-five": last, "x/at-six": last + 1}
    labels = write(tmp_path / "late.jsonl", [label(each, "loop", first_loop_seq=seq) for each, seq in ids.items()])
    result = run("--labels", labels, "--min-found", 2, *(["--json"] if as_json else []), recordings)
    told, gate = result.stderr.splitlines()
    assert told == (
        f"error: {labels}: session x/at-six: field `first_loop_seq` is beyond its last call, #{last}; "
        "write the position, from 0, of the call at which it loops, or give the whole recording"
    )
    assert gate.startswith("error: loops found: 1, fewer than")
    assert code(result) == 1
    if as_json:
        assert json.loads(result.stdout)["misplaced"] == ["x/at-six"]
    else:
        assert table(result.stdout)["loops found"] == "1 of 1"


def test_what_is_left_out_as_a_repeat_is_told(recordings, labels):
    """Calls with a `seq` that their session had before are counted on standard error."""
    with (recordings / "b.jsonl").open("a") as file:
        file.write(f"{json.dumps(line('x/well', 3, 'make'))}\n")
    result = run("--labels", labels, "--json", recordings)
    assert result.stderr.startswith("note: left out 1 record as repeats")
    assert "1 of them another call" in result.stderr
    assert code(result) == 0


def test_the_help_says_which_exit_code_goes_first():
    """1 goes before 3, since a score of less than everything cannot pass or fail."""
    assert "(also when a gate failed)" in " ".join(run("--help").stdout.split())


def test_what_cannot_be_read_is_told(recordings, labels):
    """A broken line is told with its place, the rest is scored, and the exit code tells."""
    with (recordings / "b.jsonl").open("a") as file:
        file.write("{broken\n")
    result = run("--labels", labels, recordings)
    assert code(result) == 1
    assert "b.jsonl:" in result.stderr
    assert "2 of 3" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [[], ["--jobs", "0"], ["--min-found", "-1"], ["--limits", "nowhere.toml"], ["--plot", "."], ["--fast"]],
)
def test_wrong_use(recordings, labels, arguments):
    """No labels, and values that cannot be, are refused with 2."""
    result = run(*arguments, *(["--labels", labels] if arguments else []), recordings)
    assert (code(result), result.stdout) == (2, "")


def test_wrong_labels_and_limits_are_wrong_use(recordings, labels, tmp_path):
    """They end it with 2 before anything is read, and are named with the remedy."""
    with labels.open("a") as file:
        file.write(json.dumps(label("z", "looop")))
    result = run("--labels", labels, recordings)
    assert code(result) == 2
    assert f"{labels}:8: field `label` is missing or wrong; write loop, healthy or ambiguous" in str(result.exception)
    empty = tmp_path / "empty.toml"
    empty.write_text("[worker]\n")
    refused = run("--labels", write(tmp_path / "good.jsonl", LABELS), "--against", empty, recordings)
    assert code(refused) == 2
    assert f"--against {empty}: there is no table [limits]" in str(refused.exception)


def test_the_picture_is_well_formed(recordings, labels, tmp_path):
    """`--plot` writes SVG that a parser reads, with title, axes, names escaped, and a column for every bin filled."""
    other = tmp_path / '<b>&"x".toml'
    other.write_text(QUIET)
    picture = tmp_path / "delays.svg"
    assert code(run("--labels", labels, "--against", other, "--plot", picture, recordings)) == 0
    root = ET.fromstring(picture.read_text("utf-8"))  # noqa: S314 - written by us
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = ["".join(element.itertext()) for element in root.iter() if element.tag.endswith(("text", "title"))]
    assert texts[0] == "Calls from a loop's onset to the first warn or terminate"
    assert {"missed", "1 to 5", "6 to 10", "loops", "calls after the onset", "in time up to 5"} <= set(texts)
    assert "defaults: 2 of 3 loops found" in texts
    assert any(text.endswith('/<b>&"x".toml: 0 of 3 loops found') for text in texts)
    filled = [element for element in root.iter() if element.get("fill") in {"#1f5f99", "#d9822b"}]
    assert len(filled) == 2 + 3 + 1  # the legend; found in time, late and missed; all missed


def test_a_picture_that_cannot_be_written_is_told(recordings, labels, tmp_path, monkeypatch):
    """The score is printed all the same, the command fails with words, and an older picture stays."""

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    picture = tmp_path / "x.svg"
    picture.write_text("old")
    result = run("--labels", labels, "--plot", picture, recordings)
    assert code(result) == 1
    assert f"--plot {picture}: cannot be written (No space left on device); name one" in str(result.exception)
    assert "2 of 3" in result.stdout
    assert picture.read_text() == "old"


@pytest.mark.parametrize(
    "place",
    [
        ("nowhere/x.svg", "there is no directory"),
        ("labels.jsonl/x.svg", "there is no directory"),
        ("recordings", "is a directory"),
        ("closed/x.svg", "cannot be written to"),
        ("pipe", "is no regular file"),
    ],
)
def test_a_place_that_cannot_take_the_picture_is_told_first(recordings, labels, tmp_path, monkeypatch, place):
    """Wrong use, before anything is read, and not after minutes of work."""
    name, words = place
    closed = tmp_path / "closed"
    closed.mkdir()
    os.mkfifo(tmp_path / "pipe")
    may = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != closed and may(path, mode))  # root may anything
    monkeypatch.setattr(command, "Reader", lambda _: pytest.fail("recordings are read"))
    result = run("--labels", labels, "--plot", tmp_path / name, recordings)
    assert (code(result), result.stdout) == (2, "")
    told = result.exception.format_message()
    assert "--plot" in told
    assert words in told


@pytest.mark.parametrize("option", ["--labels", "--limits", "--against", "--spin-weights", "--config", "PATH"])
def test_a_picture_does_not_overwrite_what_is_read(recordings, labels, tmp_path, monkeypatch, option):
    """Whatever option reads it, it is refused before anything is read, and named."""
    limits = tmp_path / "limits.toml"
    limits.write_text(QUIET)
    file = {"--labels": labels, "PATH": recordings / "a.jsonl"}.get(option, limits)
    before = file.read_bytes()
    monkeypatch.setattr(command, "Reader", lambda _: pytest.fail("recordings are read"))
    more = [option, limits] if option in {"--limits", "--against", "--spin-weights"} else []
    config = [option, limits] if option == "--config" else []
    result = run("--labels", labels, *more, "--plot", file, recordings, before=config)
    assert (code(result), result.stdout) == (2, "")
    reads = f"PATH {recordings}" if option == "PATH" else option
    assert str(result.exception) == f"--plot {file}: would overwrite what {reads} reads; name another file"
    assert file.read_bytes() == before


def test_an_older_picture_among_the_recordings_is_replaced(recordings, labels):
    """It is no recording, so that nothing of what is read is lost."""
    picture = recordings / "delays.svg"
    for _ in range(2):
        assert code(run("--labels", labels, "--plot", picture, recordings)) == 0
    assert picture.read_text("utf-8").startswith("<svg")


def test_what_labels_and_recordings_say_cannot_steer_the_terminal(tmp_path):
    """Escape sequences in ids, patterns, reasons and sources do not reach the terminal."""
    evil = "\x1b[2J\x1b]0;owned\x07\u202e"
    calls = [call for name in ("s", "t", "u") for call in spinning(f"{name}{evil}/x")]
    words = {"pattern": evil, "why": evil, "source": evil}
    marked = [label(f"s{evil}/x", "loop", first_loop_seq=0, **words), label(f"t{evil}/x", "healthy", **words)]
    marked.append(label(f"gone{evil}", "healthy"))
    paths = write(tmp_path / "l.jsonl", marked), write(tmp_path / "r.jsonl", calls)
    result = run("--labels", paths[0], "--unlabelled", paths[1])
    assert "UNLABELLED" in result.stdout
    assert "gone" in result.stderr
    assert not any(char in result.output for char in "\x1b\x07\u202e")


@pytest.mark.parametrize("as_json", [False, True])
def test_any_number_of_processes_says_the_same(recordings, labels, tmp_path, monkeypatch, as_json):
    """Portions played by several processes come out in the order of the reading."""
    monkeypatch.setattr(pool, "PORTION_CALLS", 1)
    more = write(tmp_path / "more.jsonl", [call for n in range(40) for call in spinning(f"m{n}", times=n % 7)])
    flags = ["--labels", labels, "--unlabelled", *(["--json"] if as_json else []), more, recordings]
    one, two = run(*flags), run(*flags, "--jobs", 2)
    assert code(two) == 0
    assert two.stdout == one.stdout
    assert "m39" in two.stdout
    assert multiprocessing.active_children() == []
