"""What a call's arguments name: the object that is read or changed, the lines of it, and what is looked for.

Which arguments mean what is data (`catalogue.toml`). Names of arguments compare without case and separators, so that
``filePath``, ``file_path`` and ``FilePath`` are one. Only the top level is read and, below it, single elements.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple

from detectors.operands import patched
from detectors.shell import parts_of
from detectors.use import Kind

_KEPT_CHARS = 300
_NAME_CHARS = 64  # of an argument
_READ_CHARS = 1_200  # of a call that was written out
_PATCH_CHARS = 4_000
_READ_ARGUMENTS = 32  # more than any tool's signature has
_READ_ITEMS = 8
_LEVELS = 2  # below the top: {"args": {"file": [{"path": "a.py"}]}}
_NUMBER = re.compile(r"-?\d{1,9}\Z")
_MAX_LINE = 10**9
_MAX_ID = 10**30  # a longer number is no name, and slow to write out
_ID = re.compile(r"(?:id|ids|number|name|key|slug|code)\Z")
_RANGE = re.compile(r"\s*(\d{1,9})\s*[:,-]\s*(-?\d{1,9})\s*\Z")
_CALL = re.compile(r"\s*[\w.]+\((.*)\)\s*;?\s*\Z", re.DOTALL)
_ARGUMENT = re.compile(r"""(?:(\w++)\s*+=\s*+)?(?:'([^'\n]*)'|"([^"\n]*)"|(-?\d+)\b)""")
_PATH = re.compile(r"[\w.~$@%+:?&=/\\-]+\Z")
_SPANNED = frozenset({"edit", "read"})
_AIMED = frozenset({"edit", "interact", "read", "search"})
Aim = tuple[str, int, int, str]
_NOTHING: Aim = ("", 0, 0, "")
Found = dict[str, tuple[int, Any]]


class Given(NamedTuple):
    """The arguments of a call by their roles, each with its rank among the names of the role, and those of no role."""

    found: Found
    rest: list[tuple[str, Any]]

    def first(self, role: str) -> Any:
        """Return the value of the argument that comes first among those of a role; None when there is none."""
        ranked = self.found.get(role)
        return None if ranked is None else ranked[1]


class Arguments:
    """Reads arguments by the names that one catalogue gives each role, the preferred first."""

    __slots__ = ("_roles", "_spelt")

    def __init__(self, **roles: Iterable[str]) -> None:
        ranks: dict[str, dict[str, int]] = {}
        for role, names in roles.items():
            for rank, name in enumerate(names):
                ranks.setdefault(_folded(name), {}).setdefault(role, rank)
        self._roles = {name: tuple(ranked.items()) for name, ranked in ranks.items()}
        self._spelt = {name: self._roles[_folded(name)] for names in roles.values() for name in names}

    def given(self, arguments: Any) -> Given:
        """Return what is given (any JSON value) by its roles; with a single element, its parts are among them."""
        if not isinstance(arguments, dict):
            return Given({}, [])
        found, rest = self._scanned(arguments)
        element: Any = arguments
        for _ in range(_LEVELS):
            if "paths" in found:
                element = _single(found["paths"][1])
            elif len(element) == 1:
                element = _single(next(iter(element.values())))
            if not isinstance(element, dict):
                break
            inner, rest = self._scanned(element)
            found.update(inner)
        return Given(found, rest)

    def aim(self, kind: Kind, name: str, arguments: Any, given: Given | None = None) -> Aim:
        """Return target, first line, last line and query of a call of the tool of this plain name.

        ``given`` is what these arguments give, where that was read.
        """
        if kind not in _AIMED:
            return _NOTHING
        if isinstance(arguments, str):
            arguments, given = _written_out(kind, arguments), None
        if not isinstance(arguments, dict):
            return _NOTHING
        found, rest = given or self.given(arguments)
        path = _path(found)
        if kind == "search":
            return path, 0, 0, _query(found, rest)
        if not path and kind == "edit":
            path = next(filter(None, map(patched, _texts(arguments))), "")
        start, end = _span(found) if kind in _SPANNED else (0, 0)
        return path or _object(name, kind, found, rest), start, end, ""

    def _scanned(self, arguments: Mapping[str, Any]) -> tuple[Found, list[tuple[str, Any]]]:
        found: Found = {}
        rest: list[tuple[str, Any]] = []
        for key in arguments if len(arguments) <= _READ_ARGUMENTS else islice(arguments, _READ_ARGUMENTS):
            value = arguments[key]
            if value is None:
                continue
            roles = self._spelt.get(key) or self._roles.get(_folded(key))  # most are spelt as they are listed
            if roles is None:
                rest.append((_folded(key), value))
                continue
            for role, rank in roles:
                if role not in found or rank < found[role][0]:
                    found[role] = (rank, value)
        return found, rest


