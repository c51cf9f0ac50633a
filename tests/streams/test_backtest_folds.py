"""`traction backtest --folds source`: nothing of the source left out is learned from, and what is shown of that."""

from __future__ import annotations

import importlib.util
import json
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from click.testing import CliRunner

from detectors import Limits, limits_from
from detectors.features import FEATURES
from detectors.weights import DEFAULT_MODEL, write_weights
from streams import pool
from streams.backtest import Label, match, read_labels, score
from streams.backtest.calibration import calibrate
from streams.backtest.extremes import MOST_LISTED, extremes
from streams.backtest.fold_words import extreme_lines, source_lines
from streams.backtest.folds import BOTH, CONFIGURATIONS, Folds, configurations, play_folds
from streams.cli import traction
from streams.importers import Session, read_path
from streams.training import Examples, Untrainable
from streams.training.examples import Measured
from tests.streams.backtest_kit import label, line, spinning, write

ONSET = 8
"""The first of the same calls in `spinning`."""

NO_RULES = """
[limits]
off = ["identical", "alternation", "error_streak", "same_failure", "same_write", "refused_edits", "stuck_check",
       "same_answer", "fruitless_search", "revisits", "rereads", "analysis", "category", "budget"]
"""
"""Limits under which all that is found is the score's."""


def busy(session, again=(15,)):
    """Give a session that works: in each call something is new, but at some it looks again at what it read before."""
    read = [seq - 4 if seq in again else seq for seq in range(20)]
    return [line(session, seq, f"cat {session}/{of}", f"text {of} of {session}") for seq, of in enumerate(read)]


def turning(session):
    """Give a loop of two calls."""
    start = [line(session, seq, f"cat {session}/{seq}", f"text {seq} of {session}") for seq in range(ONSET)]
    return start + [line(session, seq, f"ls {seq % 2}", str(seq % 2)) for seq in range(ONSET, ONSET + 12)]


LOOPS = {f"{source}/loop-{n}": make for source in "abc" for n, make in enumerate((spinning, turning))}
WELL = {f"{source}/well-{n}": (15,) for source in "abc" for n in range(3)}
HARD = {f"{source}/hard": (9, 15, 18) for source in "abc"}
FREE = ("a/free", "d/free")
"""Loops without a label; nothing of source d has one."""

LABELS = [
    *(label(name, "loop", first_loop_seq=ONSET, pattern="round") for name in LOOPS),
    *(label(name, "healthy") for name in WELL),
    *(label(name, "healthy", why="hard: looks again") for name in HARD),
    label("c/unclear", "ambiguous"),
]


def recorded():
    """Give the lines of all sessions."""
    loops = [call for name, make in LOOPS.items() for call in (make(name, 12) if make is spinning else make(name))]
    work = [call for name, again in (WELL | HARD).items() for call in busy(name, again)]
    return loops + work + [call for name in FREE for call in spinning(name, 12)] + busy("c/unclear")


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


def run(*arguments, before=(), jobs=1):
    """Run the command in this process."""
    words = [*before, "backtest", "--folds", "source", "--jobs", jobs, *arguments]
    return CliRunner().invoke(traction, [str(word) for word in words], standalone_mode=False)


def code(result):
    """Give the exit code: what the command returned, or the error's."""
    problem = result.exception
    return getattr(problem, "exit_code", None) if problem else result.return_value


def played(recordings, labels, jobs=1):
    """Leave out each source in turn, and give what was heard by session, and what came of it."""
    sessions = [found for found in read_path(recordings) if isinstance(found, Session)]
    heard, folds = play_folds(sessions, labels, Limits(), jobs, lambda _: None)
    return {each.session_id: each for each in heard}, folds


def flipped(labels, source):
    """Give the labels with a loop and a healthy session of one source turned round, and another loop's onset moved."""
    turned = {
        f"{source}/loop-0": Label(f"{source}/loop-0", "loop", ONSET + 6),
        f"{source}/loop-1": Label(f"{source}/loop-1", "healthy", why="hard: turns"),
        f"{source}/well-1": Label(f"{source}/well-1", "loop", 18),
    }
    return labels | turned


@pytest.mark.parametrize("source", ["a", "b", "c"])
def test_nothing_of_the_source_left_out_is_learned_from(recordings, labels, source):
    """Whatever its labels say, its sessions get the same alerts from the same weights and limits; others do not."""
    right = read_labels(labels)
    heard, folds = played(recordings, right)
    wrong_heard, wrong = played(recordings, flipped(right, source))
    before, after = ({fold.source: fold for fold in each.learned} for each in (folds, wrong))
    assert after[source] == before[source]
    assert all(after[other] != before[other] for other in {"a", "b", "c", None} - {source})
    own = [name for name in heard if name.startswith(f"{source}/")]
    assert len(own) >= 5
    assert [wrong_heard[name] for name in own] == [heard[name] for name in own]
    assert any(alert.detector == "spin_score" for name in own for alert in heard[name].alerts[BOTH])
    assert wrong_heard != heard


