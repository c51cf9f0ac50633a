"""Takes the text of a diff apart into blocks of lines, in whatever form and state it is.

Well-formed unified diffs go through `unidiff`. Models write diffs from memory, with wrong counts, without headers, cut
off in the middle, or in forms of their own: of these is read what can be, in one pass. Nothing is refused.
"""

import re
from collections.abc import Iterator
from io import StringIO
from typing import Final

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchedFile, PatchSet

from detectors.tasks.edits import NOWHERE, PATH_CHARS, Block
from detectors.tasks.unified import HUNK, plain_names, read_unified

_PARSED_LINES: Final = 20_000  # of a diff that goes through the library: it keeps an object of 300 bytes for each

_MARKS = (
    "diff --git ", "--- ", "+++ ", "@@", "*** Begin Patch", "*** Update File: ", "*** Add File: ", "*** Delete File: ",
)  # fmt: skip
_MARKS_BEHIND = tuple(f"\n{mark}" for mark in _MARKS)
_SEARCHES = re.compile(r"^[<-]{5,9} SEARCH", re.MULTILINE)
_SLOW = re.compile(r"^(?:diff --git [^\n]*://|Binary files? [^\n]{600})", re.MULTILINE)
_SPECIAL = ("--- ", "+++ ", "-- ", "-----")  # beginnings of headers and markers that look like lines
_GIT = re.compile(r'diff --git ("?[abciow12]/.*?) ("?[abciow12]/.*)')
_HALVES = re.compile(r"diff --git (\S+) (\S+)")
_ENVELOPE = re.compile(r"\*\*\* (Update File|Add File|Delete File|Move to): *(.*)")
_MAIL = re.compile(r"From [0-9a-f]{40} ")  # between the patches of a series
_SEARCH = re.compile(r"[<-]{5,9} SEARCH")
_REPLACE = re.compile(r"[>+]{5,9} REPLACE")
_DIVIDER = re.compile(r"={5,9}\s*\Z")
_PREAMBLE = re.compile(r":(?:start|end)_line:|-{5,9}\s*\Z")  # of what is searched, as some tools want it
_AROUND_NAME = " \t\r\n`*#:"  # of a file, on a line of its own before what is searched


def is_marked(text: str) -> bool:
    """Tell whether a text has what diffs and patches have, beside lines that begin with ``+`` or ``-``."""
    if text.startswith(_MARKS):
        return True
    if "\n" in text:
        for mark in _MARKS_BEHIND:
            if mark in text:
                return True
    return " SEARCH" in text and _SEARCHES.search(text) is not None


def blocks_of(diff: str, path: str = "") -> Iterator[Block]:
    """Yield the blocks of a diff in their order, and behind them one without lines for each file that it names.

    ``path`` is the file's where the diff names none.
    """
    parsed = None
    if diff.count("\n") <= _PARSED_LINES:
        usual = read_unified(diff)
        if usual is not None:
            yield from usual
            return
        parsed = _parsed(diff)
    if parsed is None:
        yield from _Loose(path, marked=is_marked(diff)).read(diff)
        return
    for patched in parsed:
        source, target = plain_names(patched.source_file, patched.target_file)
        yield from _blocks(patched, source, target)
        yield Block(source, target)


def _parsed(diff: str) -> PatchSet | None:
    """Return what the library makes of a diff; None when it refuses it or passes over some of its lines.

    Over names that are addresses, or very long, it can take cubic time: those do not reach it.
    """
    if ("://" in diff or "Binary file" in diff) and _SLOW.search(diff):
        return None
    try:
        parsed = PatchSet(diff)
    except (UnidiffParseError, ValueError):
        return None
    read = sum(2 + patched.added + patched.removed for patched in parsed if patched)
    marked = diff.count("\n+") + diff.count("\n-") + diff.startswith(("+", "-"))
    return parsed if parsed and read == marked else None


def _blocks(patched: PatchedFile, source: str, path: str) -> Iterator[Block]:
    for hunk in patched:
        old = hunk.source_start + (hunk.source_length == 0)  # where there are none, git tells the line before
        new = hunk.target_start + (hunk.target_length == 0)
        removed: list[str] = []
        added: list[str] = []
        for line in hunk:
            if line.is_removed:
                removed.append(line.value)
            elif line.is_added:
                added.append(line.value)
            elif line.is_context:
                if removed or added:
                    yield Block(source, path, old, new, removed, added)
                old, new = old + len(removed) + 1, new + len(added) + 1
                removed, added = [], []
        if removed or added:
            yield Block(source, path, old, new, removed, added)


