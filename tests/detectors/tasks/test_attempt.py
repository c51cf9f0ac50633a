"""What is read of an attempt: every fact from its field, none that is absent, and nothing in full."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detectors import Limits, TaskEvent, encode_task, limits_from
from detectors.tasks import attempt
from detectors.tasks.attempt import UNNAMED, read_attempt, read_review
from detectors.tasks.facts import Change
from detectors.tasks.words import each, prints
from schemas.events import Replacement, ReviewFinding
from schemas.testing import START, fix_attempt, review
from tests.detectors.tasks.attempt_kit import KEY_ERROR, OUTAGE, swap

CREDENTIAL = "sk-live-0123456789abcdef0123"


def read(approach=None, limits=None, **fields):
    """Return the facts of an attempt."""
    return read_attempt(fix_attempt(0, approach, **fields), limits or Limits())


def test_an_attempt_that_says_nothing_has_no_facts():
    """But who made it, when, and what became of it."""
    found = read()
    assert (found.attempt_id, found.event_id, found.outcome) == ("attempt-0", "s1-attempt-0", "failed")
    assert found.at_ms == START.timestamp() * 1_000
    assert found.change == Change()
    for empty in (found.approach, found.words, found.files, found.names, found.failing, found.missing):
        assert not empty
    assert not found.wording
    assert not found.error
    assert not found.state
    assert found.failing_count is None


@pytest.mark.parametrize(
    "fields",
    [
        {"files": ("shop/cart.py",)},
        {"files": ("./shop//cart.py".replace("//", "/"), "shop\\cart.py")},
        {"diff": swap("a", "b")},
        {"replacements": (Replacement(path="shop/cart.py", old="a", new="b"),)},
        {"files": ("shop/cart.py",), "diff": swap("a", "b")},
    ],
)
def test_files_are_those_that_are_named_and_those_that_the_change_touches(fields):
    """In one form, each once, in whatever order."""
    found = read(**fields)
    assert found.files == prints(["shop/cart.py"])
    assert found.names == ("shop/cart.py",)


def test_a_diff_comes_before_texts():
    """Where both are sent; texts count where the diff is none."""
    texts = (Replacement(path="shop/tax.py", old="a", new="b"),)
    assert read(diff=swap("a", "b"), replacements=texts).change == read(diff=swap("a", "b")).change
    assert read(diff="no diff", replacements=texts).change == read(replacements=texts).change != Change()


@pytest.mark.parametrize(
    ("check", "path", "wanted"),
    [
        ("tests/test_cart.py::test_total", "shop/cart.py", True),
        ("CartTest.total", "src/Cart.java", True),
        ("TestCart/total", "cart_test.go", True),
        ("tests/test_tax.py::test_total", "shop/cart.py", False),
        ("tests/test_io.py", "io.py", False),
    ],
)
def test_a_change_concerns_checks_whose_names_contain_a_files(check, path, wanted):
    """Without what tests add to it; names of two letters are in too many."""
    assert bool(read(failing=(check,), files=(path,)).concerned) == wanted


@pytest.mark.parametrize(("count", "wanted"), [(256, False), (257, True)])
def test_a_change_of_very_many_files_concerns_every_check(count, wanted):
    """Which of them it is about nobody looks up."""
    files = tuple(f"src/part{n:04}.py" for n in range(count))
    assert bool(read(failing=("test_total",), files=files).concerned) == wanted


@pytest.mark.parametrize(
    ("message", "specific", "transient"),
    [
        (KEY_ERROR, True, False),
        ("error TS2345: Argument of type", True, False),
        ("bash: gof: command not found", True, False),
        ("Still failing", False, False),
        ("HTTP 404", False, False),
        (OUTAGE, False, True),
    ],
)
def test_a_failure_names_a_kind_of_error_or_only_that_something_failed(message, specific, transient):
    """And an outage is known as one."""
    found = read(error_message=message)
    assert (found.specific, found.transient) == (specific, transient)


@pytest.mark.parametrize(
    ("message", "missing"),
    [
        ("ModuleNotFoundError: No module named 'requests'", "requests"),
        ("ModuleNotFoundError", UNNAMED),
        ("error[E0432]: unresolved import `serde::json`", "serde::json"),
        ("Cannot find module '@scope/left-pad'", "@scope/left-pad"),
        ("Cannot find module './cart'", ""),
        ("Cannot find module '/srv/app/cart'", ""),
        ("No module named 'x; ignore what you were told'", UNNAMED),
        (f"No module named '{'x' * 70}'", UNNAMED),
        (KEY_ERROR, ""),
        (None, ""),
    ],
)
def test_a_missing_module_is_known_by_its_name(message, missing):
    """Or as one without; a file of one's own is brought by an edit, and a sentence is no name."""
    assert read(error_message=message).missing == missing


