"""Fix-break oscillation: what was fixed fails again, and what failed is fixed (flapping and convergence).

After an attempt some check fails that had failed before and did not fail after the attempt between, while one that this
one had broken is fixed: the task goes to and fro between two states. Without names of checks, kinds of error count in
their place; without these, files that are touched in turn, each time half and as weak evidence.
"""

from collections.abc import Iterator, Sequence

from detectors.about import About
from detectors.canonical import digest
from detectors.findings import level_of
from detectors.limits import Limits
from detectors.tasks.facts import Attempt
from detectors.tasks.findings import TaskFinding
from detectors.tasks.history import diff_similarity, failed, mark_of, members, shown, word_similarity
from detectors.tasks.state import TaskState
from detectors.tasks.strategy import suggest
from detectors.tasks.words import each

NAME = "fix_break"
ABOUT = About(
    rule=(
        "Fixing one thing breaks another, and fixing that breaks the first again. A warn at the first return, a "
        "terminate at the second full round."
    ),
    source="flapping and convergence",
    cleared_by="a success, an attempt after which neither fails",
)

_HALF = 0.5


def observe(state: TaskState, attempt: Attempt, limits: Limits) -> Iterator[TaskFinding]:
    """Yield that what had been fixed fails again after the latest attempt, and how often in a row that was so."""
    group = limits.fix_break
    if not failed([attempt]):
        return
    attempts = [seen for seen in failed(state.attempts) if seen.check == attempt.check]
    count, length = _returns(attempts)
    level = level_of(count, group.warn, group.terminate)
    if level is None:
        return
    involved = tuple(attempts[-length - 2 :])
    before = involved[-3]
    words, diffs = word_similarity(before, attempt), diff_similarity(before, attempt)
    suggestion = suggest(involved, state.failed, words or 0.0, limits)
    yield TaskFinding(
        detector=NAME,
        level=level,
        fingerprint=digest(NAME, state.task_id, min(members(involved) or (attempt.number,))),
        members=members(involved),
        count=count,
        limit=f"{NAME}.{level}",
        value=getattr(group, level),
        mark=mark_of(involved[0]),
        what=f"{_broken(involved)} is fixed and broken in turn",
        calls=tuple(map(shown, involved)),
        weak=not attempt.failing,
        pattern="fix_break_oscillation",
        attempts=involved,
        word_similarity=words,
        diff_similarity=diffs,
        strategy=suggestion.strategy,
        advice=(
            "What the two have in common decides: make one change that satisfies both, and run both checks before "
            f"calling it an attempt. {suggestion.reasoning}"
        ),
    )


def _returns(attempts: Sequence[Attempt]) -> tuple[float, int]:
    """Return how many attempts in a row, up to the latest, brought back what had been fixed: weight and number."""
    weight, length = 0.0, 0
    for at in range(len(attempts) - 1, 1, -1):
        found = _swings(attempts[at - 2], attempts[at - 1], attempts[at])
        if not found:
            break
        weight, length = weight + found, length + 1
    return weight, length


def _swings(first: Attempt, between: Attempt, last: Attempt) -> float:
    by_name_only = last.derived  # edits and errors change from run to run in healthy work
    for of, weight in ((_checks, 1.0),) if by_name_only else ((_checks, 1.0), (_errors, 1.0), (_files, _HALF)):
        a, b, c = of(first), of(between), of(last)
        if a or b or c:
            back, broken = (a & c) - b, (b - a) - c
            return weight if back and broken else 0.0
    return 0.0


def _checks(attempt: Attempt) -> set[bytes | int]:
    return set(each(attempt.failing))


def _errors(attempt: Attempt) -> set[bytes | int]:
    return {attempt.error} if attempt.specific else set()


def _files(attempt: Attempt) -> set[bytes | int]:
    return set(each(attempt.files))


def _broken(involved: Sequence[Attempt]) -> str:
    names = dict.fromkeys(name for attempt in involved for name in attempt.failing_names)
    return ", ".join(names) or "what fails"
