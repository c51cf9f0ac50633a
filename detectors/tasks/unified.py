"""Reads unified diffs that are as git and `diff -u` write them, at little more than the cost of splitting their lines.

Of any other form nothing is read: what is found here is what the library would find (see `diff_text`), or nothing.
"""

import re
from collections.abc import Sequence

from detectors.tasks.edits import MAX_BLOCKS, NOWHERE, PATH_CHARS, Block

_PREFIX = re.compile(r'"?[abciow12]/')  # that git sets before the two paths
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"t": b"\t", b"r": b"\r"}

HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
"""The line before the lines of a hunk."""

_GIT = re.compile(r'diff --git ("?a/[^\t\n]+"?) ("?b/[^\t\n]+"?)\Z')
_SECOND = re.compile(r' "?b/')  # begins the second name; where more do, nobody can tell
_NEW = re.compile(r"new file mode \d+\Z")
_DELETED = re.compile(r"deleted file mode \d+\Z")
_GIT_FILE = "diff --git "
_SILENT = (  # beginnings of lines in git's header that say nothing of lines or names
    "index ", "old mode ", "new mode ", "similarity index ", "dissimilarity index ", "rename from ", "rename to ",
    "copy from ", "copy to ",
)  # fmt: skip
_NO_LINE = "~"  # no hunk has one that begins so
Names = tuple[str, str]


def plain_names(source: str, path: str) -> tuple[str, str]:
    """Return a diff's two names of a file without quotes, times and git's prefixes; one alone stands for both."""
    source, path = _unquoted(source or path), _unquoted(path or source)
    real = [name for name in (source, path) if name != NOWHERE]
    if all(map(_PREFIX.match, real)) and (len(real) == 1 or source[:1] != path[:1]):
        source, path = (name if name == NOWHERE else name[2:] for name in (source, path))
    return source, path


def _unquoted(name: str) -> str:
    name = name.partition("\t")[0].strip()[:PATH_CHARS]
    if len(name) < 2 or name[0] != '"' or name[-1] != '"':  # noqa: PLR2004 -- both quotes
        return name
    return _ESCAPE.sub(_unescaped, name[1:-1].encode("utf-8", "replace")).decode("utf-8", "replace")


def _unescaped(found: re.Match[bytes]) -> bytes:
    code = found[1]
    return bytes([int(code, 8) & 0xFF]) if len(code) > 1 else _ESCAPED.get(code, code)


def read_unified(diff: str) -> list[Block] | None:
    """Return the blocks of a diff as `diff_text.blocks_of` yields them; None when it is not in the usual form.

    What follows upon so many as are read of one change is not looked at.
    """
    if not diff.startswith(("--- ", "diff --git ")):
        return None
    lines = diff.split("\n")
    if not lines[-1]:
        lines.pop()
    blocks: list[Block] = []
    at = 0
    while at < len(lines) and len(blocks) < MAX_BLOCKS:
        names, at = _header(lines, at)
        if names is None:
            return None
        source, path = plain_names(*names)
        while at < len(lines) and len(blocks) < MAX_BLOCKS and lines[at].startswith("@@"):
            at = _hunk(lines, at, source, path, blocks)
            if not at:
                return None
            while at < len(lines) and (not lines[at] or lines[at].startswith("\\ No newline at end of file")):
                at += 1
        blocks.append(Block(source, path))
    return blocks or None


def _header(lines: Sequence[str], at: int) -> tuple[Names | None, int]:
    """Return the names in the header that begins with a line, and where it ends: at a hunk or the next file's.

    None when it is no header, or one that says two things.
    """
    if not lines[at].startswith(_GIT_FILE):
        return _names(lines, at)
    git, at = _git_header(lines, at)
    if git is None or at == len(lines) or lines[at].startswith(_GIT_FILE):
        return git, at
    names, at = _names(lines, at)
    return (git if names is not None and names[1] == git[1] else None), at


def _git_header(lines: Sequence[str], at: int) -> tuple[Names | None, int]:
    """Return the names in the lines that git sets before those of `diff -u`, and where these begin."""
    one = len(_SECOND.findall(lines[at])) == 1  # told first: of many, the pattern would try each to the line's end
    git = _GIT.match(lines[at]) if one else None
    if git is None or "://" in lines[at]:
        return None, at
    source, path = git.groups()
    for end in range(at + 1, len(lines)):
        line = lines[end]
        if _NEW.match(line):
            source = NOWHERE
        elif _DELETED.match(line):
            path = NOWHERE
        elif not line.startswith(_SILENT):
            return (source, path), end
    return (source, path), len(lines)


def _names(lines: Sequence[str], at: int) -> tuple[Names | None, int]:
    """Return the names in the two lines that stand before a hunk, and where that begins."""
    source, path, hunk = lines[at : at + 3] if at + 2 < len(lines) else ("", "", "")
    if not (source.startswith("--- ") and path.startswith("+++ ") and hunk.startswith("@@")):
        return None, at
    return (source[4:].partition("\t")[0], path[4:].partition("\t")[0]), at + 2


def _hunk(lines: Sequence[str], at: int, source: str, path: str, blocks: list[Block]) -> int:
    """Append the blocks of the hunk that a line begins, and return where it ends; 0 when it is not what it says."""
    head = HUNK.match(lines[at])
    old, before, new, after = (int(part or 1) for part in head.groups()) if head else (0, 0, 0, 0)
    if not (before or after):
        return 0
    old, new = old + (before == 0), new + (after == 0)  # where there are none, git tells the line before
    removed: list[str] = []
    added: list[str] = []
    while before > 0 or after > 0:
        at += 1
        line = lines[at] if at < len(lines) else _NO_LINE
        mark = line[:1]
        if mark == "+":
            added.append(line[1:])
            after -= 1
        elif mark == "-":
            removed.append(line[1:])
            before -= 1
        elif mark == " " or not line or line == "\r":
            before, after = before - 1, after - 1
            if removed or added:
                blocks.append(Block(source, path, old, new, removed, added))
                old, new = old + len(removed), new + len(added)
                removed, added = [], []
            old, new = old + 1, new + 1
        elif mark != "\\":
            return 0
    if removed or added:
        blocks.append(Block(source, path, old, new, removed, added))
    return at + 1 if before == after == 0 else 0
