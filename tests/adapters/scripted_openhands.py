"""Runs agents of the OpenHands SDK with its own test model, and prints what came of them."""

from __future__ import annotations

import asyncio
import json
import tempfile

from openhands.sdk import (
    Action,
    Agent,
    LLMConvertibleEvent,
    Message,
    Observation,
    TextContent,
    Tool,
    ToolDefinition,
    register_tool,
)
from openhands.sdk.llm import MessageToolCall, content_to_str
from openhands.sdk.testing import TestLLM
from openhands.sdk.tool import ToolExecutor

from streams.adapters.openhands import watched_conversation
from tests.adapters.cases import Heard, Shell, outcome, tell

SHELLS: list[Shell] = []
"""The tool that the agents have, the latest last: the SDK makes tools by their registered names."""


class ShellAction(Action):
    """A call of the tool."""

    command: str


class ShellObservation(Observation):
    """What it brought."""


class Run(ToolExecutor):
    """Makes the calls."""

    def __call__(self, action, conversation=None):  # noqa: ARG002 - the SDK's signature
        """Make one."""
        return ShellObservation.from_text(SHELLS[-1].run(action.command))


class ShellTool(ToolDefinition[ShellAction, ShellObservation]):
    """The tool."""

    name = "shell"

    @classmethod
    def create(cls, *_, **__):
        """Make it."""
        types = {"action_type": ShellAction, "observation_type": ShellObservation}
        return [cls(description="Run a command.", executor=Run(), **types)]


def reply(n, commands):
    """Give the model's response that asks for commands, several at once."""
    calls = [
        MessageToolCall(
            id=f"call-{n}-{k}", name="shell", arguments=json.dumps({"command": command}), origin="completion"
        )
        for k, command in enumerate(commands)
    ]
    return Message(role="assistant", content=[TextContent(text="")], tool_calls=calls)


def run(commands, *, loop, enforce=True):
    """Run an agent that asks for these commands, in an event loop or not; one that was stopped is started once more."""
    used, guard = Shell(), Heard()
    SHELLS.append(used)
    replies = [reply(n, [each] if isinstance(each, str) else each) for n, each in enumerate(commands)]
    model = TestLLM.from_messages([*replies, Message(role="assistant", content=[TextContent(text="finished")])])
    agent = Agent(llm=model, tools=[Tool(name="shell")], include_default_tools=[])

    def go():
        if loop:
            asyncio.run(conversation.arun())
        else:
            conversation.run()
        return conversation.state.execution_status.value

    with tempfile.TemporaryDirectory() as workspace:
        conversation = watched_conversation(
            agent, guard, enforce=enforce, workspace=workspace, visualizer=None, stuck_detection=False
        )
        conversation.send_message("go")
        status = go()
        events = [each for each in conversation.state.events if isinstance(each, LLMConvertibleEvent)]
        if status == "paused":
            go()
        conversation.close()
    messages = [each.to_llm_message() for each in events]
    texts = [("".join(content_to_str(each.content)), each.role) for each in messages]
    results = [text for text, role in texts if role in {"tool", "user"}][1:]
    return outcome(guard, used, results, texts[-1][0] if status == "finished" else status)


def both(commands, **options):
    """Run it in both ways."""
    return {"run": run(commands, loop=False, **options), "arun": run(commands, loop=True, **options)}


register_tool("shell", ShellTool)
tell(both, together=["pytest", "pytest", ["pytest", "step 1"], "step 2"])
