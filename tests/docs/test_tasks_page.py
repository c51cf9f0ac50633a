"""What the page on tasks shows is so: its program, its attempt, and the example of what a change takes back."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from detectors.tasks.diffs import change_of_texts
from detectors.tasks.reversal import reversal

if TYPE_CHECKING:
    from pathlib import Path

    from tests.docs.conftest import Find


def test_tasks_in_ones_own_process(block: Find, tmp_path: Path) -> None:
    """The program prints what the page says."""
    ran = subprocess.run(
        [sys.executable, "-c", block("tasks").text], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ran.stdout == block("tasks-output").text


def test_the_formula_gives_the_example(block: Find, pages: dict[str, str]) -> None:
    """The worked example follows from the code."""
    before = change_of_texts([("s.py", "a\nb\n", "c\n")])
    after = change_of_texts([("s.py", "c\n", "a\nd\n")])
    assert reversal(before, after).share == pytest.approx(2 / 3)
    assert "two lines of three are taken back: 0.67" in pages["docs/tasks.md"]
    assert "|A(p) ∩ R(c)|" in block("formula").text
