"""The pages and the blocks of code in them, taken out of the files as they are."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(?P<language>[\w-]*) ?(?P<name>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page; its name follows the language, and is empty where there is none."""

    page: str
    language: str
    name: str
    text: str


Find = Callable[[str], Block]


@pytest.fixture(scope="session")
def root() -> Path:
    """Give the directory of the project."""
    return ROOT


@pytest.fixture(scope="session")
def pages() -> dict[str, str]:
    """Give the text of every page by its path."""
    paths = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "schemas").glob("*.md")]
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in sorted(paths)}


@pytest.fixture(scope="session")
def blocks(pages: dict[str, str]) -> list[Block]:
    """Give every fenced block of every page."""
    return [
        Block(page, found["language"], found["name"].strip(), found["text"])
        for page, text in pages.items()
        for found in FENCE.finditer(text)
    ]


@pytest.fixture(scope="session")
def block(blocks: list[Block]) -> Find:
    """Give what finds a block by its name."""

    def find(name: str) -> Block:
        (found,) = [block for block in blocks if block.name == name]
        return found

    return find


@pytest.fixture(scope="session")
def generate() -> Any:
    """Give the module that fills the generated parts of the pages."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
