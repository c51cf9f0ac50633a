"""Builders of events for tests, examples and benchmarks: valid records with sensible defaults.

Nothing of the product uses them; they ship so that users can write tests of their own against the contract.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import UNSET

from schemas.common import ErrorInfo
from schemas.events import Control, FixAttempt, Review, SessionEvent, ToolCall

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(second: float) -> datetime:
    """Return the instant so many seconds after the builders' start."""
    return START + timedelta(seconds=second)


def tool_call(
    n: int,
    tool: str = "bash",
    arguments: Any = UNSET,
    result: Any = "done",
    *,
    session_id: str = "s1",
    error: ErrorInfo | str | int | None = None,
    **fields: Any,
) -> ToolCall:
    """Return the session's ``n``-th call, one second after the one before.

    ``error`` makes it a failed call, with this code where it is one; further fields of the record go by name.
    """
    defaults: dict[str, Any] = {
        "event_id": f"{session_id}-{n}",
        "occurred_at": at(n),
        "status": "ok" if error is None else "error",
        "error": ErrorInfo(code=error) if isinstance(error, str | int) else error,
    }
    if arguments is UNSET:
        arguments = {"command": "ls"}
    return ToolCall(session_id=session_id, tool=tool, arguments=arguments, result=result, **{**defaults, **fields})


def session_event(n: int, kind: str, *, session_id: str = "s1", **fields: Any) -> SessionEvent:
    """Return an event of the session itself, at second ``n``."""
    defaults: dict[str, Any] = {"event_id": f"{session_id}-{kind}-{n}", "occurred_at": at(n)}
    return SessionEvent(session_id=session_id, kind=kind, **{**defaults, **fields})  # type: ignore[arg-type]


def control(n: int, action: str, *, session_id: str = "s1", **fields: Any) -> Control:
    """Return a decision about the session, at second ``n``."""
    defaults: dict[str, Any] = {"event_id": f"{session_id}-{action}-{n}", "occurred_at": at(n)}
    return Control(session_id=session_id, action=action, **{**defaults, **fields})  # type: ignore[arg-type]


def fix_attempt(n: int, approach: str | None = None, *, session_id: str = "s1", **fields: Any) -> FixAttempt:
    """Return the ``n``-th attempt, a failed one unless the fields say otherwise, a minute after the one before."""
    defaults: dict[str, Any] = {
        "event_id": f"{session_id}-attempt-{n}",
        "attempt_id": f"attempt-{n}",
        "occurred_at": at(60 * n),
        "outcome": "failed",
    }
    return FixAttempt(session_id=session_id, approach=approach, **{**defaults, **fields})


def review(n: int, verdict: str = "changes_requested", *, session_id: str = "s1", **fields: Any) -> Review:
    """Return the ``n``-th round of review, by an agent unless the fields say otherwise, an hour after the last."""
    defaults: dict[str, Any] = {
        "event_id": f"{session_id}-review-{n}",
        "occurred_at": at(3_600 * n),
        "pull_request": "acme/shop#1",
        "author": "agent",
    }
    return Review(session_id=session_id, verdict=verdict, **{**defaults, **fields})  # type: ignore[arg-type]