class _Loose:
    """Reads a diff line by line, for what its lines look like rather than for what its headers promise."""

    __slots__ = (
        "_added", "_body", "_declared", "_head", "_hint", "_left", "_named", "_names", "_new", "_old", "_path",
        "_ready", "_removed", "_side", "_source",
    )  # fmt: skip

    def __init__(self, path: str, *, marked: bool) -> None:
        self._source = self._path = path
        self._names = ("", "")  # as the diff writes them
        self._named = False  # the diff names the file
        self._head = False  # and may go on to do so
        self._body = not marked  # lines are those of a file
        self._declared = False  # the hunk says how many lines it has
        self._left = (0, 0)  # lines before and after that are still to come of these
        self._old = self._new = 0  # numbers of the first lines of the block, 0: not known
        self._removed: list[str] = []
        self._added: list[str] = []
        self._side = ""  # of a replacement, which begins with what is searched
        self._hint = ""  # what may be the name of its file
        self._ready: list[Block] = []

    def read(self, diff: str) -> Iterator[Block]:
        """Yield the blocks."""
        lines = StringIO(diff).readlines()
        lines += ("", "")  # the two that are looked at behind each
        for at in range(len(lines) - 2):
            line = lines[at]
            if self._body and not self._side and line[0] in "+-" and not line.startswith(_SPECIAL):
                self._change(line)
                continue
            names = line.startswith("--- ") and lines[at + 1].startswith("+++ ")
            cut_off = names and lines[at + 2].startswith("@@") and self._left != (1, 1)  # with these it is complete
            if self._body and not self._side and self._is_plain(line, cut_off=cut_off):
                self._change(line)
            elif line[0] not in "\r\n" or self._side:
                self._take(line, names=names)
            if self._ready:
                yield from self._ready
                self._ready.clear()
        self._end_file()
        yield from self._ready

    def _is_plain(self, line: str, *, cut_off: bool) -> bool:
        """Tell whether a line among those of a file is one of them, whatever it looks like."""
        if line[0] not in "+-":
            return line[0] in " \r\n"
        return not line.startswith(_SPECIAL) or (max(self._left) > 0 and not cut_off)

    def _take(self, line: str, *, names: bool) -> None:
        """Take a line that may be a header or a marker."""
        if self._side:
            self._replacement(line)
        elif line.startswith("@@"):
            self._marks_hunk(line)
        elif self._names_file(line, names=names) or self._marks_hunk(line):
            pass
        elif self._body:
            self._change(line)
        else:
            self._note_hint(line)

    def _names_file(self, line: str, *, names: bool) -> bool:
        """Take a line that says which file the next ones are of, and return whether it is one."""
        if line.startswith("diff --git "):
            self._end_file()
            found = _GIT.match(line) or _HALVES.match(line)
            self._name(*(found.groups() if found else ("", "")))
            self._head, self._body = True, False
        elif names or (line.startswith("--- ") and not self._body):
            if not self._head:
                self._end_file()
            self._name(line[4:], self._names[1] if self._head else "")
            self._head, self._body = True, not names
        elif line.startswith("+++ ") and (self._head or not self._body):
            if not self._head:
                self._end_file()
            self._name(self._names[0] if self._head else "", line[4:])
            self._head, self._body = False, True
        elif self._head and line.startswith("new file mode "):
            self._name(NOWHERE, self._names[1])
        elif self._head and line.startswith("deleted file mode "):
            self._name(self._names[0], NOWHERE)
        elif line.startswith("*** "):
            self._envelope(line)
        else:
            return False
        return True

    def _marks_hunk(self, line: str) -> bool:
        """Take a line that says where the next ones stand, or that they are at an end, and return whether it is one."""
        if line.startswith("@@"):
            self._end_block()
            found = HUNK.match(line)
            start, count, new_start, new_count = (int(part or 1) for part in found.groups()) if found else (0, 0, 0, 0)
            self._declared = found is not None
            self._left = count, new_count
            self._old = start + (found is not None and count == 0)
            self._new = new_start + (found is not None and new_count == 0)
            self._head, self._body = False, True
        elif _SEARCH.match(line):
            self._end_block()
            if self._hint and (self._named or not self._path):
                self._end_file()
                self._name(self._hint, self._hint)
            self._hint, self._side = "", "-"
            self._old = self._new = 0
        elif self._declared and max(self._left) <= 0 and (line.rstrip("\r\n") == "-- " or _MAIL.match(line)):
            self._end_block()
            self._body = self._declared = False
        else:
            return False
        return True

    def _envelope(self, line: str) -> None:
        """Take a line of the form that begins with ``*** Begin Patch``."""
        found = _ENVELOPE.match(line)
        if found and found[1] == "Move to":
            self._path = found[2].strip()
        elif found:
            self._end_file()
            name = found[2].strip()
            self._source, self._path = (
                ("" if found[1] == "Add File" else name),
                ("" if found[1] == "Delete File" else name),
            )
            self._named = self._body = True
        elif line.startswith("*** End Patch"):
            self._end_file()
            self._body = False

    def _replacement(self, line: str) -> None:
        """Take a line between ``SEARCH`` and ``REPLACE``."""
        if self._side == "+" and _REPLACE.match(line):
            self._end_block()
            self._side = ""
        elif self._side == "-" and _DIVIDER.match(line):
            self._side = "+"
        elif self._side == "+" or self._removed or not _PREAMBLE.match(line):
            (self._added if self._side == "+" else self._removed).append(line)

    def _change(self, line: str) -> None:
        """Take a line of the file."""
        before, after = self._left
        kind = line[0]
        if kind == "-":
            self._removed.append(line[1:])
            self._left = before - 1, after
        elif kind == "+":
            self._added.append(line[1:])
            self._left = before, after - 1
        elif kind != "\\":
            self._end_block()
            self._left = before - 1, after - 1
            self._old += self._old > 0
            self._new += self._new > 0

    def _note_hint(self, line: str) -> None:
        """Remember a line that may name the file of the replacement behind it."""
        text = line[:PATH_CHARS].strip(_AROUND_NAME)
        if text and " " not in text and ("." in text or "/" in text):
            self._hint = text

    def _end_block(self) -> None:
        if not (self._removed or self._added):
            return
        self._ready.append(Block(self._source, self._path, self._old, self._new, self._removed, self._added))
        self._old += len(self._removed) if self._old else 0
        self._new += len(self._added) if self._new else 0
        self._removed, self._added = [], []

    def _end_file(self) -> None:
        self._end_block()
        if self._named:
            self._ready.append(Block(self._source, self._path))
        self._named = self._head = self._declared = False
        self._names = ("", "")
        self._left = 0, 0
        self._old = self._new = 0

    def _name(self, source: str, path: str) -> None:
        self._names = source, path
        self._source, self._path = plain_names(source, path)
        self._named = True
