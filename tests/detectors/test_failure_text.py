"""Failures that no flag tells of, or that a flag of success covers: what the text of runs, checks and answers says."""

import json

import pytest

from tests.detectors.reading import BOOK, CHECK, CLICK, EDIT, GREP, READ, SHELL, UNKNOWN, failure_of

FIX = ("bash", {"command": "ruff check --fix src"})
FIND = ("search_orders", {"query": "green tea"})
ORDER = ("get_order", {"order_id": "A-17"})
LONG = "and so on, for as long as a page of a handbook is. " * 30

SAID_OF_RUNS = [
    "Traceback (most recent call last):\n  ...\nKeyError: 'price'",
    "Error: no basket to price",
    "error: unknown option --fast",
    "fatal: not a git repository",
    "ModuleNotFoundError: No module named 'till'",
    "panic: runtime error: index out of range",
    "Permission denied",
    "timed out after 60 s",
    "Invalid argument --to",
    "Unknown command staging",
    "cannot open till.db",
    "Command failed with exit code 2",
    "Process exited with code 1",
    "<returncode>1</returncode>\n<output>no</output>",
    "output\n[exit code: 3]",
    "three lines\nof output\nexit status 2",
    '{"exit_code": 1, "stdout": ""}',
    # Shells' own messages
    "bash: line 1: tally: command not found",
    "/bin/sh: 1: tally: not found",
    "sh: tally: command not found",
    "ksh: tally: not found",
    "bash: ./deploy.sh: Permission denied",
    "-bash: tally: command not found",
    "zsh: command not found: tally",
    "'tally' is not recognized as an internal or external command,\noperable program or batch file.",
    "tally : The term 'tally' is not recognized as the name of a cmdlet",
    # What interpreters and harnesses print
    "pricing 3 baskets\nTraceback (most recent call last):\n  File \"a.py\", line 3\nKeyError: 'price'",
    "\x1b[31mError: no basket to price\x1b[0m",
    "/srv/till.js:3\n    throw new Error('empty')\n    ^\n\nError: empty\n    at Object.<anonymous> (/srv/till.js:3:9)",
    "thread 'main' panicked at src/main.rs:3:5:\nno basket",
    'Exception in thread "main" java.lang.NullPointerException\n\tat Till.main(Till.java:3)',
    "make: *** No rule to make target 'till'.  Stop.",
    "Command timed out after 30 seconds",
    "Segmentation fault (core dumped)",
]


@pytest.mark.parametrize("text", SAID_OF_RUNS)
def test_a_run_that_broke_is_a_failure_though_its_tool_worked(text):
    """A flag of success often says no more than that the shell ran; the text is weaker evidence, and marked so."""
    for status in ("ok", None):
        failure = failure_of(SHELL, text, status)
        assert failure is not None
        assert failure.from_text


@pytest.mark.parametrize(
    "text",
    [
        "Deployed. 0 errors.",
        "listening on 8080",
        "exit code: 0",
        "[exit status 0]",
        "<returncode>0</returncode>",
        '{"exit_code": 0, "stdout": "1 file"}',
        "the error handler is in place",
        "def failed(self):",
        "bash: warning: setlocale: LC_ALL: cannot change locale",
        "errors.log\nfailures.log",
        "Invalid date format is now accepted",
        "Failed: 0, changed: 3",
        "error rate 0.02 over 300 requests",
    ],
)
def test_a_run_that_speaks_of_errors_is_no_failure(text):
    """Speaking of errors is not failing."""
    assert failure_of(SHELL, text, "ok") is None
    assert failure_of(SHELL, text, None) is None


