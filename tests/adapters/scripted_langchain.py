"""Runs agents of LangChain with its own fake model, and prints what came of them."""

from __future__ import annotations

import asyncio

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool

from streams.adapters.langchain import TractionMiddleware
from tests.adapters.cases import Heard, Shell, outcome, tell


class Scripted(GenericFakeChatModel):
    """The fake model, which takes tools."""

    def bind_tools(self, *_, **__):
        """Take tools."""
        return self


def run(commands, *, enforce=True):
    """Run an agent that asks for these commands, one after the other; every other one in an event loop."""
    used = Shell()

    @tool
    def shell(command: str) -> str:
        """Run a command."""
        return used.run(command)

    def messages():
        for n, command in enumerate(commands):
            calls = [{"name": "shell", "args": {"command": command}, "id": f"call-{n}"}]
            yield AIMessage(content="", tool_calls=calls)
        yield AIMessage(content="finished")

    guard = Heard()
    middleware = TractionMiddleware(guard, enforce=enforce)
    agent = create_agent(Scripted(messages=messages()), [shell], middleware=[middleware])
    asked = {"messages": [{"role": "user", "content": "go"}]}
    config = {"recursion_limit": 200}
    shown, error = [], None
    try:
        told = agent.invoke(asked, config) if len(commands) % 2 else asyncio.run(agent.ainvoke(asked, config))
        shown = told["messages"]
    except RuntimeError as problem:
        error = type(problem).__name__
    results = [message.content for message in shown if isinstance(message, ToolMessage)]
    return outcome(guard, used, results, shown[-1].content if shown else "", error)


tell(run)
