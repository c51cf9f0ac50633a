"""When two sets of arguments are the same: one canonical form, and digests of it.

Key order, ``1.0`` for ``1``, null for absent, a trailing slash and surrounding white space make no difference; label
arguments are left out. The form is for comparing only and is never shown.
"""

from collections.abc import Collection
from hashlib import blake2b
from struct import Struct
from typing import Any

import orjson

from schemas.invalid import InvalidEvent
from schemas.values import MAX_DEPTH, settle

_MAX_EXACT_FLOAT = 2**53
_MAX_INT = 2**63 - 1
_CONTAINERS = (dict, list, tuple)
_SORTED = orjson.OPT_SORT_KEYS
_LENGTH = Struct("<Q").pack
_NUMBER = Struct("<Q").unpack
_EMPTY = blake2b(digest_size=8)


def digest(*parts: bytes | str | int) -> int:
    """Return a 64-bit digest of the parts, kept apart from each other; stable across processes and versions."""
    hashed = _EMPTY.copy()  # a sixth of the cost of a new one
    for part in parts:
        data = part if type(part) is bytes else str(part).encode("utf-8", "surrogatepass")
        hashed.update(_LENGTH(len(data)) + data)
    number: int = _NUMBER(hashed.digest())[0]
    return number


def canonical_arguments(arguments: Any, labels: Collection[str] = ()) -> bytes:
    """Return the canonical form of a call's arguments (any JSON value) without the top-level ``labels``.

    Where the labels are all there is, they are the content: a tool to think with has nothing but its thought.
    """
    if isinstance(arguments, dict) and labels:
        arguments = {key: value for key, value in arguments.items() if key not in labels} or arguments
    return orjson.dumps(_canonical(arguments, nulls=False), option=_SORTED)


def plain_text(value: Any) -> str:
    """Return a result (any JSON value) as text: itself when it is one, else its canonical form with its nulls."""
    return value if isinstance(value, str) else orjson.dumps(_canonical(value, nulls=True), option=_SORTED).decode()


def opened(value: Any) -> Any:
    """Return the object that a text is the JSON of, as on OpenAI's wire; any other value, or deeper ones, as it is."""
    text = value.strip() if isinstance(value, str) else ""
    if text[:1] not in {"{", "["} or text[-1:] not in {"}", "]"}:
        return value
    try:
        return settle(orjson.loads(text), "arguments")
    except (orjson.JSONDecodeError, InvalidEvent):
        return value


def _canonical(value: Any, *, nulls: bool, depth: int = MAX_DEPTH) -> Any:
    """Return a JSON value with every spelling of one meaning folded into one; what lies too deep is left out."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, _CONTAINERS):
        return _folded(value, nulls=nulls, depth=depth - 1) if depth > 0 else "..."
    if isinstance(value, float) and value.is_integer() and abs(value) <= _MAX_EXACT_FLOAT:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _MAX_INT:
        return str(value)
    return value


def _folded(value: Any, *, nulls: bool, depth: int) -> Any:
    if isinstance(value, dict):
        return {
            key: _text(item) if type(item) is str else _canonical(item, nulls=nulls, depth=depth)
            for key, item in value.items()
            if nulls or item is not None
        }
    return [_canonical(item, nulls=nulls, depth=depth) for item in value]


def _text(value: str) -> str:
    stripped = value.strip()
    if stripped.endswith("/") and len(stripped) > 1 and not any(map(str.isspace, stripped)):
        stripped = stripped.rstrip("/") or "/"
    if not stripped.isascii():
        try:
            stripped.encode()
        except UnicodeEncodeError:  # half a character
            return stripped.encode("utf-8", "replace").decode()
    return stripped
