"""What sessions of the load do: one story for each kind of alert that there is, and healthy work.

Every loop is reached with the limits of `LIMITS`, which are the defaults but for what nobody would wait for. A story
gives events without place: who, when and of which task is said by the load.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from schemas.common import ErrorInfo, Usage
from schemas.testing import fix_attempt, review, tool_call
from tests.detectors.tasks.attempt_kit import UNLIKE
from tests.detectors.traces import edit, shell, view, work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from schemas.events import SessionInput

    Story = Callable[[int], Iterable[SessionInput]]

LIMITS = """
[limits.category]
plan_warn = 6
plan_terminate = 200

[limits.budget]
tokens = 10_000

[limits.task_budget]
tokens = 8_000

[limits.too_many_attempts]
warn = 4
"""
"""The settings file of workers under test."""

RED = "FAILED spec/dose_spec.rb:14 expected 2.5, got 2.0\n31 examples, 1 failed"
REASON = "ledger entry must name a currency"
NO_MATCH = "old_string was not found in the file"
NAMES = ("price", "total", "amount", "sum", "cost", "value", "worth", "charge", "fee", "rate")
ROOM = "There is a table with a lamp and a bowl on it, and doors lead to the other rooms."


def healthy(k: int) -> Iterable[SessionInput]:
    """Read, change, check; nothing comes again."""
    return [work(n) for n in range(8 + k % 17)]


def identical(k: int) -> Iterable[SessionInput]:
    """Read one file again and again, and go on to something else."""
    seldom = k % 4 > 0
    again = 4 if seldom else 6
    yield from (view(n, f"src/cart{k}.py", "def total(cart): return sum(cart)") for n in range(again))
    yield from (work(n) for n in range(again, again + 24 * seldom))


def alternation(k: int) -> Iterable[SessionInput]:
    """Read two files in turn."""
    return [view(n, f"src/{'ab'[n % 2]}{k}.py", f"module {n % 2}") for n in range(12)]


def error_streak(k: int) -> Iterable[SessionInput]:
    """Call what is forbidden, with a look at something new between."""
    for n in range(10):
        yield tool_call(2 * n, "deploy", {"n": n + k}, "no", status="denied")
        yield view(2 * n + 1, f"src/{n}.py", f"module {n}")


def same_failure(k: int) -> Iterable[SessionInput]:
    """Be refused for one reason, whatever is sent."""
    yield tool_call(0, "read_account", {"account": f"A-{k}"}, f"account A-{k} of a cost centre")
    for n in range(1, 13):
        error = ErrorInfo(message=REASON)
        yield tool_call(n, "erp_ledger", {"entry": f"voucher {k} {n}"}, REASON, error=error)


def same_write(k: int) -> Iterable[SessionInput]:
    """Append one line to a file again and again."""
    content = {"path": f"data/wards{k}.csv", "mode": "append", "content": "North,412,open\n"}
    return [tool_call(n, "write_file", content, f"it has {n + 40} rows now") for n in range(7)]


def refused_edits(k: int) -> Iterable[SessionInput]:
    """Have edits of one file refused, with a look before each."""
    for n in range(0, 20, 2):
        path = f"lib/tariff{k}.rb"
        yield view(n, path, f"{n}: def rate_{n}; end", offset=20 * n + 1, limit=20)
        change = {"file_path": path, "old_string": f"rate_{n} = 0", "new_string": f"rate_{n} = {n}"}
        yield tool_call(n + 1, "Edit", change, NO_MATCH, error=ErrorInfo(message=NO_MATCH))


def stuck_check(_: int) -> Iterable[SessionInput]:
    """Edit and check in turn, the check failing as before."""
    for n in range(0, 22, 2):
        yield edit(n, "lib/dose.rb", f"step {n + 1}", f"lib/dose.rb: revision {n}")
        yield shell(n + 1, "bundle exec rspec", RED, status="error")


def same_answer(k: int) -> Iterable[SessionInput]:
    """Ask one tool for different things, and get one page."""
    page = "Welcome to the city archive. Please accept our terms to continue to the reading room."
    return [tool_call(n, "fetch_page", {"url": f"https://archive.example/{k}/{n}"}, page) for n in range(8)]


def fruitless_search(_: int) -> Iterable[SessionInput]:
    """Search for what is nowhere."""
    return [
        tool_call(n, "grep", {"pattern": f"{NAMES[n % 10]}{chr(97 + n)}", "path": "src"}, "No files found")
        for n in range(9)
    ]


def revisits(k: int) -> Iterable[SessionInput]:
    """Walk through the same rooms once more, in another order."""
    rooms = [room for seed in (k, k + 1) for room in random.Random(seed).sample(range(12), 12)]  # noqa: S311
    for n, room in enumerate(rooms):
        yield tool_call(n, "act", {"command": f"go to room {room}"}, f"You are in room {room}. {ROOM}")


def rereads(k: int) -> Iterable[SessionInput]:
    """Read one file between others, again and again."""
    for n in range(7):
        yield view(2 * n, f"src/{n}.py", f"module {n}")
        yield view(2 * n + 1, f"notes/plan{k}.md", "the plan in ten points")


def analysis(_: int) -> Iterable[SessionInput]:
    """Look and look, and do nothing."""
    return [view(n, f"src/{n}.py", f"module {n}") for n in range(24)]


def category(k: int) -> Iterable[SessionInput]:
    """Make plans, ever other ones."""
    return [tool_call(n, "todo_write", {"todos": [f"item {k} {n}"]}, f"{n} items") for n in range(13)]


def budget(k: int) -> Iterable[SessionInput]:
    """Work on something new each time, at a price."""
    usage = Usage(input_tokens=700, output_tokens=300, cost_usd=0.25)
    return [tool_call(n, "step", {"number": n}, f"result {k} {n}", usage=usage) for n in range(12)]


def spin_score(k: int) -> Iterable[SessionInput]:
    """Try ever other fixes that are refused for one reason, in a way that no rule counts."""
    yield from (view(n, f"src/part_{n}.py", f"def part_{n}(): pass\nreturn {n}") for n in range(10))
    for n in range(10, 30):
        code = {"path": f"src/Dose{k}.java", "line": 40 + n % 3, "code": f"if (dose > {n}) return;"}
        yield tool_call(n, "write_fix", code, "Error: the fix does not compile: ';' expected before the end")


def circular_fix(k: int) -> Iterable[SessionInput]:
    """Say the same of each attempt, fail likewise."""
    for n in range(4):
        yield fix_attempt(
            n,
            f"Round the total of the cart before the {NAMES[n]} is added",
            files=(f"src/cart{k}.py",),
            diff=_diff(f"total({n})", f"round(total({n}), {n})"),
            error_message="AssertionError: assert 12 == 10",
        )


def approach_churn(_: int) -> Iterable[SessionInput]:
    """Take up again what was left."""
    for n, letter in enumerate((0, 1, 2, 0, 1, 2)):
        yield fix_attempt(n, UNLIKE[letter], files=(f"shop/{n}.py",))


def diff_reversal(_: int) -> Iterable[SessionInput]:
    """Take back what was done before."""
    lines = ("return 1", "return 2")
    return [fix_attempt(n, diff=_diff(lines[n % 2], lines[1 - n % 2])) for n in range(5)]


def state_cycle(_: int) -> Iterable[SessionInput]:
    """Come to one state of files and failures again."""
    return [fix_attempt(n, UNLIKE[0], failing=("t",), files=("shop/cart.py",)) for n in range(4)]


def fix_break(_: int) -> Iterable[SessionInput]:
    """Mend one check and break another."""
    return [fix_attempt(n, failing=(f"test_{'ab'[n % 2]}",)) for n in range(4)]


def flaky_tests(_: int) -> Iterable[SessionInput]:
    """See checks fail again that no change concerns."""
    for n, letter in enumerate("xyzxyz"):
        yield fix_attempt(n, failing=(f"check_{letter}",), files=(f"shop/{UNLIKE[n].split()[1]}.py",))


def too_many_attempts(_: int) -> Iterable[SessionInput]:
    """Fail, in ever other ways."""
    return [fix_attempt(n, UNLIKE[n]) for n in range(5)]


def ping_pong(k: int) -> Iterable[SessionInput]:
    """Review round after round."""
    return [review(n, pull_request=f"acme/shop#{k}") for n in range(6)]


def comment_velocity(k: int) -> Iterable[SessionInput]:
    """Comment and comment."""
    for n, total in enumerate((12, 21, 30, 45)):
        yield review(n, "commented", pull_request=f"acme/shop#{k}", comments_total=total)


def solved(k: int) -> Iterable[SessionInput]:
    """Fail once and succeed: the task is forgotten."""
    yield fix_attempt(0, UNLIKE[k % 8])
    yield fix_attempt(1, UNLIKE[(k + 1) % 8], outcome="success")


LOOPS: dict[str, Story] = {
    each.__name__: each
    for each in (
        identical,
        alternation,
        error_streak,
        same_failure,
        same_write,
        refused_edits,
        stuck_check,
        same_answer,
        fruitless_search,
        revisits,
        rereads,
        analysis,
        category,
        budget,
        spin_score,
        circular_fix,
        approach_churn,
        diff_reversal,
        state_cycle,
        fix_break,
        flaky_tests,
        too_many_attempts,
        ping_pong,
        comment_velocity,
    )
}
"""By the detector that speaks of it; of `budget`, that of tasks does too."""


def _diff(before: str, after: str) -> str:
    return f"--- a/src/cart.py\n+++ b/src/cart.py\n@@ -10 +10 @@\n-    {before}\n+    {after}\n"
