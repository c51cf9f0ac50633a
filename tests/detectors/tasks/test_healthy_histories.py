"""Healthy work at one task, told as agents' events: nobody is warned, and each history is warned about once spoiled."""

from collections import defaultdict

import pytest

from detectors import Limits, SessionState, observe
from schemas.common import Task
from schemas.events import ReviewFinding
from schemas.testing import at, fix_attempt, review, tool_call

LOUD = {"warn", "terminate"}

REFACTORED = ("rounding", "discounts", "vouchers", "shipping", "totals")
"""What fails while the prices of a shop move into a module of their own."""

SERVED = (
    "member", "guest", "pupil", "firm", "club", "staff", "senior", "agent", "donor", "bank", "school", "city", "host",
)  # fmt: skip
"""Whom a shop serves: one more than the attempts read from tool calls that are too many."""


class Story:
    """Events of one task in the order in which they are told, a minute apart."""

    def __init__(self):
        self.events = []

    def add(self, build, *args, **fields):
        """Tell one event."""
        n = len(self.events)
        about = {"task": Task(id="task"), "occurred_at": at(60 * n)}
        self.events.append(build(n, *args, **about, **fields))

    def edit(self, path, old, new):
        """An accepted edit."""
        arguments = {"file_path": path, "old_string": old, "new_string": new}
        self.add(tool_call, "Edit", arguments, "The file has been updated.")

    def run(self, command, output, *, red=False):
        """A command with what it prints."""
        self.add(tool_call, "bash", {"command": command}, output, error=1 if red else None)

    def tests(self, *failing):
        """A run of the tests, after which these fail."""
        lines = [f"FAILED tests/test_shop.py::{name} - assert False" for name in failing]
        text = "\n".join([*lines, f"{len(failing)} failed, 40 passed" if failing else "40 passed"])
        self.run("pytest -q tests", text, red=bool(failing))

    def attempt(self, approach, *files, **fields):
        """An attempt that the agent reports itself, a failed one unless the fields say otherwise."""
        self.add(fix_attempt, approach, files=files, **fields)


def a_refactoring_whose_failing_checks_shrink(*, spoiled):
    """Five attempts in nearly the same words, each with one check fewer that fails; spoiled: all go on failing."""
    story = Story()
    for step in range(1, 5):
        failing = REFACTORED if spoiled else REFACTORED[step:]
        story.attempt(f"move the price rules out of the cart, step {step}", "shop/cart.py", failing=failing)
    story.attempt("move the price rules out of the cart, step 5", "shop/cart.py", outcome="success")
    return story.events


def a_bisect_over_many_revisions(*, spoiled):
    """Twelve steps, red and green as they come, then one fix; spoiled: patches first that break each other."""
    story = Story()
    story.run("git bisect start v2 v1", "Bisecting: 2048 revisions left to test after this")
    for red in (1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1):
        story.tests(*["total_is_rounded"] * red)
        story.run(f"git bisect {'bad' if red else 'good'}", "Bisecting: about half of the revisions left to test")
    story.run("git bisect reset", "Switched to branch 'main'")
    for _ in range(3 * spoiled):
        story.edit("shop/money.py", "round(x)", "floor(x)")
        story.tests("tax_is_rounded")
        story.edit("shop/money.py", "floor(x)", "round(x)")
        story.tests("total_is_rounded")
    story.edit("shop/money.py", "round(x)", "round(x, 2)")
    story.tests()
    return story.events


def a_revert_followed_by_another_fix(*, spoiled):
    """One change is taken back and a different one made; spoiled: it is made and taken back again before that."""
    lock, words = ("-    items = load()\n+    with LOCK:\n+        items = load()\n", "lock the basket while it loads")
    back = "-    with LOCK:\n-        items = load()\n+    items = load()\n"
    story = Story()
    for _ in range(1 + spoiled):
        story.attempt(words, diff=_diff(lock), error_message="DeadlockError: basket waits for stock")
        story.attempt("take the lock out again", diff=_diff(back), error_message="KeyError: 'sku'")
    copied = "-    items = load()\n+    items = dict(load())\n"
    story.attempt("work on a copy of the items", diff=_diff(copied), outcome="success")
    return story.events


def _diff(lines):
    hunk = f"@@ -10,{lines.count('-    ')} +10,{lines.count('+    ')} @@\n{lines}"
    return f"--- a/shop/basket.py\n+++ b/shop/basket.py\n{hunk}"


