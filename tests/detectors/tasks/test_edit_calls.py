"""Edits of tools: the change that a call makes is read from its arguments, in the forms that tools have."""

import json
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detectors.tasks.diffs import change_of_call, change_of_diff, change_of_texts
from detectors.tasks.facts import Change
from tests.detectors.reading import json_values

WANTED = change_of_texts([("till.py", "fee = 1", "fee = 2")])
WHOLE = change_of_texts([("till.py", None, "fee = 1\nfee = 2\n")])
DIFF = "--- a/till.py\n+++ b/till.py\n@@ -1 +1 @@\n-fee = 1\n+fee = 2\n"
PATCH = "*** Begin Patch\n*** Update File: till.py\n-fee = 1\n+fee = 2\n*** End Patch"
SEARCH = "<<<<<<< SEARCH\nfee = 1\n=======\nfee = 2\n>>>>>>> REPLACE"


@pytest.mark.parametrize(
    "arguments",
    [
        {"file_path": "till.py", "old_string": "fee = 1", "new_string": "fee = 2", "replace_all": False},
        {"command": "str_replace", "path": "./till.py", "old_str": "fee = 1", "new_str": "fee = 2"},
        {"path": "till.py", "oldText": "fee = 1", "newText": "fee = 2"},
        {"path": "till.py", "old": "fee = 1", "new": "fee = 2"},
        {"path": "till.py", "search": "fee = 1", "replace": "fee = 2"},
        {"old_string": "fee = 1", "new_string": "fee = 2"},  # the file is known from the call's target
        {"old_string": "fee = 1\nx = 3", "new_string": "  fee = 2\nx = 3\n"},
        {"path": "till.py", "old_str": ["fee = 1", "x = 3"], "new_str": ["fee = 2", "x = 3"]},
        {"path": "till.py", "edits": [{"oldText": "fee = 1", "newText": "fee = 2"}]},
        {"files": [{"path": "till.py", "edits": [{"search": "fee = 1", "replace": "fee = 2"}]}]},
        {"TargetFile": "till.py", "ReplacementChunks": [{"TargetContent": "fee = 1", "ReplacementContent": "fee = 2"}]},
        {"args": {"file": [{"path": "till.py", "old": "fee = 1", "new": "fee = 2"}]}},
        [{"path": "till.py", "old": "fee = 1", "new": "fee = 2"}],
        {"patch": DIFF},
        {"input": PATCH},
        {"diff": SEARCH, "path": "till.py"},
        {"diff": SEARCH},
        {"command": ["apply_patch", PATCH]},
        {"command": f"apply_patch <<'EOF'\n{PATCH}\nEOF\n"},
        {"cmd": f"git apply <<'EOF'\n{DIFF}EOF\n"},
        DIFF,
        PATCH,
        json.dumps({"path": "till.py", "old": "fee = 1", "new": "fee = 2"}),
    ],
)
def test_the_change_is_the_same_in_any_form(arguments):
    """Old and new text, several of them, a diff, a patch, blocks of SEARCH and REPLACE."""
    change = change_of_call(arguments, "till.py")
    assert change.digest == WANTED.digest
    assert [(each.removed, each.added) for file in change.files for each in file.regions] == [
        (each.removed, each.added) for each in WANTED.files[0].regions
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "till.py", "content": "fee = 1\nfee = 2\n"},
        {"command": "create", "path": "till.py", "file_text": "fee = 1\nfee = 2"},
        {"filename": "till.py", "contents": "fee = 1\nfee = 2"},
        {"content": "fee = 1\nfee = 2"},
        {"file": "till.py", "text": ["fee = 1\n", "fee = 2\n"]},
        {"path": "till.py", "new_content": "fee = 1\nfee = 2"},
        {"files": [{"path": "till.py", "content": "fee = 1\nfee = 2"}]},
    ],
)
def test_a_file_that_is_written_is_known_as_a_whole(arguments):
    """Whatever was in it."""
    assert change_of_call(arguments, "till.py") == WHOLE


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        ({"command": "insert", "path": "till.py", "insert_line": 4, "new_str": "fee = 2"}, 5),  # behind that line
        ({"command": "insert", "path": "till.py", "insert_line": 0, "insert_text": "fee = 2"}, 1),
        ({"path": "till.py", "start_line": 5, "end_line": 5, "content": "fee = 2"}, 5),
        ({"path": "till.py", "content": "fee = 2", "append": True}, 0),
        ({"path": "till.py", "content": "fee = 2", "mode": "a"}, 0),
        ({"notebook_path": "till.py", "cell_id": "c4", "new_source": "fee = 2"}, 0),
        ({"path": "till.py", "old_string": "", "new_string": "fee = 2"}, 0),
        ({"path": "till.py", "new_str": "fee = 2"}, 0),
    ],
)
def test_what_is_put_into_a_file_is_not_the_whole_of_it(arguments, start):
    """Nothing is known of what it takes the place of."""
    change = change_of_call(arguments, "")
    (file,) = change.files
    assert file.path == WANTED.files[0].path
    assert not file.whole
    assert [(each.old_start, each.new_start, each.removed) for each in file.regions] == [(start, start, b"")]
    assert file.regions[0].added == WANTED.files[0].regions[0].added


