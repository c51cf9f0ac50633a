"""Hooks of the OpenHands SDK: what its payloads tell, and how it is answered.

Written from its `HookEvent`. It tells neither time nor id of a call. A denial is all that it takes before a call, and
what a hook says after one it only logs; a denied stop would have the agent go on, so that a stop is never answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from schemas.common import ErrorInfo
from streams.hooks.observed import Hook, NotRead, Observed, draft, session, without
from streams.importers.shape import as_dict, as_text, result_of
from streams.verdicts.refusal import refusal

if TYPE_CHECKING:
    from datetime import datetime

    from streams.hooks.observed import Agents, Status
    from streams.verdicts.model import Verdict

NAME: Final[Agents] = "openhands"

_HOOKS: Final = {
    "UserPromptSubmit": Hook("prompt", "user_message"),
    "SessionStart": Hook("start", "started"),
    "SessionEnd": Hook("end", "ended"),
    "Stop": Hook("stop"),
}
_LABELS: Final = ("kind", "thought", "summary", "security_risk")
"""Fields of an action that describe the call and are no argument of it."""


def read(value: object, at: datetime) -> Observed | NotRead:
    """Read one payload.

    Args:
        value: the payload.
        at: when it was handed over.
    """
    begun = draft(NAME, value, at, event="event_type")
    if isinstance(begun, NotRead):
        return begun
    payload = as_dict(value)
    tool, arguments = payload.get("tool_name"), without(payload.get("tool_input"), *_LABELS)
    match begun.event:
        case "PreToolUse":
            return begun.called("start", tool, arguments)
        case "PostToolUse":
            result, status, error = _outcome(as_dict(payload.get("tool_response")))
            return begun.called("end", tool, arguments, result=result, status=status, error=error)
        case _:
            return session(begun, payload, _HOOKS)


def _outcome(response: dict[str, Any]) -> tuple[Any, Status | None, ErrorInfo | None]:
    if not response:
        return UNSET, None, None
    content = response.get("content")
    result = without(response, "kind") if content is None else result_of(content)
    code = response.get("exit_code")
    known = isinstance(code, int) and not isinstance(code, bool) and code != 0
    if response.get("timeout") is True:
        return result, "timeout", None
    if known or response.get("is_error") is True:
        return result, "error", ErrorInfo(code=code, type=as_text(response.get("error_type"))) if known else None
    return result, "ok", None


def answer(observed: Observed, verdict: Verdict) -> dict[str, Any]:
    """Give the answer to the hook; empty where nothing is to be said or this hook cannot say it.

    Guidance has no way in but the next prompt and the reason of a denial, so that it denies one call.
    """
    action, text = verdict.action, verdict.text
    if observed.event == "UserPromptSubmit" and action == "guide":
        return {"additionalContext": text}
    if observed.event == "PreToolUse":
        return {"decision": "deny", "reason": refusal(verdict)}
    if observed.event == "UserPromptSubmit" and action == "stop":
        return {"decision": "deny", "reason": text}
    return {}
