"""When two edits are the same: comments, blank space and what only describes the edit make no difference.

Agents resubmit one change for hours with its comment reworded, so an edit is compared by the code that it puts down and
by the place where it puts it. What a comment is depends on the language, which the file's name tells; where nothing
tells, only what is one in nearly every language counts. The form is for comparing only and is never shown.
"""

import re
from collections.abc import Collection
from typing import Any

from detectors.canonical import canonical_arguments, digest
from detectors.glance import has_any
from schemas.values import MAX_DEPTH

_MAX_CHARS = 65_536
_NAME_CHARS = 300

_INNER = r"[\s\S]{0,4000}"
# Kept whole, whatever is in it. What is escaped begins no text, and what begins a comment that never ends is kept with
# what follows: else each mark of a text of such marks would be looked behind to the text's end.
_TEXT = rf"""\"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|\\.|/\*(?!{_INNER}?\*/){_INNER}"""
# Comments have an empty group, by which they are told. All ways begin with one plain character, so that the engine
# skips to where one can begin.
_BLOCK = rf"/\*(){_INNER}?\*/"
_SLASHES = re.compile(rf"{_TEXT}|{_BLOCK}|//()[^\n]*")
_HASHES = re.compile(rf"{_TEXT}|\#(?<!\S\#)(?!!)()[^\n]*")
_DASHES = re.compile(rf"{_TEXT}|{_BLOCK}|--()[^\n]*")
_TAGS = re.compile(r"<!--()[\s\S]{0,400}?-->")
_STYLES = re.compile(rf"{_TEXT}|{_BLOCK}")
_UNKNOWN = re.compile(rf"(?m){_TEXT}|{_BLOCK}|(?:^[ \t]*|(?<=[;{{}}),])[ \t]*)//()[^\n]*")
_PROSE = re.compile(r"\Z.")  # has no comments
Comments = tuple[re.Pattern[str], tuple[str, ...]]
"""What finds comments, and what they begin with: a text that has none of it is kept whole."""

_OTHERS: Comments = (_UNKNOWN, ("//", "/*"))
_LANGUAGES: dict[str, Comments] = {
    suffix: (pattern, begins)
    for pattern, begins, suffixes in (
        (
            _SLASHES,
            ("//", "/*"),
            "c cc cpp cs dart go gradle groovy h hpp java js jsx kt m mjs php proto rs scala scss swift ts tsx v",
        ),
        (_HASHES, ("#",), "bash conf ex exs jl mk pl py pyi r rb sh tf toml yaml yml zsh"),
        (_DASHES, ("--", "/*"), "elm hs lua sql"),
        (_TAGS, ("<!--",), "html svelte svg vue xml"),
        (_STYLES, ("/*",), "css less"),
        (_PROSE, (), "csv json log md rst txt"),
    )
    for suffix in suffixes.split()
}
_SUFFIX = re.compile(r"[^\s/\\]\.([A-Za-z]{1,6})\Z")
_CONTAINERS = (dict, list, tuple)
_EDITS = (dict, list, str)


def patch_digest(tool: str, arguments: Any, labels: Collection[str], target: str = "") -> int:
    """Return the digest of an edit without its comments, blanks and label arguments; 0 when nothing is known of it.

    ``target`` is the file that is edited, where that is known.
    """
    if not isinstance(arguments, _EDITS) or not arguments:
        return 0
    if isinstance(arguments, dict) and labels:
        arguments = {key: value for key, value in arguments.items() if key not in labels}
    comments = _LANGUAGES.get(_suffix(target) or _suffix_within(arguments), _OTHERS)
    return digest("patch", tool, canonical_arguments(_bare(arguments, comments)))


def _suffix(name: str) -> str:
    found = _SUFFIX.search(name) if len(name) <= _NAME_CHARS else None
    return found.group(1).lower() if found else ""


def _suffix_within(value: Any, depth: int = MAX_DEPTH) -> str:
    """Return the suffix of the first file that the arguments name."""
    if isinstance(value, str):
        suffix = _suffix(value)
        return suffix if suffix in _LANGUAGES else ""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next(filter(None, (_suffix_within(item, depth - 1) for item in inner)), "") if depth else ""


def _kept(found: re.Match[str]) -> str:
    return "" if found.lastindex else found.group()


def _bare(value: Any, comments: Comments, depth: int = MAX_DEPTH) -> Any:
    """Return a JSON value whose texts have lost comments and blanks, without empty parts and what lies too deep."""
    if isinstance(value, str):
        code = value[:_MAX_CHARS]
        pattern, begins = comments
        if has_any(code, begins):
            code = pattern.sub(_kept, code)
        return "".join(code.split()) + value[_MAX_CHARS:]
    if not isinstance(value, _CONTAINERS):
        return value
    if depth == 0:
        return "..."
    if isinstance(value, dict):
        return {key: bare for key, item in value.items() if (bare := _bare(item, comments, depth - 1)) not in ([], {})}
    return [_bare(item, comments, depth - 1) for item in value]
