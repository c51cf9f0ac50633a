"""Names of failing checks: found in the output of each runner, the same where only lines moved, in linear time."""

from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detectors.checks import MAX_CHECKS, failing_checks

PYTEST = """\
=========================== short test summary info ============================
FAILED tests/test_cart.py::test_total - AssertionError: assert 3 == 4
FAILED tests/test_cart.py::TestCart::test_rows[two - rows]
ERROR tests/test_order.py::test_ship - RuntimeError: no stock
ERROR tests/test_broken.py
2 failed, 5 passed, 2 errors in 0.12s
"""
GO = """\
--- FAIL: TestTotal (0.00s)
    --- FAIL: TestTotal/with_discount (0.00s)
        cart_test.go:14: got 3, want 4
FAIL
FAIL\texample.com/shop/cart\t0.004s
ok  \texample.com/shop/order\t0.002s
"""
CARGO = """\
test cart::tests::adds ... ok
test cart::tests::totals ... FAILED

failures:
    cart::tests::totals

test result: FAILED. 1 passed; 1 failed; 0 ignored; finished in 0.00s
"""
UNITTEST = """\
.FE
======================================================================
ERROR: test_ship (tests.test_order.OrderTest.test_ship)
----------------------------------------------------------------------
Traceback (most recent call last):
ValueError: x
======================================================================
FAIL: test_total (tests.test_cart.CartTest)
----------------------------------------------------------------------
FAILED (failures=1, errors=1)
"""
JEST = """\
FAIL src/cart.test.js
  cart
    \u2713 adds (2 ms)
    \u2715 totals (5 ms)

  \u25cf cart \u203a totals

    expect(received).toBe(expected)
"""
MOCHA = """\
  cart
    \u2714 adds
    1) totals
    with discount
      2) subtracts

  1 passing (5ms)
  2 failing

  1) cart
       totals:
     AssertionError: expected 3 to equal 4
"""
TAP = """\
TAP version 13
ok 1 - adds
not ok 2 - totals
not ok 3 ships # time=2ms
1..3
"""
RSPEC = """\
Failed examples:

rspec ./spec/cart_spec.rb:12 # Cart totals the rows
rspec ./spec/cart_spec.rb:30 # Cart ships
"""
GTEST = """\
[ RUN      ] Cart.Totals
[  FAILED  ] Cart.Totals (0 ms)
[==========] 2 tests from 1 test suite ran. (0 ms total)
[  FAILED  ] 2 tests, listed below:
[  FAILED  ] Cart.Totals
[  FAILED  ] Sizes/Cart.Ships/0, where GetParam() = 1
"""
MAVEN = """\
[ERROR] Tests run: 3, Failures: 2, Errors: 0, Skipped: 0
[ERROR]   CartTest.totals:23 expected: <4> but was: <3>
[ERROR]   OrderTest$Inner.ships:40 \u00bb NullPointer
[INFO] BUILD FAILURE
"""
ESLINT = """\

/home/me/src/cart.js
  10:5   error    'total' is not defined  no-undef
  11:14  warning  Unexpected console      no-console

\u2716 2 problems (1 error, 1 warning)
"""
RUFF = """\
src/cart.py:1:8: F401 [*] `os` imported but unused
src/cart.py:9:5: PLR0913 Too many arguments
Found 2 errors.
"""
RUFF_FULL = """\
F401 [*] `os` imported but unused
 --> src/cart.py:1:8
  |
1 | import os
  |        ^^

Found 1 error.
"""
TSC = """\
src/cart.ts(10,5): error TS2322: Type 'string' is not assignable to type 'number'.
src/order.ts:3:1 - error TS2304: Cannot find name 'x'.
"""
MYPY = """\
src/cart.py:10: error: Incompatible return value type  [return-value]
src/cart.py:11: note: See the documentation
"""
GCC = "cart.c:10:5: error: 'total' undeclared\ncart.c:10:5: note: each is reported once\n"

OUTPUTS = [
    (
        PYTEST,
        [
            "tests/test_cart.py::test_total",
            "tests/test_cart.py::TestCart::test_rows[two",
            "tests/test_order.py::test_ship",
            "tests/test_broken.py",
        ],
    ),
    (GO, ["TestTotal", "TestTotal/with_discount"]),
    (CARGO, ["cart::tests::totals"]),
    (UNITTEST, ["test_ship (tests.test_order.OrderTest.test_ship)", "test_total (tests.test_cart.CartTest)"]),
    (JEST, ["totals", "cart \u203a totals"]),
    (MOCHA, ["totals", "subtracts"]),
    (TAP, ["totals", "ships"]),
    (RSPEC, ["Cart totals the rows", "Cart ships"]),
    (GTEST, ["Cart.Totals", "Sizes/Cart.Ships/0"]),
    (MAVEN, ["CartTest.totals", "OrderTest$Inner.ships"]),
    (RUFF, ["src/cart.py: F401 [*] `os` imported but unused", "src/cart.py: PLR0913 Too many arguments"]),
    (RUFF_FULL, ["F401 [*] `os` imported but unused"]),
    (TSC, ["src/cart.ts: error TS2322", "src/order.ts - error TS2304"]),
    (MYPY, ["src/cart.py: error: Incompatible return value type  [return-value]"]),
    (GCC, ["cart.c: error: 'total' undeclared"]),
]


