"""Runs agents of smolagents with a scripted model, tools and code in turn, and prints what came of them."""

from __future__ import annotations

from typing import ClassVar

from smolagents import CodeAgent, Tool, ToolCallingAgent
from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole, Model
from smolagents.utils import AgentError

from streams.adapters.smolagents import watch_agent
from tests.adapters.cases import Heard, Shell, outcome, tell


class Scripted(Model):
    """Asks for commands, by calls of a tool or in code."""

    def __init__(self, commands, *, code):
        super().__init__(model_id="scripted")
        self.left = iter(enumerate(commands))
        self.code = code

    def generate(self, *_, **__):
        """Ask for the next command."""
        n, command = next(self.left, (-1, ""))
        done = n < 0
        if self.code:
            text = 'final_answer("finished")' if done else f"print(shell({command!r}))"
            return ChatMessage(role=MessageRole.ASSISTANT, content=f"Thought: go\n<code>\n{text}\n</code>")
        function = ChatMessageToolCallFunction(
            name="final_answer" if done else "shell", arguments={"answer": "finished"} if done else {"command": command}
        )
        call = ChatMessageToolCall(id=f"call-{n}", type="function", function=function)
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[call])


def runner(*, code):
    """Give what runs agents of one of the two kinds."""

    def run(commands, *, enforce=True):
        used = Shell()

        class ShellTool(Tool):
            name = "shell"
            description = "Runs a command."
            inputs: ClassVar = {"command": {"type": "string", "description": "what to run"}}
            output_type = "string"

            def forward(self, command: str) -> str:
                return used.run(command)

        guard = Heard()
        kind = CodeAgent if code else ToolCallingAgent
        agent = kind(tools=[ShellTool()], model=Scripted(commands, code=code), verbosity_level=0)
        watch_agent(agent, guard, enforce=enforce)
        last, error = "", None
        try:
            last = agent.run("go", max_steps=60)
        except AgentError as problem:
            last, error = str(problem), type(problem).__name__
        steps = [step.observations or "" for step in agent.memory.steps if hasattr(step, "observations")]
        return outcome(guard, used, steps, str(last), error)

    return run


def both(commands, **options):
    """Run both kinds."""
    return {"tools": runner(code=False)(commands, **options), "code": runner(code=True)(commands, **options)}


tell(both)