def test_nothing_of_its_recordings_is_learned_from_either(recordings, labels, tmp_path):
    """Without any other session of its source, a session is played just the same."""
    heard, folds = played(recordings, read_labels(labels))
    rest = [call for call in recorded() if not call["session_id"].startswith("a/") or call["session_id"] == "a/loop-0"]
    alone, without = played(write(tmp_path / "rest.jsonl", rest), read_labels(labels))
    assert alone["a/loop-0"].alerts == heard["a/loop-0"].alerts
    assert without.learned[0] == folds.learned[0]
    assert without.learned[1] != folds.learned[1]


def test_sources_without_a_label_are_played_with_what_all_others_teach(recordings, labels):
    """Their weights come from every labelled session; one without a label of a labelled source gets that source's."""
    heard, folds = played(recordings, read_labels(labels))
    assert [fold.source for fold in folds.learned] == ["a", "b", "c", None]
    assert [(fold.sessions, fold.loops) for fold in folds.learned] == [(12, 4), (12, 4), (12, 4), (18, 6)]
    warned = {name: [alert.seq for alert in heard[name].alerts[BOTH]] for name in FREE}
    assert all(warned.values())
    kept, _ = played(recordings, {name: each for name, each in read_labels(labels).items() if name[0] != "a"})
    assert kept["a/free"].alerts == heard["a/free"].alerts
    assert kept["a/loop-0"].alerts == heard["a/loop-0"].alerts


def test_a_label_names_the_source(recordings, tmp_path):
    """What it says goes before the id: sessions are left out together with those of the source that it names."""
    named = [each | {"source": "b"} if each["session_id"].startswith("a/") else each for each in LABELS]
    _, folds = played(recordings, read_labels(write(tmp_path / "named.jsonl", named)))
    assert [(fold.source, fold.sessions) for fold in folds.learned] == [("b", 6), ("c", 12), (None, 18)]


def test_configurations_are_made_of_the_limits_given():
    """Rules without the score, the score without any rule, and both; what was off stays off, all with the weights."""
    given = limits_from([("file:x", {"off": ["rereads"], "mode": "warn", "identical": {"warn": 4}})])
    source = DEFAULT_MODEL.source
    weights = type(source)(**{name: getattr(source, name) for name in source.__struct_fields__} | {"intercept": -7.0})
    rules, alone, both = configurations(given, weights)
    assert rules.off == ("rereads", "spin_score")
    assert both.off == ("rereads",)
    assert not set(alone.off) & {"spin_score"}
    assert len(alone.off) == 14
    assert {each.model.source.intercept for each in (rules, alone, both)} == {-7.0}
    assert {(each.mode, each.identical.warn) for each in (rules, alone, both)} == {("warn", 4)}


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
    result = CliRunner().invoke(
        traction, ["backtest", "--jobs", "1", "--json", "--labels", str(labels), str(recordings)], standalone_mode=False
    )
    found = json.loads(result.stdout)
    assert (found["folds"], len(found["scores"])) == (None, 1)


@pytest.mark.parametrize("as_json", [False, True])
def test_any_number_of_processes_says_the_same(recordings, labels, monkeypatch, as_json):
    """Measured, learned and played by several processes, it comes out as from one."""
    monkeypatch.setattr(pool, "PORTION_CALLS", 20)
    flags = ["--labels", labels, "--unlabelled", *(["--json"] if as_json else []), recordings]
    one, two = run(*flags), run(*flags, jobs=2)
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
    result = run("--labels", write(tmp_path / "few.jsonl", few), recordings, jobs=jobs)
    assert code(result) == 1
    assert str(result.exception).startswith("--folds: without source a: there are too few examples; label ")


def test_a_name_of_a_source_cannot_steer_the_terminal(recordings, tmp_path):
    """Escape sequences in the source of an error do not reach the terminal."""
    marked = [each | {"source": "\x1b[2Jz"} for each in LABELS]
    result = run("--labels", write(tmp_path / "marked.jsonl", marked), recordings)
    assert "z: there is no loop" in str(result.exception)
    assert "\x1b" not in str(result.exception)


def test_weights_that_a_file_cannot_hold_are_an_error(recordings, labels, monkeypatch):
    """What was learned is checked as a file of weights is, and the source named; nothing breaks later."""
    monkeypatch.setattr("streams.backtest.folds.fit", lambda _: [])
    monkeypatch.setattr("streams.backtest.folds.write_weights", lambda _: b"{}")
    with pytest.raises(Untrainable, match=r"^without source a: Object missing required field"):
        played(recordings, read_labels(labels))


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


