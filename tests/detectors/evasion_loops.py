"""Loops as agents fall into them, without an end, for evasions to be tried on. Nothing here evades or judges."""

from collections.abc import Callable, Iterator
from itertools import count

import msgspec

from schemas.common import ErrorInfo, Task
from schemas.events import FixAttempt, ToolCall
from schemas.testing import at, fix_attempt, tool_call
from tests.detectors.traces import edit, shell, view

TASK = Task(id="SHOP-311", repo="acme/shop", type="bugfix")

_RED = (
    "tests/test_cart.py ...F....\n    def test_total():\n>       assert total([7, 3, 2]) == 10\nE       assert 12 == 10"
    "\n"
    "FAILED tests/test_cart.py::test_total - AssertionError: assert 12 == 10\n1 failed, 7 passed"
)
_TRACE = (
    "Traceback (most recent call last):\n  File \"run.py\", line 7, in <module>\n    print(cart['total'])\n"
    "KeyError: 'total'"
)
_NAMES = ("price", "total", "amount", "sum", "cost", "value", "worth", "charge", "fee", "rate")
_FILES = ("cart", "order", "user", "stock", "tax", "mail", "shop", "page")


def _file(name: str) -> str:
    """Give the text of a file, 40 lines that are always the same."""
    return "\n".join(f"def {name}_{line}({_NAMES[line % 10]}): return {line * len(name)}" for line in range(40))


def _identical(n: int) -> ToolCall:
    return view(n, "src/cart.py", _file("cart"))


def _cycle(n: int, period: int) -> ToolCall:
    name = _FILES[n % period]
    return view(n, f"src/{name}.py", _file(name))


def _failing_check(n: int) -> ToolCall:
    """Give an edit, accepted, and then the check that fails as before."""
    if n % 2 == 0:
        return edit(n, "src/cart.py", f"return {_NAMES[n // 2 % 10]}_{n} + {n}")
    return shell(n, "pytest -q tests/test_cart.py", _RED, error="1")


def _refused_edit(n: int) -> ToolCall:
    words = {"file_path": "src/cart.py", "old_string": f"return {_NAMES[n % 10]}{n}", "new_string": f"return {n}"}
    return tool_call(n, "Edit", words, "String to replace not found in file.", error=ErrorInfo(type="no match"))


def _polling(n: int) -> ToolCall:
    return tool_call(n, "get_job_status", {"job": 7}, {"state": "running"})


def _search(n: int) -> ToolCall:
    return tool_call(n, "grep", {"pattern": f"compute_{_NAMES[n % 10]}_{n}", "path": "src"}, "No matches found")


def _shell(n: int) -> ToolCall:
    if n % 2 == 0:
        return shell(n, "cat src/cart.py", _file("cart"))
    return shell(n, "python3 run.py", _TRACE, error="1")


LOOPS: dict[str, Callable[[int], ToolCall]] = {
    "same call": _identical,
    "cycle of 2": lambda n: _cycle(n, 2),
    "cycle of 8": lambda n: _cycle(n, 8),
    "failing check": _failing_check,
    "refused edits": _refused_edit,
    "polling": _polling,
    "vain search": _search,
    "shell only": _shell,
}
"""Loops of calls by name: their n-th call."""


def calls(loop: str, gap_s: float = 1.0) -> Iterator[ToolCall]:
    """Give a loop's calls, each so many seconds after the one before, all of one session and task."""
    for n in count():
        yield msgspec.structs.replace(LOOPS[loop](n), occurred_at=at(n * gap_s), task=TASK)


def _diff(before: str, after: str) -> str:
    return f"--- a/src/cart.py\n+++ b/src/cart.py\n@@ -10 +10 @@\n-    return {before}\n+    return {after}\n"


def _to_and_fro(n: int) -> FixAttempt:
    texts = ("compute(cart)", "cached(cart)")
    said = ("Cache totals in the service of the cart", "Compute the totals on every request again")[n % 2]
    failing = ("tests/test_cart.py::test_fresh", "tests/test_cart.py::test_fast")[n % 2]
    diff = _diff(texts[n % 2], texts[1 - n % 2])
    return _attempt(n, said, diff, f"{failing} failed", failing)


def _the_same_again(n: int) -> FixAttempt:
    said = f"Round the total of the cart before the {_NAMES[n % 10]} is added"
    failing = "tests/test_cart.py::test_total"
    diff = _diff(f"total({n})", f"round(total({n}), {n})")
    return _attempt(n, said, diff, "AssertionError: assert 12 == 10", failing)


def _attempt(n: int, said: str, diff: str, error: str, failing: str) -> FixAttempt:
    return fix_attempt(n, said, task=TASK, files=("src/cart.py",), diff=diff, error_message=error, failing=(failing,))


ATTEMPTS: dict[str, Callable[[int], FixAttempt]] = {"to and fro": _to_and_fro, "the same again": _the_same_again}
"""Fix attempts that go round, by name: the n-th of them."""


def attempts(loop: str) -> Iterator[FixAttempt]:
    """Give the attempts of a loop, a minute apart, all of one session and task."""
    return map(ATTEMPTS[loop], count())
