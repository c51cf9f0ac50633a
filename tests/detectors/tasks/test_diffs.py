"""Diffs as models write them: what can be read is read, nothing raises, and long ones take time by their length."""

import re
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detectors.tasks import diff_text
from detectors.tasks.diffs import change_of_diff, change_of_texts, read_diff
from detectors.tasks.edits import MAX_BLOCKS
from detectors.tasks.facts import Change

GIT = """\
diff --git a/lib/till.py b/lib/till.py
index 83db48f..bf269f4 100644
--- a/lib/till.py
+++ b/lib/till.py
@@ -3,4 +3,4 @@ def total():
 one
-two
+three
 four
 five
@@ -20,3 +20,4 @@
 six
+seven
 eight
 nine
"""
FIRST = GIT[: GIT.index("@@ -20")]


def places(change: Change) -> list[tuple[int, int, int, int]]:
    """Where the regions of a change are."""
    return [
        (each.old_start, each.old_count, each.new_start, each.new_count)
        for file in change.files
        for each in file.regions
    ]


def test_regions_are_the_lines_that_change():
    """Without their context, with the numbers before and after."""
    assert places(change_of_diff(GIT)) == [(4, 1, 4, 1), (21, 0, 21, 1)]
    assert read_diff(GIT)[1] == ("lib/till.py",)


@pytest.mark.parametrize(
    ("written", "form"),
    [
        (GIT.replace("\n", "\r\n"), "Windows' line ends"),
        (GIT.replace("3,4 +3,4", "3,9 +3,2"), "wrong counts"),
        (GIT.replace("3,4 +3,4", "3 +3"), "no counts"),
        (GIT.replace("20,3 +20,4", "20,30 +20,40"), "cut off, by its counts"),
        (GIT.replace("20,3 +20,4", "20,1 +20,1"), "counts that are too low"),
        (GIT.removesuffix(" eight\n nine\n"), "cut off, by its end"),
        (GIT.rstrip("\n"), "without the last line end"),
        (GIT.partition("\n")[2], "without the first line"),
        (GIT[GIT.index("---") :], "without git's headers"),
        (GIT.replace("a/lib", "lib").replace("b/lib", "lib"), "without prefixes"),
        (GIT.replace("a/lib", "./lib").replace("b/lib", "./lib"), "relative to the folder"),
        (GIT.replace("a/lib", "i/lib").replace("b/lib", "w/lib"), "with other prefixes"),
        (GIT.replace("lib/", "lib\\"), "Windows' paths"),
        (GIT.replace("--- a/lib/till.py\n", ""), "without the first name"),
        (GIT.replace("+++ b/lib/till.py\n", ""), "without the second name"),
        (GIT.replace("till.py\n@", "till.py\t2026-12-01 11:00:00\n@"), "with times"),
        (GIT.replace(" five\n", " five\n\n"), "with an empty line"),
        (GIT.replace(" one\n", "one\n"), "context that lost its blank"),
        (f"Here is the fix:\n\n- first\n- second\n\n```diff\n{GIT}```\n", "in prose"),
        (f"{GIT}\\ No newline at end of file\n", "without a line end in the file"),
        (GIT.replace("+three\n", "+three\n\\ No newline at end of file\n"), "the same in the middle"),
        (GIT.replace("-two\n", "-  two\n-\n").replace("3,4 +", "3,5 +"), "with blank lines and other white space"),
    ],
)
def test_a_diff_is_read_in_whatever_state_it_is(written, form):
    """Models write them from memory."""
    change, wanted = change_of_diff(written), change_of_diff(GIT)
    assert change.digest == wanted.digest, form
    assert [(file.path, len(file.regions)) for file in change.files] == [(wanted.files[0].path, 2)]
    assert [(each.removed, each.added) for each in change.files[0].regions] == [
        (each.removed, each.added) for each in wanted.files[0].regions
    ]
    assert read_diff(written)[1] == ("lib/till.py",)


