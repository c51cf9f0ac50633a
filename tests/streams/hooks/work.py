"""What Claude Code's hooks hand over while an agent works: a session as payloads, and what detectors make of it."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from detectors import Limits, SessionState, TaskState, observe_task, step
from streams.hooks import Observed, read
from tests.streams.hooks.payloads import CLAUDE_CODE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from schemas.events import SessionInput
    from schemas.outputs import Alert
    from streams.privacy import Level

BEGIN = datetime(2026, 11, 30, 10, tzinfo=UTC)
_BASE = {key: CLAUDE_CODE["PreToolUse"][key] for key in ("session_id", "transcript_path", "cwd", "permission_mode")}
_NUMBERS = itertools.count()


def edited(path: str, text: str) -> dict[str, Any]:
    """An edit that was accepted."""
    asked = {"file_path": f"/home/ada/shop/{path}", "old_string": "", "new_string": text}
    return _call("PostToolUse", "Edit", asked, tool_response={"filePath": asked["file_path"], "userModified": False})


def ran(command: str, text: str) -> dict[str, Any]:
    """A command that did what it should."""
    response = {"stdout": text, "stderr": "", "interrupted": False}
    return _call("PostToolUse", "Bash", {"command": command}, tool_response=response)


def failed(command: str, text: str, code: int = 1) -> dict[str, Any]:
    """A check that failed: what it says has a long beginning that is always the same, and the wall time."""
    return said(command, f"{'=' * 40} test session starts {'=' * 40}\n{text}\nin {next(_NUMBERS)}.25s", code)


def said(command: str, text: str, code: int) -> dict[str, Any]:
    """A command that failed and said this."""
    error = f"Exit code {code}\n{text}"
    return _call("PostToolUseFailure", "Bash", {"command": command}, error=error, is_interrupt=False)


def _call(hook: str, tool: str, asked: Any, **fields: Any) -> dict[str, Any]:
    call_id = f"toolu_01{next(_NUMBERS):022}"
    return {
        **_BASE, "hook_event_name": hook, "tool_name": tool, "tool_input": asked, "tool_use_id": call_id, **fields
    }  # fmt: skip


def events(payloads: Iterable[dict[str, Any]], level: Level) -> list[SessionInput]:
    """Read payloads, twenty seconds apart, as the gateway does at a level of privacy."""
    found: list[SessionInput] = []
    for number, payload in enumerate(payloads):
        seen = read(
            "claude-code", json.dumps(payload).encode(), at=BEGIN + timedelta(seconds=20 * number), privacy=level
        )
        assert isinstance(seen, Observed)
        found += seen.events
    return found


def alerts(happened: Iterable[SessionInput], limits: Limits | None = None) -> list[Alert]:
    """Play events as a worker does, and give the alerts of the session and of its task."""
    limits = limits or Limits()
    state, task = SessionState(), TaskState()
    found: list[Alert] = []
    for event in happened:
        told = step(state, event, limits)
        found += told.alerts
        if told.task_event is not None:
            found += observe_task(task, told.task_event, limits)
    return found
