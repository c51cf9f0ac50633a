"""Patches: comments, blanks and labels make no other edit; everything else that an edit puts down does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detectors.patch import patch_digest
from tests.detectors.reading import json_values, read, reversed_keys


def patch(path, new, **more) -> int:
    """The digest of a replacement in a file."""
    return patch_digest("edit_file", {"path": path, "old": "total = 0", "new": new, **more}, ())


@pytest.mark.parametrize(
    ("path", "one", "other"),
    [
        ("till.py", "total = 1  # start at one", "total = 1"),
        ("till.py", "# why one\ntotal = 1", "# because\n# of the fee\ntotal = 1"),
        ("till.py", "total=1", "total = 1\n\n"),
        ("till.js", "count(); // once more", "count(); // and again"),
        ("till.js", "{ // open\n}", "{\n}"),
        ("till.js", "/**\n * Counts.\n */\ncount()", "count()"),
        ("till.c", "/* fee */ int total;", "int total;"),
        ("till.rs", "/// Counts.\nfn count() {}", "fn count() {}"),
        ("till.css", "a { top: 0 } /* flush */", "a { top: 0 }"),
        ("till.html", "<!-- sum --><p>3</p>", "<p>3</p>"),
        ("till.sql", "select 1 -- one", "select 1 -- uno"),
        ("till.lua", "x = 1 -- one", "x = 1"),
        ("till.yml", "total: 1 # start", "total: 1"),
        ("till.sh", "#!/bin/sh\n# count\nls", "#!/bin/sh\nls"),
        ("till.go", "total := 1\t// start\n", "total := 1"),
        ("till.py", "a = 1\r\nb = 2", "a = 1\nb = 2"),
    ],
)
def test_comments_and_blanks_make_no_other_patch(path, one, other):
    """Agents resubmit one change with its comment reworded (detector specification: canonical edits)."""
    assert patch(path, one) == patch(path, other) != 0


@pytest.mark.parametrize(
    ("path", "one", "other"),
    [
        ("till.py", "total = 1", "total = 2"),
        ("till.py", "x = 'a'", "x = 'b'"),
        ("till.js", 'u = "http://a.example"', 'u = "http://b.example"'),
        ("till.py", "u = '//a.example/x'", "u = '//b.example/x'"),
        ("till.html", '<a href="#top">', '<a href="#end">'),
        ("till.md", "see [fees](#fees)", "see [fees](#sums)"),
        ("till.rb", '"#{fee}"', '"#{sum}"'),
        ("till.sh", "#!/bin/sh\nls", "#!/bin/bash\nls"),
        ("till.sh", "echo $#", "echo $@"),
        ("till.js", 'glob("src/**/*.js")', 'glob("lib/**/*.js")'),
        # What begins like a comment and is none
        ("till.css", "a { color: #fff }", "a { color: #000 }"),
        ("till.css", "#fee { top: 1px }", "#sum { top: 1px }"),
        ("till.py", 'x = "fee # 1"', 'x = "fee # 2"'),
        ("till.py", "n = total // 2", "n = total // 3"),
        ("till.js", 'x = "fee // 1"', 'x = "fee // 2"'),
        ("till.js", "#count = 1", "#count = 2"),
        ("till.c", "#include <fee.h>", "#include <sum.h>"),
        ("till.c", "#define FEE 1", "#define FEE 2"),
        ("till.rs", "#[derive(Debug)]\nstruct Till;", "#[derive(Clone)]\nstruct Till;"),
        ("till.md", "# Fees", "# Sums"),
        ("till.md", "## How fees are counted\nThey are.", "## How sums are counted\nThey are."),
        ("till.md", "The fee -- a small one -- is added.", "The fee -- a large one -- is added."),
        ("till.txt", "see issue #12 first", "see issue #13 first"),
        ("till.sh", "git checkout -- fees.md", "git checkout -- sums.md"),
    ],
)
def test_what_the_edit_puts_down_makes_another_patch(path, one, other):
    """Taking different edits for one would make honest work look like a loop."""
    assert patch(path, one) != patch(path, other)


def test_the_place_and_the_tool_are_part_of_the_patch():
    """The same lines in another file, at another line or by another tool are another edit."""
    arguments = {"path": "till.py", "line": 3, "new": "total = 1"}
    one = patch_digest("insert", arguments, ())
    assert one != patch_digest("insert", {**arguments, "path": "fees.py"}, ())
    assert one != patch_digest("insert", {**arguments, "line": 4}, ())
    assert one != patch_digest("write_file", arguments, ())


def test_what_is_taken_out_counts_like_what_is_put_in():
    """Replacing another text is another edit."""
    assert patch("till.py", "", old="fee = 1") != patch("till.py", "", old="fee = 2")


def test_labels_make_no_other_patch():
    """What only describes the edit to people is left out, by the names that are given for the tool."""
    one = {"path": "till.py", "new": "total = 1", "explanation": "start at one"}
    other = {**one, "explanation": "the fee"}
    assert patch_digest("edit", one, ("explanation",)) == patch_digest("edit", other, ("explanation",))
    assert patch_digest("edit", one, ()) != patch_digest("edit", other, ())


def test_each_part_of_an_edit_of_several_is_compared():
    """A list of replacements is as many edits; their comments make no difference, their order does."""
    first, second = {"old": "a", "new": "b  # one"}, {"old": "c", "new": "d"}
    one = patch_digest("multi_edit", {"path": "till.py", "edits": [first, second]}, ())
    bare = {"old": "a", "new": "b"}
    assert one == patch_digest("multi_edit", {"path": "till.py", "edits": [bare, second]}, ())
    assert one != patch_digest("multi_edit", {"path": "till.py", "edits": [second, bare]}, ())
    assert one != patch_digest("multi_edit", {"path": "till.py", "edits": [bare]}, ())


def test_a_patch_in_one_text_is_compared_like_one_in_fields():
    """Tools that take a whole diff as their only argument."""
    diff = "*** Update File: till.py\n-total = 0\n+total = 1"
    one = patch_digest("apply_patch", diff, (), "till.py")
    assert one == patch_digest("apply_patch", f"{diff}  # start", (), "till.py")
    assert one != patch_digest("apply_patch", diff.replace("1", "2"), (), "till.py")


@pytest.mark.parametrize("arguments", [None, "", {}, [], 3, 0.5, True])
def test_where_nothing_is_known_there_is_nothing_to_compare(arguments):
    """0 is no patch: without arguments, edits are not taken for one another."""
    assert patch_digest("edit_file", arguments, ()) == 0


def test_only_edits_have_a_patch():
    """A read or a run of the same arguments puts nothing down."""
    arguments = {"path": "till.py", "content": "total = 1"}
    assert read(("write_file", arguments), "written").patch != 0
    assert read(("read_file", arguments), "total = 1").patch == 0
    assert read(("bash", {"command": "make"}), "done").patch == 0
    assert read(("write_file", None), "written").patch == 0


def test_label_arguments_of_the_catalogue_are_left_out():
    """Calls are compared with the labels that the catalogue has for their tool."""
    one = read(("edit_file", {"path": "till.py", "new": "x", "explanation": "first"}), "done")
    other = read(("edit_file", {"path": "till.py", "new": "x", "explanation": "second"}), "done")
    assert one.patch == other.patch != 0


@given(json_values, st.text(max_size=20))
def test_any_arguments_have_a_patch_whatever_the_order_of_their_keys(value, text):
    """Nothing that an agent sends breaks the comparing."""
    arguments = {"path": "till.py", "new": text, "more": value}
    assert patch_digest("edit", arguments, ()) == patch_digest("edit", reversed_keys(arguments), ())
    assert 0 <= patch_digest("edit", value, ()) < 2**64


@given(st.lists(st.sampled_from(["total", "=", "(", ")", "1", "+", "'a'"]), min_size=1, max_size=12), st.data())
def test_blanks_between_words_never_matter(words, data):
    """However a change is laid out, it is that change."""
    blanks = data.draw(st.lists(st.sampled_from([" ", "\n", "\t", "  \n"]), min_size=len(words), max_size=len(words)))
    laid_out = "".join(word + blank for word, blank in zip(words, blanks, strict=True))
    assert patch("till.py", laid_out) == patch("till.py", " ".join(words))


@pytest.mark.parametrize("size", [65_000, 70_000, 200_000])
def test_what_stands_far_down_counts_too(size):
    """A long file that differs only at its end is another one."""
    body = "total += fee\n" * (size // 13)
    assert patch("till.py", f"{body}x = 1") != patch("till.py", f"{body}x = 2")