@pytest.mark.parametrize(("output", "names"), OUTPUTS)
def test_the_checks_that_a_runner_says_have_failed_are_named(output, names):
    """And none that passed, nor what is said around them."""
    assert list(failing_checks(output)) == names


def test_eslint_names_the_rule_and_not_the_count_of_problems():
    """Its warnings are none, and its summary changes with every one of them."""
    assert failing_checks(ESLINT) == ("'total' is not defined  no-undef",)


@pytest.mark.parametrize(("output", "names"), OUTPUTS)
def test_colours_and_the_ends_of_lines_of_windows_change_nothing(output, names):
    """Runners colour what failed; a shell of Windows ends its lines its own way."""
    red = "\n".join(f"\x1b[31m{line}\x1b[0m" if line else line for line in output.split("\n"))
    assert list(failing_checks(red)) == names
    assert list(failing_checks(output.replace("\n", "\r\n"))) == names


@pytest.mark.parametrize(("output", "moved"), [(RUFF, RUFF.replace(":1:8:", ":7:8:").replace(":9:5", ":15:5"))])
def test_a_place_that_moves_leaves_the_name_as_it_is(output, moved):
    """Every edit above it moves it."""
    assert failing_checks(moved) == failing_checks(output)


@pytest.mark.parametrize(
    ("output", "moved"),
    [
        (TSC, TSC.replace("(10,5)", "(12,9)").replace(":3:1", ":33:1")),
        (RSPEC, RSPEC.replace(":12", ":15").replace(":30", ":33")),
        (MAVEN, MAVEN.replace(":23", ":24")),
        (MYPY, MYPY.replace(":10:", ":110:")),
    ],
)
def test_so_does_that_of_other_runners(output, moved):
    """Compilers, and runners that name a test by its line."""
    assert moved != output
    assert failing_checks(moved) == failing_checks(output)


def test_a_structured_result_is_read_like_its_text():
    """Harnesses wrap what a command printed, with the ends of lines written out."""
    wrapped = '{"exit_code":1,"stdout":"..F\\nFAILED tests/test_a.py::test_x - assert 1 == 2\\n1 failed in 0.1s\\n"}'
    assert failing_checks(wrapped) == ("tests/test_a.py::test_x",)


@pytest.mark.parametrize(
    "output",
    [
        "",
        "OK",
        "FAILED (failures=1)",
        "FAIL",
        "make: *** [Makefile:3: test] Error 1",
        "5 passed in 0.1s",
        "E0612 10:00:00.123456 1 server.go:12] not ready",
        "[ERROR] Failed to execute goal",
        "the test failed, and so did FAILED tests/test_a.py::test_x",
    ],
)
def test_output_that_names_no_check_gives_none(output):
    """What is said of the run as a whole is no check."""
    assert failing_checks(output) == ()


def test_names_are_given_once_in_their_order_and_not_more_than_are_kept():
    """A run with a thousand red tests."""
    lines = [f"FAILED tests/test_{n}.py::test_x - no" for n in range(1_000)]
    names = failing_checks("\n".join([*lines[:3], *lines]))
    assert names == tuple(f"tests/test_{n}.py::test_x" for n in range(MAX_CHECKS))


@pytest.mark.parametrize(
    "piece",
    [
        " ",
        "\n",
        "\n \n  \n",
        "FAILED ",
        "FAILED a::" + "b " * 120,
        "FAILED " + "a/" * 90 + "\n",
        "--- FAIL: ",
        "not ok 1 - " + "x " * 90 + "\n",
        "\u2717 " + " " * 150 + "y\n",
        "\u2717 " + "x " * 100 + "(5 ms\n",
        " " * 8 + "\u25cf" + " " * 300 + "\n",
        "     1) " + " x" * 120 + "\n",
        "rspec " + "x" * 199 + " # " + "  " * 200 + "y\n",
        "[ERROR] " + "a.b$" * 60 + "\n",
        "src/" + "a.b/" * 48 + ":1:\n",
        "F401 ",
        "\x1b[1",
        "test " + "x" * 200 + "\n",
        "[" + "FAILED " * 3,
    ],
)
def test_a_megabyte_of_anything_takes_no_longer_than_a_part_of_it(piece):
    """Only both ends are read, and these in time linear in their length."""
    text = (piece * (1_000_000 // len(piece) + 1))[:1_000_000]
    began = process_time()
    failing_checks(text)
    assert process_time() - began < 1.5


@settings(deadline=None)
@given(
    st.text(max_size=200)
    | st.lists(st.sampled_from(["FAILED ", "a::b", " - ", "\n", "● ", "\x1b[0m", "{"])).map("".join)
)
def test_whatever_is_printed_names_are_one_line_each(text):
    """None is empty, and none comes twice."""
    names = failing_checks(text)
    assert all(name and "\n" not in name for name in names)
    assert len(set(names)) == len(names)
