"""Flaky-test loop: checks fail in turn and come back, whatever is changed (flapping and convergence).

A round is an attempt after which a check fails that had failed before and then passed, though nothing that the attempt
touches concerns it: not by name, nor since it touches a file with which the check last began or stopped to fail. It
takes three checks at least, since two that take turns are a fix-break oscillation. Never terminates alone: a check that
is broken for real is told from a flaky one by running it again.
"""

from collections.abc import Iterator, Sequence

from detectors.about import About
from detectors.canonical import digest
from detectors.excerpt import named
from detectors.limits import Limits
from detectors.tasks.facts import Attempt
from detectors.tasks.findings import TaskFinding
from detectors.tasks.history import (
    checks_of,
    diff_similarity,
    failed,
    has_failed,
    in_line,
    mark_of,
    members,
    shown,
    word_similarity,
)
from detectors.tasks.lines import numbers
from detectors.tasks.state import TaskState
from detectors.tasks.words import each

NAME = "flaky_tests"
ABOUT = About(
    rule=(
        "Different checks fail in turn, and earlier ones come back without a change that concerns them: a warn at the "
        "third such round. Never terminates alone."
    ),
    source="flapping and convergence",
    cleared_by="a success",
)

_MIN_CHECKS = 3


def observe(state: TaskState, attempt: Attempt, limits: Limits) -> Iterator[TaskFinding]:
    """Yield that checks come back that no change concerns."""
    group = limits.flaky_tests
    if not has_failed(attempt) or not attempt.failing:
        return
    attempts = [seen for seen in failed(in_line(state.attempts)) if seen.check == attempt.check and seen.failing]
    if not is_flaky(attempts):
        return
    rounds = [at for at in range(2, len(attempts)) if _came_back(attempts, at)]
    if len(rounds) < group.warn:
        return
    involved = tuple(attempts[rounds[0] - 2 :])
    names = dict.fromkeys(name for seen in involved for name in seen.failing_names)
    yield TaskFinding(
        detector=NAME,
        level="warn",
        fingerprint=digest(NAME, state.task_id),
        members=members(involved),
        count=len(rounds),
        limit=f"{NAME}.warn",
        value=group.warn,
        mark=mark_of(involved[0]),
        what=f"checks that fail in turn though no change concerns them ({', '.join(map(named, names))})",
        calls=shown(involved),
        weak=True,
        pattern="flaky_test_loop",
        attempts=involved,
        word_similarity=word_similarity(involved[-2], attempt),
        diff_similarity=diff_similarity(involved[-2], attempt),
        strategy="analyze_root_cause",
        advice="Run the failing check several times without any change; if it passes now and then, it is flaky.",
    )


def is_flaky(attempts: Sequence[Attempt]) -> bool:
    """Tell whether what fails after the latest of these attempts, all failed, comes back by itself."""
    known = [seen for seen in attempts if seen.failing]
    checks = {mark for seen in known for mark in each(seen.failing)}
    return len(checks) >= _MIN_CHECKS and known[-1] is attempts[-1] and _came_back(known, len(known) - 1)


def _came_back(attempts: Sequence[Attempt], at: int) -> bool:
    """Tell whether a check fails again that did not fail last time, and that the attempt does not concern."""
    attempt, rows = attempts[at], checks_of(*attempts[: at + 1])
    if not attempt.files:
        return False  # nobody knows what it touched
    touched, earlier = set(each(attempt.files)), set[int]().union(*rows[: at - 1])
    back = (rows[at] & earlier) - rows[at - 1] - set(numbers(attempt.concerned))
    return any(touched.isdisjoint(_turned(attempts[:at], [check in row for row in rows[:at]])) for check in back)


def _turned(attempts: Sequence[Attempt], red: Sequence[bool]) -> set[bytes]:
    """Return the files that were touched when a check last began to fail, and when it last stopped failing.

    ``red`` says after which of the attempts it failed; it did not after the latest.
    """
    last = max(at for at, is_red in enumerate(red) if is_red)
    began = next(at for at in range(last, -1, -1) if not at or not red[at - 1])
    return {*each(attempts[began].files), *each(attempts[last + 1].files)}
