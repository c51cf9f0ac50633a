"""The pages on performance and sizing: the programs that they name are there, with the options that they show."""

from __future__ import annotations

import importlib
import re
import shlex
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.docs.conftest import Find

PAGES = ("docs/performance.md", "docs/sizing.md", "docs/state.md")
NAMED = re.compile(r"python -m (tests\.bench\.\w+)")


def test_the_programs_shown_can_be_run(block: Find, capsys: pytest.CaptureFixture[str]) -> None:
    """Every program of the block has a help, which has every option that is shown with it."""
    lines = [shlex.split(line, comments=True) for line in block("performance").text.splitlines()]
    programs = [words[2:] for words in lines if words[:2] == ["python", "-m"]]
    assert len(programs) == len(lines) - 1
    for name, *words in programs:
        with pytest.raises(SystemExit) as ended:
            importlib.import_module(name).main(["--help"])
        told = capsys.readouterr().out
        assert ended.value.code == 0
        assert {word for word in words if word.startswith("--")} <= set(re.findall(r"--[a-z-]+", told)), name


def test_every_program_that_is_named_is_shown(pages: dict[str, str], block: Find) -> None:
    """A program that a sentence rests on is among those of the block that tells how to repeat it."""
    shown = set(NAMED.findall(block("performance").text))
    assert {name for page in PAGES for name in NAMED.findall(pages[page])} <= shown
