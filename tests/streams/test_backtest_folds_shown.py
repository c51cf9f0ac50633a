"""What `traction backtest --folds source` shows, and what it is refused with, on sessions of several sources."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from functools import partial

import pytest
from msgspec.structs import replace

from detectors.weights import DEFAULT_MODEL, write_weights
from streams import pool
from streams.backtest.extremes import MOST_LISTED
from streams.backtest.folds import CONFIGURATIONS
from tests.streams import backtest_kit
from tests.streams.backtest_kit import code, label, line, write
from tests.streams.folds_kit import LABELS, LOOPS, busy, recorded

run = partial(backtest_kit.run, "backtest", "--folds", "source")

NO_RULES = """
[limits]
off = ["identical", "alternation", "error_streak", "same_failure", "same_write", "refused_edits", "stuck_check",
       "same_answer", "fruitless_search", "revisits", "rereads", "analysis", "category", "budget"]
"""
"""Limits under which all that is found is the score's."""


@pytest.fixture
def recordings(tmp_path):
    """Write all sessions."""
    return write(tmp_path / "recordings.jsonl", recorded())


@pytest.fixture
def labels(tmp_path):
    """Write their labels."""
    return write(tmp_path / "labels.jsonl", LABELS)


@pytest.fixture
def limits(tmp_path):
    """Write limits without rules."""
    file = tmp_path / "limits.toml"
    file.write_text(NO_RULES)
    return file


def test_what_the_score_adds_is_shown(recordings, labels, limits):
    """Columns of the three configurations, rows by source, sessions that change, the calibration, sessions to read."""
    result = run("--labels", labels, "--limits", limits, recordings)
    assert (code(result), result.stderr) == (0, "")
    rows = [" ".join(row.split()) for row in result.stdout.splitlines()]
    assert "rules alone score alone both" in rows
    assert "loops found 0 of 6 6 of 6 6 of 6" in rows
    assert "healthy, easy: warned 0 of 9 0 of 9 0 of 9" in rows
    assert "healthy, hard: warned 0 of 3 0 of 3 0 of 3" in rows
    assert "unlabelled: warned 0 of 2 (0.0%) 2 of 2 (100.0%) 2 of 2 (100.0%)" in rows
    by_source = next(row for row in rows if row.startswith("a "))
    assert by_source.startswith("a 0 | 2 | 2 of 2 ")
    assert " 0 | 1 | 1 of 1 0 | 0 | 0 of 4 0." in by_source
    assert next(row for row in rows if row.startswith("d ")).startswith("d - - - - 0 | 1 | 1 of 1 - 0.")
    assert "NEWLY FOUND a/loop-0 (loop)" in rows
    assert "rules quiet" in rows
    assert any(row.startswith("both call #") and "spin_score" in row for row in rows)
    assert any(row.startswith("expected calibration error 0.") for row in rows)
    low = rows.index("LOW SCORE a/loop-0 (loop from #8, round)")
    assert rows[low + 1].startswith("call #19 warn ")
    assert "for the 12th time; " in rows[low + 1]
    assert any(row.startswith("HIGH SCORE a/hard (healthy, hard)") for row in rows)
    assert "label hard: looks again" in rows
    assert "left out 1 session labelled ambiguous" in rows
    assert "NEWLY WARNED" not in result.stdout
    listed = run("--labels", labels, "--limits", limits, "--unlabelled", recordings).stdout
    assert "NEWLY WARNED  d/free" in listed


def test_one_object_holds_all_of_it(recordings, labels, limits):
    """Scores of three configurations, changes, what was learned, calibration and sessions to read; figures add up."""
    found = json.loads(run("--labels", labels, "--limits", limits, "--json", recordings).stdout)
    assert [each["configuration"] for each in found["scores"]] == list(CONFIGURATIONS)
    assert [each["groups"]["loop"]["warned"] for each in found["scores"]] == [0, 6, 6]
    assert [change["what"] for change in found["changes"]] == ["newly found"] * 6 + ["newly warned"] * 2
    folds = found["folds"]
    assert list(folds) == ["learned", "calibration", "lowest_loops", "highest_healthy"]
    assert [each["source"] for each in folds["learned"]] == ["a", "b", "c", None]
    for each in folds["learned"]:
        assert 0 < each["weak_needs"] <= each["notice"] <= each["warn"] <= 1
    calibration, whole = folds["calibration"], folds["learned"][-1]
    assert (calibration["calls"], calibration["spinning"]) == (whole["calls"], whole["spinning"])
    assert sum(each["calls"] for each in calibration["bins"]) == calibration["calls"]
    assert set(calibration["bins"][0]) == {"low", "high", "calls", "spinning", "mean", "share"}
    assert {each["session_id"] for each in folds["lowest_loops"]} == set(LOOPS)
    assert len(folds["highest_healthy"]) == MOST_LISTED
    scores = [each["score"] for each in folds["lowest_loops"]]
    assert scores == sorted(scores)
    assert all(each["told"] and each["seq"] >= 7 for each in folds["lowest_loops"])
    assert found["ambiguous"] == ["c/unclear"]


