"""The page of guarantees names tests that there are."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.docs.conftest import Find

ROOT = Path(__file__).parents[2]

NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_every_test_that_the_page_names_is_there() -> None:
    """Under the name that it has now."""
    named = NAMED.findall((ROOT / "docs" / "guarantees.md").read_text("utf-8"))
    assert named
    missing = [f"{file}::{name}" for file, name in named if name not in functions(ROOT / file)]
    assert not missing


def test_every_row_of_faults_names_a_test() -> None:
    """A promise that nothing shows is none."""
    section = (ROOT / "docs" / "guarantees.md").read_text("utf-8").partition("\n## Faults\n")[2].partition("\n## ")[0]
    _, _, *faults = [line for line in section.splitlines() if line.startswith("|")]
    assert faults
    assert [row for row in faults if not NAMED.search(row) and "the torture test" not in row] == []


def functions(file: Path) -> set[str]:
    """Give the names of a file's functions; none where there is no such file."""
    if not file.is_file():
        return set()
    found = ast.walk(ast.parse(file.read_text("utf-8")))
    return {node.name for node in found if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_what_starts_the_torture_test_is_in_the_makefile(block: Find) -> None:
    """The target, and each variable that it is given."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    lines = [shlex.split(line) for line in block("torture").text.splitlines()]
    assert {words[0] for words in lines} == {"make"}
    for _, target, *variables in lines:
        assert f"\n{target}: " in makefile
        assert all(f"$${{{variable.partition('=')[0]}:-" in makefile for variable in variables)