@pytest.mark.parametrize(
    "written",
    [
        "--- a/lib/till.py\n+++ b/lib/till.py\n-two\n+three\n",
        "--- a/lib/till.py\n+++ b/lib/till.py\n@@\n one\n-two\n+three\n",
        "--- a/lib/till.py\n+++ b/lib/till.py\n@@ ... @@\n-two\n+three\n",
        "*** Begin Patch\n*** Update File: lib/till.py\n@@ def total():\n one\n-two\n+three\n*** End Patch\n",
        "*** Update File: lib/till.py\n-two\n+three",
        "apply_patch <<'X'\n*** Begin Patch\n*** Update File: ./lib/till.py\n-two\n+three\n*** End Patch\nX",
        "lib/till.py\n<<<<<<< SEARCH\ntwo\n=======\nthree\n>>>>>>> REPLACE\n",
        "**`lib/till.py`**:\n\n```python\n<<<<<<< SEARCH\none\ntwo\n=======\none\nthree\n>>>>>>> REPLACE\n```\n",
        "### lib/till.py\n------- SEARCH\n:start_line:3\n-------\ntwo\n=======\nthree\n+++++++ REPLACE\n",
    ],
)
def test_other_forms_are_read_without_numbers(written):
    """The patch of `apply_patch`, blocks of SEARCH and REPLACE, and diffs whose hunks say nothing."""
    change, wanted = change_of_diff(written), change_of_diff(FIRST)
    assert change.digest == wanted.digest
    assert {(old, new) for old, _, new, _ in places(change)} == {(0, 0)}
    assert read_diff(written)[1] == ("lib/till.py",)


def test_lines_alone_are_a_diff():
    """Without a file; where they stand is not known."""
    change = change_of_diff(" one\n-two\n+three\n four\n+seven\n")
    assert places(change) == [(0, 0, 0, 0)]
    assert change_of_diff("-two\n+three\n+seven\n").files == change.files
    assert read_diff("-two\n+three\n")[1] == ()


@pytest.mark.parametrize(
    "written",
    [
        "",
        "\n",
        "No changes.",
        "The file:\n@@\n",
        GIT.replace("-two\n+three\n", " two\n").replace("+seven\n", ""),
        FIRST.replace("-two\n+three", "-two\n+  two"),
        FIRST.replace("-two\n+three", "-\n+ "),
        FIRST[: FIRST.index("@@")],
        "*** Begin Patch\n*** End Patch\n",
        "<<<<<<< SEARCH\ntwo\n=======\ntwo\n>>>>>>> REPLACE\n",
    ],
)
def test_where_nothing_changes_there_is_no_change(written):
    """The digest is 0, and nothing is compared."""
    assert change_of_diff(written) == Change()


def test_a_patch_that_adds_moves_and_deletes_files():
    """As `apply_patch` has it; of a deleted file the content is not known."""
    patch = (
        "*** Begin Patch\n*** Add File: new.py\n+one\n+two\n*** Update File: old.py\n*** Move to: moved.py\n"
        "@@\n-two\n+three\n*** Delete File: gone.py\n*** End Patch\n"
    )
    change = change_of_diff(patch)
    assert read_diff(patch)[1] == ("new.py", "moved.py", "gone.py")
    assert [(file.path == file.source, len(file.regions)) for file in change.files] == [
        (True, 1),
        (False, 1),
        (True, 0),
    ]
    assert change_of_diff("*** Delete File: gone.py").digest not in {0, change_of_diff("*** Delete File: a.py").digest}


