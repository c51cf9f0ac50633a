"""Circular fix: an attempt that resembles attempts which failed already (circular-fix guide: 0.30, 2 of the last 5).

Words alone warn. That the changes agree as well, or the same error comes from the same files, is the second kind of
evidence that a terminate needs; where the words differ but for one, the same error from the same files is evidence by
itself. An attempt that got further than those before it makes them no longer count.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from detectors.about import About
from detectors.canonical import digest
from detectors.findings import level_of
from detectors.limits import Limits
from detectors.tasks.facts import Attempt
from detectors.tasks.findings import TaskFinding
from detectors.tasks.history import (
    NO_LINE_IN_COMMON,
    SAME_CHANGE,
    common_failure,
    diff_similarity,
    failed,
    got_further,
    has_failed,
    in_line,
    mark_of,
    members,
    other_failure,
    same_failure,
    same_files,
    shown,
    since_progress,
    word_similarity,
)
from detectors.tasks.state import TaskState
from detectors.tasks.strategy import VERY_SIMILAR, Suggestion, exhausted, suggest

NAME = "circular_fix"
ABOUT = About(
    rule=(
        "An attempt is like 2 of the last 5 that failed: 30 % of the words in common, nearly the same change, or the "
        "same error from the same files. Terminates when two of these agree."
    ),
    source="circular-fix guide",
    cleared_by="a success, a partial success, fewer failing checks than ever",
)

_AGREES = 0.5  # of changed lines: the changes bear out what the words say


class Likeness(NamedTuple):
    """How much an attempt is like an earlier one: ``weight`` is what it counts; ``strong`` when two kinds agree."""

    attempt: Attempt
    weight: float
    words: float | None
    diffs: float | None
    strong: bool


class Verdict(NamedTuple):
    """Whether an attempt is circular, the attempts that it is like, the latest last, and what to try instead."""

    circular: bool
    similar: tuple[Likeness, ...] = ()
    total: float = 0.0
    strong: bool = False
    suggestion: Suggestion | None = None


def observe(state: TaskState, attempt: Attempt, limits: Limits) -> Iterator[TaskFinding]:
    """Yield that the latest attempt failed and is like earlier ones."""
    if not has_failed(attempt):
        return
    verdict = _resembles(in_line(state.attempts)[:-1], attempt, state.failed, limits)
    group = limits.circular_fix
    level = level_of(verdict.total, group.warn, group.terminate)
    if level is None or not verdict.circular:
        return
    involved = (*(each.attempt for each in verdict.similar), attempt)
    words, diffs = highest(verdict.similar)
    yield TaskFinding(
        detector=NAME,
        level=level,
        fingerprint=digest(NAME, state.task_id, min(members(involved))),
        members=members(involved),
        count=verdict.total,
        limit=f"{NAME}.{level}",
        value=getattr(group, level),
        mark=mark_of(involved[0]),
        what=f"an attempt that is like {len(verdict.similar)} of the last {group.lookback} that failed",
        calls=shown(involved),
        failure=common_failure(involved),
        weak=not verdict.strong,
        pattern="approach_churn",
        attempts=involved,
        word_similarity=words,
        diff_similarity=diffs,
        strategy=verdict.suggestion.strategy if verdict.suggestion else None,
        advice=verdict.suggestion.text if verdict.suggestion else "",
    )


def judge(history: Sequence[Attempt], candidate: Attempt, limits: Limits) -> Verdict:
    """Return whether an approach that was not tried yet would be circular, or the task was tried too often.

    Args:
        history: the task's attempts so far, the oldest first.
        candidate: the next one: its words, and its files and change where they are known. How it will fail is not
            known: it is taken to fail as the latest one did when it goes for the same files with a word in common.
        limits: `circular_fix`, and `too_many_attempts` for how often is too often.
    """
    tried = sum(not got_further(history[:at], seen) for at, seen in enumerate(history) if has_failed(seen))
    verdict = _resembles(history, candidate, tried, limits)
    if verdict.circular or tried < limits.too_many_attempts.warn:
        return verdict
    return Verdict(circular=True, similar=verdict.similar, total=verdict.total, suggestion=exhausted(tried))


def highest(similar: Sequence[Likeness]) -> tuple[float | None, float | None]:
    """Return the highest similarity of words and of changes; None where nothing is known."""
    words = [each.words for each in similar if each.words is not None]
    diffs = [each.diffs for each in similar if each.diffs is not None]
    return max(words, default=None), max(diffs, default=None)


def _resembles(history: Sequence[Attempt], attempt: Attempt, tried: int, limits: Limits) -> Verdict:
    group = limits.circular_fix
    past = failed(since_progress(history))[-group.lookback :]
    if len(since_progress([*history, attempt])) == 1:
        return Verdict(circular=False)
    found = [_likeness(attempt, seen, past[-1], group.similarity) for seen in past]
    similar = tuple(each for each in found if each.weight)
    count = sum(each.weight for each in similar)
    if count < group.warn or all(each.weight < 1 for each in similar):
        return Verdict(circular=False, similar=similar, total=count)
    strong = sum(each.strong for each in similar) >= group.warn
    known = [seen for seen in (*past, attempt) if seen.files]
    words = highest(similar)[0] or 0.0
    suggestion = suggest(known or past, tried, words, limits)
    return Verdict(circular=True, similar=similar, total=count, strong=strong, suggestion=suggestion)


def _likeness(attempt: Attempt, seen: Attempt, latest: Attempt, bar: float) -> Likeness:
    """Weigh one earlier attempt: 1 when it is alike, a half when it only failed as vaguely in the same files."""
    words, diffs = word_similarity(attempt, seen), diff_similarity(attempt, seen)
    tried = attempt.outcome == "failed"
    failure, files = (attempt if tried else latest), (attempt if attempt.files else latest)
    moved_on = other_failure(failure, seen) and (diffs or 0.0) < NO_LINE_IN_COMMON
    same_words = (words or 0.0) > VERY_SIMILAR and diffs is None  # else words that never change are a title
    by_words = (words or 0.0) >= bar and (same_words or not moved_on)
    by_diffs = (diffs or 0.0) >= SAME_CHANGE
    related = bool(words or diffs) or (tried and words is None and diffs is None)
    by_failure = related and same_files(files, seen) and same_failure(failure, seen) and seen.specific
    by_failure = by_failure and not seen.derived
    strong = (by_words and ((diffs or 0.0) >= _AGREES or by_failure)) or (by_diffs and same_failure(failure, seen))
    if by_words or by_diffs or by_failure:
        return Likeness(seen, 1.0, words, diffs, strong)
    vague = same_files(files, seen) and not seen.derived and not failure.specific and not seen.specific
    vague = vague and not other_failure(failure, seen)
    return Likeness(seen, 0.5 if vague else 0.0, words, diffs, strong=False)
