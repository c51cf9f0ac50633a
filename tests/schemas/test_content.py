"""A result is the same text whichever way it comes: as it is, as blocks of content, or as MCP answers a call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from schemas.content import read_content
from schemas.decode import decode
from schemas.encode import encode
from schemas.events import ToolCall
from schemas.testing import tool_call
from schemas.topics import TOOL_CALLS
from streams.hooks import Observed, read
from streams.importers.shape import result_of
from streams.plain import encoded
from streams.privacy import reduce
from tests.streams.hooks.work import BEGIN

TEXT = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'yaml'"
BLOCKS = [{"type": "text", "text": line} for line in TEXT.split("\n")]
ANSWER = {"content": BLOCKS, "isError": True, "structuredContent": {"ok": False}, "_meta": {"progress": 1}}


def posted(result: Any, **fields: Any) -> ToolCall:
    """What the worker, the gateway and a replay read of a record."""
    event = decode(TOOL_CALLS, encode(tool_call(0, "mcp__db__query", {"q": 1}, result, **{"status": None, **fields})))
    assert isinstance(event, ToolCall)
    return event


@pytest.mark.parametrize(
    ("result", "text", "failed"),
    [
        (BLOCKS, TEXT, False),
        (ANSWER, TEXT, True),
        ({"content": BLOCKS}, TEXT, False),
        ({"content": BLOCKS, "isError": False}, TEXT, False),
        ({"content": [], "isError": False, "structuredContent": {"rows": 3}}, {"rows": 3}, False),
        ({"content": [], "isError": True}, "", True),
        ([{"type": "image", "data": "aGk=", "mimeType": "image/png"}, *BLOCKS], f"[image]\n{TEXT}", False),
        ([{"type": "resource_link", "uri": "file:///a"}], '{"type":"resource_link","uri":"file:///a"}', False),
    ],
)
def test_blocks_are_read_as_their_text(result: Any, text: Any, failed: bool) -> None:  # noqa: FBT001 - a case
    """Text by text, pictures by their kind, and that the call failed where the answer says so."""
    assert read_content(result) == (text, failed)
    event = posted(result)
    assert (event.result, event.status) == (text, "error" if failed else None)
    assert posted(result, status="timeout").status == "timeout"


@pytest.mark.parametrize(
    "result",
    [
        [],
        {},
        None,
        TEXT,
        7,
        [{"type": "file", "text": "a"}],
        [{"type": "text", "text": 1}],
        [*BLOCKS, "a"],
        {"content": TEXT, "isError": True},
        {"content": []},
        {"content": BLOCKS, "rows": 3},
    ],
)
def test_what_is_no_content_is_left_as_it_is(result: Any) -> None:
    """One's own objects may have a type, a text or a content, too."""
    assert read_content(result) == (result, False)


@pytest.mark.parametrize("level", ["digests", "full"])
def test_the_same_result_is_the_same_whichever_way_it_came(level: Any) -> None:
    """Posted raw, sent by the emitter or guard, handed over by a hook, read from a transcript."""
    given = [posted(each) for each in (TEXT, BLOCKS, ANSWER)]
    for each in (TEXT, BLOCKS, ANSWER):
        sent, _ = encoded(tool_call(0, "mcp__db__query", {"q": 1}, each, status=None), "full")
        assert isinstance(sent, ToolCall)
        given.append(sent)
        payload = {
            "hook_event_name": "PostToolUse",
            "session_id": "s1",
            "tool_name": "mcp__db__query",
            "tool_input": {"q": 1},
            "tool_response": each,
        }
        seen = read("codex", json.dumps(payload).encode(), at=BEGIN, privacy="full")
        assert isinstance(seen, Observed)
        (event,) = seen.events
        assert isinstance(event, ToolCall)
        given.append(event)
    assert result_of(BLOCKS) == TEXT
    reduced = [reduce(each, level) for each in given]
    assert len({(str(each.result), each.result_digest) for each in reduced if each.status is None}) == 1
    assert len({(str(each.result), each.result_digest) for each in reduced if each.status == "error"}) == 1
    assert {each.status for each in given} == {None, "error"}
