"""The check of real recordings itself: on a folder written here, too small to be good enough, every fault is told."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
    assert "FAULT loops found: 1, and min_found is 27" in said
    assert "FAULT loops found in time: 1, and min_prompt is 25" in said
    assert "UNLABELLED  other" in said
    assert re.search(r"unlabelled: warned +1 of 1 ", said)
    assert "2 of 2 sessions of the neutral form and 2 of the agents' own formats scored" in said
    assert "2 faults" in said


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
