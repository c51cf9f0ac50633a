"""What `traction backtest --folds source` learns and scores: nothing of the source left out is learned from."""

from __future__ import annotations

import dataclasses
from typing import get_args

import pytest
from msgspec.structs import replace

from detectors import Limits, limits_from
from detectors.features import FEATURES
from detectors.limits import DetectorName
from detectors.weights import DEFAULT_MODEL, read_weights, write_weights
from streams.backtest import Label, match, score
from streams.backtest.calibration import calibrate
from streams.backtest.extremes import MOST_LISTED, extremes
from streams.backtest.fold_words import extreme_lines, source_lines
from streams.backtest.folds import BOTH, CONFIGURATIONS, Folds, configurations, play_folds
from streams.importers import Session, read_path
from streams.training import Examples, Untrainable
from streams.training.examples import Measured
from tests.streams.backtest_kit import write
from tests.streams.folds_kit import FREE, LABELS, ONSET, recorded

RIGHT = {each["session_id"]: Label(**each) for each in LABELS}
"""What the labels say, by the session's id."""


def played(tmp_path, labels=RIGHT, calls=None):
    """Leave out each source in turn, and give what was heard by session, and what came of it."""
    found = read_path(write(tmp_path / "recordings.jsonl", calls or recorded()))
    sessions = [each for each in found if isinstance(each, Session)]
    heard, folds = play_folds(sessions, labels, Limits(), 1, lambda _: None)
    return {each.session_id: each for each in heard}, folds


def flipped(source):
    """Give the labels with a loop and a healthy session of one source turned round, and another loop's onset moved."""
    turned = {
        f"{source}/loop-0": Label(f"{source}/loop-0", "loop", ONSET + 6),
        f"{source}/loop-1": Label(f"{source}/loop-1", "healthy", why="hard: turns"),
        f"{source}/well-1": Label(f"{source}/well-1", "loop", 18),
    }
    return RIGHT | turned


@pytest.mark.parametrize("source", ["a", "b", "c"])
def test_nothing_of_the_source_left_out_is_learned_from(tmp_path, source):
    """Whatever its labels say, its sessions get the same alerts from the same weights and limits; others do not."""
    heard, folds = played(tmp_path)
    wrong_heard, wrong = played(tmp_path, flipped(source))
    before, after = ({fold.source: fold for fold in each.learned} for each in (folds, wrong))
    assert after[source] == before[source]
    assert all(after[other] != before[other] for other in {"a", "b", "c", None} - {source})
    own = [name for name in heard if name.startswith(f"{source}/")]
    assert len(own) >= 5
    assert [wrong_heard[name] for name in own] == [heard[name] for name in own]
    assert any(alert.detector == "spin_score" for name in own for alert in heard[name].alerts[BOTH])
    assert wrong_heard != heard


def test_nothing_of_its_recordings_is_learned_from_either(tmp_path):
    """Without any other session of its source, a session is played just the same."""
    heard, folds = played(tmp_path)
    rest = [call for call in recorded() if not call["session_id"].startswith("a/") or call["session_id"] == "a/loop-0"]
    alone, without = played(tmp_path, calls=rest)
    assert alone["a/loop-0"].alerts == heard["a/loop-0"].alerts
    assert without.learned[0] == folds.learned[0]
    assert without.learned[1] != folds.learned[1]


def test_sources_without_a_label_are_played_with_what_all_others_teach(tmp_path):
    """Their weights come from every labelled session; one without a label of a labelled source gets that source's."""
    heard, folds = played(tmp_path)
    assert [fold.source for fold in folds.learned] == ["a", "b", "c", None]
    assert [(fold.sessions, fold.loops) for fold in folds.learned] == [(12, 4), (12, 4), (12, 4), (18, 6)]
    warned = {name: [alert.seq for alert in heard[name].alerts[BOTH]] for name in FREE}
    assert all(warned.values())
    kept, _ = played(tmp_path, {name: each for name, each in RIGHT.items() if name[0] != "a"})
    assert kept["a/free"].alerts == heard["a/free"].alerts
    assert kept["a/loop-0"].alerts == heard["a/loop-0"].alerts


def test_a_label_names_the_source(tmp_path):
    """What it says goes before the id: sessions are left out together with those of the source that it names."""
    named = {name: replace(each, source="b") if name[0] == "a" else each for name, each in RIGHT.items()}
    _, folds = played(tmp_path, named)
    assert [(fold.source, fold.sessions) for fold in folds.learned] == [("b", 6), ("c", 12), (None, 18)]


def test_weights_that_a_file_cannot_hold_are_an_error(tmp_path, monkeypatch):
    """The source without which they were learned is named; nothing breaks later."""
    monkeypatch.setattr("streams.training.fitting.write_weights", lambda _: b"{}")
    with pytest.raises(Untrainable, match=r"^without source a: the features hardly tell"):
        played(tmp_path)


def test_configurations_are_made_of_the_limits_given():
    """Rules without the score, the score without any rule, and both; what was off stays off, all with the weights."""
    given = limits_from([("file:x", {"off": ["rereads"], "mode": "warn", "identical": {"warn": 4}})])
    model = read_weights(write_weights(replace(DEFAULT_MODEL.source, intercept=-7.0)))
    rules, alone, both = configurations(given, model)
    assert rules.off == ("rereads", "spin_score")
    assert both.off == ("rereads",)
    assert not set(alone.off) & {"spin_score"}
    assert set(alone.off) == set(get_args(DetectorName)) - {"spin_score"}
    assert all(each.model is model for each in (rules, alone, both))
    assert {(each.mode, each.identical.warn) for each in (rules, alone, both)} == {("warn", 4)}


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


def test_rows_by_source_show_the_limit_that_was_learned(tmp_path):
    """That of the weights that a source was scored with stands in its row, those without a label included."""
    heard, folds = played(tmp_path)
    cases = match(heard.values(), RIGHT)
    scores = [score(cases.cases, place, name) for place, name in enumerate(CONFIGURATIONS)]
    learned = [dataclasses.replace(fold, warn=place / 10) for place, fold in enumerate(folds.learned, start=1)]
    lines = list(source_lines(scores, dataclasses.replace(folds, learned=learned)))[2:]
    rows = {row.split()[0]: row.split()[-1] for row in lines}
    assert rows == {"a": "0.10", "b": "0.20", "c": "0.30", "d": "0.40"}
