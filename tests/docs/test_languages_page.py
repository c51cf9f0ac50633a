"""The page on languages shows what the tests of the programs run, and generators as the tests of types use them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.examples.conftest import EXAMPLES, PROGRAMS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.docs.conftest import Find


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_shown_is_what_is_run(block: Find, name: str) -> None:
    """Each program is built and run by the lines of the page."""
    lines = [f"cd deploy/examples/{name}", *PROGRAMS[name]]
    assert block(f"language-{name}").text.splitlines() == [line for line in lines if line]


def test_every_example_is_shown_and_tested() -> None:
    """No folder is left out."""
    assert {path.name for path in EXAMPLES.iterdir() if path.is_dir()} == set(PROGRAMS)


def test_the_generators_are_those_that_are_tested(block: Find, root: Path) -> None:
    """The packages that are named are those whose types the tests compile, run on schemas that are there."""
    tested = json.loads((root / "tests" / "examples" / "types" / "package.json").read_text("utf-8"))["devDependencies"]
    for name in ("types-typescript", "types-go"):
        command, package, *_ = block(name).text.split()
        assert command == "npx"
        assert package in tested
        assert "schemas/json/*.json" in block(name).text.replace("'", "")
    assert list((root / "schemas" / "json").glob("*.json"))
