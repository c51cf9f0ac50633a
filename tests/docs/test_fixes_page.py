"""Runs the code of the page on circular fixes, and works its figures out."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from detectors import Limits
from streams.cli import traction
from streams.fixes import CircularFixDetector, FixOutcome
from streams.fixes.config import read_config

if TYPE_CHECKING:
    from pathlib import Path

    from tests.docs.conftest import Find

PAGE = "docs/fixes.md"


def test_the_library_says_what_is_shown(block: Find) -> None:
    """The program as it stands, with the output that stands below it."""
    result = subprocess.run(
        [sys.executable, "-P", "-c", block("fixes-library").text], capture_output=True, text=True, check=True
    )
    assert result.stdout == block("fixes-library-output").text


def test_the_commands_do_what_is_said(block: Find, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other: recorded, circular, shown, counted, forgotten."""
    monkeypatch.setenv("TRACTION_STORE", str(tmp_path / "fixes.sqlite3"))
    said = []
    for line in block("fixes-shell").text.splitlines():
        command, _, otherwise = line.partition("||")
        result = CliRunner().invoke(traction, shlex.split(command)[1:], standalone_mode=False)
        assert result.exception is None
        assert bool(result.return_value) == bool(otherwise)
        said.append(result.stdout)
    assert said[1] == "recorded attempt #2 of fix-auth: failed\n"
    assert "strategy  different_files" in said[2]
    assert "Similarity to previous: [████████████░░░░░░░░] 60.00%" in said[3]
    assert "found circular 1 time" in said[4]
    assert said[5] == "forgot 2 attempts\n"


def test_the_orchestrator_stops_at_success_and_asks_a_person(block: Find) -> None:
    """It is handed a plan that never changes, and in the end calls somebody."""
    scope: dict[str, Any] = {}
    exec(block("fixes-orchestrator").text, scope)  # noqa: S102 - the page's own code

    def plan(result: Any) -> tuple[str, list[str]]:
        asked.append(result)
        return "Raise the timeout", ["client.py"]

    asked: list[Any] = []
    solved = scope["solve"]("task", plan, lambda _: (FixOutcome.SUCCESS, None), str)
    assert (solved, asked) == ("Raise the timeout", [None])
    escalated = scope["solve"]("task", plan, lambda _: (FixOutcome.FAILED, "still failing"), str)
    assert escalated == "Already tried 6 times. Human intervention recommended."
    assert [each.suggested_strategy.value for each in asked if each] == ["different_method"] * 4


def test_the_configuration_shown_is_the_default(block: Find, tmp_path: Path) -> None:
    """Each key is one, with the value that holds without a file."""
    file = tmp_path / "fix.json"
    file.write_text(block("fixes-config").text, "utf-8")
    shown, none = read_config(file), read_config(None)
    assert shown.limits.circular_fix == Limits().circular_fix
    assert (shown.retention_ms, shown.clear_on_success) == (none.retention_ms, none.clear_on_success)


def test_the_figures_of_the_tables_come_out(pages: dict[str, str]) -> None:
    """The worked similarities, and what the guide's scenarios and timeline come to by the rule."""
    page = pages[PAGE]
    with CircularFixDetector() as detector:
        alike = detector.calculate_jaccard_similarity
        rows = re.findall(r'^\| "([^"]+)", "([^"]+)" \|.*\| (\d+) % \|$', page, re.MULTILINE)
        assert len(rows) == 3
        for one, other, percent in rows:
            assert f"{alike(one, other):.0%}" == f"{percent}%"

        timeline = (
            "Fixed authentication error by updating login method...",
            "Modified login authentication to handle errors...",
            "Changed authentication flow in login module...",
            "Updated error handling in login authentication...",
        )
        assert [f"{alike(*pair):.0%}" for pair in pairwise(timeline)] == ["38%", "25%", "25%"]
        one, two, three = (
            "Added 'import requests' to file",
            "Changed to 'from requests import *'",
            "Modified import to use absolute path",
        )
        pairs = (one, two), (one, three), (two, three)
        assert [f"{alike(*pair):.0%}" for pair in pairs] == ["40%", "12%", "14%"]
        one, two, three, four = (
            "Fixed authentication in auth.py",
            "Updated login logic in auth.py",
            "Modified auth validation in auth.py",
            "Changed authentication flow in auth.py",
        )
        pairs = (one, two), (two, three), (one, four)
        assert [f"{alike(*pair):.0%}" for pair in pairs] == ["17%", "17%", "40%"]
    for words in ("38 %, 25 % and 25 %", "40 %, 12 % and 14 %", "17 % and 17 %"):
        assert words in page
