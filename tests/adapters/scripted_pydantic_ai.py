"""Runs agents of Pydantic AI with its own function model, and prints what came of them."""

from __future__ import annotations

from pydantic_ai import Agent, UsageLimits
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

from streams.adapters.pydantic_ai import TractionCapability
from streams.adapters.watch import SessionStopped
from tests.adapters.cases import Heard, Shell, outcome, tell


def run(commands, *, enforce=True):
    """Run an agent that asks for these commands."""
    used, left = Shell(), iter(enumerate(commands))
    shown: list[str] = []

    def model(messages, _):
        shown[:] = [part.content for each in messages for part in each.parts if isinstance(part, ToolReturnPart)]
        found = next(left, None)
        if found is None:
            return ModelResponse(parts=[TextPart("finished")])
        return ModelResponse(parts=[ToolCallPart("shell", {"command": found[1]}, tool_call_id=f"call-{found[0]}")])

    guard = Heard()
    agent = Agent(FunctionModel(model), capabilities=[TractionCapability(guard, enforce=enforce)])

    @agent.tool_plain
    def shell(command: str) -> str:
        """Run a command."""
        return used.run(command)

    last, error = "", ""
    try:
        last = agent.run_sync("go", usage_limits=UsageLimits(request_limit=None)).output
    except SessionStopped as problem:
        last, error = str(problem), problem.verdict.action
    except RuntimeError as problem:
        error = type(problem).__name__
    return outcome(guard, used, shown, last, error or None)


tell(run)
