"""Codex's hooks: what its payloads tell, and how it is answered.

Written from the JSON Schemas in its repository (`codex-rs/hooks/schema`). It refuses an answer with a key that it does
not know, and of what the schemas allow before a call it takes nothing but a denial with its reason and context: it can
neither ask nor be stopped there, so that a stop denies every call, and ends the turn at the next prompt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from schemas.common import ErrorInfo
from streams.hooks.observed import Hook, NotRead, Observed, draft, session
from streams.importers.shape import as_amount, as_dict, result_of
from streams.importers.shell_result import codex_result, exit_code
from streams.verdicts.refusal import refusal

if TYPE_CHECKING:
    from datetime import datetime

    from streams.hooks.observed import Agents, Status
    from streams.verdicts.model import Verdict

NAME: Final[Agents] = "codex"

_HOOKS: Final = {
    "UserPromptSubmit": Hook("prompt", "user_message"),
    "SessionStart": Hook("start", "started"),
    "SubagentStart": Hook("other", "started"),
    "SubagentStop": Hook("other", "ended"),
    "Stop": Hook("stop"),
}
_CONTEXT: Final = ("PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart")
_STOPPABLE: Final = ("PostToolUse", "UserPromptSubmit", "Stop")


def read(value: object, at: datetime) -> Observed | NotRead:
    """Read one payload.

    Args:
        value: the payload.
        at: when it was handed over.
    """
    begun = draft(NAME, value, at)
    if isinstance(begun, NotRead):
        return begun
    payload = as_dict(value)
    tool, arguments, call_id = payload.get("tool_name"), payload.get("tool_input"), payload.get("tool_use_id")
    match begun.event:
        case "PreToolUse":
            return begun.called("start", tool, arguments, call_id=call_id)
        case "PostToolUse":
            result, code, seconds = _result(payload.get("tool_response", UNSET))
            status: Status | None = None if code is None else "error" if code else "ok"
            error = ErrorInfo(code=code) if code else None
            took = None if seconds is None else seconds * 1000
            return begun.called(
                "end", tool, arguments, call_id=call_id, result=result, status=status, error=error, duration_ms=took
            )
        case _:
            return session(begun, payload, _HOOKS)


def _result(value: Any) -> tuple[Any, int | None, float | None]:
    """Give what a call brought, and the exit code and seconds that it tells, as fields or around its text."""
    parts = as_dict(value)
    metadata = as_dict(parts.get("metadata"))
    code, seconds = exit_code(metadata.get("exit_code", parts.get("exit_code"))), metadata.get("duration_seconds")
    if "output" in parts:
        value = parts["output"]
    value = result_of(value) if isinstance(value, list) else value
    if code is not None or not isinstance(value, str):
        return value, code, as_amount(seconds)
    return codex_result(value)


def answer(observed: Observed, verdict: Verdict) -> dict[str, Any]:
    """Give the answer to the hook; empty where nothing is to be said or this hook cannot say it."""
    action = verdict.action
    if observed.event == "PreToolUse" and action in {"stop", "deny", "ask"}:
        return _specific(observed, permissionDecision="deny", permissionDecisionReason=refusal(verdict))
    if action == "stop" and observed.event in _STOPPABLE:
        return {"continue": False, "stopReason": verdict.text}
    if action == "guide" and observed.event in _CONTEXT:
        return _specific(observed, additionalContext=verdict.text)
    return {}


def _specific(observed: Observed, **fields: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": observed.event, **fields}}