def test_a_text_is_taken_out():
    """Where there is no new one, or an empty one."""
    wanted = change_of_texts([("till.py", "fee = 1", None)])
    assert change_of_call({"path": "till.py", "old_string": "fee = 1", "new_string": ""}, "") == wanted
    assert change_of_call({"path": "till.py", "old_string": "fee = 1"}, "") == wanted
    assert change_of_call({"path": "till.py", "old_string": "fee = 1", "new_string": None}, "") == wanted


def test_several_edits_are_read_in_their_order_under_their_own_paths():
    """A list of files, each with a list of edits."""
    edits = [{"old": "a", "new": "b"}, {"old": "c", "new": "d"}]
    change = change_of_call({"files": [{"path": "x.py", "edits": edits}, {"path": "y.py", "edits": edits[:1]}]}, "z.py")
    assert change == change_of_texts([("x.py", "a", "b"), ("x.py", "c", "d"), ("y.py", "a", "b")])
    assert change_of_call({"path": "x.py", "edits": edits}, "") == change_of_texts(
        [("x.py", "a", "b"), ("x.py", "c", "d")]
    )


@pytest.mark.parametrize(
    "arguments",
    [
        None,
        True,
        7,
        "",
        "git commit -m 'fee'",
        {},
        [],
        {"path": "till.py"},
        {"command": "undo_edit", "path": "till.py"},
        {"file_path": "till.py", "old_string": 3, "new_string": 4},
        {"path": "till.py", "code_edit": "// ... existing code ...\nfee = 2"},
        {"command": "sed -i s/1/2/ till.py"},
        {"edits": "all"},
        {"path": "till.py", "old": "fee = 1", "new": "fee = 1"},
    ],
)
def test_where_nothing_is_recognised_there_is_no_change(arguments):
    """Better none than a wrong one."""
    assert change_of_call(arguments, "till.py") == Change()


@settings(max_examples=60, deadline=None)
@given(json_values, st.sampled_from(["edits", "old", "new", "content", "patch", "path", "insert_line", "append"]))
def test_nothing_that_a_tool_is_called_with_raises(value, name):
    """At any level, under any of the names that mean something."""
    for arguments in (value, {name: value}, {"edits": [{name: value}]}, {"path": "a", "new": "x", name: value}):
        assert isinstance(change_of_call(arguments, "till.py"), Change)


def test_a_long_list_of_edits_is_read_in_part_and_deep_ones_not_at_all():
    """A thousand edits, in three levels of lists."""
    edits = [{"path": f"{number}.py", "old": "a", "new": "b"} for number in range(1_001)]
    assert change_of_call({"edits": edits}, "") == change_of_call({"edits": edits[:1_000]}, "")
    assert change_of_call({"edits": edits[:1_000]}, "") != change_of_call({"edits": edits[:999]}, "")
    assert change_of_call([[[edits[0]]]], "").digest
    assert change_of_call([[[[edits[0]]]]], "") == Change()


def test_large_texts_take_time_by_their_length():
    """A call may hold a megabyte."""
    started = process_time()
    text = "".join(f"line {number}\n" for number in range(20_000))
    change = change_of_call({"path": "a.py", "old": text, "new": text.replace("7", "8")}, "")
    assert process_time() - started < 2
    assert change.thin > 1
    assert change_of_diff(text) == Change() != change_of_call({"path": "a.py", "content": text}, "")
