"""What both encodings of OTLP have in common: item by item, and what is checked of a field.

Each check gives the value as it is kept, or refuses the item with the name of the field. Knows neither encoding.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final, TypeVar

from streams.otlp.items import MAX_ITEMS, MAX_TEXT_CHARS, Refusal, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TRACE_CHARS: Final = 32
SPAN_CHARS: Final = 16

_HEX: Final = re.compile(r"[0-9a-f]*")

_Item = TypeVar("_Item")
_Resource = TypeVar("_Resource")
_Taken = TypeVar("_Taken")


def each(
    items: Iterator[tuple[_Item, _Resource, str]],
    read_resource: Callable[[_Resource], dict[str, Any]],
    read: Callable[[_Item, dict[str, Any], str], _Taken],
) -> tuple[list[_Taken], list[Refusal]]:
    """Read item by item: a bad one takes no other along, a bad resource all of its own.

    Args:
        items: each with its resource, one object for all that share it, and the name of its scope.
        read_resource: gives a resource's attributes, or raises `Refused`.
        read: gives what is kept of an item, or raises `Refused`.

    Returns:
        What was taken, and what was refused.
    """
    taken: list[_Taken] = []
    refused: list[Refusal] = []
    last: _Resource | None = None
    resource: dict[str, Any] | Refused = {}
    for position, (item, block, scope) in enumerate(items):
        if position == MAX_ITEMS:
            rest = 1 + sum(1 for _ in items)
            text = f"more than {MAX_ITEMS} in one request; send smaller batches"
            refused.append(Refusal(position, "too_many_items", text, rest))
            break
        if block is not last:
            last = block
            try:
                resource = read_resource(block)
            except Refused as problem:
                resource = problem
        try:
            if isinstance(resource, Refused):
                raise resource
            taken.append(read(item, resource, scope))
        except Refused as problem:
            refused.append(Refusal(position, problem.reason, str(problem)))
    return taken, refused


def hex_id(text: str | None, field: str, chars: int, *, optional: bool = True) -> str:
    """Check an id in hexadecimal, and give it in small letters; zeros only are none, as W3C Trace Context says.

    Raises:
        Refused: it is no such id, or missing where it must not be.
    """
    text = (text or "").lower()
    if text.strip("0") == "" and optional and len(text) in {0, chars}:
        return ""
    if len(text) != chars or not _HEX.fullmatch(text) or not text.strip("0"):
        raise Refused("bad_id", field, f"not {chars} hexadecimal digits other than zeros")
    return text


def checked_text(text: str | None, field: str) -> str:
    """Give a text that is not too long, an empty one for none.

    Raises:
        Refused: it is too long.
    """
    if text is None:
        return ""
    if len(text) > MAX_TEXT_CHARS:
        raise Refused("too_long", field, f"more than {MAX_TEXT_CHARS} characters; have the exporter cut it")
    return text


def finite(value: float | str, field: str) -> float | None:
    """Give a number, None for infinities and for what is none, which JSON has as texts."""
    try:
        number = float(value)
    except ValueError:
        raise Refused("malformed", field, "not a number") from None
    return number if math.isfinite(number) else None