def a_review_of_three_rounds_with_a_person_in_it(*, spoiled):
    """Two rounds of an agent's with a person's between, then a merge; spoiled: the person is an agent as well."""
    story = Story()
    rounds = (
        ("agent", "the page lacks a heading"),
        ("agent" if spoiled else "person", "say what happens to an empty basket"),
        ("agent", "sort the vouchers by date"),
    )
    for author, remark in rounds:
        story.attempt(f"answer the remark that {remark}", outcome="success")
        story.add(review, author=author, findings=(ReviewFinding(text=remark),))
    story.add(review, "merged", author="person")
    return story.events


def a_flaky_check_that_is_run_again_until_green(*, spoiled):
    """It fails, is run twice more without a change, and passes; spoiled: edits instead, and three checks take turns."""
    story = Story()
    story.edit("shop/mail.py", "send(now)", "send(later)")
    for turn in range(6 if spoiled else 2):
        story.tests(("uploads", "sessions", "clock")[turn % 3 * spoiled])
        if spoiled:
            story.edit("shop/mail.py", f"wait({turn})", f"wait({turn + 1})")
    story.tests(*["uploads"] * spoiled)
    return story.events


def work_driven_by_checks(*, spoiled):
    """A check that fails and code that makes it pass, again and again; spoiled: the code never does."""
    story = Story()
    for name in map("{}_pays".format, SERVED):
        story.edit("tests/test_shop.py", "# more to come", f"def test_{name}(): ...")
        story.tests(name)
        story.edit("shop/basket.py", "raise NotImplementedError", f"return {name}(basket)")
        story.tests(*[name] * spoiled)
    return story.events


def two_agents_on_different_parts_of_one_task(*, spoiled):
    """Two sessions at once, each with a file and fewer failing checks of its own; spoiled: one file, one way."""
    parts = (
        ("s1", "cache the vouchers per customer", "shop/vouchers.py", ("expired", "stolen")),
        ("s2", "index the orders by day", "shop/orders.py", ("today", "leap_year")),
    )
    story = Story()
    for done in range(2):
        for session, words, file, failing in parts:
            _, said, touched, left = parts[0] if spoiled else ("", words, file, failing[done:])
            story.attempt(said, touched, failing=left, session_id=session)
    for session, words, file, _ in parts:
        story.attempt(words, file, outcome="success", session_id=session)
    return story.events


def a_long_migration_in_partial_steps(*, spoiled):
    """Twenty-two attempts in the same words, each of which gets further; spoiled: they fail."""
    story = Story()
    for table in range(22):
        outcome = "failed" if spoiled else "partial"
        story.attempt(f"move table {table} to the new schema", f"migrations/{table}.sql", outcome=outcome)
    story.attempt("drop the old schema", "migrations/99.sql", outcome="success")
    return story.events


def a_fix_that_succeeds_at_the_fifth_edit(*, spoiled):
    """Retold from a recorded session.

    The script that shows the fault fails in one way first, then in another, the same through four edits of different
    places in one file, and passes after the fifth; spoiled: the four are one and the same.
    """
    story = Story()
    story.run("./verify_report.sh", "AssertionError: the second half differs", red=True)
    edits = [("if best:", "if best is not None:"), ("start = 0", "start = seed"), ("rows()", "sorted(rows())")]
    edits += [("weight(row)", "weight(row, seed)"), ("return best", "return refine(best)")]
    for number, (old, new) in enumerate(edits):
        story.edit("report/choose.py", *(edits[1] if spoiled and old != "return best" else (old, new)))
        done = number == len(edits) - 1
        failure = "AssertionError: the first half differs"
        story.run("./verify_report.sh", "all rows agree" if done else failure, red=not done)
    return story.events


def a_build_that_fails_in_another_way_after_each_edit(*, spoiled):
    """Retold from a recorded session.

    A new part is written in four files, and the build is run after each correction until nothing is left to correct;
    spoiled: the correction is the same each time, and so is the error.
    """
    story = Story()
    for name in ("toast", "queue", "style", "host"):
        story.edit(f"ui/{name}.ts", "", f"export class {name} {{}}")
    corrections = [
        ("queue", "class Item", "class Item implements Equal", "ui/queue.ts(4,9): error TS2420: Item lacks equals"),
        ("queue", "await show()", "void show()", "ui/queue.ts(31,5): error TS1308: await outside async"),
        ("host", "animate(x)", "animate(x, 0.2)", "ui/host.ts(12,3): error TS2554: expected 2 arguments"),
        ("queue", "class Queue", "export class Queue", "ui/host.ts(1,10): error TS2459: Queue is not exported"),
    ]
    for file, old, new, error in [corrections[0]] * 4 if spoiled else corrections:
        story.run("tsc --noEmit", error, red=True)
        story.edit(f"ui/{file}.ts", old, new)
    story.run("tsc --noEmit", corrections[0][3] if spoiled else "", red=spoiled)
    return story.events


