"""State cycle: the task is where it was before (flapping and convergence: within 3 iterations).

What is compared is the approach, the files and the failure together. The same again is a return. Half of one is nearly
the same, a tree that is as it was while nothing else is known, or an attempt that was read from tool calls: who undoes
an edit and makes it again may want to see it fail. A return is a warn; two of them in a row are two full cycles, and a
terminate.
"""

from collections.abc import Iterator, Sequence

from detectors.about import About
from detectors.canonical import digest
from detectors.findings import level_of
from detectors.limits import Limits
from detectors.tasks.facts import Attempt
from detectors.tasks.findings import TaskFinding
from detectors.tasks.history import (
    common_failure,
    diff_similarity,
    failed,
    has_failed,
    identity,
    in_line,
    mark_of,
    members,
    same_change,
    same_failure,
    same_files,
    shown,
    word_similarity,
)
from detectors.tasks.state import TaskState
from detectors.tasks.strategy import suggest

NAME = "state_cycle"
ABOUT = About(
    rule=(
        "Approach, files and failure are those of one of the last 3 attempts; nearly the same counts half. Terminates "
        "after two full cycles."
    ),
    source="flapping and convergence",
    cleared_by="a success, a state that is new",
)

_SAME_WORDS = 0.9


def observe(state: TaskState, attempt: Attempt, limits: Limits) -> Iterator[TaskFinding]:
    """Yield that the task is where it was before, and how often in a row."""
    group = limits.state_cycle
    if not has_failed(attempt):
        return
    attempts = failed(in_line(state.attempts))
    count, before, involved = _returns(attempts, group.window)
    level = level_of(count, group.warn, group.terminate)
    if level is None:
        return
    words, diffs = word_similarity(before, attempt), diff_similarity(before, attempt)
    suggestion = suggest(involved, state.failed, words or 0.0, limits)
    yield TaskFinding(
        detector=NAME,
        level=level,
        fingerprint=digest(NAME, state.task_id, min(members(involved))),
        members=members(involved),
        count=count,
        limit=f"{NAME}.{level}",
        value=getattr(group, level),
        mark=mark_of(involved[0]),
        what=f"a state that the task was in within the last {group.window} attempts, counted as {count:g}",
        calls=shown(involved),
        failure=common_failure(involved),
        pattern="approach_churn",
        attempts=involved,
        word_similarity=words,
        diff_similarity=diffs,
        strategy=suggestion.strategy,
        advice=suggestion.text,
    )


def _returns(attempts: Sequence[Attempt], window: int) -> tuple[float, Attempt, tuple[Attempt, ...]]:
    """Return how much the latest attempts in a row return to earlier ones.

    With it come the attempt that the latest one returns to, and all from the first that one of them returns to.
    """
    count, first, before = 0.0, len(attempts) - 1, attempts[-1]
    for at in range(len(attempts) - 1, 0, -1):
        found = [(weight, to) for to in range(max(0, at - window), at) if (weight := _same(attempts[to], attempts[at]))]
        if not found:
            break
        weight, to = max(found)
        before = before if count else attempts[to]
        count, first = count + weight, min(first, to)
    return count, before, tuple(attempts[first:])


def _same(one: Attempt, other: Attempt) -> float:
    """Return 1 for the same state, a half for nearly the same one, 0 for another."""
    if not (same_failure(one, other) or (one.state and one.state == other.state)):
        return 0.0
    if same_failure(one, other) and same_files(one, other):
        if identity(one) == identity(other) and (one.change.digest or one.wording):
            return 0.5 if other.derived else 1.0
        alike = same_change(one, other) or (word_similarity(one, other) or 0.0) >= _SAME_WORDS
        if alike and not other.derived:
            return 0.5
    return 0.5 if one.state and one.state == other.state else 0.0
