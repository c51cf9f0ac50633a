"""What the detector of circular fixes takes, gives and raises: outcomes, strategies, attempts, its answer, errors.

Names are those of the circular-fix detection guide. Nothing in here decides anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from datetime import datetime


class FixesError(Exception):
    """The detector cannot do what it was asked; the message says why, and what to do."""


class InvalidAttempt(FixesError, ValueError):
    """An argument cannot be taken: the message names it and the remedy, and quotes none of it."""


class InvalidFixConfig(FixesError, ValueError):
    """The JSON configuration cannot be used: the message names file, key and remedy."""


class StoreError(FixesError):
    """The history cannot be read or written: the message names the file and the remedy."""


class FixOutcome(StrEnum):
    """What became of an attempt."""

    FAILED = "failed"
    """Nothing is better."""
    SUCCESS = "success"
    """The problem is solved."""
    PARTIAL = "partial"
    """Better than before, and not done."""
    SKIPPED = "skipped"
    """Given up untried."""


class AlternativeStrategy(StrEnum):
    """What to do instead of the same again."""

    DIFFERENT_FILES = "different_files"
    """Try in other files."""
    DIFFERENT_METHOD = "different_method"
    """Take another way altogether."""
    ESCALATE_HUMAN = "escalate_human"
    """Ask a person."""
    SKIP_SUBTASK = "skip_subtask"
    """Leave this subtask."""
    ANALYZE_ROOT_CAUSE = "analyze_root_cause"
    """Find out why it fails before the next attempt."""


@dataclass(frozen=True, slots=True)
class FixAttempt:
    """One attempt as it was recorded.

    Attributes:
        subtask_id: what it was to solve.
        number: counts the subtask's attempts from 1.
        approach: what was tried, as it is kept: one line, credentials taken out, 4,000 characters at most.
        files_modified: the files it touched, the first 50 as they are kept.
        files_total: how many files it touched.
        outcome: what became of it.
        error_message: the failure as it is kept: one line, credentials taken out, 400 characters at most.
        recorded_at: when, in UTC.
    """

    subtask_id: str
    number: int
    approach: str
    files_modified: tuple[str, ...]
    files_total: int
    outcome: FixOutcome
    error_message: str | None
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """An attempt in its subtask's history.

    Attributes:
        attempt: the attempt.
        similarity_to_previous: how alike its words are to those of the attempt before, from 0 to 1; None for the first,
            and where one of the two has no words.
    """

    attempt: FixAttempt
    similarity_to_previous: float | None


@dataclass(frozen=True, slots=True)
class SimilarAttempt:
    """A failed attempt that the approach in question is like.

    Attributes:
        number: which of the subtask's attempts.
        word_similarity: how alike the words of the approaches are, from 0 to 1; None where one has no words.
        diff_similarity: the share of changed lines in common; None where not both diffs are known.
    """

    number: int
    word_similarity: float | None
    diff_similarity: float | None


@dataclass(frozen=True, slots=True)
class CircularDetectionResult:
    """Whether an approach goes round in a circle.

    Attributes:
        is_circular: whether it does.
        suggested_strategy: what to do instead; None when it does not.
        reasoning: why, in a sentence.
        similar_attempts: the failed attempts that it is like, oldest first, also when there are too few of them.
        advice: what to look at; empty when there is nothing to say.
    """

    is_circular: bool
    suggested_strategy: AlternativeStrategy | None
    reasoning: str
    similar_attempts: tuple[SimilarAttempt, ...] = ()
    advice: str = ""


class Summary(TypedDict):
    """Figures over all subtasks, what was cleared since included."""

    total_attempts: int
    subtasks: int
    outcomes: dict[str, int]
    circular_count: int
    average_attempts_per_subtask: float
    kept_attempts: int
    kept_subtasks: int
