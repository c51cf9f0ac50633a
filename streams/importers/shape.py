"""Small readers of values whose shape nobody guarantees: each gives the wanted type or an empty one, and never fails.

Transcripts are internal formats that change without notice, so importers take what they know and pass by the rest.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from schemas.content import text_of
from streams.importers.mend import CUT, NotJson, parse

MAX_EPOCH_S = 253_402_300_799.0
"""Last second of the year 9999, the latest time that a datetime can hold."""

MILLISECONDS_FROM = 1e11
"""A number of seconds from here on would be in the year 5138 or later: it is milliseconds."""


def as_dict(value: object) -> dict[str, Any]:
    """Give an object as it is, anything else as an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """Give an array as it is, anything else as an empty one."""
    return value if isinstance(value, list) else []


def as_text(value: object) -> str | None:
    """Give a text that is not empty; None for anything else."""
    return value if isinstance(value, str) and value else None


def as_count(value: object) -> int:
    """Give a whole number from 0; 0 for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def as_amount(value: object) -> float | None:
    """Give a number from 0; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None


def as_time(value: object) -> datetime | None:
    """Read a time: ISO 8601 (without an offset it is taken for UTC) or seconds or milliseconds since 1970."""
    if isinstance(value, str):
        try:
            time = datetime.fromisoformat(value.strip())
            return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
        except (ValueError, OverflowError):  # what its offset puts before the year 1 or after 9999 is none either
            return None
    seconds = as_amount(value)
    if not seconds:
        return None
    seconds = seconds / 1000 if seconds >= MILLISECONDS_FROM else seconds
    return datetime.fromtimestamp(seconds, UTC) if seconds < MAX_EPOCH_S else None


def arguments_of(value: object) -> Any:
    """Give a call's arguments: read where they came as a JSON text, a text where it is no JSON, UNSET where lost.

    An empty text means that the tool was called without arguments.
    """
    if isinstance(value, str):
        if not value.strip():
            return {}
        try:
            value = parse(value.encode("utf-8", "replace")).value
        except NotJson:
            return value
    return UNSET if value is None or (isinstance(value, dict) and CUT in value) else value


def result_of(content: object) -> str | UnsetType:
    """Give a result as the agent's model saw it: text parts joined by line ends, UNSET where it was not recorded."""
    if content is None:
        return UNSET
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return msgspec.json.encode(content).decode()
    return "\n".join(map(text_of, content))


def typed_text(content: object) -> str:
    """Give the first text of a message that is not blank; empty where there is none, also for what is no content."""
    texts = [content] if isinstance(content, str) else [as_dict(part).get("text") for part in as_list(content)]
    return next((text for text in texts if isinstance(text, str) and text.strip()), "")
