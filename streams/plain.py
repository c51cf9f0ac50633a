"""Makes what an agent has in its hands fit for an event: any value as JSON, any error as an `ErrorInfo`; never raises.

What cannot be JSON becomes text, since a call that is sent inexactly is worth more than none. Sends nothing, and keeps
no reference to what it was given.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, Literal

import msgspec
import orjson

from detectors.denial import CLASSES
from schemas.common import MAX_ID_CHARS, ErrorInfo
from schemas.content import read_content
from schemas.encode import encode
from schemas.events import SessionInput, ToolCall
from schemas.values import settle
from streams.privacy import Level, reduce

MAX_EVENT_BYTES: Final = 900_000
"""Longest event sent as it is: what is read is at most 1 MiB (`schemas.decode`), and CloudEvents wrap it."""

MAX_MESSAGE_CHARS: Final = 10_000
"""Of an error's message: a long traceback."""

_MAX_REPR_CHARS: Final = 100_000
_OPTIONS: Final = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY


def plain(value: Any) -> Any:
    """Give a value as JSON has it: a copy, with objects that are no JSON as their fields or their text.

    Args:
        value: anything.
    """
    if value is None or value is msgspec.UNSET:
        return msgspec.UNSET
    try:
        return settle(orjson.loads(orjson.dumps(value, default=_object, option=_OPTIONS)), "value")
    except Exception:  # noqa: BLE001 - whatever an agent's objects raise when they are looked at
        return _text(value)


def error_of(error: ErrorInfo | BaseException | str | None) -> ErrorInfo | None:
    """Give an error as events have it.

    Args:
        error: what was raised, or said.
    """
    if error is None or isinstance(error, ErrorInfo):
        return error
    if isinstance(error, BaseException):
        return ErrorInfo(type=type(error).__name__[:MAX_ID_CHARS], message=_text(error, str)[:MAX_MESSAGE_CHARS])
    return ErrorInfo(message=_text(error, str)[:MAX_MESSAGE_CHARS])


def status_of(error: ErrorInfo | BaseException | str | None) -> Literal["error", "timeout", "denied"] | None:
    """Tell how a call ended, where nothing but its error is known: a tool may tell of a failure in its result."""
    if error is None:
        return None
    if isinstance(error, ErrorInfo) and error.type in CLASSES.values():
        return "denied"
    return "timeout" if isinstance(error, TimeoutError | asyncio.TimeoutError) else "error"


def encoded(event: SessionInput, privacy: Level, key: bytes = b"") -> tuple[SessionInput, bytes]:
    """Give an event as it may be sent, and its JSON; a call that is too long is cut as with a stricter level.

    A result that is blocks of content is sent as the text that the model is shown.

    Args:
        event: the event.
        privacy: what may be sent of a call's content.
        key: secret mixed into digests; see `streams.privacy.reduce`.

    Raises:
        ValueError: it is too long at any level.
    """
    if not isinstance(event, ToolCall):
        return event, _short(encode(event))
    value, failed = read_content(event.result)
    status = event.status or ("error" if failed else None)
    event = msgspec.structs.replace(event, result=value, status=status)
    levels: tuple[Level, ...] = (privacy, "excerpts")
    for level in levels:
        sent = reduce(event, level, key)
        data = encode(sent)
        if len(data) <= MAX_EVENT_BYTES:
            return sent, data
    sent = reduce(event, "digests", key)
    return sent, _short(encode(sent))


def _short(data: bytes) -> bytes:
    if len(data) > MAX_EVENT_BYTES:
        raise ValueError(f"an event has at most {MAX_EVENT_BYTES} bytes: shorten its texts")
    return data


def _object(value: Any) -> Any:
    fields = getattr(value, "model_dump", None)  # Pydantic
    if callable(fields):
        return fields()
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value, enc_hook=str)
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    if isinstance(value, bytes | bytearray):
        return value.decode("utf-8", "replace")
    return str(value)


def _text(value: Any, form: Any = repr) -> str:
    try:
        return str(form(value))[:_MAX_REPR_CHARS].encode("utf-8", "replace").decode()
    except Exception:  # noqa: BLE001 - as above
        return f"<{type(value).__name__}>"
