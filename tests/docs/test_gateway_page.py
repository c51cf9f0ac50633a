"""The page on the gateway: its requests are answered as it says, and it names every address and option."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any, get_args

import msgspec

from schemas.decode import decode
from schemas.topics import TOOL_CALLS
from streams.gateway.gateway import _SAID
from streams.gateway.items import TAKEN
from streams.gateway.settings import MAX_ITEMS
from streams.hooks import AGENTS
from streams.verdicts.model import Step
from tests.docs.conftest import Find

PAGE = "docs/gateway.md"


def posted(text: str) -> tuple[str, bytes]:
    """Give the address and the body of a curl command."""
    words = shlex.split(text)
    assert words[:3] == ["curl", "-H", "Content-Type: application/json"]
    return words[3], words[words.index("--data") + 1].encode()


def test_the_requests_shown_are_taken(block: Find) -> None:
    """The event and the answer that are posted can be read, at addresses that the table has."""
    address, body = posted(block("gateway-events").text)
    assert address.endswith(f"/v1/events/{TOOL_CALLS.name}")
    event: Any = decode(TOOL_CALLS, body)
    assert event.session_id == "fix-login"
    address, body = posted(block("gateway-answer").text)
    assert address.endswith("/v1/answers")
    said = _SAID.decode(body)
    assert msgspec.to_builtins(said)["session_id"] == json.loads(body)["session_id"]


def test_what_is_told_is_all_there(pages: dict[str, str]) -> None:
    """Every topic that is taken, every agent and every verdict is named, and how many events a request may have."""
    page = pages[PAGE]
    assert {topic.name for topic in TAKEN} == set(re.findall(r"/v1/events/([a-z-]+)`", page))
    assert all(f"`{agent}`" in page for agent in AGENTS)
    _, _, verdicts = page.partition("\n## Verdicts\n")
    assert {"action", *get_args(Step)} == set(re.findall(r"^\| `([a-z_]+)` \|", verdicts, re.MULTILINE))
    assert f"{MAX_ITEMS:,}" in page


def test_exporters_are_told_where_to_send(block: Find) -> None:
    """The variables are OpenTelemetry's own, and the address the gateway's by default."""
    from streams.cli.ingest import DEFAULT_PORT  # noqa: PLC0415 - of this alone

    text = block("gateway-otel").text
    assert f"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:{DEFAULT_PORT}\n" in text
    assert "OTEL_EXPORTER_OTLP_HEADERS=" in text
