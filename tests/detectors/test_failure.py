"""Failures: the flag decides, wording does not make another kind, and outages are told from faults."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from detectors.failure import MIN_LETTERS, Failure, speaks_of_outage
from detectors.glance import folded
from schemas.common import ErrorInfo
from tests.detectors.reading import BOOK, CHECK, GREP, READ, SHELL, failure_of, json_values


def failed(message, *, code=None, kind=None, status="error", arguments=None) -> Failure:
    """The failure of a command with this message."""
    error = ErrorInfo(message=message, code=code, type=kind)
    failure = failure_of(("bash", arguments or {"command": "python tally.py"}), "", status, error=error)
    assert failure is not None
    return failure


def traceback(last: str, line: int = 3) -> str:
    """What Python prints of an exception."""
    return f'Traceback (most recent call last):\n  File "/srv/a.py", line {line}, in tally\n    count()\n{last}'


@pytest.mark.parametrize("status", ["error", "timeout", "denied"])
@pytest.mark.parametrize("call", [SHELL, READ, GREP, BOOK], ids=lambda call: call[0])
def test_a_flag_that_says_failed_is_believed_whatever_the_text_says(call, status):
    """The producer knows: a flagged call failed, and that is no weaker evidence."""
    failure = failure_of(call, "all fine", status)
    assert failure is not None
    assert not failure.from_text
    assert failure.denied is (status == "denied")


@pytest.mark.parametrize("result", [UNSET, None, "", "done", 0, [], {}, {"ok": True}])
@pytest.mark.parametrize("status", ["ok", None])
def test_nothing_that_tells_of_failing_is_no_failure(status, result):
    """Neither silence nor a plain answer is a failure, with a flag or without."""
    assert failure_of(SHELL, result, status) is None


def test_the_message_of_the_error_goes_before_the_result():
    """Where the producer names the error, the text around it does not decide what kind it is."""
    error = ErrorInfo(message="disk quota reached on volume")
    one = failure_of(SHELL, "copied 3 files", "error", error=error)
    other = failure_of(SHELL, "copied 9 files", "error", error=error)
    assert one is not None
    assert one == other
    assert one.template == "disk quota reached on volume"


def test_an_error_without_a_message_leaves_it_to_the_result():
    """Many producers send the exit code alone; the reason stands in the text."""
    one = failure_of(SHELL, "no route to the volume", "error", error=ErrorInfo(code=2))
    other = failure_of(SHELL, "disk quota reached on volume", "error", error=ErrorInfo(code=2))
    assert one is not None
    assert other is not None
    assert one.template == "no route to the volume"
    assert one.kind != other.kind


def test_of_chained_exceptions_the_last_is_the_reason():
    """What was being handled when it was raised makes no other kind."""
    chain = "{}\n\nDuring handling of the above exception, another exception occurred:\n\n{}"
    one = failed(chain.format(traceback("KeyError: 'fee'"), traceback("ValueError: no price")))
    assert one.kind == failed(chain.format(traceback("TypeError: is a text"), traceback("ValueError: no price"))).kind
    assert one.kind != failed(chain.format(traceback("KeyError: 'fee'"), traceback("OSError: no disk left"))).kind


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (traceback("ImportError: cannot import name 'x'"), traceback("ImportError: cannot import name 'z'", line=9)),
        ("No module named 'yaml' in /srv/a.py", "No module named 'toml' in /opt/b/c.py"),
        ("src/a.rs:3:5: error: mismatched types", "lib/b.rs:77:1: error: mismatched types"),
        ("connect to 10.0.0.7 port 5432 failed: refused", "connect to 10.0.0.9 port 5433 failed: refused"),
        ("job 3f2c failed at 2026-01-31T12:00:00Z", "job 3f2c failed at 2026-02-01T08:30:11Z"),
        ('column "colour" does not exist', 'column "shade" does not exist'),
        ("step one\nstep two\nerror: target missing", "step three\nerror: target missing"),
        ("  error: target missing  ", "error: target missing"),
    ],
)
def test_names_files_numbers_and_times_make_no_other_kind(one, other):
    """Two failures for one reason are one kind, whatever they speak of."""
    assert failed(one).kind is not None
    assert failed(one).kind == failed(other).kind


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (traceback("ImportError: cannot import name 'x'"), traceback("TypeError: unsupported operand")),
        (traceback("shop.errors.OutOfStock: none left"), traceback("shop.errors.CardDeclined: try another")),
        (traceback("StopIteration"), traceback("subprocess.TimeoutExpired: Command 'x' timed out")),
        ("error: target missing", "error: target is locked"),
        ("undefined reference to `f'", "unresolved import `f`"),
    ],
)
def test_other_reasons_are_other_kinds(one, other):
    """Comparing too little would make a session that gets on look stuck."""
    assert failed(one).kind != failed(other).kind


def test_what_the_arguments_say_makes_no_other_kind():
    """A message that quotes the command is the same failure for another command."""
    one = failed("cannot run tally-north now", arguments={"command": "tally-north"})
    other = failed("cannot run report-all now", arguments={"command": "report-all"})
    assert one.kind == other.kind


def test_kind_needs_letters_enough_to_say_anything():
    """Eight letters are a template, seven are none; digits and signs are no letters."""
    assert MIN_LETTERS == 8
    assert failed("abcd efg").kind is None
    assert failed("abcd efgh").kind is not None
    assert failed("1234567890 ++ 12").kind is None


def test_codes_keep_kinds_apart_and_stand_alone():
    """A code is part of the kind, and is one without words unless it is the general 1."""
    assert failed("some failure text", code=2).kind != failed("some failure text", code=3).kind
    assert failed("some failure text", code=2).kind != failed("some failure text").kind
    assert failed("x", code=127).kind == failed("y", code=127).kind
    assert failed("x", code=127).kind != failed("x", code=126).kind
    assert failed("x", code=1).kind is None
    assert failed("x", code="-1").kind is None


def test_a_type_or_a_timeout_without_words_is_a_kind():
    """Producers that only name the class of an error, or only say that time ran out, are understood."""
    assert failed("", kind="ValidationFailed").kind == failed("", kind="ValidationFailed").kind
    assert failed("", kind="ValidationFailed").kind != failed("", kind="QuotaExhausted").kind
    assert failed("", status="timeout").kind == failed("…", status="timeout").kind
    assert failed("", status="timeout").kind is not None
    assert failed("").kind is None


@given(st.text(max_size=400), st.sampled_from(["ok", None, "error", "timeout", "denied"]))
def test_templates_are_bounded_in_bytes(text, status):
    """The state keeps templates of whatever agents print."""
    failure = failure_of(SHELL, f"Error: {text}", status)
    assert failure is not None
    assert len(failure.template.encode()) <= 160
    assert len(failed("é" * 300).template.encode()) <= 160


@given(json_values, st.sampled_from(["ok", None]), st.sampled_from([SHELL, CHECK, READ, GREP, BOOK]))
def test_no_result_breaks_the_reading(result, status, call):
    """Any JSON is read, and what is read from text says so."""
    failure = failure_of(call, result, status)
    assert failure is None or failure.from_text


@pytest.mark.parametrize(
    ("message", "failing"),
    [
        ("=== 7 failed, 2 passed in 1.2s ===", 7),
        ("3 errors early\n...\n=== 4 failed, 9 passed ===", 4),
        ("1 failing", 1),
        ("12 examples, 1 failure", 1),
        ("Found 3 errors in 1 file", 3),
        ("5 tests failed", 5),
        ("2 of 5 tests failed", 2),
        ("0 failed", 0),
        ("assertion failed", None),
        ("x\n" * 2_000 + "2 failed", 2),
    ],
)
def test_counts_of_failing_checks_are_read(message, failing):
    """The summary stands last; without a count nothing is made up."""
    assert failed(message).failing == failing


@pytest.mark.parametrize("head", ["Exit code 1", "Error: Exit code 2", "Command failed with exit code 127."])
def test_what_stands_above_the_output_is_not_its_reason(head):
    """A harness says of every command that it failed; alone it is all there is."""
    assert failed(f"{head}\n--- FAIL: TestCart").template == failed("--- FAIL: TestCart").template
    assert failed(f"{head}\n--- FAIL: TestCart").kind != failed(f"{head}\n--- FAIL: Refunds").kind
    assert failed(head).template != ""


@pytest.mark.parametrize(
    ("message", "passing"),
    [
        ("=== 7 failed, 2 passed in 1.2s ===", 2),
        ("Tests: 1 failed, 3 passed, 4 total\nTest Suites: 1 failed, 1 passed, 2 total", 4),
        ("test result: ok. 5 passed; 0 failed\n\ntest result: FAILED. 3 passed; 1 failed", 8),
        ("  12 passing (2s)\n  1 failing", 12),
        ("Ran 12 tests in 0.1s\n\nFAILED (failures=1)", 12),
        ("Tests run: 10, Failures: 1, Errors: 0", 10),
        ("# pass 5\n# fail 1", 5),
        ("9 of 12 tests passed", 9),
        ("1 failed, 0 passed", 0),
        ("1 failed", None),
        ("the password has 3 passes of a hash missing: failed", None),
        ("5 passengers missing: failed", None),
        ("2 passed\n" + "x\n" * 2_000 + "1 failed", None),
    ],
)
def test_counts_of_passing_checks_are_read(message, passing):
    """Of all suites that the end of the message tells of; without a count nothing is made up."""
    assert failed(message).passing == passing


@pytest.mark.parametrize(
    "message",
    [
        "HTTP 429 Too Many Requests",
        "Error: 503 Service Unavailable",
        "Request failed with status code 503",
        "fetch failed: socket hang up",
        "rate limit exceeded, retry in 3 s",
        "429 Client Error: Too Many Requests for url",
        "upstream connect error or disconnect",
        "read ECONNRESET",
        "connection reset by peer",
        "The service is temporarily unavailable",
        '{"error": {"type": "overloaded_error"}}',
        "ThrottlingException: Rate exceeded",
        "RESOURCE_EXHAUSTED",
        "504 Gateway Time-out",
        "HTTP/1.1 500 Internal Server Error",
    ],
)
def test_outages_are_told_from_faults(message):
    """What passes by itself is no sign of a loop (detector specification: transient outages neither add nor clear)."""
    assert failed(message).transient


@pytest.mark.parametrize(
    "message",
    [
        "AssertionError: assert 500 == 200",
        "expected status 200 but got HTTP 503",
        "FAILED tests/test_limits.py::test_rate_limit",
        "404 Not Found",
        "issue #502 client is closed",
        "AttributeError: 'RateLimiter' object has no attribute 'reset'",
        "No module named 'rate_limiter'",
        "line 503: unexpected token",
        "permission denied",
        "too many open files",
    ],
)
def test_faults_that_speak_of_outages_are_faults(message):
    """A check that fails for a 503, a name with a limiter in it and any other number mean something."""
    assert not failed(message).transient


@pytest.mark.parametrize("code", [429, "429", 500, 503, "HTTP 502", "ECONNRESET", "ETIMEDOUT", "rate_limit_exceeded"])
def test_codes_of_outages(code):
    """A code tells without words, as a number or a name."""
    assert failed("it broke here", code=code).transient


@pytest.mark.parametrize("code", [1, 127, 404, "EACCES", 5000, "not_found"])
def test_codes_of_faults(code):
    """Other codes are no outage."""
    assert not failed("it broke here", code=code).transient


@pytest.mark.parametrize(
    ("text", "outage"),
    [
        ("503 Service Unavailable", True),
        ("Error: too many requests", True),
        ('{"error": "rate limit exceeded"}', True),
        ("  overloaded", True),
        ("The runbook says what to do on 503 Service Unavailable", False),
        ("500 rows", False),
        ("5000 rows", False),
        ("", False),
    ],
)
def test_a_text_is_the_word_of_an_outage_when_it_begins_with_it(text, outage):
    """An answer that mentions outages further on is an answer."""
    assert speaks_of_outage(folded(text)) is outage


@pytest.mark.parametrize(
    ("message", "unknown"),
    [
        ("Unknown tool: fetch_page", True),
        ("Error: tool 'fetch_page' not found", True),
        ("No such tool: fetch_page", True),
        ("Tool fetch_page does not exist", True),
        ("invalid function fetch_page", True),
        ("Function fetch_page is not available", True),
        ("Error: tool not found", True),
        ("Tool not found: fetch_page", True),
        ("Function fetch_page is not defined", True),
        ("Tool 'fetch_page' is not defined.", True),
        ("fetch_page is not a valid tool, try one of [read, write].", True),
        ("Error: 'fetch_page' is not a valid tool", True),
        ("MCP error -32601: Method not found", True),
        ("NameError: name 'fetch_page' is not defined", False),
        ("bash: fetch_page: command not found", False),
        ("ReferenceError: fetch_page is not defined", False),
        ("ERROR 1305: the function fetch_page does not exist", False),
        ("main.py is not a valid toolchain file", False),
        ("Method not found", False),
        ("Function not found in a.py", False),
        ("unknown toolbox colour", False),
        ("The page was not found by the tool", False),
        ("file tool.py not found", False),
    ],
)
def test_tools_that_do_not_exist_are_recognised(message, unknown):
    """They have limits of their own; a thing that is missing is no missing tool."""
    assert failed(message).unknown_tool is unknown
