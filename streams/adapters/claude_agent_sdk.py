"""The Claude Agent SDK: hooks for the options of a client or query; with the extra `claude-agent-sdk`.

Each call of a tool is asked about before it is made and told of afterwards, that of a sub-agent too. One set of hooks
is for one session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from claude_agent_sdk import HookMatcher

from streams.adapters.watch import Enforcer, ends
from streams.hooks.observed import streams_of
from streams.verdicts.refusal import refusal

if TYPE_CHECKING:
    from streams.adapters.watch import Watch
    from streams.verdicts.model import Verdict


def hooks(watch: Watch, *, enforce: bool = True) -> dict[Any, list[Any]]:
    """Give hooks for `ClaudeAgentOptions(hooks=...)`; where you have others, add the lists of each event.

    Args:
        watch: a `Guard`, or an `EmitterWatch`.
        enforce: False observes only.
    """
    made = _Hooks(Enforcer(watch, enforce=enforce))
    return {
        "PreToolUse": [HookMatcher(hooks=[made.before])],
        "PostToolUse": [HookMatcher(hooks=[made.after])],
        "PostToolUseFailure": [HookMatcher(hooks=[made.failed])],
    }


class _Hooks:
    """Three hooks that share an enforcer."""

    def __init__(self, enforcer: Enforcer) -> None:
        self._enforcer = enforcer

    async def before(self, said: Any, call_id: str | None, _: Any) -> Any:
        """Ask about a call."""
        verdict = self._enforcer.before(said["tool_name"], said["tool_input"], call_id=call_id)
        if verdict.action != "deny" and not ends(verdict):
            return {}
        denied = _specific("PreToolUse", permissionDecision="deny", permissionDecisionReason=refusal(verdict))
        return denied | _stop(verdict) if ends(verdict) else denied  # to stop alone lets the call be made first

    async def after(self, said: Any, call_id: str | None, _: Any) -> Any:
        """Tell of a call that has a result."""
        result = streams_of(said.get("tool_response"))
        verdict = self._enforcer.after(said["tool_name"], said["tool_input"], result, call_id=call_id or "")
        return _told("PostToolUse", verdict)

    async def failed(self, said: Any, call_id: str | None, _: Any) -> Any:
        """Tell of a call that failed."""
        verdict = self._enforcer.after(
            said["tool_name"], said["tool_input"], said.get("error") or "", failed=True, call_id=call_id or ""
        )
        return _told("PostToolUseFailure", verdict)


def _told(event: str, verdict: Verdict) -> Any:
    if ends(verdict):
        return _stop(verdict)
    return _specific(event, additionalContext=verdict.text) if verdict.action == "guide" else {}


def _stop(verdict: Verdict) -> Any:
    return {"continue_": False, "stopReason": verdict.text}


def _specific(event: str, **fields: str) -> Any:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}
