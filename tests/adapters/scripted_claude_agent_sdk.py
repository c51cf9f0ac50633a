"""Runs agents of the Claude Agent SDK, its own Claude Code beneath, against a stand-in of the API."""

from __future__ import annotations

import asyncio
import os
import tempfile

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, create_sdk_mcp_server, query, tool

from streams.adapters.claude_agent_sdk import hooks
from tests.adapters.cases import Heard, Shell, outcome, tell
from tests.adapters.messages_api import MessagesApi

NAME = "mcp__t__shell"


def run(commands, *, enforce=True):
    """Run an agent that asks for these commands."""
    used, guard = Shell(), Heard()

    @tool("shell", "Run a command.", {"command": str})
    async def shell(given):
        return {"content": [{"type": "text", "text": used.run(given["command"])}]}

    async def go(url, home):
        options = ClaudeAgentOptions(
            hooks=hooks(guard, enforce=enforce),
            mcp_servers={"t": create_sdk_mcp_server("t", tools=[shell])},
            allowed_tools=[NAME],
            tools=[],
            setting_sources=[],
            cwd=home,
            env={
                "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "CLAUDE_CONFIG_DIR": home, "HOME": home,
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
                "ENABLE_TOOL_SEARCH": "false",
            },
        )  # fmt: skip
        last = ""
        async for message in query(prompt="go", options=options):
            if isinstance(message, ResultMessage):
                last = message.result or message.subtype
        return last

    with MessagesApi(NAME, commands) as api, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        last = asyncio.run(go(api.url, home))
    return outcome(guard, used, api.shown, last)


if __name__ == "__main__":
    os.environ.pop("CLAUDECODE", None)
    tell(run)