def a_fix_taken_out_to_see_what_fails_without_it(*, spoiled):
    """Retold from a recorded session.

    The fix works, the suite fails in old checks; it is taken out, the suite run again and found to fail in the same
    ones, and the fix is put back for good; spoiled: that goes on, with another check red each way.
    """
    fix, old_reds = ("due(day)", "due(day, zone)"), ("currency", "holidays")
    story = Story()
    story.edit("rota/plan.py", *fix)
    story.run("python show_fault.py", "nobody is on duty twice")
    story.tests(*old_reds)
    for turn in range(1 + 2 * spoiled):
        story.edit("rota/plan.py", *reversed(fix))
        story.tests(*old_reds, *["night_shift"] * spoiled)
        story.edit("rota/plan.py", *fix)
        if spoiled or turn:
            story.tests(*old_reds, "day_shift")
    story.run("python show_fault.py", "nobody is on duty twice")
    return story.events


def an_upgrade_of_dependencies_pin_by_pin(*, spoiled):
    """Retold from a recorded session.

    Each time the environment is built anew another package does not fit, one of them twice, until all of them load;
    spoiled: one and the same pin is set each time, and the same package does not load.
    """
    story = Story()
    steps = (
        ("raise the mapping library to what routing asks for", "ResolveError: routing 5 wants maps 8 or newer"),
        ("go back one release of the interpreter", "SyntaxError: maps 8 is written for a newer release"),
        ("pin the codec below its rewrite", "ImportError: codec.so lacks the function open_tile"),
        ("install tile headers beside it", "ImportError: codec.so lacks the function open_tile"),
    )
    for words, error in [steps[2]] * 4 if spoiled else steps:
        story.attempt(words, "environment.yml", error_message=error)
    story.attempt("let a single index serve everything", "environment.yml", outcome="success")
    return story.events


def a_check_written_twice_and_then_in_a_file_of_its_own(*, spoiled):
    """Retold from a recorded session.

    A check is added to a long file, which then does not parse; the file is restored, the same tried once more and
    restored, and the check goes into a new file, where it is corrected and passes; spoiled: the long file it is again
    and again.
    """
    story = Story()
    for _ in range(5 if spoiled else 2):
        story.edit("tests/test_menu.py", "def test_soup(): ...", "def test_soup(): ...\ndef test_allergens(): ...")
        story.run("pytest tests/test_menu.py", "tests/test_menu.py:980: SyntaxError: '(' was never closed", red=True)
        story.run("git checkout tests/test_menu.py", "Updated 1 path from the index")
    story.edit("tests/test_allergens.py", "", "def test_allergens(): assert menu.allergens == NUTS")
    story.run("pytest tests/test_allergens.py", "AttributeError: a menu has no allergens", red=True)
    story.edit("tests/test_allergens.py", "menu.allergens", "menu.dishes.allergens")
    story.run("pytest tests/test_allergens.py", "1 passed")
    return story.events


HISTORIES = (
    a_refactoring_whose_failing_checks_shrink,
    a_bisect_over_many_revisions,
    a_revert_followed_by_another_fix,
    a_review_of_three_rounds_with_a_person_in_it,
    a_flaky_check_that_is_run_again_until_green,
    work_driven_by_checks,
    two_agents_on_different_parts_of_one_task,
    a_long_migration_in_partial_steps,
    a_fix_that_succeeds_at_the_fifth_edit,
    a_build_that_fails_in_another_way_after_each_edit,
    a_fix_taken_out_to_see_what_fails_without_it,
    an_upgrade_of_dependencies_pin_by_pin,
    a_check_written_twice_and_then_in_a_file_of_its_own,
)


def told(alerts):
    """The alerts that ask for somebody's attention, with what they rest on."""
    return [(alert.detector, alert.level, alert.reasoning) for alert in alerts if alert.level in LOUD]


@pytest.mark.parametrize("history", HISTORIES)
def test_healthy_work_warns_nobody(heard, history):
    """Neither over the task nor in its sessions; notices and what is said of recoveries are fine."""
    events = history(spoiled=False)
    sessions: dict[str, SessionState] = defaultdict(SessionState)
    assert told(heard(events)) == []
    assert told(alert for event in events for alert in observe(sessions[event.session_id], event, Limits())) == []


@pytest.mark.parametrize("history", HISTORIES)
def test_spoiled_work_is_warned_about(heard, history):
    """So that silence about the healthy form is a judgement, and not that nothing of it is seen."""
    assert told(heard(history(spoiled=True))) != []
