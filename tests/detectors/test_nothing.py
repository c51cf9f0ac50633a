"""Nothing found: one notion of it for all tools, over its many spellings and over what only looks like it."""

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from detectors.masks import MASK
from detectors.nothing import brought_nothing, unwrapped
from tests.detectors.reading import json_values, read

SEARCH = ("search_docs", {"query": "green tea", "page_size": 20})
GREP = ("bash", {"command": "grep -rn 'green tea' notes"})

DENIALS = ("no", "zero", "0 ", "n't", "unable", "empty", "without")
"""Of which one is in every sentence that says that there is nothing."""

NOTHING = [
    "",
    "  \n ",
    "[]",
    "[ ]\n",
    "{}",
    "null",
    "None",
    "No results found.",
    "0 results",
    "no matches",
    "No matching documents",
    "Found 0 files",
    "nothing found",
    "None found.",
    "No hits",
    "no such file or directory",
    "notes/tea.md: not found",
    "Could not find the symbol Brew",
    "Unable to locate element",
    "The query returned no rows",
    "(0 rows)",
    "Empty result set",
    "Your search did not match any documents.",
    "Sorry, we couldn't find anything",
    "The order does not exist",
    "No data available",
    "No output",
    "(no output)",
    "The folder is empty",
    "matches: 0",
    "Total: 0",
    "results: []",
    "{'results': []}",
    "<result></result>",
    "<results>[]</results>",
    "<returncode>0</returncode>\n<output>\n</output>",
    "(empty)",
    "(no content)",
    '""',
    "<items/>",
    "No emails found.",
    "no messages",
    "The command ran and did not produce any output.",
    "Command completed without output",
]
NOTHING_IN_JSON = [
    {"results": []},
    {"results": None},
    {"count": 0},
    {"total": 0, "items": []},
    {"data": {"hits": []}},
    {"data": None, "success": True},
    {"items": [], "next": None, "has_more": False},
    {"results": [], "status": "success", "message": ""},
    {"results": [], "message": "No matches"},
    {"edges": [], "pageInfo": {"hasNextPage": False, "endCursor": None}},
    {"content": [{"type": "text", "text": "No results found"}]},
    [{}],
    [[]],
    {"results": [], "page": 1, "page_size": 20},
    {"status": 200, "data": []},
    {"exit_code": 0, "stdout": "", "stderr": ""},
    {"output": ""},
    {"content": [{"type": "text", "text": ""}]},
]


@pytest.mark.parametrize("text", [*NOTHING, *map(json.dumps, NOTHING_IN_JSON)])
def test_nothing_has_many_spellings(text):
    """Empty texts, empty lists in whatever wrapper, counts of zero and sentences that say so."""
    assert brought_nothing(unwrapped(text))


@pytest.mark.parametrize("result", NOTHING_IN_JSON, ids=str)
def test_structured_results_are_read_like_their_text(result):
    """A tool that answers with an object and one that answers with its JSON brought the same."""
    assert read(SEARCH, result).empty


SOMETHING = [
    "ok",
    "done",
    "true",
    "false",
    "yes",
    "no",
    "0",
    "1",
    "0.0",
    "1 result",
    "10 results",
    "Found 3 files",
    "results: 12",
    "Total: 10",
    "hits=0 misses=12",
    "no results: 3",
    # Checks that found nothing wrong
    "0 errors",
    "no errors",
    "No problems found",
    "All checks passed!",
    "found 0 vulnerabilities",
    "total: 0 errors, 12 checks",
    "results: 0 failed, 4 passed",
    "Already up to date.",
    "On branch main\nnothing to commit, working tree clean",
    # Content that has the words
    "src/not_found.py",
    "nothing.py\nempty.py",
    "def test_not_found():",
    "class NoResults(Exception): ...",
    "def basket():\n    return []",
    "src/till.py:3: return None",
    "till.py:1:results = []",
    'src/till.py:12: raise LookupError("not found")',
    "src/list.tsx:4:  <p>No results found</p>",
    "README.md:3:The basket is empty at first.",
]
SOMETHING_IN_JSON = [
    {"ok": True},
    {"success": True},
    {"stock": 0},
    {"balance": 0.0},
    {"price": 0, "currency": "EUR"},
    {"available": False},
    {"unread": 0},
    {"errors": 0, "warnings": 0},
    {"passed": 12, "failed": 0},
    {"items": [{"id": 1}], "errors": []},
    {"id": 7, "tags": []},
    {"count": 3, "next": None},
    {"a": [], "b": [1]},
    {"name": "Bo", "orders": []},
    {"length": 0, "name": "a"},
    [0],
    [False],
    [1],
]


