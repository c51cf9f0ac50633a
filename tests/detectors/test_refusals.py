"""Refusals that no flag tells of: edits that were not applied, actions that a page or a world did not take."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detectors.verdict import complains
from tests.detectors.reading import BOOK, CLICK, EDIT, READ, UNKNOWN, WORLD, failure_of

REFUSED = [
    "String to replace not found in file.",
    "Error: no match for old_string in src/basket.py",
    "The text you want to replace does not appear verbatim in the file.",
    "No replacement was performed, the old text was found in lines 3 and 9. Please make it unique.",
    "No changes made: old and new text are the same",
    "The old text appears 3 times; it must be unique",
    "Could not apply hunk 2 of 3",
    "Hunk #1 FAILED at 12.",
    "error: patch failed: src/basket.py:12",
    "You must read the file before you write it",
    "Patch rejected by the user",
    "old_string is empty",
    "permission denied: src/basket.py",
    "Invalid line range: 90 to 40",
    "Your edit was not applied: it brings a syntax error",
    "The new text is too long",
    "Missing argument: new_string",
    "SyntaxError: invalid syntax (basket.py, line 3)",
    "Unexpected token in diff, line 4",
    "Nothing to replace",
    "src/basket.py is unchanged",
    {"success": False, "reason": "anchor is gone"},
    {"error": "anchor is gone"},
    # Words of acceptance, denied
    "No changes have been made.",
    "Nothing was changed in src/basket.py",
    "src/basket.py was not updated",
    "The replacement could not be applied",
    # Refusals in words of their own
    "Found 4 occurrences of the text but expected 1",
    "Multiple matches for the search text, add more context",
    "The search block is ambiguous",
    "Context mismatch at line 40",
    "0 replacements performed",
    "The file has been modified since it was read; read it again first",
    "The range 10 to 400 lies beyond the end of the file",
    "Line 300 is out of range",
    "The user declined the change",
    "Diff application aborted",
]


@pytest.mark.parametrize("result", REFUSED, ids=str)
def test_refused_edits_are_failures_whatever_their_flag(result):
    """An edit tool that ran and changed nothing often reports success; its words tell."""
    for status in ("ok", None):
        failure = failure_of(EDIT, result, status)
        assert failure is not None
        assert failure.from_text


@pytest.mark.parametrize(
    "result",
    [
        "The file has been updated. The linter found 2 errors:\nE999 at line 3",
        "Updated src/basket.py\nFAILED tests/test_basket.py::test_total",
        "src/basket.py has been edited.\nsrc/basket.py:3:1: error: ';' expected",
    ],
)
def test_an_edit_whose_own_check_is_red_failed(result):
    """Some edit tools run a linter or the tests at once: what was written down does not work."""
    assert failure_of(EDIT, result) is not None


ACCEPTED = [
    ("src/basket.py", "The file src/basket.py has been updated."),
    ("src/basket.py", ""),
    ("src/basket.py", "OK"),
    ("src/basket.py", "Done. 1 replacement."),
    ("src/basket.py", {"success": True}),
    ("src/basket.py", "0 errors, file written"),
    ("src/basket.py", "Text replaced. No syntax errors detected."),
    ("src/basket.py", "Edited. Check that nothing is missing (indentation, duplicate lines) and edit again if needed."),
    ("src/basket.py", "Patch applied cleanly\nM src/basket.py"),
    ("src/not_found.py", "The file src/not_found.py has been updated."),
    ("src/error_handler.ts", "Successfully replaced text in src/error_handler.ts"),
    ("docs/404-not-found.md", "Applied edit to docs/404-not-found.md"),
    ("src/no_such_thing.py", "File created successfully at: src/no_such_thing.py"),
    ("src/errors.py", "Edited src/errors.py (+3 -1)"),
    ("src/invalid.py", "src/invalid.py: 2 lines changed"),
    ("must_fail.rb", "Edited must_fail.rb at line 3"),
    ("unknown.go", "Modified unknown.go"),
    ("failed.log", "Wrote 120 bytes to failed.log"),
    ("errors.log", "Wrote 120 bytes to errors.log"),
    ("src/missing.py", {"path": "src/missing.py", "bytes": 12}),
    ("src/missing.ts", "Update: src/missing.ts\n@@ -1 +1 @@\n-total\n+sum"),
]


@pytest.mark.parametrize(("path", "result"), ACCEPTED, ids=str)
def test_acknowledgements_are_none_whatever_the_file_is_called(path, result):
    """A name with `not`, `error` or `missing` in it is no refusal."""
    for status in ("ok", None):
        assert failure_of(("write_file", {"path": path, "content": "total"}), result, status) is None


@pytest.mark.parametrize(
    "shown",
    [
        'def price():\n    raise ValueError("1 error")',
        "try:\n    price()\nexcept Exception:\n    pass  # error: no price",
        "KINDS = ['FAILED', 'ERROR']\nFAILED = 3",
        "# 3 failures are allowed here",
        "raise NotFound('no basket')",
    ],
    ids=str,
)
def test_the_code_that_an_acknowledgement_shows_is_not_judged(shown):
    """Many edit tools show the lines around the change, which may speak of anything."""
    arguments = {"path": "src/basket.py", "old": "total", "new": shown}
    numbered = "\n".join(f"{n}\t{line}" for n, line in enumerate(shown.splitlines(), 12))
    added = "\n".join(f"+{line}" for line in shown.splitlines())
    for answer in (
        f"The file src/basket.py has been updated. Here is the place:\n{numbered}",
        f"The file src/basket.py has been edited:\n{shown}",
        f"Edited src/basket.py\n@@ -1 +1 @@\n-total\n{added}",
    ):
        assert failure_of(("edit_file", arguments), answer) is None


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (BOOK, {"id": 7, "title": "Cannot log in", "state": "open"}),
        (BOOK, {"id": 7, "title": "Invalid Date Night", "seats": 2}),
        (BOOK, {"table": 3, "notes": "no smoking", "status": "confirmed"}),
        (BOOK, {"table": 3, "refundable": False}),
        (BOOK, "Booking B7 is confirmed. No further action is needed."),
        (("create_issue", {"title": "Login fails"}), {"number": 12, "title": "Login fails", "state": "open"}),
        (("bash", {"command": "git commit -am wip"}), "[main 3f] Handle 2 errors in the parser\n 1 file changed"),
        (("bash", {"command": "pip install till"}), "Successfully installed till-1.0"),
        (("bash", {"command": "npm install"}), "added 12 packages\nfound 0 vulnerabilities"),
    ],
    ids=str,
)
def test_records_that_a_change_brings_back_are_no_refusal(call, result):
    """What was booked, opened or committed may be about failures without being one."""
    assert failure_of(call, result) is None


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (BOOK, "Sorry, the table cannot be booked"),
        (BOOK, "No table is left on Friday"),
        (BOOK, "Payment denied"),
        (CLICK, "Element e42 not found"),
        (CLICK, "Error: element is not visible"),
        (CLICK, "Timeout 30000ms exceeded"),
        (CLICK, "Could not click: e42 is covered by a dialog"),
        (WORLD, "Nothing happens."),
        (WORLD, "You can't go that way."),
        (WORLD, "No known action matches that input."),
        (WORLD, "Invalid action!"),
        (UNKNOWN, "Unknown tool: frobnicate"),
        (UNKNOWN, "invalid arguments: level must be a string"),
        (UNKNOWN, "Missing required parameter: depth"),
    ],
    ids=str,
)
def test_short_refusals_of_what_acts_are_failures(call, result):
    """A page, a world or a service that did not do what was asked says so in a sentence."""
    assert failure_of(call, result) is not None


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (CLICK, "Clicked e42"),
        (CLICK, "Clicked e42.\nPage URL: https://shop.example/no-results\nPage title: No results"),
        (CLICK, "Clicked e42. Now at https://shop.example/errors"),
        (CLICK, "[12] button 'Not now'\n[13] button 'OK'"),
        (WORLD, "You are in the hall. A door leads north."),
        (WORLD, "You open drawer 2. In it, you see a key."),
        (WORLD, "On shelf 3, you see nothing."),
        (WORLD, "You open drawer 2. The drawer is empty."),
        (UNKNOWN, "level 3 is set"),
        (UNKNOWN, {"level": 3}),
    ],
    ids=str,
)
def test_what_a_page_or_world_shows_is_no_refusal(call, result):
    """An action that was taken may lead to an empty shelf, or to a page that speaks of errors."""
    assert failure_of(call, result) is None


def test_only_short_words_of_what_acts_refuse():
    """A long page is content, whatever stands on it; an edit tool's answer is its own at any length."""
    page = "Not found what you are looking for? " + "shoes hats coats gloves " * 20
    assert failure_of(CLICK, page) is None
    assert failure_of(EDIT, f"The old text was not found. Lines nearby:\n{'total = 0 ' * 100}") is not None


def test_what_reads_may_say_no():
    """A file may begin with any sentence; only acts can be refused in one."""
    assert failure_of(READ, "Nothing is known, and that is no mistake.") is None


@pytest.mark.parametrize(
    ("text", "no"),
    [
        ("The table is not free", True),
        ("refused", True),
        ("you can't do that here", True),
        ("Operation failed", True),
        ("too many open orders", True),
        ("unknown option --fast", True),
        ("The order was not saved", True),
        ("The table is free", False),
        ("The order was saved; no table was free at noon", False),
        ("notable failsafe errorless", False),
        ("", False),
        ("fine. " * 60 + "not", False),
    ],
)
def test_saying_no_is_told_from_saying_yes(text, no):
    """In a short answer or the first lines of a longer one, what is said first counts."""
    assert complains(text) is no


@given(st.text(max_size=600))
def test_only_the_head_of_an_answer_can_say_no(text):
    """What stands behind the first lines changes nothing."""
    head = "all is well with this order. " * 11
    assert not complains(head + text)
