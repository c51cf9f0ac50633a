"""What is read quickly of a diff is what the library reads of it, and it is what git and `diff -u` write."""

from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detectors.tasks import diff_text
from detectors.tasks.edits import Block
from detectors.tasks.unified import plain_names, read_unified
from tests.detectors.tasks.diff_kit import files, written

HEADS = (
    "diff --git a/a.py b/a.py", "diff --git a/a.py b/b.py", "diff --git a/c d.md b/c d.md", "index 12..34 100644",
    "new file mode 100644", "deleted file mode 100644", "old mode 100644", "new mode 100755", "similarity index 90%",
    "rename from a.py", "--- a/a.py", "+++ b/a.py", "+++ b/b.py", "--- a/a.py\t2026-01-01", "--- /dev/null",
    "+++ /dev/null", "@@ -1 +1 @@", "@@ -1,2 +1 @@ def f():", "@@ -0,0 +1 @@", "@@ -0,0 +0,0 @@", "-", "+x", "-y", " z",
    "", "\r", "\\ No newline at end of file", "diff --git a/b/x b/b/x", "diff --git a/x://y b/x", "GIT binary patch",
    "Binary files a/a.py and b/a.py differ", "-- ", 'diff --git "a/\\303\\266.py" "b/\\303\\266.py"',
)  # fmt: skip
HUNK = ("--- a/a.py", "+++ b/a.py", "@@ -1,2 +1,2 @@", " one", "-two", "+three")


def altered(diff: str, changes: list[tuple[int, int, str]]) -> str:
    """Return a diff with a few of its lines replaced by others."""
    lines = diff.split("\n")
    for at, count, line in changes:
        lines[at % len(lines) : at % len(lines) + count] = [line]
    return "\n".join(lines)


DIFFS = st.builds(
    altered,
    files.map(written),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2), st.sampled_from(HEADS)), max_size=3),
) | st.lists(st.sampled_from((*HEADS, "\n".join(HUNK))), max_size=9).map("\n".join)


def plain(blocks: Iterable[Block]) -> list[Block]:
    """Return blocks whose lines are in lists, without their ends."""
    ends = str.maketrans("", "", "\n")
    return [
        block._replace(
            removed=[line.translate(ends) for line in block.removed],
            added=[line.translate(ends) for line in block.added],
        )
        for block in blocks
    ]


def of_library(diff: str) -> Iterator[Block]:
    """Yield the blocks as the library reads them; none when it does not."""
    for patched in diff_text._parsed(diff) or ():
        names = plain_names(patched.source_file, patched.target_file)
        yield from diff_text._blocks(patched, *names)
        yield Block(*names)


@settings(max_examples=400, deadline=None)
@given(DIFFS)
def test_what_is_read_is_what_the_library_reads(diff):
    """Or nothing is."""
    found = read_unified(diff)
    assert found is None or plain(found) == plain(of_library(diff))


@given(files.filter(lambda changed: all(lines[0] or lines[1] for each in changed.values() for _, *lines in each)))
def test_diffs_as_they_are_written_are_read(changed):
    """Wherever anything changes."""
    assert (read_unified(written(changed)) is not None) == any(changed.values())


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("", True),
        ("index 12..34", False),
        ("diff --git a/a.py b/a.py", True),
        ("diff --git a/a.py b/a.py\nindex 12..34\nnew file mode 100644", True),
        ("diff --git a/a.py b/c.py", False),
        ("diff --git a/a.py b/a.py b/a.py", False),
        ("diff --git a/x://y b/a.py", False),
        ("diff --git a/a.py b/a.py\nGIT binary patch", False),
        ("diff --git a/other.py b/other.py\nsimilarity index 100%\ndiff --git a/a.py b/a.py", True),
    ],
)
def test_a_header_is_read_when_it_says_one_thing(line, read):
    """Else the diff is left to the library."""
    assert (read_unified("\n".join([*filter(None, [line]), *HUNK])) is not None) == read


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_hunk_that_is_cut_off_is_not_read(cut):
    """As its counts say."""
    assert read_unified("\n".join(HUNK)) is not None
    assert read_unified("\n".join(HUNK[:-cut])) is None


@pytest.mark.parametrize(
    "hunk", ["@@ -1 +1,2 @@\n-a\n-b\n+c\n+d", "@@ -1,2 +1 @@\n+a\n+b\n-c\n-d", "@@ -1,2 +1 @@\n a\n b"]
)
def test_a_hunk_with_more_lines_than_it_says_is_not_read(hunk):
    """Of either side, be the last that is read in its place."""
    assert read_unified("\n".join((*HUNK[:2], hunk))) is None
