"""The OpenAI Agents SDK: guardrails on every function tool of an agent; with the extra `openai-agents`.

The input guardrail is asked about a call, the output guardrail told of it. A stop ends the run with the SDK's own
exception for a tripped guardrail. Tools that run at OpenAI (web search, code interpreter) have no guardrails.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

from agents import FunctionTool
from agents.tool_guardrails import ToolGuardrailFunctionOutput, ToolInputGuardrail, ToolOutputGuardrail

from streams.adapters.watch import Enforcer, beside, ends
from streams.verdicts.refusal import refusal

if TYPE_CHECKING:
    from streams.adapters.watch import Watch


def watched(agent: Any, watch: Watch, *, enforce: bool = True) -> Any:
    """Give a copy of an agent whose function tools are watched, those of its MCP servers included.

    Agents that it hands over to are watched when they are given here too, with the same watch for the same session.

    Args:
        agent: an `agents.Agent`.
        watch: a `Guard`, or an `EmitterWatch`.
        enforce: False observes only.

    Returns:
        The copy. When the session is to be stopped, running it raises `ToolInputGuardrailTripwireTriggered` or
        `ToolOutputGuardrailTripwireTriggered`, whose `output.output_info` is the verdict.
    """
    guardrails = _Guardrails(Enforcer(watch, enforce=enforce))
    made = agent.clone()
    given = made.get_all_tools

    async def get_all_tools(context: Any) -> list[Any]:
        return [guardrails.on(tool) for tool in await given(context)]

    made.get_all_tools = get_all_tools
    return made


class _Guardrails:
    """Two guardrails that share an enforcer."""

    def __init__(self, enforcer: Enforcer) -> None:
        self._enforcer = enforcer
        self._before = ToolInputGuardrail(guardrail_function=self.before, name="traction_before")
        self._after = ToolOutputGuardrail(guardrail_function=self.after, name="traction_after")

    def on(self, tool: Any) -> Any:
        """Give a copy of a tool with the guardrails: asked first, told last."""
        if not isinstance(tool, FunctionTool):
            return tool
        made = copy.copy(tool)
        made.tool_input_guardrails = [self._before, *(tool.tool_input_guardrails or [])]
        made.tool_output_guardrails = [*(tool.tool_output_guardrails or []), self._after]
        return made

    async def before(self, data: Any) -> Any:
        """Ask about a call."""
        call = data.context
        verdict = self._enforcer.before(call.tool_name, _arguments(data), call_id=call.tool_call_id)
        if ends(verdict):
            return ToolGuardrailFunctionOutput.raise_exception(verdict)
        if verdict.action == "deny":
            return ToolGuardrailFunctionOutput.reject_content(refusal(verdict), verdict)
        return ToolGuardrailFunctionOutput.allow()

    async def after(self, data: Any) -> Any:
        """Tell of a call."""
        call = data.context
        verdict = self._enforcer.after(call.tool_name, _arguments(data), data.output, call_id=call.tool_call_id)
        if ends(verdict):
            return ToolGuardrailFunctionOutput.raise_exception(verdict)
        if verdict.action == "guide":
            return ToolGuardrailFunctionOutput.reject_content(beside(str(data.output), verdict), verdict)
        return ToolGuardrailFunctionOutput.allow()


def _arguments(data: Any) -> Any:
    """Read a call's arguments; what is no JSON is a text."""
    text = data.context.tool_arguments
    try:
        return json.loads(text)
    except ValueError:
        return text
