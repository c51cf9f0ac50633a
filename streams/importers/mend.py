"""Reads JSON that a scrubber of secrets or a crash has damaged, as far as that can be done without inventing anything.

Recordings are passed on after tools have replaced secrets in them by pattern, which breaks escapes and cuts texts off
in the middle of a line. What is left whole is kept, what was cut is marked, and nothing is guessed. Knows no format.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

CUT = "\0cut"
"""Key that marks an object which was cut off: what follows in it is lost. No recording has such a key of its own."""

Damage = Literal["none", "escapes", "cut"]

_ESCAPE = re.compile(
    r"\\(?:"
    r"(?P<pair>u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})"
    r'|(?P<valid>u[0-9a-fA-F]{4}|["\\/bfnrt]))'
    r"|\\"
)
_REDACTION = re.compile(r"\[(?:[A-Z]+_)?(?:REDACTED|MASKED|REMOVED|FILTERED)[A-Z0-9_:-]*\]|<(?:REDACTED|MASKED)[^<>]*>")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)


class NotJson(ValueError):
    """The text is not JSON, and not JSON that a scrubber has cut either.

    Attributes:
        line: line of the fault within the text, from 1.
        reason: what is wrong there.
    """

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Parsed:
    """A value and how well it could be read.

    Attributes:
        value: the value; cut objects in it have the key `CUT`.
        damage: `escapes` when characters that JSON does not allow were kept as text, nothing lost; `cut` when something
            is lost behind a mark such as `[REDACTED_NAME]`.
    """

    value: Any
    damage: Damage = "none"


def parse(data: bytes) -> Parsed:
    """Read one JSON value.

    Args:
        data: the text in UTF-8.

    Raises:
        NotJson: nothing can be made of it.
    """
    try:
        return Parsed(msgspec.json.decode(data))
    except (msgspec.DecodeError, ValueError):  # ValueError: UTF-8 that is none, or an integer that is too long
        pass  # the slow reader says what is wrong, if it is
    except RecursionError:
        raise NotJson(1, "nested too deeply") from None
    text = _ESCAPE.sub(_as_text, data.decode("utf-8", "replace")).strip()
    try:
        return Parsed(json.loads(text, strict=False), "escapes")
    except RecursionError:
        raise NotJson(1, "nested too deeply") from None
    except json.JSONDecodeError as problem:
        start = text.rfind("\n", 0, problem.pos) + 1
        end = text.find("\n", problem.pos)
        scrubbed = _REDACTION.search(text, start, len(text) if end < 0 else end)
        kept = _before(text, problem.pos) if scrubbed else None
        if kept is None:
            raise NotJson(problem.lineno, f"not JSON: {problem.msg} (column {problem.colno})") from None
        return Parsed(kept, "cut")
    except ValueError:  # Python reads no integer of more than some thousand digits
        raise NotJson(1, "a number in it is too long") from None


def _as_text(escape: re.Match[str]) -> str:
    """Keep a valid escape, replace half a surrogate pair, and let a stray backslash stand for itself."""
    if escape["half"]:
        return "\\ufffd"
    return escape[0] if escape["pair"] or escape["valid"] else "\\\\"


def _before(text: str, fault: int) -> Any:
    """Give the value up to the last whole part before a fault, what was left open marked; None if there is nothing."""
    closers: list[str] = []
    whole = (0, "", False)  # where the last whole part ends, what closes it, whether its innermost object has members
    members = False
    for token in _TOKEN.finditer(text, 0, fault):
        mark = token[0]
        if mark in "{[":
            closers.append("}" if mark == "{" else "]")
            members = False
        elif mark in "}]":
            if not closers:
                break
            closers.pop()
            members = True
        elif mark == ",":
            members = True
            whole = (token.start(), "".join(reversed(closers)), True)
            continue
        else:
            continue
        whole = (token.end(), "".join(reversed(closers)), members)
    position, closing, members = whole
    if not closing:
        return None
    # The innermost closer follows what is whole; each further one follows a member, the container just closed.
    tail = ""
    for closer in closing:
        if closer == "}":
            tail += f"{',' if members else ''}{json.dumps(CUT)}:true"
        tail += closer
        members = True
    try:
        return json.loads(text[:position] + tail, strict=False)
    except ValueError:
        return None
