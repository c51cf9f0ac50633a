"""What a call's arguments name: the object that is read or changed, the lines of it, and what is looked for.

Which arguments mean what is data (`catalogue.toml`). Names of arguments compare without case and separators, so that
``filePath``, ``file_path`` and ``FilePath`` are one. Only the top level and, below it, single elements are read.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from detectors.operands import patched
from detectors.shell import parts_of
from detectors.use import Kind

_KEPT_CHARS = 300
_READ_CHARS = 1_200  # of a call that was written out
_PATCH_CHARS = 4_000
_READ_ARGUMENTS = 32  # more than any tool's signature has
_ID = re.compile(r"(?:id|ids|number|name|key|slug|code)\Z")
_RANGE = re.compile(r"\s*(\d{1,9})\s*[:,-]\s*(-?\d{1,9})\s*\Z")
_CALL = re.compile(r"\s*[\w.]+\((.*)\)\s*;?\s*\Z", re.DOTALL)
_ARGUMENT = re.compile(r"""(?:(\w+)\s*=\s*)?(?:'([^'\n]*)'|"([^"\n]*)"|(-?\d+)\b)""")
_PATH = re.compile(r"[\w.~$@%+:?&=/\\-]+\Z")
Aim = tuple[str, int, int, str]
_NOTHING: Aim = ("", 0, 0, "")


class Arguments:
    """Reads arguments by the names that one catalogue knows."""

    __slots__ = ("_roles",)

    def __init__(self, **roles: Iterable[str]) -> None:
        self._roles: dict[str, dict[str, int]] = {}
        for role, names in roles.items():
            for rank, name in enumerate(names):
                self._roles.setdefault(_folded(name), {}).setdefault(role, rank)

    def aim(self, kind: Kind, name: str, arguments: Any) -> Aim:
        """Return target, first line, last line and query of a call of the tool of this plain name."""
        if isinstance(arguments, str):
            arguments = _called(kind, arguments)
        if not isinstance(arguments, dict):
            return _NOTHING
        found: dict[str, tuple[int, Any]] = {}
        rest: list[tuple[str, Any]] = []
        for key, value in list(arguments.items())[:_READ_ARGUMENTS]:
            if value is None:
                continue
            folded = _folded(key)
            roles = self._roles.get(folded)
            if roles is None:
                rest.append((folded, value))
            else:
                for role, rank in roles.items():
                    if role not in found or rank < found[role][0]:
                        found[role] = (rank, value)
        if kind == "search":
            return self._target(found), 0, 0, _query(found, rest)
        start, end = _span(found)
        target = self._target(found)
        if not target and kind == "edit":
            target = next(filter(None, (patched(value[:_PATCH_CHARS]) for value in _texts(arguments))), "")
        target = target or _object(name, kind, found, rest)
        return target, start, end, ""

    def first(self, role: str, arguments: Any) -> Any:
        """Return the value of the argument that comes first among those of a role; None when there is none."""
        best: tuple[int, Any] | None = None
        if isinstance(arguments, dict):
            for key, value in list(arguments.items())[:_READ_ARGUMENTS]:
                rank = self._roles.get(_folded(key), {}).get(role)
                if rank is not None and (best is None or rank < best[0]):
                    best = rank, value
        return None if best is None else best[1]

    def _target(self, found: Mapping[str, tuple[int, Any]]) -> str:
        value = found["paths"][1] if "paths" in found else None
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, dict):
            value = self.first("paths", value)
        return _text(value) if isinstance(value, str) else ""


@lru_cache(maxsize=1_024)
def _folded(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()


def _text(value: Any) -> str:
    """Return a scalar, or several, as one text; empty for what is none, and for texts of several lines."""
    if isinstance(value, str):
        line = value[:_KEPT_CHARS].strip()
        return "" if "\n" in line else line.removeprefix("./")
    if isinstance(value, bool):
        return ""
    if isinstance(value, int | float):
        return str(value) if abs(value) < 1e18 else ""  # noqa: PLR2004 -- a longer number is no name
    if isinstance(value, list):
        return ",".join(filter(None, map(_text, value[:8])))[:_KEPT_CHARS]
    return ""


def _texts(arguments: Mapping[str, Any]) -> list[str]:
    return [value for value in arguments.values() if isinstance(value, str) and "\n" in value]


def _object(name: str, kind: Kind, found: Mapping[str, tuple[int, Any]], rest: list[tuple[str, Any]]) -> str:
    """Return what names the object of a call that names no file: its id, else all that says which one it is."""
    whole = name.replace("_", "")
    for key, value in rest:
        stem = _ID.sub("", key)
        if stem and stem != key and stem in whole and _text(value):
            return _text(value)
    if "objects" in found:
        return _text(found["objects"][1])
    if kind == "read":
        asked = [found["queries"][1]] if "queries" in found else []
        return " ".join(filter(None, (_text(value) for value in (*asked, *(value for _, value in rest)))))[:_KEPT_CHARS]
    return _text(rest[0][1]) if len(rest) == 1 else ""


def _query(found: Mapping[str, tuple[int, Any]], rest: list[tuple[str, Any]]) -> str:
    if "queries" in found:
        return _text(found["queries"][1])
    values = [value for _, value in rest]
    if "objects" in found:
        values.append(found["objects"][1])
    return " ".join(filter(None, map(_text, values)))[:_KEPT_CHARS]


def _span(found: Mapping[str, tuple[int, Any]]) -> tuple[int, int]:
    if "ranges" in found:
        span = _range(found["ranges"][1])
        if span is not None:
            return span
    start, end, count = (_number(found[role][1]) if role in found else 0 for role in ("starts", "ends", "counts"))
    if end <= 0 and count > 0:
        start = max(start, 1)
        return start, start + count - 1
    if end <= 0:
        return max(start, 0), 0
    return max(start, 1), end


def _range(value: Any) -> tuple[int, int] | None:
    """Return first and last line of ``[10, 20]``, ``"10-20"``, ``["10:20"]`` or of one number."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, list):
        if len(value) != 2:  # noqa: PLR2004 -- first and last
            return None
        start, end = map(_number, value)
        return max(start, 1), max(end, 0)
    if isinstance(value, str):
        lines = _RANGE.match(value)
        if lines:
            return max(int(lines[1]), 1), max(int(lines[2]), 0)
    number = _number(value)
    return (number, number) if number > 0 else None


def _number(value: Any) -> int:
    if isinstance(value, str) and len(value) < 10 and value.lstrip("-").isdecimal():  # noqa: PLR2004
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**9 else 0


def _called(kind: Kind, text: str) -> dict[str, Any]:
    """Return what a call that was written out names: ``read(file="a.py", line=3)``, or words as of a command."""
    call = _CALL.match(text[:_READ_CHARS])
    named: dict[str, Any] = {}
    if call:
        words: list[str] = []
        for key, single, double, number in _ARGUMENT.findall(call[1]):
            if key:
                named[key] = single or double or number
            else:
                words.append(single or double or number)
    else:
        parts = parts_of(text[:_READ_CHARS])
        words = list(parts[0].words) if parts else []
    if kind == "search" and words:
        named["query"] = words.pop(0)
    if words and _PATH.match(words[0]) and (kind != "search" or not words[0].isalnum()):
        named["path"] = words[0]
        if len(words) == 2 and words[1].isdecimal():  # noqa: PLR2004 -- open a.py 120
            named["start_line"] = words[1]
    elif kind == "edit":
        named["patch"] = text
    return named