@pytest.mark.parametrize(
    ("header", "paths"),
    [
        ("diff --git a/one.py b/two.py\nsimilarity index 100%\nrename from one.py\nrename to two.py\n", ("two.py",)),
        ("diff --git a/new.py b/new.py\nnew file mode 100644\nindex 0000000..e69de29\n", ("new.py",)),
        ("diff --git a/gone.py b/gone.py\ndeleted file mode 100644\nindex e69de29..0000000\n", ("gone.py",)),
        ("diff --git a/run b/run\nold mode 100644\nnew mode 100755\n", ("run",)),
        ("diff --git a/x.bin b/x.bin\nindex 1..2 100644\nBinary files a/x.bin and b/x.bin differ\n", ("x.bin",)),
        ('diff --git "a/gr\\303\\266\\303\\237e.py" "b/gr\\303\\266\\303\\237e.py"\n', ("größe.py",)),
        ('--- "a/tab\\there.py"\n+++ "b/tab\\there.py"\n', ("tab\there.py",)),
        ("diff --git a/with space.py b/with space.py\n", ("with space.py",)),
        ("diff --git one.py one.py\n", ("one.py",)),
        ("--- a/one.py\n+++ /dev/null\n", ("one.py",)),
        ("--- /dev/null\n+++ b/one.py\n", ("one.py",)),
        ("--- a/one.py\n+++ a/one.py\n", ("a/one.py",)),  # no prefix of git's: a folder
    ],
)
@pytest.mark.parametrize("parsed", [0, 20_000])
def test_files_are_named_by_their_headers(monkeypatch, header, paths, parsed):
    """Alone, and in front of other files, by either reader."""
    monkeypatch.setattr(diff_text, "_PARSED_LINES", parsed)
    assert read_diff(header)[1] == paths
    assert read_diff(header + GIT)[1] == (*paths, "lib/till.py")


def test_lines_that_look_like_headers_are_lines():
    """A comment of SQL that is taken out, a counter that is put in, as the counts say."""
    sql = "--- a/x.sql\n+++ b/x.sql\n@@ -1,3 +1,3 @@\n one\n--- total\n+++ count\n four\n"
    assert read_diff(sql)[1] == read_diff(sql + "+five\n")[1] == ("x.sql",)  # more than are counted
    assert places(change_of_diff(sql)) == [(2, 1, 2, 1)]
    last = "--- a/x.sql\n+++ b/x.sql\n@@ -1,2 +1,2 @@\n one\n--- total\n+++ count\n@@ -9,0 +10 @@\n+five\n"
    assert places(change_of_diff(last)) == [(2, 1, 2, 1), (10, 0, 10, 1)]
    assert places(change_of_diff(f"{last}+six")) == [(2, 1, 2, 1), (10, 0, 10, 2)]
    assert change_of_diff(sql).digest == change_of_texts([("x.sql", "-- total", "++ count")]).digest


def test_a_file_that_is_in_the_diff_twice_is_one_file():
    """Two diffs of one attempt behind each other."""
    twice = change_of_diff(GIT + FIRST.replace("two", "six").replace("three", "ten"))
    assert [len(file.regions) for file in twice.files] == [3]


def test_texts_are_compared_line_by_line():
    """What is in both is no change, white space makes no difference, and where it stands is not known."""
    change = change_of_texts([("lib/till.py", "one\ntwo\nfour\n", "one\n  three\r\nfour")])
    assert change.digest == change_of_diff(FIRST).digest
    assert places(change)[0][0] == 0
    assert change_of_texts([("./lib/till.py", "two", "three")]).digest == change.digest
    assert change_of_texts([("a.py", "one\ntwo", "two\none")]) == Change()  # moved within the text
    assert change_of_texts([("a.py", "one", "one")]) == change_of_texts([]) == Change()


def test_texts_without_the_old_or_the_new_one():
    """A whole content, and one that is taken out."""
    whole = change_of_texts([("a.py", None, "one\ntwo\n")])
    assert [(file.whole, len(file.content), file.regions) for file in whole.files] == [(True, 8, ())]
    assert [file.whole for file in change_of_texts([("a.py", None, "")]).files] == [True]
    out = change_of_texts([("a.py", "one\ntwo\n", None)])
    assert [(file.whole, len(file.regions[0].removed), file.regions[0].added) for file in out.files] == [
        (False, 8, b"")
    ]
    assert change_of_texts([("a.py", None, None)]) == Change()


lines = st.sampled_from(
    [
        *GIT.splitlines(), "--- ", "+++ ", "--- a/x", "+++ b/y", "@@", "@@ -1 +1 @@", "@@ -0,0 +1,9999999999999999 @@",
        "-", "+", "", " ", "\\", "\0", "diff --git ", "diff --git a/x b/y", "new file mode 100644",
        "deleted file mode 100644", "index 1..2 100644", "Binary files a/x and b/x differ", "GIT binary patch",
        "*** Begin Patch", "*** End Patch",
        "*** Update File: x", "*** Add File: ", "*** Move to: y", "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", "-- ",
        "From 0123456789012345678901234567890123456789 Mon", '--- "a/\\3"', '+++ "', "rename from x", "\ud800",
        "\\ No newline at end of file", "diff --git a://x b://y", "- -", "+ +",
    ]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(lines, max_size=30).map("\n".join) | st.text())