@pytest.mark.parametrize("text", [*SOMETHING, *map(json.dumps, SOMETHING_IN_JSON)])
def test_what_looks_like_nothing_may_bring_something(text):
    """Small values are data, green checks are news, and found lines may contain any words."""
    assert not brought_nothing(unwrapped(text))


@pytest.mark.parametrize("result", SOMETHING_IN_JSON, ids=str)
def test_structured_results_that_bring_something_are_read_so(result):
    """A value of zero or false is the answer that was asked for."""
    assert not read(SEARCH, result).empty


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (SEARCH, "No documents for green tea"),
        (SEARCH, {"query": "green tea", "results": [], "total": 0}),
        (SEARCH, {"data": {"hits": []}, "took": 3}),
        (GREP, "\n"),
        (GREP, "<returncode>1</returncode>\n<output>\n</output>"),
        (("read_file", {"path": "notes/tea.md"}), "File notes/tea.md does not exist"),
        (("read_file", {"path": "notes/tea.md"}), ""),
        (("lookup", {"name": "Brewster"}), "Could not find Brewster. Similar: []"),
    ],
    ids=str,
)
def test_what_the_question_contains_and_what_is_volatile_brings_nothing(call, result):
    """A wrapper that only repeats the question, and how long the search took, are no finding."""
    assert read(call, result).empty


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (("glob", {"pattern": "src/app.py"}), "src/app.py"),
        (("find_file", {"file_name": "till.toml"}), "till.toml"),
        (("bash", {"command": "ls src/app.py"}), "src/app.py\n"),
        (("search_places", {"query": "Lisbon"}), "Lisbon"),
        (("search_places", {"query": "Lisbon"}), {"places": ["Lisbon"]}),
    ],
    ids=str,
)
def test_what_was_asked_for_and_found_is_something(call, result):
    """A search for a whole name answers with that name: the echo is the finding."""
    assert not read(call, result).empty


def test_a_result_that_was_not_recorded_is_not_an_empty_one():
    """Where nobody said what came back, nothing is known of it."""
    assert not read(SEARCH, None).empty
    assert not read(SEARCH, None, result_digest="d1").empty


@pytest.mark.parametrize(("length", "empty"), [(600, True), (601, False)])
def test_a_longer_answer_brought_something(length, empty):
    """Up to the bound a text is read as a sentence that says so; beyond it, as content."""
    text = "No results found. ".ljust(length, ".")
    assert len(text) == length
    assert brought_nothing(text) is empty


def test_only_the_first_lines_say_that_nothing_was_found():
    """Content that mentions it further down is content."""
    assert not brought_nothing(f"{'green and black ' * 16}not found")


@pytest.mark.parametrize(
    ("masked", "bare"),
    [
        (f"{MASK} 3 files {MASK}", "3 files"),
        ("<output>3 files</output>", "3 files"),
        ("<returncode>0</returncode><output>3 files</output>", "3 files"),
        ("a < b > c", "a < b > c"),
        (f"<out>{MASK}</out>", ""),
    ],
)
def test_wrappers_and_masks_are_taken_off(masked, bare):
    """What a harness puts around an answer is no part of it."""
    assert unwrapped(masked) == bare


hollow: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([None, [], {}]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), inner),
    max_leaves=5,
)


@given(hollow, st.sampled_from([None, 2]))
def test_whatever_is_wrapped_around_nothing_is_nothing(value, indent):
    """Lists in objects in lists bring nothing as long as no value stands in them, however they are spelt."""
    text = json.dumps(value, indent=indent)
    assume(len(text) <= 600)
    assert brought_nothing(text)


@given(json_values, st.sampled_from(["next", "id", "name"]))
def test_a_word_beside_nothing_is_something(value, field):
    """Any answer with a name in it brought that name, unless its words say that there is nothing."""
    told = json.dumps({"items": value, field: "Lisbon"})
    assume(not any(word in told.lower() for word in DENIALS))
    assert not brought_nothing(told)


@given(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=60))
def test_a_word_is_something(word):
    """Letters and digits that spell no known word of emptiness are a finding."""
    spelt = {"null", "none", "nil"}
    assert brought_nothing(word) is (word in spelt or word == "None")
