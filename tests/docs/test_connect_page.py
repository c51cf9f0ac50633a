"""The page on connecting agents: what it says is kept, sent, written and taken is what the code does."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import TYPE_CHECKING

from click.testing import CliRunner

from detectors import Limits
from schemas.common import OBSERVED, Agent
from schemas.decode import decode
from schemas.topics import TOOL_CALLS
from streams import cli, spool
from streams.cli.inforce import OF_AGENTS
from streams.cli.ingest import DEFAULT_PORT
from streams.connect import AGENTS
from streams.connect.agents import is_ours
from streams.hook_command import DEFAULT_GATEWAY, DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS, Options
from streams.importers.build import MAX_RESULT_CHARS
from streams.policy.load import read_policy
from streams.privacy import EXCERPT_CHARS
from streams.verdicts.asked import HOLDS

if TYPE_CHECKING:
    from pathlib import Path

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


def test_policies_that_observe_are_as_the_page_says(block: Find, pages: dict[str, str], tmp_path: Path) -> None:
    """Check takes both; one asks nothing of anyone, the other calls people about agents that are only watched."""
    for name in ("connect-observe-all", "connect-observed"):
        file = tmp_path / f"{name}.toml"
        file.write_text(block(name).text, "utf-8")
        assert CliRunner().invoke(cli.traction, ["policy", "check", str(file)]).exit_code == 0
        policy, watched = read_policy(file, Limits()), Agent(role=OBSERVED)
        everyone = name == "connect-observe-all"
        assert policy.limits(Agent(role="code"), None).mode == ("observe" if everyone else "enforce")
        assert policy.limits(watched, None).mode == ("observe" if everyone else "warn")
        assert (policy.ladder(watched, None).order == ("escalate_human",)) is not everyone
    assert f"its role, `{OBSERVED}`" in pages[PAGE]
    assert timedelta(weeks=1) == HOLDS  # a stopped session stays stopped that long, as the page says


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