def _folded(key: str) -> str:
    return _fold(key[:_NAME_CHARS])


@lru_cache(maxsize=1_024)
def _fold(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()


def _single(value: Any) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _path(found: Found) -> str:
    value = _single(found["paths"][1]) if "paths" in found else None
    return _text(value) if isinstance(value, str) else ""


def _text(value: Any) -> str:
    """Return a scalar, or several, as one text; empty for what is none, and for texts of several lines."""
    if isinstance(value, str):
        line = value[:_KEPT_CHARS].strip()
        return "" if "\n" in line else line.removeprefix("./")
    if isinstance(value, list):
        return ",".join(filter(None, (_text(item) for item in value[:_READ_ITEMS] if not isinstance(item, list))))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    return str(value) if abs(value) < _MAX_ID else ""


def _texts(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Return the texts of several lines among the arguments: a patch is one."""
    for value in arguments.values():
        if isinstance(value, str) and "\n" in value[:_PATCH_CHARS]:
            yield value[:_PATCH_CHARS]


def _object(name: str, kind: Kind, found: Found, rest: list[tuple[str, Any]]) -> str:
    """Return what names the object of a call that names no file: its id, else all that says which one it is."""
    whole = name.replace("_", "")
    for key, value in sorted(rest, key=itemgetter(0)):
        stem = _ID.sub("", key)
        if stem and stem != key and stem in whole and _text(value):
            return _text(value)
    if "objects" in found:
        return _text(found["objects"][1])
    if kind == "read":
        asked = [found["queries"][1]] if "queries" in found else []
        others = (value for _, value in sorted(rest, key=itemgetter(0)))
        return " ".join(filter(None, map(_text, (*asked, *others))))[:_KEPT_CHARS]
    return _text(rest[0][1]) if len(rest) == 1 else ""


def _query(found: Found, rest: list[tuple[str, Any]]) -> str:
    if "queries" in found:
        return _text(found["queries"][1])
    values = [value for _, value in rest]
    if "objects" in found:
        values.append(found["objects"][1])
    return " ".join(filter(None, map(_text, values)))[:_KEPT_CHARS]


def _span(found: Found) -> tuple[int, int]:
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
    if isinstance(value, str):
        return int(value) if _NUMBER.match(value) else 0
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _MAX_LINE:
        return 0
    return int(value)


def _written_out(kind: Kind, text: str) -> dict[str, Any]:
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
        quoted = call or text[0] in "\"'" or (len(words) == 2 and not words[1].isalnum())  # noqa: PLR2004 -- pattern, file
        named["query"] = words.pop(0) if quoted else text
        words = words if quoted else []
    if words and _PATH.match(words[0]) and (kind != "search" or not words[0].isalnum()):
        named["path"] = words[0]
        if len(words) == 2 and words[1].isdecimal():  # noqa: PLR2004 -- open a.py 120
            named["start_line"] = words[1]
    elif kind == "edit" and "\n" in text:
        named["patch"] = text
    return named
