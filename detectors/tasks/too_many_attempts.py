"""Too many attempts: more than five failed ones, of whatever kind (circular-fix guide).

Attempts that were read from tool calls are many more in healthy work than those that an agent reports as such, and have
a limit of their own.
"""

from collections.abc import Iterator

from detectors.about import About
from detectors.canonical import digest
from detectors.limits import Limits
from detectors.tasks.facts import Attempt
from detectors.tasks.findings import TaskFinding
from detectors.tasks.history import common_failure, failed, has_failed, mark_of, members, shown
from detectors.tasks.state import TaskState
from detectors.tasks.strategy import exhausted

NAME = "too_many_attempts"
ABOUT = About(
    rule=(
        "More than 5 failed attempts of any kind that got no further than those before; more than 19 where they were "
        "read from tool calls. Never terminates alone."
    ),
    source="circular-fix guide",
    cleared_by="a success",
)


def observe(state: TaskState, attempt: Attempt, limits: Limits) -> Iterator[TaskFinding]:
    """Yield that the task was tried too often, when the latest attempt failed as well."""
    group = limits.too_many_attempts
    limit = "derived_warn" if attempt.derived else "warn"
    count = state.failed_derived if attempt.derived else state.failed
    if not has_failed(attempt) or count < getattr(group, limit):
        return
    involved = tuple(failed(state.attempts))
    suggestion = exhausted(count)
    yield TaskFinding(
        detector=NAME,
        level="warn",
        fingerprint=digest(NAME, state.task_id),
        members=members(involved),
        count=count,
        limit=f"{NAME}.{limit}",
        value=getattr(group, limit),
        mark=mark_of(involved[0]),
        what=f"{count} failed attempts at one task",
        calls=shown(involved),
        failure=common_failure(involved),
        weak=attempt.derived,
        attempts=involved,
        strategy=suggestion.strategy,
        advice=suggestion.reasoning,
    )
