"""Reads the change that an attempt or an edit makes, from a diff, from old and new texts, or from a call's arguments.

Never raises, whatever it is given, and takes time linear in its length. Nothing here compares changes.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from detectors.canonical import opened
from detectors.target import Arguments, Given
from detectors.tasks.diff_text import blocks_of, is_marked
from detectors.tasks.edits import PATH_CHARS, Block, gather, plain_path
from detectors.tasks.facts import Change

_READ_EDITS = 1_000  # of a call that makes several
_LEVELS = 3  # a list of files, each with a list of edits
_MAX_LINE = 10**9
_APPENDS = (True, "a", "append")

_ARGUMENTS: Final = Arguments(
    paths=(
        "file_path", "path", "absolute_path", "relative_path", "target_file", "file", "filename", "file_name",
        "notebook_path", "relative_workspace_path", "notebook", "uri",
    ),
    edits=("edits", "replacements", "replacement_chunks", "changes", "hunks", "modifications", "operations", "files"),
    olds=(
        "old_string", "old_str", "old_text", "old", "search", "find", "original", "old_content", "old_code",
        "target_content", "original_text", "search_text", "before", "from",
    ),
    news=(
        "new_string", "new_str", "new_text", "new", "replace", "replacement", "replace_with", "new_content", "new_code",
        "replacement_content", "replacement_text", "replace_text", "insert_text", "after", "to",
    ),
    patches=("patch", "diff", "input", "patch_text", "unified_diff", "patch_content", "diff_text"),
    contents=(
        "content", "contents", "file_text", "text", "new_source", "new_content", "file_content", "code_content", "code",
        "source", "data", "body",
    ),
    places=(
        "start_line", "line_start", "line_number", "line", "from_line", "start", "position", "cell_id",
        "cell_number", "cell_index",
    ),
    inserts=("insert_line", "insert_at", "after_line"),
    appends=("append", "mode"),
)  # fmt: skip


def change_of_diff(diff: str) -> Change:
    """Return the change that a diff makes: a unified one, git's, or a patch between ``*** Begin Patch`` and its end."""
    return read_diff(diff)[0]


def read_diff(diff: str) -> tuple[Change, tuple[str, ...]]:
    """Return the change that a diff makes, and the paths of the files that it names, each once.

    A path is that after the change, and that before it where there is none.
    """
    paths: dict[str, None] = {}

    def noting() -> Iterator[Block]:
        named: tuple[str, ...] = ()
        for block in blocks_of(diff):
            if block[:2] != named:
                named = block[:2]
                path = plain_path(block.path) or plain_path(block.source)
                if path:
                    paths[path] = None
            yield block

    return gather(noting()), tuple(paths)


def change_of_texts(replacements: Iterable[tuple[str, str | None, str | None]]) -> Change:
    """Return the change of texts that others take the place of: each with its path, the old and the new text.

    Without an old text the new one is all that is in the file; without a new one the old one is taken out. Where in the
    file they stand is not known; lines that are in both are no change, wherever in the text they moved.
    """
    return gather(
        Block(path, path, removed=_lines(old), added=_lines(new), whole=old is None and new is not None)
        for path, old, new in replacements
    )


def change_of_call(arguments: Any, target: str) -> Change:
    """Return the change that a call of an edit tool makes, by its arguments (any JSON value).

    ``target`` is the file that it is about, where the arguments name none. Of arguments in which nothing is recognised
    the change is empty.
    """
    return gather(_of_call(opened(arguments), target, _LEVELS))


def _lines(text: str | None) -> list[str]:
    return text.split("\n") if text else []


def _of_call(arguments: Any, path: str, levels: int) -> Iterator[Block]:
    """Yield what a call, or one of several edits in it, replaces."""
    if isinstance(arguments, str):
        if is_marked(arguments):
            yield from blocks_of(arguments, path)
    elif isinstance(arguments, list) and levels:
        for each in islice(arguments, _READ_EDITS):
            yield from _of_call(each, path, levels - 1)
    elif isinstance(arguments, dict):
        given = _ARGUMENTS.given(arguments)
        if not given.found:  # as of a command line
            yield from _of_patches(arguments, path)
            return
        named = given.first("paths")
        path = named[:PATH_CHARS] if isinstance(named, str) and named else path
        edits = given.first("edits")
        if isinstance(edits, list):
            yield from _of_call(edits, path, levels)
        else:
            yield from _of_texts(given, arguments, path)


def _of_texts(given: Given, arguments: dict[str, Any], path: str) -> Iterator[Block]:
    """Yield what arguments, which are given by their roles too, replace by texts in one of the usual forms."""
    first = given.first
    old, new, content, patch = map(_text, map(first, ("olds", "news", "contents", "patches")))
    after, at = first("inserts"), first("places")
    part = after is not None or at is not None or first("appends") in _APPENDS
    if old is not None:
        yield Block(path, path, removed=_lines(old), added=_lines(new))
    elif patch is not None and is_marked(patch):
        yield from blocks_of(patch, path)
    elif content is not None and not part:
        yield Block(path, path, added=_lines(content), whole=True)
    elif content is not None or new is not None:
        start = _line(at) if after is None else _line(after, 1)
        yield Block(path, path, start, start, added=_lines(new if content is None else content))
    else:
        yield from _of_patches(arguments, path)


def _of_patches(arguments: dict[str, Any], path: str) -> Iterator[Block]:
    """Yield what the diffs and patches among arguments replace, whatever they are called."""
    for value in arguments.values():
        for text in value if isinstance(value, list) else (value,):
            if isinstance(text, str) and "\n" in text and is_marked(text):
                yield from blocks_of(text, path)


def _line(value: Any, more: int = 0) -> int:
    """Return the number of a line, or of one behind it; 0 for what is none."""
    return value + more if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_LINE else 0


def _text(value: Any) -> str | None:
    """Return a text, or lines, as one text; None for what is neither."""
    if isinstance(value, list) and value and all(isinstance(line, str) for line in value):
        return "\n".join(line.removesuffix("\n") for line in value)
    return value if isinstance(value, str) else None
