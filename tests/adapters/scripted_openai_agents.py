"""Runs agents of the OpenAI Agents SDK with a scripted model, and prints what came of them."""

from __future__ import annotations

import asyncio
import json

from agents import (
    Agent,
    RunConfig,
    Runner,
    ToolInputGuardrailTripwireTriggered,
    ToolOutputGuardrailTripwireTriggered,
    function_tool,
)
from agents.items import ModelResponse
from agents.models.interface import Model
from agents.usage import Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from streams.adapters.openai_agents import watched
from tests.adapters.cases import Heard, Shell, outcome, tell


class Scripted(Model):
    """Asks for commands, and remembers what it is shown."""

    def __init__(self, commands):
        self.commands = iter(enumerate(commands))
        self.shown = []

    async def get_response(self, *_, input, **__):  # noqa: A002 - the name that the SDK calls it by
        """Ask for the next command."""
        self.shown = [item["output"] for item in input if isinstance(item, dict) and "output" in item]
        found = next(self.commands, None)
        if found is None:
            text = ResponseOutputText(text="finished", type="output_text", annotations=[])
            output = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
        else:
            n, command = found
            output = ResponseFunctionToolCall(
                call_id=f"call-{n}", name="shell", arguments=json.dumps({"command": command}), type="function_call"
            )
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *_, **__):
        """Stream nothing."""
        raise NotImplementedError


def run(commands, *, enforce=True):
    """Run an agent that asks for these commands."""
    used = Shell()

    @function_tool
    def shell(command: str) -> str:
        """Run a command."""
        return used.run(command)

    guard, model = Heard(), Scripted(commands)
    agent = watched(Agent(name="a", model=model, tools=[shell]), guard, enforce=enforce)
    last, error = "", None
    try:
        told = asyncio.run(Runner.run(agent, "go", max_turns=60, run_config=RunConfig(tracing_disabled=True)))
        last = told.final_output
    except (ToolInputGuardrailTripwireTriggered, ToolOutputGuardrailTripwireTriggered) as problem:
        last, error = problem.output.output_info.text, problem.output.output_info.action
    return outcome(guard, used, model.shown, last, error)


tell(run)
