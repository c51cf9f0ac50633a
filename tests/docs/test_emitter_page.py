"""The programs of the page on emitter, guard and adapters run, and print what it says."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.streams.emitter.kit import GatewayStub

if TYPE_CHECKING:
    from pathlib import Path

    from tests.docs.conftest import Find


def run(program: str, directory: Path, **variables: str) -> str:
    """Run a program of the page."""
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TRACTION_SPOOL_DIR": str(directory / "spool"), **variables},
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return ran.stdout


def test_the_guard_prints_what_the_page_says(block: Find, tmp_path: Path) -> None:
    """A loop is told, denied and stopped."""
    assert run(block("guard").text, tmp_path) == block("guard-output").text


def test_the_emitters_program_sends_its_events(block: Find, tmp_path: Path) -> None:
    """They are there when it has ended."""
    with GatewayStub() as gateway:
        assert run(block("emitter").text, tmp_path, TRACTION_GATEWAY_URL=gateway.url) == ""
        assert {type(event).__name__ for event in gateway.events} == {"SessionEvent", "ToolCall", "FixAttempt"}
        assert {event.task.id for event in gateway.events} == {"SHOP-412"}
        assert run(block("adapter-emitter").text, tmp_path, TRACTION_GATEWAY_URL=gateway.url) == ""


def test_the_settings_are_such(block: Find, tmp_path: Path) -> None:
    """Nothing is opened for them, so that they can be shown with names that are not there."""
    assert run(block("emitter-settings").text.replace("/var/lib/my-agent", str(tmp_path)), tmp_path) == ""


@pytest.mark.parametrize("name", ["adapter-langchain"])
def test_programs_for_frameworks_name_what_is_there(block: Find, root: Path, name: str) -> None:
    """What they import of ours is defined there; that it works is tested in tests/adapters."""
    imports = [node for node in ast.walk(ast.parse(block(name).text)) if isinstance(node, ast.ImportFrom)]
    ours = [node for node in imports if node.module and node.module.startswith("streams.adapters.")]
    assert ours
    for node in ours:
        tree = ast.parse((root / f"{str(node.module).replace('.', '/')}.py").read_text("utf-8"))
        defined = {each.name for each in tree.body if isinstance(each, ast.ClassDef | ast.FunctionDef)}
        assert {alias.name for alias in node.names} <= defined
