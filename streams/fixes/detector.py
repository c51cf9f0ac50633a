"""The detector of circular fixes as a class, with the methods of the circular-fix detection guide.

It turns arguments into the event that a stream would carry, has it judged by the detectors' own code, and keeps what is
needed for the next time. It decides nothing itself.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import msgspec

from detectors.excerpt import excerpt
from detectors.tasks import words
from detectors.tasks.attempt import read_attempt
from detectors.tasks.circular_fix import judge
from detectors.tasks.history import word_similarity
from schemas import events
from streams.fixes.config import read_config
from streams.fixes.records import (
    AlternativeStrategy,
    CircularDetectionResult,
    FixAttempt,
    FixOutcome,
    InvalidAttempt,
    SimilarAttempt,
    Summary,
    TimelineEntry,
)
from streams.fixes.store import Recording, Store
from streams.fixes.words import going_on, timeline_lines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Self

    from detectors.tasks.facts import Attempt

APPROACH_CHARS: Final = 4_000  # of an approach that are kept: as much as is compared
ERROR_CHARS: Final = 400  # of an error message that are kept
FILES: Final = 50  # paths that are kept of one attempt
PATH_CHARS: Final = 300


class CircularFixDetector:
    """Remembers what was tried for a subtask, and tells whether the next approach goes round in a circle.

    Its methods may be called from several threads, and the file may be shared with other processes. All but
    `calculate_jaccard_similarity` may raise StoreError: the file cannot be used.

    Args:
        config_path: JSON configuration; None for the defaults.
        store: SQLite file of the history; None keeps it in this object.

    Raises:
        InvalidFixConfig: the configuration cannot be used.
    """

    def __init__(self, config_path: Path | None = None, *, store: Path | None = None) -> None:
        self._settings = read_config(config_path)
        self._limits = self._settings.limits
        self._store = Store(store, self._settings.retention_ms)

    def __enter__(self) -> Self:
        """Give the detector."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Let go of the history; what is in memory only is gone, and no method but this one may be called any more."""
        self._store.close()

    def record_attempt(
        self,
        subtask_id: str,
        approach: str,
        files_modified: Sequence[str],
        outcome: FixOutcome,
        error_message: str | None = None,
        *,
        diff: str | None = None,
        failing: Sequence[str] = (),
    ) -> FixAttempt:
        """Record an attempt, whatever became of it.

        A success clears the subtask's history, unless the configuration says otherwise; `get_summary` still counts it.

        Args:
            subtask_id: what it was to solve.
            approach: in words, what was tried.
            files_modified: the files that it touched.
            outcome: what became of it.
            error_message: what failed.
            diff: what it changed, a unified diff; only digests of its lines are kept.
            failing: names of the checks that fail after it.

        Raises:
            InvalidAttempt: an argument is of another type, or too long.
        """
        now_ms = _now_ms()
        facts = self._facts(
            subtask_id,
            now_ms,
            approach=approach,
            files=files_modified,
            outcome=outcome,
            error_message=error_message,
            diff=diff,
            failing=failing,
        )
        outcome = FixOutcome(outcome)
        new = Recording(
            subtask_id=subtask_id,
            at_ms=now_ms,
            outcome=outcome,
            approach=excerpt(approach, APPROACH_CHARS),
            files=tuple(excerpt(path, PATH_CHARS) for path in files_modified[:FILES]),
            files_total=len(files_modified),
            error_message=None if error_message is None else excerpt(error_message, ERROR_CHARS),
            facts=facts,
        )
        return self._store.add(new, clear=outcome is FixOutcome.SUCCESS and self._settings.clear_on_success)

    def is_circular_fix(
        self,
        subtask_id: str,
        current_approach: str,
        *,
        files: Sequence[str] | None = None,
        diff: str | None = None,
    ) -> CircularDetectionResult:
        """Tell whether an approach that is about to be tried goes round in a circle. Records no attempt.

        Args:
            subtask_id: what it is to solve.
            current_approach: in words, what is to be tried.
            files: the files that it is to touch, where they are known; else those of the latest attempt are assumed.
            diff: what it is to change, a unified diff, where it is known.

        Raises:
            InvalidAttempt: an argument is of another type, or too long.
        """
        now_ms = _now_ms()
        candidate = self._facts(
            subtask_id, now_ms, approach=current_approach, files=files or (), outcome=FixOutcome.SKIPPED, diff=diff
        )
        history = [kept.facts for kept in self._store.history(subtask_id, now_ms)]
        verdict = judge(history, candidate, self._limits)
        similar = tuple(SimilarAttempt(each.attempt.number, each.words, each.diffs) for each in verdict.similar)
        if not verdict.circular or verdict.suggestion is None:
            return CircularDetectionResult(
                is_circular=False,
                suggested_strategy=None,
                reasoning=going_on(verdict.total, self._limits.circular_fix),
                similar_attempts=similar,
            )
        self._store.count_circular()
        return CircularDetectionResult(
            is_circular=True,
            suggested_strategy=AlternativeStrategy(verdict.suggestion.strategy),
            reasoning=verdict.suggestion.reasoning,
            similar_attempts=similar,
            advice=verdict.suggestion.advice,
        )

    def calculate_jaccard_similarity(self, text1: str, text2: str) -> float:
        """Give how alike two approaches are in words, from 0 to 1, by the stopwords of the configuration."""
        stopwords = self._limits.circular_fix.stopwords
        return words.similarity(text1, text2, stopwords or words.DEFAULT_STOPWORDS)

    def get_timeline(self, subtask_id: str) -> list[TimelineEntry]:
        """Give the attempts of a subtask that are remembered, the oldest first, the latest 200 at most."""
        history = self._store.history(subtask_id, _now_ms())
        alike = [None, *(word_similarity(one.facts, other.facts) for one, other in pairwise(history))]
        return [TimelineEntry(kept.record, similarity) for kept, similarity in zip(history, alike, strict=False)]

    def get_visualization(self, subtask_id: str, *, ascii_only: bool = False) -> str:
        """Give the attempts of a subtask as text, each with how alike it is to the one before.

        Args:
            subtask_id: what was to be solved.
            ascii_only: draw the bars with signs of ASCII.
        """
        return "\n".join(timeline_lines(subtask_id, self.get_timeline(subtask_id), ascii_only=ascii_only))

    def get_summary(self) -> Summary:
        """Give figures over all subtasks, also over what was cleared or has expired since.

        ``total_attempts``, ``subtasks`` (histories that were begun) and ``outcomes`` by name count what was recorded,
        ``circular_count`` the times that an approach was found circular, ``average_attempts_per_subtask`` is the
        quotient of the first two; ``kept_attempts`` and ``kept_subtasks`` are what is remembered now.
        """
        return self._store.summary(_now_ms())

    def cleanup_subtask(self, subtask_id: str) -> int:
        """Forget the history of a subtask, and give how many attempts were forgotten. The summary still counts them."""
        return self._store.forget(subtask_id)

    def cleanup_all(self) -> int:
        """Forget all attempts and the figures of the summary, and give how many attempts were forgotten."""
        return self._store.forget_all()

    def _facts(self, subtask_id: str, now_ms: int, **fields: Any) -> Attempt:
        """Read the facts of an attempt as from an event of a stream, with its limits on lengths."""
        event = {
            "event_id": "attempt",
            "attempt_id": "attempt",  # the store numbers it
            "session_id": subtask_id,
            "occurred_at": datetime.fromtimestamp(now_ms / 1_000, UTC),
            **fields,
        }
        try:
            return read_attempt(msgspec.convert(event, events.FixAttempt), self._limits)
        except msgspec.ValidationError as problem:
            raise InvalidAttempt(_told(problem)) from None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _told(problem: msgspec.ValidationError) -> str:
    """Name the argument, what it may be, and the remedy where that does not say it."""
    what, _, path = str(problem).partition(" - at `$.")
    argument = path.rstrip("`").replace("session_id", "subtask_id")
    return f"{argument}: {what}{'; shorten it, or leave a part out' if 'length <=' in what else ''}"
