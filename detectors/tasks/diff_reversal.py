"""Diff reversal: a change takes back the one before it (flapping and convergence: 70 %).

The share that is taken back is that of `reversal`, which knows directions and regions. One reversal is what a revert
is, and a notice; the same lines taken back twice are a warn, four times a terminate.
"""

from collections.abc import Iterator, Sequence

from detectors.about import About
from detectors.canonical import digest
from detectors.findings import Level
from detectors.limits import Limits
from detectors.tasks.facts import Attempt
from detectors.tasks.findings import TaskFinding
from detectors.tasks.history import common_failure, diff_similarity, mark_of, members, percent, shown, word_similarity
from detectors.tasks.limits import DiffReversalLimits
from detectors.tasks.reversal import Reversal, reversal
from detectors.tasks.state import TaskState
from detectors.tasks.strategy import suggest

NAME = "diff_reversal"
ABOUT = About(
    rule=(
        "A change takes back at least 70 % of the one before it in the same files. The same lines twice are a warn, "
        "four times a terminate."
    ),
    source="flapping and convergence",
    cleared_by="a success, a change that takes nothing back",
)


def observe(state: TaskState, attempt: Attempt, limits: Limits) -> Iterator[TaskFinding]:
    """Yield that the latest attempt takes back the change before it, and how often these lines went to and fro."""
    group = limits.diff_reversal
    attempts = [seen for seen in state.attempts if _took_effect(seen)]
    now = _taken_back(attempts, group.share) if _took_effect(attempt) else None
    if now is None:
        return
    earlier = (_taken_back(attempts[:at], group.share) for at in range(2, len(attempts)))
    found, latest = [*filter(None, earlier), now], now[2]
    chain = [entry for entry in found if 2 * len(entry[2].lines & latest.lines) >= len(latest.lines)]
    level = _level(len(chain), group)
    if level is None:
        return
    involved = tuple({seen.number: seen for before, after, _ in chain for seen in (before, after)}.values())
    words, diffs = word_similarity(now[0], attempt), diff_similarity(now[0], attempt)
    suggestion = suggest(involved, state.failed, words or 0.0, limits)
    yield TaskFinding(
        detector=NAME,
        level=level,
        fingerprint=digest(NAME, state.task_id, min(members(involved))),
        members=members(involved),
        count=len(chain),
        limit=f"{NAME}.{level}",
        value=getattr(group, level),
        mark=mark_of(involved[0]),
        what=(
            f"a change that takes back {percent(latest.share)} of the one before it"
            f"{f', as {len(chain) - 1} did before in the same lines' if len(chain) > 1 else ''}"
        ),
        calls=shown(involved),
        failure=common_failure(involved),
        pattern="fix_break_oscillation",
        attempts=involved,
        word_similarity=words,
        diff_similarity=diffs,
        strategy=suggestion.strategy,
        advice=suggestion.text,
    )


def _taken_back(attempts: Sequence[Attempt], share: float) -> tuple[Attempt, Attempt, Reversal] | None:
    """Return the latest one before the last attempt in the same files, that one, and what it takes back.

    None when that is less than the share.
    """
    attempt = attempts[-1]
    before = next((seen for seen in reversed(attempts[:-1]) if _meet(seen, attempt)), None)
    if before is None:
        return None
    taken = reversal(before.change, attempt.change)
    return (before, attempt, taken) if taken.share >= share else None


def _took_effect(attempt: Attempt) -> bool:
    """Tell whether an attempt was made and judged: neither given up untried nor stopped by an outage."""
    return attempt.outcome != "skipped" and not (attempt.outcome == "failed" and attempt.transient)


def _meet(one: Attempt, other: Attempt) -> bool:
    paths = {each.path for each in one.change.files}
    return any(each.path in paths or each.source in paths for each in other.change.files)


def _level(count: int, group: DiffReversalLimits) -> Level | None:
    if count >= group.terminate:
        return "terminate"
    if count >= group.warn:
        return "warn"
    return "notice" if count >= group.notice else None
