"""Names of tools in their plain form, and the command line among a call's arguments.

What the tools are for says the catalogue.
"""

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NAMED = ("command", "cmd", "code", "script", "input", "function", "expression")
PROGRAMS = ("program", "executable", "binary")  # that go before their own arguments
_NAME_CHARS = 64  # of an argument
_READ_ARGUMENTS = 32  # more than any shell tool's signature has
_READ_WORDS = 1_000
_LETTER = re.compile(r"[^\W\d_]")


@lru_cache(maxsize=1_024)
def plain_name(tool: str) -> str:
    """Return the tool's name in lower case, words apart by underscores, without the prefix of its server."""
    last = re.split(r"__|[./:]", tool.rstrip("./:_"))[-1] or tool
    return re.sub(r"[^a-z0-9]+", "_", _HUMP.sub("_", last).lower()).strip("_") or tool.lower()


def command_of(arguments: Any) -> str:
    """Return the command line or program text among a call's arguments; empty when there is none."""
    if isinstance(arguments, str):
        return arguments
    if isinstance(arguments, dict):
        for key in _NAMED:
            value = arguments.get(key)
            if isinstance(value, str):
                return value
            if isinstance(value, list) and value:
                return _joined(value)
    return ""


def names_command(arguments: dict[str, Any]) -> bool:
    """Tell whether there is a place for the command line by its usual name, be it empty."""
    return any(isinstance(arguments.get(key), str | list) for key in _NAMED)


def wrapped(arguments: Any) -> Any:
    """Return the arguments proper where they are wrapped as the only one: ``{"params": {"command": "make"}}``."""
    inner = next(iter(arguments.values())) if isinstance(arguments, dict) and len(arguments) == 1 else None
    return inner if isinstance(inner, dict) else arguments


def likely_command(arguments: Any, besides: Collection[str]) -> str:
    """Return what must be the command line where no usual name says so: the longest text, or the words of a list.

    ``besides`` are last words of names whose arguments hold none. A text without a letter runs nothing.
    """
    if isinstance(arguments, dict):
        given = {key: _text(value, besides) for key, value in _but_for(besides, arguments)}
        program = next(filter(None, (given.pop(key, "") for key in PROGRAMS)), "")
        text = f"{program} {max(given.values(), key=len, default='')}".strip()
    else:
        text = _text(arguments, besides)
    return text if _LETTER.search(text) else ""


def _but_for(besides: Collection[str], arguments: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key in islice(arguments, _READ_ARGUMENTS):
        if plain_name(key[:_NAME_CHARS]).rpartition("_")[2] not in besides:
            yield key, arguments[key]


def _text(value: Any, besides: Collection[str]) -> str:
    """Return a text, the words of a list as one, or the command or longest text one level inside."""
    if isinstance(value, dict):
        inner = (item for _, item in _but_for(besides, value) if isinstance(item, str))
        return command_of(value) or max(inner, key=len, default="")
    if isinstance(value, list):
        only = value[0] if len(value) == 1 else None
        if isinstance(only, dict):
            return command_of(only)
        words = value[:_READ_WORDS]
        return _joined(words) if words and all(isinstance(word, str) for word in words) else ""
    return value if isinstance(value, str) else ""


def _joined(words: list[Any]) -> str:
    return str(words[-1]) if str(words[0]) in {"bash", "sh", "zsh"} else " ".join(map(str, words))
