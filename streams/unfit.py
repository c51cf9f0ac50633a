"""Says of what an agent hands over and is no event which field is wrong and what to do: for the emitter and the guard.

No word of a content is in it, whatever the error was, so that it may be logged. Sends and logs nothing.
"""

from __future__ import annotations

from threading import TIMEOUT_MAX
from typing import Any, Final

import msgspec

from schemas.invalid import InvalidEvent
from streams.identity import identifier

_FIELD_CHARS: Final = 64  # of a name that is no field's


class Unfit(ValueError):
    """A value of a type that its field does not take; the text is ``field: what is needed``."""

    def __init__(self, field: str, needed: str) -> None:
        super().__init__(f"{field}: {needed}")


def identified(field: str, value: object) -> str:
    """Give an identifier as events have it.

    Raises:
        Unfit: it is no text.
    """
    if not isinstance(value, str):
        raise Unfit(field, "give a text")
    return identifier(value)


def listed(field: str, value: Any) -> tuple[Any, ...]:
    """Give several values as events have them.

    Raises:
        Unfit: it is one text, or no list.
    """
    if isinstance(value, str | bytes):
        raise Unfit(field, "give a list, also of one text")
    try:
        return tuple(value)
    except TypeError:
        raise Unfit(field, "give a list") from None


def amount(field: str, value: object) -> float:
    """Give a time to wait, in seconds; one that is longer than threads can wait is cut.

    Raises:
        Unfit: it is no number from 0.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise Unfit(field, "give a number from 0")
    return float(min(value, TIMEOUT_MAX))


def check_names(record: type[msgspec.Struct], given: dict[str, Any]) -> None:
    """Check that fields are some of a record's.

    Raises:
        Unfit: one is not.
    """
    names = {field.name for field in msgspec.structs.fields(record)}
    for name in given:
        if name not in names:
            raise Unfit(ascii(name[:_FIELD_CHARS]), f"no field of {record.__name__}; leave it out")


def words(problem: Exception, event: object = None) -> str:
    """Say which field is wrong and what to do.

    Args:
        problem: what was raised.
        event: what it was raised for; where the problem does not say which field it is, the first that is no JSON.
    """
    if isinstance(problem, Unfit | InvalidEvent):
        return str(problem)
    if isinstance(event, msgspec.Struct):
        for field in msgspec.structs.fields(type(event)):
            value = getattr(event, field.name, None)
            try:
                msgspec.json.encode(None if value is msgspec.UNSET else value)
            except Exception:  # noqa: BLE001 - whatever an agent's objects raise when they are looked at
                return f"{field.name}: cannot be made JSON; give a value of the type that it is described with"
    return f"{type(problem).__name__} where it was read; give values of the types that are described"
