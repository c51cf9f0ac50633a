"""Reads arguments and results of tool calls out of attributes, where they are values, texts, or wrapped once more.

What was hidden or cut off by an exporter is not known: two calls must not seem equal because the same was left of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec import UNSET

from detectors.canonical import opened
from schemas.content import read_content
from streams.importers.shape import result_of
from streams.otlp.attributes import QUOTED, RESULT, holds_json

if TYPE_CHECKING:
    from collections.abc import Mapping

_HIDDEN: Final = re.compile(r"[\W_]*(?:redacted|masked|hidden|filtered|removed|omitted|scrubbed)[\W_]*", re.IGNORECASE)
"""What stands for a text that may not be told: ``__REDACTED__`` (OpenInference), ``[REDACTED]``, ``<redacted>``."""

_MAX_HIDDEN_CHARS: Final = 40
_PAIRS: Final = {"{": "}", "[": "]"}
_WRAPPED_RESULT: Final = ("tool_call_id", "isError", "structuredContent", "additional_kwargs")
"""Of which one is in a result that has its text in ``content``: a message of a model's tool, or MCP's answer."""


class Result(NamedTuple):
    """A result, UNSET where it is not known, and whether it says itself that the call failed."""

    value: Any
    failed: bool = False


def read_arguments(value: Any) -> Any:
    """Give a call's arguments; UNSET where they are missing, empty, hidden or cut off."""
    value = _open(value)
    if isinstance(value, dict):
        value = _of_framework(value)
    if value is None or value == "" or _is_hidden(value):
        return UNSET
    if isinstance(value, dict) and value and all(map(_is_hidden, value.values())):
        return UNSET
    return UNSET if isinstance(value, str) and _is_cut(value) else value


def result_in(attributes: Mapping[str, Any]) -> Result:
    """Give a call's result out of the attributes of its span or log record; see `read_result`."""
    name = next((each for each in RESULT if attributes.get(each) is not None), None)
    if name is None:
        return Result(UNSET)
    value = attributes[name]
    if name in QUOTED and isinstance(value, str):
        value = _unquoted(value)
    return read_result(value, serialised=holds_json(attributes, name))


def read_result(value: Any, *, serialised: bool = False) -> Result:
    """Give a call's result as the model saw it, without what it is wrapped in; an empty text is a result.

    Args:
        value: the attribute.
        serialised: whether it is known to hold a value's JSON: then blocks of content in it are read as their text, as
            if they had come as a value. Other JSON stays the text that it is, however it looks.
    """
    inner = _open(value)
    if isinstance(inner, dict) and "output" in inner and inner.keys() <= {"output", "kwargs"}:
        value, inner = inner["output"], _open(inner["output"])  # OpenLLMetry's, of LangChain
    if isinstance(inner, dict) and "content" in inner and any(name in inner for name in _WRAPPED_RESULT):
        failed = inner.get("isError") is True or inner.get("status") == "error"
        return Result(result_of(inner["content"]), failed)
    if serialised and isinstance(value, str):
        content = read_content(inner)
        if content.value is not inner:
            return Result(*content)
    return Result(UNSET if value is None or _is_hidden(value) else value)


def _unquoted(text: str) -> str:
    """Give the text that a JSON string stands for; any other text as it is."""
    if not (text.startswith('"') and text.endswith('"')):
        return text
    try:
        return msgspec.json.decode(text, type=str)
    except msgspec.DecodeError:
        return text


def _open(value: Any) -> Any:
    return opened(value.strip()) if isinstance(value, str) else value


def _of_framework(value: dict[str, Any]) -> Any:
    """Take the arguments out of what OpenLLMetry's instrumentations put around them."""
    if "input_str" in value:  # LangChain's, with tags and metadata that change at every call
        return value["inputs"] if value.get("inputs") else _open(value["input_str"])
    if value.keys() == {"args", "kwargs"}:  # a decorated function's
        return value if value["args"] else value["kwargs"]
    return value


def _is_hidden(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _MAX_HIDDEN_CHARS and _HIDDEN.fullmatch(value) is not None


def _is_cut(text: str) -> bool:
    """Tell whether a text begins as an object or array and does not end as one: a limit on attributes cut it."""
    return text[0] in _PAIRS and text[-1] != _PAIRS[text[0]]
