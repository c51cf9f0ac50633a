"""LangChain and LangGraph: a middleware for agents that `create_agent` makes; with the extra `langchain`.

Each tool call is asked about and told of in `wrap_tool_call`; a stop ends the run before the next call of the model.
One middleware is for one session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain_core.messages import AIMessage, ToolMessage

from streams.adapters.watch import Enforcer, beside, ends
from streams.verdicts.refusal import refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from streams.adapters.watch import Watch
    from streams.verdicts.model import Verdict


class TractionMiddleware(AgentMiddleware):  # type: ignore[misc]  # LangChain need not be installed
    """Watches the tool calls of one session, and stops it, refuses calls and gives guidance as it is told.

    Args:
        watch: a `Guard`, or an `EmitterWatch`.
        enforce: False observes only.
    """

    def __init__(self, watch: Watch, *, enforce: bool = True) -> None:
        super().__init__()
        self._enforcer = Enforcer(watch, enforce=enforce)

    @hook_config(can_jump_to=["end"])  # type: ignore[untyped-decorator]  # as above
    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:  # noqa: ARG002 - LangChain's signature
        """End the run of a session that is to be stopped, with a last message that says why."""
        verdict = self._enforcer.ends()
        return None if verdict is None else {"jump_to": "end", "messages": [AIMessage(refusal(verdict))]}

    @hook_config(can_jump_to=["end"])  # type: ignore[untyped-decorator]  # as above
    async def abefore_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:  # noqa: ARG002 - as above
        """Do the same."""
        verdict = self._enforcer.ends()
        return None if verdict is None else {"jump_to": "end", "messages": [AIMessage(refusal(verdict))]}

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Ask about a call, have it made, and tell of it."""
        call = request.tool_call
        refused = self._refused(call)
        if refused is not None:
            return refused
        try:
            result = handler(request)
        except Exception as problem:
            self._enforcer.after(call["name"], call["args"], error=problem, call_id=call["id"])
            raise
        return self._told(call, result)

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Do the same."""
        call = request.tool_call
        refused = self._refused(call)
        if refused is not None:
            return refused
        try:
            result = await handler(request)
        except Exception as problem:
            self._enforcer.after(call["name"], call["args"], error=problem, call_id=call["id"])
            raise
        return self._told(call, result)

    def _refused(self, call: Any) -> Any:
        verdict = self._enforcer.before(call["name"], call["args"], call_id=call["id"])
        if verdict.action == "deny" or ends(verdict):
            return ToolMessage(refusal(verdict), tool_call_id=call["id"], name=call["name"], status="error")
        return None

    def _told(self, call: Any, result: Any) -> Any:
        """Tell of a call, and put guidance behind its result."""
        shown = result.content if isinstance(result, ToolMessage) else None
        failed = isinstance(result, ToolMessage) and result.status == "error"
        verdict = self._enforcer.after(call["name"], call["args"], shown, failed=failed, call_id=call["id"])
        if verdict.action != "guide" or not isinstance(result, ToolMessage):
            return result
        return result.model_copy(update={"content": _with(result.content, verdict)})


def _with(content: Any, verdict: Verdict) -> Any:
    """Put guidance behind a text, or behind blocks of content."""
    if isinstance(content, str):
        return beside(content, verdict)
    return [*content, {"type": "text", "text": beside("", verdict)}]
