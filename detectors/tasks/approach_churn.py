"""Approach churn: an approach that was left is taken up again (flapping and convergence).

Attempts are of one approach when they are nearly the same change, or alike in words by more than is usual between
attempts of one task. Going back once, with others in between, is a warn; two full rounds of the same approaches in the
same order are a terminate. Where only words say so, that waits for a second kind of evidence.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from detectors.about import About
from detectors.canonical import digest
from detectors.limits import Limits
from detectors.tasks.facts import Attempt
from detectors.tasks.findings import TaskFinding
from detectors.tasks.history import (
    common_failure,
    diff_similarity,
    failed,
    has_failed,
    in_line,
    mark_of,
    members,
    same_change,
    same_failure,
    same_files,
    shown,
    since_progress,
    word_similarity,
)
from detectors.tasks.lines import numbers
from detectors.tasks.state import TaskState
from detectors.tasks.strategy import suggest
from detectors.tasks.words import shared

NAME = "approach_churn"
ABOUT = About(
    rule=(
        "An approach that was given up for another is tried again (A, B, A). Terminates after two full rounds of the "
        "same approaches."
    ),
    source="flapping and convergence",
    cleared_by="a success, a partial success, fewer failing checks than ever, an approach that is new",
)


class _Approach(NamedTuple):
    """The first attempt of an approach, and the prints of its words."""

    attempt: Attempt
    words: frozenset[int]


def observe(state: TaskState, attempt: Attempt, limits: Limits) -> Iterator[TaskFinding]:
    """Yield that the latest attempt goes back to an approach that was left."""
    if not has_failed(attempt):
        return
    group = limits.approach_churn
    row = _collapsed(failed(since_progress(in_line(state.attempts))), group.similarity)
    if row[-1][1] is not attempt:
        return  # it goes on with the approach of the one before
    labels = [label for label, _ in row]
    returns = _returns(labels)
    if returns < group.warn:
        return
    rounds, period = _rounds(labels)
    over = rounds >= group.terminate
    since = labels.index(labels[-1]) if not over else len(labels) - rounds * period
    involved = tuple(seen for _, seen in row[since:])
    earlier = involved[0] if not over else involved[-1 - period]
    words, diffs = word_similarity(earlier, attempt), diff_similarity(earlier, attempt)
    fails_alike = same_failure(earlier, attempt) and same_files(earlier, attempt)
    suggestion = suggest(involved, state.failed, words or 0.0, limits)
    yield TaskFinding(
        detector=NAME,
        level="terminate" if over else "warn",
        fingerprint=digest(NAME, state.task_id, min(members(involved))),
        members=members(involved),
        count=rounds if over else returns,
        limit=f"{NAME}.terminate" if over else f"{NAME}.warn",
        value=group.terminate if over else group.warn,
        mark=mark_of(involved[0]),
        what=(
            f"{rounds} full rounds of the same {period} approaches"
            if over
            else "an approach that was tried before and given up for another"
        ),
        calls=shown(involved),
        failure=common_failure(involved),
        weak=not (same_change(earlier, attempt) or fails_alike),
        pattern="approach_churn",
        attempts=involved,
        word_similarity=words,
        diff_similarity=diffs,
        strategy=suggestion.strategy,
        advice=suggestion.text,
    )


def _collapsed(attempts: Sequence[Attempt], bar: float) -> list[tuple[int, Attempt]]:
    """Return the first attempt of each stretch of one approach, with a number for the approach."""
    known: list[_Approach] = []
    row: list[tuple[int, Attempt]] = []
    for attempt in attempts:
        approach = _Approach(attempt, frozenset(numbers(attempt.words)))
        label = next((at for at, seen in enumerate(known) if _is_same(seen, approach, bar)), len(known))
        if label == len(known):
            known.append(approach)
        if not row or row[-1][0] != label:
            row.append((label, attempt))
    return row


def _is_same(one: _Approach, other: _Approach, bar: float) -> bool:
    change = one.attempt.change.digest
    if change and change == other.attempt.change.digest:
        return True
    if one.words and other.words:
        return shared(one.words, other.words) >= bar
    return same_change(one.attempt, other.attempt)


def _returns(labels: Sequence[int]) -> int:
    """Return how many approaches in a row, up to the latest, had been tried before."""
    count = 0
    for at in range(len(labels) - 1, -1, -1):
        if labels[at] not in labels[:at]:
            break
        count += 1
    return count


def _rounds(labels: Sequence[int]) -> tuple[int, int]:
    """Return how often the latest block of two or more approaches stands in a row at the end, and its length."""
    best = (1, len(labels))
    for period in range(2, len(labels) // 2 + 1):
        block, rounds = labels[-period:], 1
        while list(labels[-period * (rounds + 1) : -period * rounds]) == list(block):
            rounds += 1
        if rounds > best[0]:
            best = (rounds, period)
    return best
