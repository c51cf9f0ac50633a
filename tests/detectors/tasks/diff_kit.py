"""Unified diffs for tests, written from what is taken out and put in where."""

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

Hunk = tuple[int, Sequence[str], Sequence[str]]
"""How many lines stand between it and the one before, the lines it takes out, and those it puts in."""

WORDS = ("total = 1", "return total", "}", "x", "-- fee", "++ fee", "\tdeep", "größe", "")
_lines = st.lists(st.sampled_from(WORDS), max_size=4)
hunks = st.lists(st.tuples(st.integers(1, 9), _lines, _lines), max_size=5)
files = st.dictionaries(st.sampled_from(("a.py", "lib/b.py", "c d.md")), hunks, max_size=3)


def written(files: Mapping[str, Sequence[Hunk]], *, back: bool = False, first: int = 1) -> str:
    """Return a diff without context, or the one that takes it back; ``first`` is the number of its first line."""
    parts: list[str] = []
    for path, changes in files.items():
        if changes:
            parts += [f"--- a/{path}", f"+++ b/{path}"]
        old = new = first
        for gap, removed, added in changes:
            old, new = old + gap, new + gap
            sides = [(_range(old, removed), removed), (_range(new, added), added)]
            (before, out), (after, put_in) = reversed(sides) if back else sides
            parts += [f"@@ -{before} +{after} @@", *(f"-{line}" for line in out), *(f"+{line}" for line in put_in)]
            old, new = old + len(removed), new + len(added)
    return "".join(f"{part}\n" for part in parts)


def _range(start: int, lines: Sequence[str]) -> str:
    return f"{start if lines else start - 1},{len(lines)}"
