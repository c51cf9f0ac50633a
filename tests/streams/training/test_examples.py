"""The measuring of sessions, and how they are matched with labels: the same as the worker and the backtest do it."""

from __future__ import annotations

import pytest

from detectors import Limits, SessionState, observe
from detectors.features import FEATURES, MIN_CALLS, WINDOW_CALLS
from streams import pool
from streams.backtest import read_labels
from streams.importers import Session, read_path
from streams.training import collect, measure_session
from streams.training.examples import Measured
from tests.streams.backtest_kit import label, line, spinning, working, write


def sessions(path, *calls):
    """Write calls and read them as sessions."""
    return [
        found
        for found in read_path(write(path, [call for each in calls for call in each]))
        if isinstance(found, Session)
    ]


def test_what_is_measured_is_what_is_scored(tmp_path):
    """Each row gives the score that the detector computes at that call."""
    (session,) = sessions(tmp_path / "s.jsonl", spinning("s"))
    limits = Limits()
    state, scores = SessionState(), []
    for event in session.events:
        observe(state, event, limits)
        scores.append(state.spin.score)
    measured = measure_session(session, limits)
    assert measured.calls == tuple(range(MIN_CALLS - 1, session.calls))
    assert [limits.model.score(row) for row in measured.rows] == [score for score in scores if score is not None]
    assert {len(row) for row in measured.rows} == {len(FEATURES)}


def test_an_alert_needs_a_whole_window(tmp_path):
    """At a call before it none speaks; once a call repeats after it, it does."""
    (session,) = sessions(tmp_path / "s.jsonl", spinning("s"))
    measured = measure_session(session, Limits())
    speaks = dict(zip(measured.calls, measured.speaks, strict=True))
    assert not any(speaks[call] for call in range(MIN_CALLS - 1, WINDOW_CALLS - 1))
    assert speaks[session.calls - 1]


def test_a_call_that_only_talks_is_not_measured(tmp_path):
    """It is not among those that the score looks at; positions count it all the same."""
    calls = working("s")
    calls[4] = line("s", 4, "") | {"tool": "finish", "args": {"message": "done"}}
    (session,) = sessions(tmp_path / "s.jsonl", calls)
    assert measure_session(session, Limits()).calls == (3, 5)


@pytest.mark.parametrize("jobs", [1, 2])
def test_labels_say_what_sessions_teach(tmp_path, jobs, monkeypatch):
    """Group, source and onset are the label's; without a label, ambiguous or a second time a session is passed by."""
    monkeypatch.setattr(pool, "PORTION_CALLS", 1)
    names = ("a/loop", "plain", "a/well", "a/hard", "a/unclear", "a/none", "a/late")
    found = sessions(tmp_path / "s.jsonl", *map(spinning, names))
    again = sessions(tmp_path / "t.jsonl", working("a/loop"), working("a/none"))
    labels = [
        label("a/loop", "loop", first_loop_seq=8),
        label("plain", "healthy", first_loop_seq=3),
        label("a/well", "healthy", source="nightly"),
        label("a/hard", "healthy", why="hard: polls"),
        label("a/unclear", "ambiguous"),
        label("a/late", "loop", first_loop_seq=14),
        label("gone", "healthy"),
    ]
    told: list[Measured] = []
    read = read_labels(write(tmp_path / "labels.jsonl", labels))
    collected = collect([*found, *again], read, Limits(), jobs, told.append)
    taught = [(each.session_id, each.source, each.group, each.onset) for each in collected.examples]
    assert taught == [
        ("a/loop", "a", "loop", 8),
        ("plain", str(tmp_path), "easy", None),
        ("a/well", "nightly", "easy", None),
        ("a/hard", "a", "hard", None),
    ]
    assert all(
        each.measured == measure_session(session, Limits())
        for each, session in zip(collected.examples, found, strict=False)
    )
    assert len(told) == 5
    cases = collected.cases
    assert (cases.ambiguous, cases.missing, cases.repeated) == (["a/unclear"], ["gone"], ["a/loop", "a/none"])
    assert [case.session_id for case in cases.misplaced] == ["a/late"]


def test_a_loop_spins_from_its_onset_on(tmp_path):
    """At that call too; a healthy session never does."""
    found = sessions(tmp_path / "s.jsonl", spinning("loop"), spinning("well"))
    labels = [label("loop", "loop", first_loop_seq=8), label("well", "healthy", first_loop_seq=8)]
    read = read_labels(write(tmp_path / "labels.jsonl", labels))
    loop, well = collect(found, read, Limits(), 1, lambda _: None).examples
    spins = dict(zip(loop.measured.calls, loop.spinning, strict=True))
    assert (spins[7], spins[8]) == (False, True)
    assert not any(well.spinning)


def test_a_session_too_short_to_score_is_no_example_to_learn_from(tmp_path):
    """It is matched with its label all the same."""
    found = sessions(tmp_path / "s.jsonl", working("s")[: MIN_CALLS - 1], working("t")[:MIN_CALLS])
    read = read_labels(write(tmp_path / "labels.jsonl", [label("s", "healthy"), label("t", "healthy")]))
    collected = collect(found, read, Limits(), 1, lambda _: None)
    assert [each.session_id for each in collected.examples] == ["s", "t"]
    assert [each.session_id for each in collected.scored] == ["t"]
