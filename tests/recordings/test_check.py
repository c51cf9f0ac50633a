"""The check of real recordings itself: on a folder written here, too small to be good enough, every fault is told."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from streams.backtest.scoring import Delays, Score, Tally
from tests.recordings.spin_score import compare

CHECK = Path(__file__).with_name("check.py")


def check(place):
    """Run the check, and give its exit code and what it said."""
    environment = {name: value for name, value in os.environ.items() if name != "TRACTION_RECORDINGS"}
    if place is not None:
        environment["TRACTION_RECORDINGS"] = str(place)
    done = subprocess.run([sys.executable, CHECK], env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.fixture
def recordings(tmp_path):
    """Write two sessions, one of them labelled a loop, and a raw recording."""
    calls = [
        {"session_id": name, "seq": seq, "tool": "bash", "args": {"command": "ls"}, "result": "a", "error": False}
        for name in ("loop", "other")
        for seq in range(4)
    ]
    text = "".join(f"{json.dumps(call)}\n" for call in calls)
    for folder in ("sessions", "raw"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.jsonl").write_text(text)
    label = {"session_id": "loop", "label": "loop", "first_loop_seq": 2}
    (tmp_path / "sessions" / "labels.jsonl").write_text(json.dumps(label))
    return tmp_path


def test_without_recordings_it_says_so(tmp_path):
    """No variable: nothing is checked. A variable that names no such folder is a fault."""
    code, said = check(None)
    assert code == 0
    assert "not checked, since TRACTION_RECORDINGS" in said
    code, said = check(tmp_path)
    assert code == 1
    assert "has no sessions and no raw" in said


def test_a_score_below_the_bounds_fails(recordings):
    """One loop found is too few; the session without a label that is warned is listed and counted."""
    code, said = check(recordings)
    assert code == 1
    assert "FAULT loops found: 1, and min_found is 28" in said
    assert "FAULT loops found in time: 1, and min_prompt is 27" in said
    assert "UNLABELLED  other" in said
    assert re.search(r"unlabelled: warned +1 of 1 ", said)
    assert "2 of 2 sessions of the neutral form and 2 of the agents' own formats scored" in said
    assert "3 faults" in said
    assert re.search(r"FAULT without source \S+: there is no loop to learn from; label loops of several sources", said)


def test_what_is_not_read_is_a_fault(recordings):
    """Sessions in the files that were not played, raw files without calls and missing labelled sessions are told."""
    with (recordings / "sessions" / "a.jsonl").open("a") as file:
        file.write(json.dumps({"session_id": "broken", "tool": 3}))
    (recordings / "raw" / "b.txt").write_text("nothing")
    with (recordings / "sessions" / "labels.jsonl").open("a") as file:
        file.write('\n{"session_id": "gone", "label": "healthy"}')
    code, said = check(recordings)
    assert code == 1
    assert "FAULT session broken was not played" in said
    assert f"FAULT {recordings / 'raw' / 'b.txt'}: no session with calls" in said
    assert "FAULT labelled session gone was not played" in said
    assert "2 of 3 sessions" in said


def tally(warned=0, terminated=0):
    """What became of a group of forty sessions."""
    return Tally(40, 0, warned, terminated)


def scored(found=20, in_time=15, **groups):
    """A score with these loops found, and sessions warned and terminated by group."""
    of: dict[Any, Tally] = {
        "loop": tally(found),
        "easy": tally(1),
        "hard": tally(2),
        "unlabelled": tally(3, 1),
    } | groups
    return Score("", of, in_time, Delays(None, None), [], [], [], [], [])


@pytest.mark.parametrize(
    "better",
    [
        {"found": 21}, {"in_time": 16}, {"easy": tally(0)}, {"hard": tally(1)}, {"unlabelled": tally(2, 1)},
        {"unlabelled": tally(3, 0)}, {"found": 28, "easy": tally(0), "hard": tally(0)},
    ],
)  # fmt: skip
def test_the_score_must_be_better_in_something(better):
    """In any of them, while nothing is worse."""
    assert list(compare(scored(), scored(**better))) == []


def test_a_score_that_changes_nothing_is_a_fault():
    """It would be dead weight."""
    assert list(compare(scored(), scored())) == ["spin score: nothing is better with it than by the rules alone"]


@pytest.mark.parametrize(
    ("worse", "said"),
    [
        ({"found": 19}, "loops found: 19 with it, 20 by the rules alone"),
        ({"in_time": 14}, "loops found in time: 14 with it, 15 by the rules alone"),
        ({"easy": tally(2)}, "easy sessions warned: 2 with it, 1 by the rules alone"),
        ({"hard": tally(2, 1)}, "hard sessions terminated: 1 with it, 0 by the rules alone"),
        ({"unlabelled": tally(4, 1)}, "unlabelled sessions warned: 4 with it, 3 by the rules alone"),
    ],
)
def test_whatever_is_worse_with_the_score_is_a_fault(worse, said):
    """However much better the rest is."""
    better = {"found": 25, "easy": tally(0)} | worse
    assert list(compare(scored(), scored(**better))) == [f"spin score: {said}"]
