"""What Codex and Gemini CLI put around a shell's output is no part of it: they are judged as Claude Code is."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from schemas.events import ToolCall
from streams.hooks import Observed, read
from streams.importers.shell_result import ShellResult, codex_result, gemini_result
from streams.privacy import EXCERPT_CHARS
from tests.streams.hooks import work
from tests.streams.hooks.payloads import CODEX, GEMINI_CLI

if TYPE_CHECKING:
    from collections.abc import Callable

    from schemas.events import SessionInput
    from streams.hooks import Agents
    from streams.privacy import Level

LEVELS = ("digests", "excerpts", "full")
HEAD = "Exit code: {}\nWall time: 0.{} seconds\nTotal output lines: 400\nOutput:\n{}"
CHUNK = "Chunk ID: a{1}\nWall time: 1.{1} seconds\nProcess exited with code {0}\nOriginal token count: 9\nOutput:\n{2}"
LAST = "\nError: (none)\nExit Code: {}\nSignal: (none)\nBackground PIDs: (none)\nProcess Group PGID: 40{}"


def codex(head: str) -> Callable[[int, str, str, int], dict[str, Any]]:
    """What Codex hands over of a command: with its text in this head."""

    def told(number: int, command: str, text: str, code: int) -> dict[str, Any]:
        said = head.format(code, number, text)
        asked = {"command": command}
        return {**CODEX["PostToolUse"], "tool_use_id": f"c{number}", "tool_input": asked, "tool_response": said}

    return told


def gemini(number: int, command: str, text: str, code: int) -> dict[str, Any]:
    """What Gemini CLI hands over of a command."""
    said = f"Output: {text or '(empty)'}{LAST.format(code, number)}"
    at = f"2026-11-30T10:{number:02}:00Z"
    return {
        **GEMINI_CLI["AfterTool"],
        "timestamp": at,
        "tool_input": {"command": command},
        "tool_response": {"llmContent": said},
    }


def claude(_: int, command: str, text: str, code: int) -> dict[str, Any]:
    """What Claude Code hands over of a command."""
    return work.said(command, text, code) if code else work.ran(command, text)


FORMS: dict[str, tuple[Agents, Callable[[int, str, str, int], dict[str, Any]]]] = {
    "claude-code": ("claude-code", claude),
    "codex": ("codex", codex(HEAD)),
    "codex-chunk": ("codex", codex(CHUNK)),
    "codex-packed": (
        "codex",
        lambda number, command, text, code: codex("{2}")(
            number, command, json.dumps({"output": text, "metadata": {"exit_code": code}}), code
        ),
    ),
    "gemini-cli": ("gemini-cli", gemini),
}
EDITS: dict[Agents, dict[str, Any]] = {
    "claude-code": {**work.edited("a.py", "x"), "hook_event_name": "PostToolUse"},
    "codex": {**CODEX["PostToolUse"], "tool_name": "apply_patch", "tool_response": "Success."},
    "gemini-cli": {**GEMINI_CLI["AfterTool"], "tool_name": "replace", "tool_response": {"llmContent": "Modified"}},
}
NAMES = {"claude-code": "new_string", "codex": "command", "gemini-cli": "new_string"}


def edit(agent: Agents, number: int) -> dict[str, Any]:
    """An edit that was accepted, another one each time."""
    asked = {"file_path": "/home/ada/shop/m.py", "old_string": f"x = {number}", NAMES[agent]: f"x = {number + 1}"}
    if agent == "codex":
        body = f"@@\n-x = {number}\n+x = {number + 1}\n"
        asked = {"command": f"*** Begin Patch\n*** Update File: m.py\n{body}*** End Patch"}
    at = f"2026-11-30T10:{number:02}:30Z"
    return {**EDITS[agent], "tool_use_id": f"e{number}", "timestamp": at, "tool_input": asked}


def events(agent: Agents, payloads: list[dict[str, Any]], level: Level) -> list[SessionInput]:
    """Read payloads as the gateway does."""
    found: list[SessionInput] = []
    for number, payload in enumerate(payloads):
        at = work.BEGIN + timedelta(seconds=20 * number)
        seen = read(agent, json.dumps(payload).encode(), at=at, privacy=level)
        assert isinstance(seen, Observed)
        found += seen.events
    return found


def told(happened: list[SessionInput]) -> set[tuple[str, str, int]]:
    """Give which detectors said what, and at which call."""
    return {(alert.detector, alert.level, alert.seq) for alert in work.alerts(happened)}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("form", FORMS)
def test_searches_that_find_nothing_are_warned_of_as_such(form: str, level: Level) -> None:
    """Twenty searches without a hit are no failures of one kind, whichever agent makes them."""
    agent, make = FORMS[form]
    found = told(events(agent, [make(n, f"grep -rn name{n} src", "", 1) for n in range(20)], level))
    assert {(detector, grade) for detector, grade, _ in found} == {("fruitless_search", "warn")}
    assert found == told(events("claude-code", [claude(n, f"grep -rn name{n} src", "", 1) for n in range(20)], level))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("code", [0, 1])
def test_a_failure_of_one_line_that_no_edit_mends_is_found(form: str, level: Level, code: int) -> None:
    """A check that says the same one line after each edit is found at the same call, also where its code is lost."""
    text = "FAIL: test_total expected 3 got 4"

    def worked(agent: Agents, make: Callable[[int, str, str, int], dict[str, Any]]) -> set[tuple[str, str, int]]:
        payloads = [each for n in range(16) for each in (edit(agent, n), make(n, "make test", text, code))]
        return told(events(agent, payloads, level))

    found = worked(*FORMS[form])
    assert "stuck_check" in {detector for detector, *_ in found}
    assert found == worked(*FORMS["claude-code"])


@pytest.mark.parametrize("form", ["codex", "codex-chunk", "codex-packed", "gemini-cli"])
def test_an_excerpt_is_one_of_the_output(form: str) -> None:
    """Its characters are the command's own, and how it ended stands beside them."""
    agent, make = FORMS[form]
    (event,) = events(agent, [make(7, "make test", "y" * 500, 2)], "excerpts")
    assert isinstance(event, ToolCall)
    assert event.result == "y" * EXCERPT_CHARS
    assert (event.status, event.error and event.error.code, event.result_length) == ("error", 2, 500)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Exit code: 0\nWall time: 0.4 seconds\nOutput:\n", ("", 0, 0.4)),
        ("Exit code: -9\nWall time: 3 seconds\nOutput:\nOutput:\na", ("Output:\na", -9, 3.0)),
        ("Wall time: 0.4 seconds\nOutput:\n{}", ("{}", None, 0.4)),
        ("Exit code: 1", ("Exit code: 1", None, None)),
        ("a log\nExit code: 1\nOutput:\n", ("a log\nExit code: 1\nOutput:\n", None, None)),
        ("Wall time: 1 seconds\nProcess running with session ID 4\nOutput:\na",
         ("Wall time: 1 seconds\nProcess running with session ID 4\nOutput:\na", None, None)),
        ('{"output":"a","metadata":{"exit_code":3,"duration_seconds":0.5}}', ("a", 3, 0.5)),
        ('{"output":5}', ('{"output":5}', None, None)),
        ('{"output":', ('{"output":', None, None)),
    ],
)  # fmt: skip
def test_what_codex_puts_around_an_output(text: str, found: tuple[Any, ...]) -> None:
    """Its own head is read and taken off, once; of a command that runs on, and in a text of another's, all stays."""
    assert codex_result(text) == ShellResult(*found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"Output: (empty){LAST.format(1, 7)}", ("", 1)),
        ("Output: a\nb\n\nExit Code: 2", ("a\nb\n", 2)),
        ("Output: a\nError: boom", ("a\nError: boom", None)),
        ("Output: (empty)\nError: spawn failed\nSignal: 9", ("Error: spawn failed\nSignal: 9", None)),
        ("Output: Exit Code: 1\nall is well", ("Exit Code: 1\nall is well", None)),
        ("Output: a\nExit Code: (none)\nSignal: 9\nProcess Group PGID: 4", ("a\nSignal: 9", None)),
        ("Command: ls\nDirectory: (root)\nOutput: a\nExit Code: 0", ("a", 0)),
        ("Command: ls\nOutput: a", ("Command: ls\nOutput: a", None)),
        ("cart.py", ("cart.py", None)),
        ("bash said:\nExit Code: 3", ("bash said:\nExit Code: 3", None)),
        ("", ("", None)),
    ],
)
def test_what_gemini_cli_puts_around_an_output(text: str, found: tuple[Any, ...]) -> None:
    """What it says beside the output is taken off, but for an error or a signal that nothing else tells."""
    assert gemini_result(text) == ShellResult(*found)
