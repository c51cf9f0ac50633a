"""Failures: the flag decides, the text is weaker evidence, and kinds do not depend on wording."""

import pytest
from msgspec import UNSET

from detectors.failure import MIN_LETTERS, read_failure
from schemas.common import ErrorInfo
from schemas.testing import tool_call


@pytest.mark.parametrize(
    "text",
    [
        "Traceback (most recent call last):\n  ...\nKeyError: 'a'",
        "Error: file not found",
        "error: unknown option",
        "fatal: not a git repository",
        "ModuleNotFoundError: No module named 'x'",
        "bash: line 1: foo: command not found",
        "/bin/sh: 1: foo: not found",
        "Command failed with exit code 2",
        "Process exited with code 1",
        "<returncode>1</returncode>\n<output>no</output>",
        "output\n[exit code: 3]",
        "Permission denied",
    ],
)
def test_failing_text_is_weaker_evidence(text):
    """Without a flag the beginning of the result tells, and is marked."""
    failure = read_failure(tool_call(0, result=text, status=None))
    assert failure is not None
    assert failure.from_text


@pytest.mark.parametrize(
    "text",
    [
        "ok",
        "",
        "0 errors",
        "exit code: 0",
        "the error handler is here",
        "def failed(self):",
        "<returncode>0</returncode>",
        UNSET,
    ],
)
def test_other_text_is_no_failure(text):
    """Speaking of errors is not failing."""
    assert read_failure(tool_call(0, result=text, status=None)) is None


@pytest.mark.parametrize("status", ["error", "timeout", "denied"])
def test_the_flag_decides(status):
    """A flagged call failed whatever it says, an ok one did not."""
    failure = read_failure(tool_call(0, result="all fine", status=status))
    assert failure is not None
    assert not failure.from_text
    assert read_failure(tool_call(0, result="Error: no", status="ok")) is None


def kind(message, code=None):
    """The kind of a failure with this message."""
    error = ErrorInfo(message=message, code=code)
    failure = read_failure(tool_call(0, result="", error=error))
    assert failure is not None
    return failure.kind


def test_kind_is_the_exception_of_a_traceback_not_its_frames():
    """Another line number in another file is the same failure."""
    one = "Traceback (most recent call last):\n  File \"/a.py\", line 3\nImportError: cannot import name 'x'"
    other = "Traceback (most recent call last):\n  File \"/b.py\", line 9\n    y\nImportError: cannot import name 'z'"
    assert kind(one) == kind(other)
    assert kind(one) != kind("Traceback (most recent call last):\nTypeError: unsupported operand")


def test_kind_needs_letters_enough_to_say_anything():
    """Eight letters are a template, seven are none."""
    assert MIN_LETTERS == 8
    assert kind("abcd efg") is None
    assert kind("abcd efgh") is not None


def test_codes_keep_kinds_apart_and_stand_alone():
    """A code other than the general 1 is a kind even without words."""
    assert kind("some failure text", 2) != kind("some failure text", 3)
    assert kind("x", 127) == kind("y", 127)
    assert kind("x", 1) is None


def test_counts_of_failing_checks_are_read():
    """The summary at the end counts."""
    failure = read_failure(tool_call(0, result="3 errors early\n...\n=== 7 failed, 2 passed ===", error=1))
    assert failure is not None
    assert failure.failing == 7