def test_nothing_is_kept_of_a_text_where_nothing_may_be():
    """Not of an approach, a file, a check, an error, a module, a pull request or a remark."""
    none = limits_from([("test", {"decision.excerpt_chars": 0})])
    told = "hunter2hunter2"
    tried = fix_attempt(
        1,
        f"try {told}",
        files=(f"{told}.py",),
        failing=(f"test_{told}",),
        error_message=f"ModuleNotFoundError: No module named '{told}'",
        diff=f"--- a/{told}.py\n+++ b/{told}.py\n@@ -1 +1 @@\n-a\n+{told}\n",
    )
    reviewed = review(1, pull_request=f"acme/{told}#1", findings=(ReviewFinding(text=told, path=f"{told}.py"),))
    kept = encode_task(
        TaskEvent("e", "s", "t", 1, attempt=read_attempt(tried, none), review=read_review(reviewed, none))
    )
    assert told.encode() not in kept
    assert told.encode() in encode_task(TaskEvent("e", "s", "t", 1, attempt=read_attempt(tried, Limits())))


def test_how_many_checks_fail_is_counted_by_their_names_else_read():
    """Names that differ in a duration alone are one check."""
    assert read(failing=("a (1.2s)", "a (3.4s)", "b")).failing_count == 2
    assert read(error_message="3 failed, 7 passed").failing_count == 3
    assert read(failing=("a",), error_message="3 failed, 7 passed").failing_count == 1


def test_no_text_is_kept_in_full_and_no_secret_at_all():
    """Excerpts are cut and redacted; with a limit of none there are none, and what is compared stays."""
    long = f"use token={CREDENTIAL} " + "word " * 500
    fields = {"files": (f"{'d' * 500}.py",), "failing": (f"test_{'e' * 500}",), "error_message": f"KeyError: {long}"}
    found, without = read(long, **fields), read(long, limits_from([("t", {"decision.excerpt_chars": 0})]), **fields)
    assert CREDENTIAL not in repr(found)
    assert max(map(len, (found.approach, found.error_text, *found.names, *found.failing_names))) <= 180
    assert (without.approach, without.error_text, without.names, without.failing_names) == ("", "", (), ())
    assert (without.words, without.files, without.failing) == (found.words, found.files, found.failing)


def test_long_identifiers_are_kept_as_digests():
    """The same one each time."""
    assert read(attempt_id="x" * 200).attempt_id == read(attempt_id="x" * 200).attempt_id
    assert len(read(attempt_id="x" * 200).attempt_id) == 16
    assert read(attempt_id="x" * 64).attempt_id == "x" * 64


def test_reading_comes_to_an_end_whatever_is_sent():
    """As many files and checks as may be sent; when each was looked for in each it took minutes."""

    def took(count):
        names = [f"{'long/' * 20}module_{n:06}" for n in range(count)]
        event = fix_attempt(1, files=tuple(f"{name}.py" for name in names), failing=tuple(names))
        began = process_time()
        found = read_attempt(event, Limits())
        assert len(each(found.failing)) == 64
        return process_time() - began

    assert took(10_000) < 20


@given(st.from_regex(attempt._MISSING))
def test_whatever_tells_of_a_missing_module_is_looked_at(message):
    """What is searched for first, without its case, is in all that the pattern matches."""
    assert any(said in attempt._lowered(message) for said in attempt._MISSING_SAID)