def test_without_folds_there_is_none_of_it(recordings, labels):
    """The object has the same form, with null in its place."""
    found = json.loads(backtest_kit.run("backtest", "--json", "--labels", labels, recordings).stdout)
    assert (found["folds"], len(found["scores"])) == (None, 1)


def test_any_number_of_processes_says_the_same(recordings, labels, monkeypatch):
    """Measured, learned and played by several processes, it comes out as from one."""
    monkeypatch.setattr(pool, "PORTION_CALLS", 20)
    flags = ["--labels", labels, "--unlabelled", "--json", recordings]
    one, two = run(*flags), run(*flags, "--jobs", 2)
    assert (code(two), two.stderr) == (0, "")
    assert two.stdout == one.stdout


def test_gates_concern_both_together(recordings, labels, limits):
    """The rules, which find nothing here, do not decide."""
    flags = ["--labels", labels, "--limits", limits, recordings]
    assert code(run("--min-found", 6, *flags)) == 0
    failed = run("--min-found", 7, *flags)
    assert (code(failed), failed.stderr) == (3, "error: loops found: 6, fewer than --min-found 7\n")


def test_the_score_alone_decides_nothing(recordings, tmp_path):
    """A loop too short to be scored, which the rules find, is neither missed nor changed, and passes the gate."""
    short = write(tmp_path / "short.jsonl", [line("a/short", seq, "ls") for seq in range(5)])
    marked = write(tmp_path / "more.jsonl", [*LABELS, label("a/short", "loop", first_loop_seq=1)])
    flags = ["--labels", marked, "--min-found", 7, recordings, short]
    found = json.loads(run("--json", *flags).stdout)
    assert [each["groups"]["loop"]["warned"] for each in found["scores"]] == [7, 6, 7]
    assert "a/short" not in [change["session_id"] for change in found["changes"]]
    result = run(*flags)
    assert (code(result), result.stderr) == (0, "")
    assert "MISSED" not in result.stdout
    assert "LOW SCORE  a/short" in result.stdout


def test_labelled_sessions_that_do_not_fit_are_told_and_teach_nothing(recordings, tmp_path):
    """One that is missing, and one whose loop would begin after its end, end it with 1 as without folds."""
    late = [each | {"first_loop_seq": 20} if each["session_id"] == "a/loop-0" else each for each in LABELS]
    labels = write(tmp_path / "late.jsonl", [*late, label("b/gone", "healthy")])
    result = run("--labels", labels, "--json", recordings)
    assert code(result) == 1
    assert "error: labelled session b/gone is not among the recordings" in result.stderr
    assert "session a/loop-0: field `first_loop_seq` is beyond its last call, #19" in result.stderr
    found = json.loads(result.stdout)
    assert [(each["sessions"], each["loops"]) for each in found["folds"]["learned"]][1:] == [(11, 3), (11, 3), (17, 5)]
    assert found["misplaced"] == ["a/loop-0"]


def test_a_recording_that_comes_again_is_learned_from_once(recordings, labels, tmp_path):
    """The first one counts, as for the scores."""
    again = write(tmp_path / "again.jsonl", busy("a/loop-0"))
    result = run("--labels", labels, "--json", recordings, again)
    found = json.loads(result.stdout)
    assert found["repeated"] == ["a/loop-0"]
    once = json.loads(run("--labels", labels, "--json", recordings).stdout)
    assert (found["folds"], found["scores"]) == (once["folds"], once["scores"])


def test_the_picture_has_the_calibration_below(recordings, labels, tmp_path):
    """`--plot` writes one well-formed SVG: how soon loops are found of three configurations, then the calibration."""
    file = tmp_path / "folds.svg"
    assert code(run("--labels", labels, "--plot", file, recordings)) == 0
    root = ET.fromstring(file.read_text("utf-8"))  # noqa: S314 - written by us
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = ["".join(element.itertext()) for element in root.iter() if element.tag.endswith("text")]
    assert [text for text in texts if text.endswith("loops found")] == [
        "rules alone: 6 of 6 loops found",
        "score alone: 6 of 6 loops found",
        "both: 6 of 6 loops found",
    ]
    assert any("expected calibration error" in text for text in texts)
    assert len([element for element in root.iter() if element.tag.endswith("}g")]) == 2