@pytest.mark.parametrize(
    "text",
    [
        "FAILED tests/test_till.py::test_sum - assert 1 == 2\n1 failed, 3 passed in 0.1s",
        "FAILED (failures=1)",
        "FAIL: test_sum (till.Sums)",
        "--- FAIL: TestSum (0.00s)\nFAIL\texample/till 0.01s",
        "Tests: 1 failed, 4 passed, 5 total",
        "  3 passing\n  1 failing\n\n  1) sums up",
        "3 examples, 1 failure",
        "✖ 2 problems (2 errors, 0 warnings)",
        "Found 3 errors in 1 file (checked 10 source files)",
        "till.py:3: error: Incompatible types in assignment",
        "till.c:3:5: error: expected ';' before '}' token",
        "error[E0308]: mismatched types\n --> src/till.rs:3:5",
        "error: could not compile `till`",
        "BUILD FAILED in 3s",
        "npm ERR! Test failed.  See above for more details.",
        "AssertionError: 3 != 4",
        "test suite ran\n" * 300 + "2 failed, 1 passed",
        "src/till.ts(3,4): error TS2322: Type 'string' is not assignable to type 'number'.",
        "src/till.ts:3:4 - error TS2322: Type 'string' is not assignable to type 'number'.",
        "# example/till\n./till.go:3:2: undefined: total",
        "make: *** [Makefile:3: check] Error 2",
        "TAP version 13\nok 1 - opens\nnot ok 2 - sums up",
        "FAILURES!\nTests: 4, Assertions: 9, Failures: 1.",
        "[  FAILED  ] Till.SumsUp",
        "running 2 tests\ntest sums_up ... FAILED",
        "would reformat till.py\n\n1 file would be reformatted, 3 files would be left unchanged.",
    ],
)
def test_red_checks_are_failures_whatever_their_flag(text):
    """A check that found something failed, in the words of each test runner, compiler and linter."""
    assert failure_of(CHECK, text, "ok") is not None
    assert failure_of(CHECK, text, None) is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "12 passed in 0.3s",
        "0 failed, 12 passed",
        "200 passed, 0 failed",
        "3 passed, 1 xfailed in 0.2s",
        "Tests: 4 passed, 0 failed, 4 total",
        "Tests run: 4, Failures: 0, Errors: 0",
        "120 examples, 0 failures",
        "test result: ok. 3 passed; 0 failed; 0 ignored",
        "OK (3 tests, 9 assertions)",
        "OK (expected failures=2)",
        "ok  \texample/till\t0.01s",
        "# tests 3\n# pass 3\n# fail 0",
        "Found 0 errors",
        "0 errors, 0 warnings, 0 informations",
        "Success: no issues found in 3 source files",
        "All checks passed!",
        "BUILD SUCCESSFUL in 3s",
        "Build succeeded.\n    0 Warning(s)\n    0 Error(s)",
        "3 warnings and 0 errors generated.",
        "tests/test_errors.py::test_two_errors PASSED\n1 passed",
        "PASS src/error.test.ts",
        "✓ shows 2 errors when the form is empty (12 ms)\n1 passing",
        "100% tests passed, 0 tests failed out of 3",
        "Failed: 0, Passed: 3",
    ],
)
def test_green_checks_are_none(text):
    """A count of zero, and names of tests that speak of errors, are no failure."""
    assert failure_of(CHECK, text, "ok") is None
    assert failure_of(CHECK, text, None) is None


def test_a_linter_that_mended_all_it_found_did_not_fail():
    """What is fixed in the same breath is an accepted edit."""
    assert failure_of(FIX, "Found 3 errors (3 fixed, 0 remaining).") is None
    assert failure_of(FIX, "Found 3 errors (2 fixed, 1 remaining).") is not None


ENVELOPES_OF_FAILURE = [
    {"error": "no such table"},
    {"error": {"code": 404, "message": "no such table"}},
    {"error": True, "reason": "closed on Mondays"},
    {"success": False},
    {"ok": False, "reason": "closed on Mondays"},
    {"isError": True, "content": "closed"},
    {"status": "error", "detail": "closed"},
    {"status": "failed", "job": 3},
    {"result": {"success": False}},
    {"code": 1, "error": "closed on Mondays"},
    {"data": None, "error": {"message": "closed on Mondays"}},
    {"data": None, "errors": [{"message": "closed on Mondays"}]},
]
ENVELOPES_OF_SUCCESS = [
    {"error": None, "id": 3},
    {"id": 3, "error": None},
    {"error": "", "id": 3},
    {"error": False, "id": 3},
    {"error": {}, "id": 3},
    {"errors": [], "id": 3},
    {"success": True, "error": None},
    {"is_error": False, "id": 3},
    {"status": "success", "error_count": 0},
    {"ok": True, "failed": 0},
]


