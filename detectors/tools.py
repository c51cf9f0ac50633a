"""Names of tools in their plain form, and the command line among a call's arguments.

What the tools are for says the catalogue.
"""

import re
from functools import lru_cache
from typing import Any

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


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
        for key in ("command", "cmd", "code", "script", "input", "function", "expression"):
            value = arguments.get(key)
            if isinstance(value, str):
                return value
            if isinstance(value, list) and value:
                return str(value[-1]) if str(value[0]) in {"bash", "sh", "zsh"} else " ".join(map(str, value))
    return ""
