"""What arguments name: targets, lines and queries, as the tools of common agents spell them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detectors.catalogue import Tools
from detectors.tools import plain_name
from detectors.use import KINDS

TOOLS = Tools()
NAMES = st.sampled_from(
    sorted(
        {
            *(TOOLS.paths + TOOLS.objects + TOOLS.starts + TOOLS.ends + TOOLS.ranges + TOOLS.counts + TOOLS.queries),
            *(TOOLS.inputs + TOOLS.selectors),
            "code",
            "cmd",
        }
    )
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES | st.text(), inner, max_size=5),
)


@pytest.mark.parametrize(
    ("tool", "arguments", "lines"),
    [
        ("Read", {"file_path": "a.py"}, (0, 0)),
        ("Read", {"file_path": "a.py", "offset": 11, "limit": 20}, (11, 30)),
        ("read_file", {"absolute_path": "a.py", "offset": 0, "limit": 20}, (1, 20)),
        ("read_file", {"path": "a.py", "offset": 5}, (5, 0)),
        (
            "read_file",
            {"target_file": "a.py", "start_line_one_indexed": 3, "end_line_one_indexed_inclusive": 9},
            (3, 9),
        ),
        ("read_file", {"filePath": "a.py", "startLine": "3", "endLine": "9"}, (3, 9)),
        ("read_file", {"args": {"file": [{"path": "a.py", "line_range": "3-9"}]}}, (3, 9)),
        ("read_file", {"files": [{"path": "a.py", "line_ranges": ["3-9"]}]}, (3, 9)),
        ("view_file", {"AbsolutePath": "a.py", "StartLine": 3.0, "EndLine": 9.0}, (3, 9)),
        ("view", {"path": "a.py", "view_range": [3, 9]}, (3, 9)),
        ("view", {"path": "a.py", "view_range": [3, -1]}, (3, 0)),
        ("view", {"path": "a.py", "view_range": "[3, 9]"}, (0, 0)),
        ("read", {"path": "a.py", "start": 0, "end": -1}, (0, 0)),
        ("read", {"path": "a.py", "end": 9}, (1, 9)),
        ("read_file_chunk", "read_file_chunk(file='a.py', start_line=101)", (101, 0)),
        ("open", {"action": '"a.py" 120'}, (120, 0)),
        ("visit_page", {"url": "a.py", "page": 2}, (2, 2)),
        ("edit", {"file": "a.py", "range": "4:6", "new_str": "x"}, (4, 6)),
        ("read", {"path": "a.py", "offset": True, "limit": "many"}, (0, 0)),
        ("read", {"path": "a.py", "offset": "--5", "limit": 10**40}, (0, 0)),
    ],
)
def test_lines(tool, arguments, lines):
    """First and last line, from 1 and both included, whichever way they are asked for."""
    use = TOOLS.use(plain_name(tool), arguments)
    assert use.target == "a.py"
    assert (use.start, use.end) == lines


@pytest.mark.parametrize(
    ("tool", "arguments", "target"),
    [
        ("Edit", {"file_path": "./src/a.py", "old_string": "x", "new_string": "y"}, "src/a.py"),
        ("write_to_file", {"TargetFile": "C:\\a b.md", "CodeContent": "x"}, "C:\\a b.md"),
        ("apply_patch", {"input": "*** Begin Patch\n*** Update File: a.py\n-x\n*** End Patch"}, "a.py"),
        ("apply_patch", {"patch": "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n+y\n"}, "a.py"),
        ("apply_patch", {"input": "*** Update File: a.py\n-x\n*** Update File: b.py\n-x"}, ""),
        ("edit", {"action": "'def f(a):' 'def f(b):' False"}, ""),
        ("create", {"action": "a.py"}, "a.py"),
        ("read_many_files", {"paths": ["a.py"]}, "a.py"),
        ("read_many_files", {"paths": ["a.py", "b.py"]}, ""),
        ("WebFetch", {"url": "http://x/y", "prompt": "what is it?"}, "http://x/y"),
        ("get_reservation_details", {"reservation_id": "X1"}, "X1"),
        ("update_reservation", {"cabin": "economy", "user_id": "u", "reservation_id": "X1"}, "X1"),
        ("get_museum_object", {"objectId": 549236}, "549236"),
        ("get_issue", {"owner": "o", "repo": "r", "issue_number": 12}, "12"),
        ("get_summary", {"title": "Kafka"}, "Kafka"),
        ("get_directions", {"origin": "A", "destination": "B"}, "B A"),
        ("book_flight", {"origin": "A", "destination": "B"}, ""),
        ("browser_click", {"element": "the button", "ref": "e12"}, "e12"),
        ("computer", {"action": "left_click", "coordinate": [10, 20]}, "10,20"),
        ("think", {"thought": "a.py", "path": "a.py"}, ""),
        ("calculate", {"expression": "1 + 1"}, ""),
        ("read_file", None, ""),
        ("read_file", [1, 2], ""),
    ],
)
def test_targets(tool, arguments, target):
    """The one thing that is read, changed or operated; nothing where there are several."""
    assert TOOLS.use(plain_name(tool), arguments).target == target


@pytest.mark.parametrize(
    ("tool", "arguments", "query", "target"),
    [
        ("Grep", {"pattern": "foo|bar", "path": "src", "output_mode": "content"}, "foo|bar", "src"),
        ("grep_search", {"Query": "foo", "SearchPath": "src"}, "foo", "src"),
        ("web_search", {"query": "what is it"}, "what is it", ""),
        ("web_search", "what is it", "what is it", ""),
        ("google_search", {"queries": ["one", "two"]}, "one,two", ""),
        ("search_file", {"file": "a.py", "query": "foo", "max_matches": 5}, "foo", "a.py"),
        ("search_file", {"action": "'foo bar' a.py"}, "foo bar", "a.py"),
        ("search_dir", {"action": "foo src/x"}, "foo", "src/x"),
        ("find_file", {"action": "a.py"}, "a.py", ""),
        ("search_method", 'search_method("foo"), search_method("bar")', "foo", ""),
        ("search_method_in_file", 'search_method_in_file("foo", "a.py")', "foo", "a.py"),
        ("search_direct_flight", {"origin": "A", "destination": "B", "date": "2026-01-31"}, "A B 2026-01-31", ""),
        ("Glob", {"pattern": "**/*.py"}, "**/*.py", ""),
        ("read_file", {"path": "a.py", "query": "foo"}, "", "a.py"),
    ],
)
def test_queries(tool, arguments, query, target):
    """What a search looks for and where; a search without a word for it looks for all that it names."""
    use = TOOLS.use(plain_name(tool), arguments)
    assert (use.query, use.target) == (query, target)


@given(st.sampled_from(sorted(TOOLS.names)), JSON)
def test_no_arguments_make_it_fail(name, arguments):
    """Whatever JSON a call has as arguments, its use is told, in texts and lines of bounded size."""
    use = TOOLS.use(name, arguments)
    assert use.kind in KINDS
    assert len(use.target) <= 400
    assert len(use.query) <= 400
    assert use.start >= 0
    assert use.end == 0 or use.end >= 1


@pytest.mark.parametrize(
    "arguments",
    [
        {f"key {number}": "value" * 100 for number in range(100_000)},
        {"key" * 1_000_000: "value" * 1_000_000, "path": "a" * 1_000_000},
        {"paths": [["a"] * 1_000] * 1_000},
        {"id": 10**4_000, "offset": 10**4_000},
        "read('" * 1_000_000,
    ],
    ids=["many", "long", "wide", "large", "text"],
)
def test_much_is_not_read(arguments):
    """Of very many or very long arguments the first few and their beginnings are enough."""
    assert len(TOOLS.use("read_file", arguments).target) <= 400


def test_the_first_arguments_are_read():
    """A target among the first arguments of a call counts, one behind dozens of others does not."""
    others = {f"key {number}": "" for number in range(100)}
    assert TOOLS.use("read_file", {"path": "a.py", **others}).target == "a.py"
    assert TOOLS.use("read_file", {**others, "path": "a.py"}).target == ""
