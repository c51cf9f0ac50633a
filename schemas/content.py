"""Results as blocks of content, as the Model Context Protocol and models' APIs have them, read as the text they hold.

One place for everybody who makes a `ToolCall` of foreign JSON, so that the same result is the same whichever way it
came. What is no content is left as it is.
"""

from typing import Any, Final, NamedTuple

import msgspec

PICTURES: Final = ("image", "input_image", "image_url", "document")
"""Kinds of blocks of which the text gives the kind only."""

_TEXTS: Final = ("text", "input_text", "output_text")
_OTHERS: Final = (*PICTURES, "audio", "input_audio", "resource", "resource_link")
_WRAPPER: Final = frozenset({"content", "isError", "structuredContent", "_meta"})
"""Fields of the result of a tool call in the Model Context Protocol (schema 2025-06-18, `CallToolResult`)."""


class Content(NamedTuple):
    """A result, as text where it was blocks of content, and whether it says itself that the call failed."""

    value: Any
    failed: bool = False


def read_content(result: Any) -> Content:
    """Read a result: a list of blocks, or what MCP answers to a call of a tool; anything else is given as it is.

    Of what MCP answers the structured form is left out, which says the same again, unless there is no other.
    """
    if isinstance(result, list):
        return Content("\n".join(map(text_of, result)) if _is_content(result) else result)
    if not isinstance(result, dict) or not result.keys() <= _WRAPPER:
        return Content(result)
    blocks, failed = result.get("content"), result.get("isError") is True
    if isinstance(blocks, list) and _is_content(blocks):
        return Content("\n".join(map(text_of, blocks)), failed)
    if blocks == [] and "isError" in result:
        return Content(result.get("structuredContent") or "", failed)
    return Content(result)


def text_of(part: Any) -> str:
    """Give the text of one block: what it says, the kind of a picture in brackets, the JSON of anything else."""
    if isinstance(part, str):
        return part
    block = part if isinstance(part, dict) else {}
    text, kind = block.get("text"), block.get("type")
    if isinstance(text, str):
        return text
    return f"[{kind}]" if kind in PICTURES else msgspec.json.encode(part).decode()


def _is_content(blocks: list[Any]) -> bool:
    """Tell whether each item is a block of a known kind: lists of one's own objects may have a type, too."""
    return bool(blocks) and all(isinstance(each, dict) and _is_block(each) for each in blocks)


def _is_block(block: dict[str, Any]) -> bool:
    kind = block.get("type")
    return isinstance(block.get("text"), str) if kind in _TEXTS else kind in _OTHERS
