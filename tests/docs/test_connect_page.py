"""The page on connecting agents: what it says is kept, sent, written and taken is what the code does."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from schemas.decode import decode
from schemas.topics import TOOL_CALLS
from streams import spool
from streams.cli.inforce import OF_AGENTS
from streams.cli.ingest import DEFAULT_PORT
from streams.connect import AGENTS
from streams.connect.agents import is_ours
from streams.hook_command import DEFAULT_GATEWAY, DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS, Options
from streams.importers.build import MAX_RESULT_CHARS
from streams.privacy import EXCERPT_CHARS

if TYPE_CHECKING:
    from tests.docs.conftest import Block, Find

PAGE = "docs/connect.md"


def test_the_event_shown_is_taken(block: Find) -> None:
    """The body of the request is a tool call, and its address the gateway's."""
    text = block("connect-http").text
    found = re.search(r"-d '(\{.*\})'", text, re.DOTALL)
    assert found is not None
    decode(TOOL_CALLS, found[1].encode())
    assert f"{DEFAULT_GATEWAY}/v1/events/{TOOL_CALLS.name} " in text


def test_numbers_are_those_of_the_code(pages: dict[str, str]) -> None:
    """Addresses, bounds and times that sentences name."""
    page = pages[PAGE]
    assert f"http://127.0.0.1:{DEFAULT_PORT}" == DEFAULT_GATEWAY
    assert f"first {EXCERPT_CHARS} characters" in page
    assert f"up to {MAX_RESULT_CHARS:,} characters" in page
    assert f"more than {DEFAULT_TIMEOUT_MS} milliseconds" in page
    assert f"at most {MAX_TIMEOUT_MS:,}" in page
    assert f"{spool.MAX_BYTES // 2**20} MiB at most" in page
    assert f"| `{Options([]).privacy}` (the default) |" in page


def test_every_variable_of_agents_is_told(pages: dict[str, str]) -> None:
    """Each that the hook command reads is in the table, and no other."""
    told = set(re.findall(r"^\| `(TRACTION_\w+)` \|", pages[PAGE], re.MULTILINE))
    assert told == {*OF_AGENTS, "TRACTION_GATEWAY_TOKEN"}


def test_settings_files_are_where_the_page_says(pages: dict[str, str]) -> None:
    """Each agent's, of the user and of a project."""
    for agent in AGENTS.values():
        assert f"`~/{agent.folder}/{agent.file}`" in pages[PAGE]
        assert f"`{agent.folder}/{agent.file}` of a project" in pages[PAGE]


def test_the_settings_for_openhands_start_the_command(blocks: list[Block]) -> None:
    """What is to be written by hand is JSON, and each hook in it starts our command for that agent."""
    (text,) = (block.text for block in blocks if block.page == PAGE and block.language == "text")
    hooks = json.loads(text)
    assert set(hooks) == {"pre_tool_use", "post_tool_use", "user_prompt_submit", "session_start", "session_end"}
    for groups in hooks.values():
        for handler in groups[0]["hooks"]:
            assert is_ours(handler)
            options = Options(handler["command"].split()[1:])
            assert options.agent == "openhands"
