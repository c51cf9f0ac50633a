"""Pydantic AI: a capability for agents; with the extra `pydantic-ai`.

Each execution of a tool is wrapped, whatever toolset it comes from. A stop ends the run with `SessionStopped`. One
capability is for one session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_ai import ToolReturn
from pydantic_ai.capabilities import AbstractCapability

from streams.adapters.watch import Enforcer, SessionStopped, beside, ends
from streams.verdicts.refusal import refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from streams.adapters.watch import Watch
    from streams.verdicts.model import Verdict


class TractionCapability(AbstractCapability[Any]):  # type: ignore[misc]  # Pydantic AI need not be installed
    """Watches the tool calls of one session, and stops it, refuses calls and gives guidance as it is told.

    Args:
        watch: a `Guard`, or an `EmitterWatch`.
        enforce: False observes only.
    """

    def __init__(self, watch: Watch, *, enforce: bool = True) -> None:
        self._enforcer = Enforcer(watch, enforce=enforce)

    async def wrap_tool_execute(
        self,
        ctx: Any,  # noqa: ARG002 - Pydantic AI's signature
        *,
        call: Any,
        tool_def: Any,  # noqa: ARG002 - as above
        args: Any,
        handler: Callable[[Any], Awaitable[Any]],
    ) -> Any:
        """Ask about a call, have it made, and tell of it.

        Raises:
            SessionStopped: the session is to be stopped.
        """
        name, call_id = call.tool_name, call.tool_call_id
        verdict = self._enforcer.before(name, args, call_id=call_id)
        if ends(verdict):
            raise SessionStopped(verdict)
        if verdict.action == "deny":
            return refusal(verdict)
        try:
            result = await handler(args)
        except Exception as problem:
            verdict = self._enforcer.after(name, args, error=problem, call_id=call_id)
            if ends(verdict):
                raise SessionStopped(verdict) from problem
            raise
        verdict = self._enforcer.after(name, args, _shown(result), call_id=call_id)
        if ends(verdict):
            raise SessionStopped(verdict)
        return _with(result, verdict) if verdict.action == "guide" else result


def _shown(result: Any) -> Any:
    """Give what the model is shown of a result; nothing is a result too."""
    value = result.return_value if isinstance(result, ToolReturn) else result
    return "" if value is None else value


def _with(result: Any, verdict: Verdict) -> Any:
    """Put guidance behind a result."""
    if isinstance(result, str):
        return beside(result, verdict)
    if isinstance(result, ToolReturn):
        content = result.content
        shown = [content] if isinstance(content, str) else [*(content or ())]
        return ToolReturn(
            return_value=result.return_value, content=[*shown, beside("", verdict)], metadata=result.metadata
        )
    return ToolReturn(return_value=result, content=[beside("", verdict)])