def spelt(envelopes):
    """Each envelope as an object and as a text."""
    return [form for each in envelopes for form in (each, json.dumps(each))]


@pytest.mark.parametrize("result", spelt(ENVELOPES_OF_FAILURE), ids=str)
def test_envelopes_that_say_no_are_failures(result):
    """An API that answers in JSON says by a field that it failed, wherever the field stands, whatever it is for."""
    for call in (ORDER, FIND, BOOK, UNKNOWN):
        assert failure_of(call, result) is not None


@pytest.mark.parametrize("result", spelt(ENVELOPES_OF_SUCCESS), ids=str)
def test_envelopes_whose_field_of_errors_is_empty_are_none(result):
    """Many envelopes always have the field; empty, null or false it says that all went well."""
    for call in (ORDER, FIND, SHELL, CHECK, BOOK, UNKNOWN):
        assert failure_of(call, result) is None


@pytest.mark.parametrize(
    "tool",
    [
        ("bash", {"command": "sleep 5; tail build.log"}),
        ("bash", {"command": "kubectl logs till-0"}),
        ("get_status", {"job": "j1"}),
        ("wait", {"seconds": 5}),
        ("BashOutput", {"bash_id": "b1"}),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "text", ["Error: job crashed", "Traceback (most recent call last):\nKeyError: 1", '{"error": "x"}', "exit code 1"]
)
def test_polls_never_fail_by_text(tool, text):
    """That something else has failed, or has not yet ended, is what a poll is for; only its own flag counts."""
    assert failure_of(tool, text, "ok") is None
    assert failure_of(tool, text, None) is None
    assert failure_of(tool, text, "error") is not None


@pytest.mark.parametrize("call", [READ, GREP, ORDER], ids=lambda call: call[0])
@pytest.mark.parametrize(
    "text",
    [
        f"Error handling in this house\n\n{LONG}",
        f"error: every message begins so\n{LONG}",
        f"Failed deliveries of last week\n{LONG}",
        f"Traceback (most recent call last): a glossary\n{LONG}",
        f'{{"success": false, "why": "a fixture of a test"}}\n{LONG}',
        "class Error(Exception): ...",
        "errors.py\ntill.py",
    ],
    ids=lambda text: text[:24],
)
def test_what_is_shown_may_begin_with_anything(text, call):
    """Files, hits and records are content: behind a flag of success a long one is not judged by its beginning."""
    assert failure_of(call, text, "ok") is None


@pytest.mark.parametrize("call", [READ, GREP, ORDER], ids=lambda call: call[0])
def test_without_a_flag_the_beginning_is_all_there_is(call):
    """An answer of any length that begins with an error is one where nobody says otherwise."""
    assert failure_of(call, f"Error: cannot be read\n{LONG}", None) is not None
    assert failure_of(call, "Error: cannot be read", "ok") is not None


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (GREP, "error.py:12:    retry_after = 3"),
        (("list_directory", {"path": "logs"}), "error.log\nmain.log"),
        (("bash", {"command": "git log --oneline"}), "error: say which basket\nsum up"),
        (("bash", {"command": "cat notes.txt"}), "Error: what the notes begin with"),
        (("bash", {"command": "tail -n 3 till.log"}), "opens\nsells\nValueError: no basket to price"),
        (("bash", {"command": "grep -rh Error: src"}), "TillError: base of all\nFeeError: of fees"),
        (("send_message", {"text": "hello"}), "Sent: failed deliveries are on their way back"),
    ],
    ids=str,
)
def test_short_content_behind_a_flag_of_success_is_no_failure(call, text):
    """Hits, listings and histories name files and changes, and talk speaks of anything."""
    assert failure_of(call, text, "ok") is None


@pytest.mark.parametrize("call", [SHELL, CHECK, READ, GREP, EDIT, BOOK, CLICK, UNKNOWN], ids=lambda call: call[0])
@pytest.mark.parametrize("result", ["done", "", [], {}, 0, True, {"id": 3, "name": "Bo"}], ids=str)
def test_plain_answers_are_no_failure_of_any_tool(result, call):
    """Each kind of use takes an ordinary answer for one."""
    assert failure_of(call, result, "ok") is None
    assert failure_of(call, result, None) is None
