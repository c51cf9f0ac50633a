"""Claude Code's hooks: what its payloads tell, and how it is answered.

Written from the types that its Agent SDK publishes (`HookInput`, `SyncHookJSONOutput`). Failures come on a hook of
their own, and `agent_id` is there within sub-agents only. Hooks and fields that are not known are passed by.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from schemas.common import ErrorInfo
from streams.hooks.observed import Hook, NotRead, Observed, draft, session, streams_of, without
from streams.importers.shape import as_amount, as_dict, as_text, result_of
from streams.verdicts.refusal import refusal

if TYPE_CHECKING:
    from datetime import datetime

    from streams.hooks.observed import Agents, Draft, Status
    from streams.verdicts.model import Verdict

NAME: Final[Agents] = "claude-code"

_REFUSED: Final = ("The user doesn't want to", "Permission to use ", "The user rejected")
_TIMED_OUT: Final = "Command timed out after"
_EXIT_CODE: Final = re.compile(r"Exit code (-?\d{1,10})\b")
_TYPED: Final = ("user", "sdk")
"""Sources of a prompt that a person or the caller of the SDK wrote; the others are the program's own."""

_HOOKS: Final = {
    "UserPromptSubmit": Hook("prompt", "user_message", mark="prompt_id"),
    "SessionStart": Hook("start", "started"),
    "SessionEnd": Hook("end", "ended", reason="reason"),
    "SubagentStart": Hook("other", "started"),
    "SubagentStop": Hook("stop", "ended"),
    "Stop": Hook("stop"),
}
_UNATTENDED: Final = ("bypassPermissions", "dontAsk")
_TIMES: Final = ("durationMs", "durationSeconds", "totalDurationMs")  # differ between equal results
_CONTEXT: Final = ("PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "SessionStart")
"""Hooks whose answer can add to the model's context, of those that are read."""

_STOPPABLE: Final = ("PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop", "SubagentStop")


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
    begun.attended = payload.get("permission_mode") not in _UNATTENDED
    called = _tool(begun, payload)
    if called is not None:
        return called
    if begun.event == "UserPromptSubmit" and payload.get("source", "user") not in _TYPED:
        return begun.nothing("prompt")
    return session(begun, payload, _HOOKS)


def _tool(begun: Draft, payload: dict[str, Any]) -> Observed | NotRead | None:
    tool, arguments, call_id = payload.get("tool_name"), payload.get("tool_input"), payload.get("tool_use_id")
    took = as_amount(payload.get("duration_ms"))
    if begun.event == "PreToolUse":
        return begun.called("start", tool, arguments, call_id=call_id)
    if begun.event == "PostToolUse":
        result = payload.get("tool_response", UNSET)
        status: Status = "error" if as_dict(result).get("isError") is True else "ok"
        if as_amount(as_dict(result).get("timedOutAfterMs")) is not None:
            status = "timeout"
        result = _result(result)
        return begun.called("end", tool, arguments, call_id=call_id, result=result, status=status, duration_ms=took)
    if begun.event == "PostToolUseFailure":
        said = as_text(payload.get("error")) or ""
        failed: Status = "error"
        if payload.get("is_interrupt") is True or said.startswith(_REFUSED):
            failed = "denied"
        elif _TIMED_OUT in said[:500]:
            failed = "timeout"
        code = _EXIT_CODE.match(said)
        error = ErrorInfo(code=int(code[1])) if code else None
        return begun.called(
            "end", tool, arguments, call_id=call_id, result=said, status=failed, error=error, duration_ms=took
        )
    if begun.event == "PermissionDenied":
        said = as_text(payload.get("reason")) or ""
        return begun.called("end", tool, arguments, call_id=call_id, result=said, status="denied")
    return None


def _result(value: Any) -> Any:
    value = streams_of(value)
    return result_of(value) if isinstance(value, list) else without(value, *_TIMES)


def answer(observed: Observed, verdict: Verdict) -> dict[str, Any]:
    """Give the answer to the hook; empty where nothing is to be said or this hook cannot say it.

    A person is asked before a call; where nobody can be asked, the session is stopped. A stop denies the call that is
    about to be made too: by itself it takes effect after that one.
    """
    asks = verdict.action == "ask"
    if verdict.action == "stop" or (asks and not observed.attended):
        stop = {"continue": False, "stopReason": verdict.text} if observed.event in _STOPPABLE else {}
        return stop | _denial(observed, verdict) if observed.moment == "before_tool" else stop
    if verdict.action == "guide":
        return _specific(observed, additionalContext=verdict.text) if observed.event in _CONTEXT else {}
    if observed.moment == "before_tool" and asks:
        return _specific(observed, permissionDecision="ask", permissionDecisionReason=verdict.text)
    if observed.moment == "before_tool" and verdict.action == "deny":
        return _denial(observed, verdict)
    return {}


def _denial(observed: Observed, verdict: Verdict) -> dict[str, Any]:
    return _specific(observed, permissionDecision="deny", permissionDecisionReason=refusal(verdict))


def _specific(observed: Observed, **fields: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": observed.event, **fields}}
