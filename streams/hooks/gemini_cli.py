"""Gemini CLI's hooks: what its payloads tell, and how it is answered.

Written from the types that its core package publishes (`BeforeToolInput`, `HookOutput` and their kin). It tells no id
of a call, by which one seen by a hook were known again in its telemetry: the gateway takes the hook's word alone.
Payloads have their time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from schemas.common import ErrorInfo
from streams.hooks.observed import Hook, NotRead, Observed, draft, session
from streams.importers.shape import as_dict, as_text, as_time, result_of
from streams.importers.shell_result import GEMINI_SHELLS, gemini_result
from streams.otlp.mapped import failure
from streams.verdicts.refusal import refusal

if TYPE_CHECKING:
    from datetime import datetime

    from streams.hooks.observed import Agents, Status
    from streams.verdicts.model import Verdict

NAME: Final[Agents] = "gemini-cli"

_HOOKS: Final = {
    "BeforeAgent": Hook("prompt", "user_message"),
    "SessionStart": Hook("start", "started"),
    "SessionEnd": Hook("end", "ended", reason="reason"),
    "PreCompress": Hook("other", "context_trimmed"),
    "AfterAgent": Hook("stop"),
}
_CONTEXT: Final = ("AfterTool", "BeforeAgent", "SessionStart")
_STOPPABLE: Final = ("BeforeTool", "AfterTool", "BeforeAgent", "AfterAgent")


def read(value: object, at: datetime) -> Observed | NotRead:
    """Read one payload.

    Args:
        value: the payload.
        at: when it was handed over.
    """
    begun = draft(NAME, value, at, told=as_time(as_dict(value).get("timestamp")))
    if isinstance(begun, NotRead):
        return begun
    payload = as_dict(value)
    tool, arguments = payload.get("tool_name"), payload.get("tool_input")
    match begun.event:
        case "BeforeTool":
            return begun.called("start", tool, arguments)
        case "AfterTool":
            result, status, error = _outcome(tool, as_dict(payload.get("tool_response")))
            return begun.called("end", tool, arguments, result=result, status=status, error=error)
        case _:
            return session(begun, payload, _HOOKS)


def _outcome(tool: object, response: dict[str, Any]) -> tuple[Any, Status | None, ErrorInfo | None]:
    """Give what a call brought and how it ended, which a shell says in its text."""
    content = response.get("llmContent", UNSET)
    result = result_of([content] if isinstance(content, dict) else content) if content is not UNSET else UNSET
    code = None
    if tool in GEMINI_SHELLS and isinstance(result, str):
        result, code, _ = gemini_result(result)
    error = as_dict(response.get("error"))
    if error:
        return result, "error", failure(as_text(error.get("type")), as_text(error.get("message")))
    if code:
        return result, "error", ErrorInfo(code=code)
    return result, None if result is UNSET else "ok", None


def answer(observed: Observed, verdict: Verdict) -> dict[str, Any]:
    """Give the answer to the hook; empty where nothing is to be said or this hook cannot say it."""
    action, text = verdict.action, verdict.text
    if action == "stop" and observed.event in _STOPPABLE:
        return {"continue": False, "stopReason": text, "reason": text}
    if action == "guide" and observed.event in _CONTEXT:
        return {"hookSpecificOutput": {"hookEventName": observed.event, "additionalContext": text}}
    if observed.event == "BeforeTool" and action == "deny":
        return {"decision": "deny", "reason": refusal(verdict)}
    if observed.event == "BeforeTool" and action == "ask":
        return {"decision": "ask", "reason": text, "systemMessage": text}
    return {}
