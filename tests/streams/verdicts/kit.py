"""What tests of verdicts share: records at seconds from a fixed moment, and calls."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from schemas.common import Task
from schemas.events import Control, SessionEvent, ToolCall
from schemas.outputs import Directive, Termination
from streams.verdicts import CallKey, call_key
from tests.streams import outputs_kit

BEGIN = datetime(2026, 11, 30, 9, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """Give a moment."""
    return BEGIN + timedelta(seconds=seconds)


def stop(name: str = "x1", seconds: float = 0, **fields: Any) -> Termination:
    """Make a termination."""
    return outputs_kit.termination(name, issued_at=at(seconds), **fields)


def directive(name: str = "d1", seconds: float = 0, lasting: float = 900, **fields: Any) -> Directive:
    """Make a directive: guidance, unless told otherwise."""
    return outputs_kit.directive(name, issued_at=at(seconds), expires_at=at(seconds + lasting), **fields)


def said(
    action: Any, seconds: float = 1, *, answers: str | None = None, task: str = "t1", session: str = "s1"
) -> Control:
    """Make a control record."""
    return Control(
        event_id=f"{action}-{seconds}-{answers}-{session}",
        session_id=session,
        occurred_at=at(seconds),
        action=action,
        answers=answers,
        task=Task(id=task),
    )


def spoke(seconds: float, session: str = "s1") -> SessionEvent:
    """Make the word of a user."""
    return SessionEvent(event_id=f"u{seconds}", session_id=session, occurred_at=at(seconds), kind="user_message")


def ended(seconds: float, session: str = "s1") -> SessionEvent:
    """Make the end of a session."""
    return SessionEvent(event_id=f"e{seconds}", session_id=session, occurred_at=at(seconds), kind="ended")


def call(command: str, seconds: float = 0, session: str = "s1") -> ToolCall:
    """Make a call of a shell."""
    return ToolCall(
        event_id=f"{command}-{seconds}",
        session_id=session,
        occurred_at=at(seconds),
        tool="Bash",
        arguments={"command": command},
        result="1 failed",
    )


def key(command: str) -> CallKey:
    """Name such a call."""
    found = call_key(call(command))
    assert found is not None
    return found