def test_nothing_that_is_sent_as_a_diff_raises(text):
    """And the same text is the same change each time."""
    change = change_of_diff(text)
    assert change == change_of_diff(text)
    assert bool(change.digest) >= bool(change.files)
    assert all(read_diff(text)[1])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=5), st.none() | st.text(), st.none() | st.text()), max_size=5))
def test_nothing_that_is_sent_as_texts_raises(replacements):
    """Any texts, under any path."""
    assert change_of_texts(replacements) == change_of_texts(list(replacements))


def hunks(count: int) -> str:
    """A diff of one file with so many hunks of a line."""
    return "--- a/x.py\n+++ b/x.py\n" + "".join(f"@@ -{n} +{n} @@\n-a{n}\n+b{n}\n" for n in range(1, count + 1))


def files(count: int) -> str:
    """A patch of so many files, of which each takes two blocks."""
    return "*** Begin Patch\n" + "".join(f"*** Update File: {n}.py\n-a{n}\n+b{n}\n" for n in range(count))


@pytest.mark.parametrize("parsed", [0, 20_000])
def test_only_so_many_hunks_are_read(monkeypatch, parsed):
    """As many as there is room for count, by either reader; what follows changes nothing."""
    monkeypatch.setattr(diff_text, "_PARSED_LINES", parsed)
    most = change_of_diff(hunks(MAX_BLOCKS))
    assert change_of_diff(hunks(MAX_BLOCKS - 1)).digest != most.digest
    assert change_of_diff(hunks(MAX_BLOCKS + 1)) == most
    assert change_of_diff(hunks(MAX_BLOCKS) + "anything") == most


def test_only_so_many_files_are_read():
    """Those that the first blocks are of are named, and no others."""
    most = MAX_BLOCKS // 2
    for count in (most - 1, most, most + 1):
        assert read_diff(files(count))[1] == tuple(f"{n}.py" for n in range(min(count, most)))
    assert change_of_diff(files(most + 1)) == change_of_diff(files(most)) != change_of_diff(files(most - 1))


def test_only_so_many_texts_are_read():
    """Of texts that take the place of others, likewise."""
    texts = [("x.py", f"a{n}", f"b{n}") for n in range(MAX_BLOCKS + 1)]
    assert change_of_texts(texts) == change_of_texts(texts[:-1]) != change_of_texts(texts[:-2])


def long_lines(start: str) -> str:
    """A long text that begins in this way on each of its lines, which are long."""
    return f"{start}{'x ' * 5_000}\n" * 100


@pytest.mark.parametrize(
    "text",
    [
        GIT * 3_000,
        "-a\n+b\n" * 160_000,
        "+a\n c\n" * 160_000,
        f"--- a/x\n+++ b/x\n@@ -1 +1,9 @@\n{'+x' * 500_000}",
        "".join(f"--- a/{number}\n+++ b/{number}\n@@ -1 +1 @@\n-a\n+b\n" for number in range(20_000)),
        "diff --git a/x b/y\n" * 50_000,
        "diff --git " + "://a " * 200_000,
        long_lines("diff --git a/"),
        long_lines("diff --git "),
        long_lines("Binary files "),
        f"Binary files {'a and ' * 1_000}\n" * 150,
        long_lines("--- "),
        long_lines("*** Update File: "),
        long_lines("@@ -1"),
        f"{' ' * 500_000}\n" * 2,
        "\n" * 1_000_000,
        "<<<<<<< SEARCH\n" + "a\n" * 400_000,
    ],
    ids=lambda text: re.sub(r"\s+", "_", text[:24]),
)
def test_a_long_text_takes_time_by_its_length(text):
    """Whatever it is of: an event may hold five times as much."""
    started = process_time()
    change = change_of_diff(text[:200_000])
    assert process_time() - started < 4
    assert len(change.files) <= 16
