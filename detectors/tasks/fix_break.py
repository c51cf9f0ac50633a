"""Fix-break oscillation: what was fixed fails again, and what failed is fixed (flapping and convergence).

After an attempt some check fails that had failed before and did not fail after the attempt between, while one that
this one had broken is fixed: the task goes round between two states, or a few. The first return is a warn, the second
full round a terminate. Without names of checks, kinds of error count in their place; without these, files that are
touched in turn, each time half and as weak evidence. What was read from tool calls is weak too, and goes by names only.
Where no change concerns what comes back, that is the matter of `flaky_tests`.
"""

from collections.abc import Iterator, Sequence

from detectors.about import About
from detectors.canonical import digest
from detectors.excerpt import named
from detectors.limits import Limits
from detectors.tasks.facts import Attempt
from detectors.tasks.findings import TaskFinding
from detectors.tasks.flaky_tests import is_flaky
from detectors.tasks.history import (
    checks_of,
    diff_similarity,
    failed,
    has_failed,
    in_line,
    mark_of,
    members,
    shown,
    since_progress,
    word_similarity,
)
from detectors.tasks.lines import numbers
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
    if not has_failed(attempt):
        return
    attempts = failed(since_progress([seen for seen in in_line(state.attempts) if seen.check == attempt.check]))
    if is_flaky(attempts):
        return
    count, length, period = _returns(attempts)
    if count < group.warn:
        return
    rounds = 1 + length // period
    over = rounds >= group.terminate and count >= length
    involved = tuple(attempts[-length - period :])
    before = attempts[-1 - period]
    words, diffs = word_similarity(before, attempt), diff_similarity(before, attempt)
    suggestion = suggest(involved, state.failed, words or 0.0, limits)
    yield TaskFinding(
        detector=NAME,
        level="terminate" if over else "warn",
        fingerprint=digest(NAME, state.task_id, min(members(involved))),
        members=members(involved),
        count=rounds if over else count,
        limit=f"{NAME}.terminate" if over else f"{NAME}.warn",
        value=group.terminate if over else group.warn,
        mark=mark_of(involved[0]),
        what=f"{_broken(involved)} fixed and broken in turn",
        calls=shown(involved),
        weak=attempt.derived or not attempt.failing,
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


def _returns(attempts: Sequence[Attempt]) -> tuple[float, int, int]:
    """Return how many attempts in a row, up to the latest, brought back what had been fixed.

    That is their weight and number, and how many attempts before the latest what came back had failed last.
    """
    weight, length, period = 0.0, 0, 1
    for at in range(len(attempts) - 1, 1, -1):
        found, back = _swing(attempts[: at + 1])
        if not found:
            break
        period = period if length else back
        weight, length = weight + found, length + 1
    return weight, length, period


def _swing(attempts: Sequence[Attempt]) -> tuple[float, int]:
    """Return what the latest attempt counts, and the distance to the one that failed likewise; 0 for no return."""
    *earlier, before, latest = attempts
    kinds = ((_checks, 1.0),) if latest.derived else ((_checks, 1.0), (_errors, 1.0), (_files, _HALF))
    for of, weight in kinds:
        now, then, last, *others = of((latest, before, *reversed(earlier)))
        if not (now or then):
            continue
        broken = then - now - last
        back = [distance for distance, seen in enumerate((last, *others), 2) if (seen & now) - then]
        if of is _checks and _works_on(latest, before, now - then):
            return 0.0, 1
        return (weight, back[0]) if broken and back else (0.0, 1)
    return 0.0, 1


def _works_on(latest: Attempt, before: Attempt, failing: set[int]) -> bool:
    """Tell whether what fails is what an attempt works on, in other files than the one before: two things in turn."""
    apart = bool(latest.files and before.files) and set(each(latest.files)).isdisjoint(each(before.files))
    return apart and failing <= set(numbers(latest.concerned))


def _checks(attempts: Sequence[Attempt]) -> list[set[int]]:
    return checks_of(*attempts)


def _errors(attempts: Sequence[Attempt]) -> list[set[int]]:
    return [{attempt.error} if attempt.specific and attempt.error else set() for attempt in attempts]


def _files(attempts: Sequence[Attempt]) -> list[set[int]]:
    return [set(numbers(attempt.files)) for attempt in attempts]


def _broken(involved: Sequence[Attempt]) -> str:
    names = dict.fromkeys(name for attempt in involved for name in attempt.failing_names)
    return f"{', '.join(map(named, names))} {'are' if len(names) > 1 else 'is'}" if names else "what fails is"
