"""Values of any JSON shape, as in a tool call's arguments and result, made safe for those who compare and store them.

Whoever builds a `ToolCall` from foreign JSON without `schemas.decode` passes its values through here too, so that the
same call is the same call however it came in.
"""

from typing import Any, Final

from schemas.invalid import InvalidEvent

MAX_DEPTH: Final = 64
"""Deepest nesting of arrays and objects in one value: real ones stay below 20, recursion over 64 is always safe."""

_MIN_INT: Final = -(2**63)
_MAX_INT: Final = 2**64 - 1


def settle(value: Any, field: str) -> Any:
    """Check the depth of a JSON value and turn integers beyond 64 bits into their decimal text, in place.

    Such integers cannot be written by fast JSON encoders, and as floating point different ones would become equal.

    Args:
        value: what a JSON decoder gave; its dicts and lists may be changed.
        field: name of the field, for the error.

    Returns:
        The value, or its text when it is such an integer itself.

    Raises:
        InvalidEvent: it is nested more than `MAX_DEPTH` deep (``too_deep``).
    """
    kind = type(value)
    if kind is dict or kind is list:
        _settle_items(value, field, 1)
    elif kind is int and not _MIN_INT <= value <= _MAX_INT:
        return str(value)
    return value


def _settle_items(container: Any, field: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise InvalidEvent(
            "too_deep", f"nested more than {MAX_DEPTH} deep", "send it as text, or send a digest", field=field
        )
    for key, item in container.items() if type(container) is dict else enumerate(container):
        kind = type(item)
        if kind is dict or kind is list:
            _settle_items(item, field, depth + 1)
        elif kind is int and not _MIN_INT <= item <= _MAX_INT:
            container[key] = str(item)