def test_a_source_without_which_there_is_no_loop_is_named(recordings, tmp_path):
    """Nothing can be scored fairly then: it ends with 1, says which source it is, and what to do."""
    few = [each for each in LABELS if each["label"] != "loop" or each["session_id"].startswith("b/")]
    result = run("--labels", write(tmp_path / "few.jsonl", few), recordings)
    assert (code(result), result.stdout) == (1, "")
    assert str(result.exception) == (
        "--folds: without source b: there is no loop to learn from; label loops of several sources"
    )


@pytest.mark.parametrize("jobs", [1, 2])
def test_too_few_examples_without_a_source_name_it(recordings, tmp_path, jobs):
    """One loop cannot be learned from: whatever is wrong with the rest, the source left out is named."""
    few = [each for each in LABELS if each["label"] != "loop" or each["session_id"] in {"a/loop-0", "b/loop-0"}]
    result = run("--labels", write(tmp_path / "few.jsonl", few), recordings, "--jobs", jobs)
    assert code(result) == 1
    assert str(result.exception).startswith("--folds: without source a: there are too few examples; label ")


def test_a_name_of_a_source_cannot_steer_the_terminal(recordings, tmp_path):
    """Escape sequences in the source of an error do not reach the terminal."""
    marked = [each | {"source": "\x1b[2Jz"} for each in LABELS]
    result = run("--labels", write(tmp_path / "marked.jsonl", marked), recordings)
    assert "z: there is no loop" in str(result.exception)
    assert "\x1b" not in str(result.exception)


def test_wrong_use(recordings, labels, tmp_path):
    """What does not go with learning is refused with 2 before anything is read, and the option is named."""
    weights = tmp_path / "weights.json"
    weights.write_bytes(write_weights(DEFAULT_MODEL.source))
    off = tmp_path / "off.toml"
    off.write_text('[limits]\noff = ["spin_score"]\n')
    for flags, words in (
        (("--against", off), "leave out --against"),
        (("--spin-weights", weights), "leave out --spin-weights"),
        (("--limits", off), "take it out of `off`"),
        (("--folds", "session"), "'session' is not 'source'"),
    ):
        result = run(*flags, "--labels", labels, recordings)
        assert (code(result), result.stdout) == (2, "")
        assert words in result.exception.format_message()


@pytest.mark.parametrize("table", ["traction", "backtest"])
def test_weights_in_the_settings_file_are_named(recordings, labels, tmp_path, table):
    """Who gave no option finds in the refusal what to leave out."""
    weights, settings = tmp_path / "weights.json", tmp_path / "settings.toml"
    weights.write_bytes(write_weights(DEFAULT_MODEL.source))
    settings.write_text(f"[{table}]\nspin_weights = '{weights}'\n")
    result = run("--labels", labels, recordings, before=["--config", settings])
    assert (code(result), result.stdout) == (2, "")
    assert "`spin_weights` in the settings file" in str(result.exception)


def test_help_says_that_folds_want_a_value_and_exclude_others():
    """A value in brackets looks as if it could be left out."""
    told = " ".join(backtest_kit.run("backtest", "--help").stdout.split())
    assert "--folds source " in told
    assert "Not with --against, --spin-weights or a policy, nor with limits that switch spin_score off." in told


def test_a_missing_library_is_told(recordings, labels, monkeypatch):
    """Before anything is read, with the command that installs it."""
    monkeypatch.setitem(sys.modules, "sklearn", None)
    result = run("--labels", labels, recordings)
    assert (code(result), result.stdout) == (1, "")
    assert "pip install 'traction[train]'" in str(result.exception)


def test_nothing_to_read_is_told_as_without_folds(labels, tmp_path):
    """No session: the labelled ones are named, and nothing is learned."""
    empty = tmp_path / "empty"
    empty.mkdir()
    result = run("--labels", labels, "--json", empty)
    assert code(result) == 1
    assert "labelled session a/loop-0 is not among the recordings" in result.stderr
    assert json.loads(result.stdout)["folds"]["learned"] == []


def test_spin_weights_are_scored_with(recordings, labels, limits, tmp_path):
    """Without folds, a file of weights replaces those that come with the package, for both configurations."""
    silent = tmp_path / "silent.json"
    silent.write_bytes(write_weights(replace(DEFAULT_MODEL.source, intercept=-900.0)))
    flags = ["--json", "--labels", labels, "--limits", limits, "--against", limits]

    def found(*more):
        result = backtest_kit.run("backtest", *flags, *more, recordings)
        return [each["groups"]["loop"]["warned"] for each in json.loads(result.stdout)["scores"]]

    first, second = found()
    assert first == second > 0
    assert found("--spin-weights", silent) == [0, 0]