def test_a_missing_library_is_told(recordings, labels, monkeypatch):
    """Before anything is read, with the command that installs it."""
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "sklearn" else find(name))
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
    source = DEFAULT_MODEL.source
    fields = {name: getattr(source, name) for name in source.__struct_fields__}
    silent = tmp_path / "silent.json"
    silent.write_bytes(write_weights(type(source)(**fields | {"intercept": -900.0})))
    flags = ["backtest", "--jobs", "1", "--json", "--labels", labels, "--limits", limits, "--against", limits]

    def found(*more):
        words = [str(word) for word in (*flags, *more, recordings)]
        result = CliRunner().invoke(traction, words, standalone_mode=False)
        return [each["groups"]["loop"]["warned"] for each in json.loads(result.stdout)["scores"]]

    first, second = found()
    assert first == second > 0
    assert found("--spin-weights", silent) == [0, 0]


def examples(name, *scored, group="loop", speaks=True):
    """Give an example whose calls have the values of one feature."""
    rows = tuple(tuple(value if feature.name == "again_pair" else 0.0 for feature in FEATURES) for value in scored)
    measured = Measured(tuple(range(7, 7 + len(scored))), rows, (speaks,) * len(scored))
    return Examples(name, "x", group, ONSET if group == "loop" else None, measured)


def test_the_sessions_to_read_are_those_of_the_highest_scores():
    """The first call of the highest score counts; loops rise, healthy ones fall, ten each; equals go by their ids."""
    limits = Limits()
    several = [examples(f"loop-{n:02}", n / 20, n / 10, n / 10) for n in range(11)]
    others = [examples(f"well-{n:02}", n / 10, 0, group="easy") for n in range(11)]
    same = [examples("a", 0.3, group="hard"), examples("b", 0.3, group="hard")]
    left_out = [(each, limits) for each in (*several, *reversed(same), *others)]
    names = {each.session_id: Label(each.session_id, "loop", ONSET, "round", why="so") for each, _ in left_out}
    loops, healthy = extremes(left_out, names)
    assert [each.session_id for each in loops] == [f"loop-{n:02}" for n in range(MOST_LISTED)]
    assert [each.session_id for each in healthy][:4] == ["well-10", "well-09", "well-08", "well-07"]
    assert [each.session_id for each in healthy][7:] == ["a", "b", "well-03"]
    assert (loops[1].seq, loops[1].pattern, loops[1].onset, loops[1].why) == (8, "round", ONSET, "so")
    assert loops[1].score == limits.model.score(several[1].measured.rows[1])


def test_what_a_score_reaches_is_told():
    """Below both limits, from the notice on, and from the warn on, by the limits that go with the weights."""
    model = DEFAULT_MODEL
    values = [examples("x", value).measured.rows[0] for value in (0.2, 0.5, 0.9)]
    low, mid, high = (model.score(row) for row in values)
    limits = limits_from([("file:x", {"spin_score": {"notice": mid, "warn": high}})])
    left_out = [(examples(name, value), limits) for name, value in (("low", 0.2), ("mid", 0.5), ("high", 0.9))]
    loops, _ = extremes(left_out, {name: Label(name, "loop", ONSET) for name in ("low", "mid", "high")})
    assert [(each.session_id, each.score, each.reached) for each in loops] == [
        ("low", low, None),
        ("mid", mid, "notice"),
        ("high", high, "warn"),
    ]


def test_a_session_that_could_not_be_alerted_has_no_score():
    """While it waits, or is short, a high score is no alert; this is said instead of a call."""
    each = examples("x", 1.0, speaks=False)
    loops, healthy = extremes([(each, Limits())], {"x": Label("x", "loop", ONSET)})
    assert [(one.seq, one.score, one.reached, one.told) for one in loops] == [(None, 0.0, None, "")]
    said = list(extreme_lines(Folds([], calibrate([]), loops, healthy)))
    assert said[1] == "  no call at which the score could be an alert"


def test_rows_by_source_show_the_limit_that_was_learned(recordings, labels):
    """That of the weights that a source was scored with stands in its row, those without a label included."""
    right = read_labels(labels)
    heard, folds = played(recordings, right)
    cases = match(heard.values(), right)
    scores = [score(cases.cases, place, name) for place, name in enumerate(CONFIGURATIONS)]
    learned = [replace(fold, warn=place / 10) for place, fold in enumerate(folds.learned, start=1)]
    rows = {row.split()[0]: row.split()[-1] for row in list(source_lines(scores, replace(folds, learned=learned)))[2:]}
    assert rows == {"a": "0.10", "b": "0.20", "c": "0.30", "d": "0.40"}
