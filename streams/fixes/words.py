"""Puts the history of circular-fix detection into words: a timeline with bars, a summary, an answer.

Everything is text for people; control characters of what was recorded are taken out. Prints nothing itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streams.timeline import counted, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from detectors.tasks.limits import CircularFixLimits
    from streams.fixes.records import CircularDetectionResult, SimilarAttempt, Summary, TimelineEntry

BAR_CELLS: Final = 20
BLOCKS: Final = "█░"
ASCII_BLOCKS: Final = "#-"
_APPROACH_CHARS = 100
_FILES = 5  # paths that are named of one attempt


def bar(share: float, *, ascii_only: bool = False) -> str:
    """Draw a share from 0 to 1 as a bar of 20 cells and a percentage; a cell is drawn when all of it is reached."""
    full, empty = ASCII_BLOCKS if ascii_only else BLOCKS
    cells = int(share * BAR_CELLS)
    return f"[{full * cells}{empty * (BAR_CELLS - cells)}] {share:.2%}"


def going_on(count: float, limits: CircularFixLimits) -> str:
    """Say why an approach is not circular."""
    return f"Attempts like it count {count:g} of the last {limits.lookback} that failed; {limits.warn:g} make a circle."


def timeline_lines(subtask_id: str, entries: Sequence[TimelineEntry], *, ascii_only: bool) -> Iterator[str]:
    """Write the attempts of a subtask, each with how alike it is to the one before, in the form of the guide."""
    yield f"=== Fix Attempt History for {plain(subtask_id)} ==="
    yield ""
    total = entries[-1].attempt.number if entries else 0
    yield f"Total Attempts: {total}{f' ({len(entries)} of them kept)' if len(entries) < total else ''}"
    for entry in entries:
        attempt, similarity = entry.attempt, entry.similarity_to_previous
        yield ""
        yield f"Attempt #{attempt.number}:"
        yield f"  Approach: {plain(attempt.approach, _APPROACH_CHARS)}"
        if attempt.files_modified:
            yield f"  Files: {_files(attempt.files_modified, attempt.files_total)}"
        yield f"  Outcome: {attempt.outcome}"
        if attempt.error_message:
            yield f"  Error: {plain(attempt.error_message, _APPROACH_CHARS)}"
        if similarity is not None:
            yield f"  Similarity to previous: {bar(similarity, ascii_only=ascii_only)}"
        yield f"  Timestamp: {attempt.recorded_at:%Y-%m-%dT%H:%M:%SZ}"


def _files(paths: Sequence[str], total: int) -> str:
    named = ", ".join(plain(path) for path in paths[:_FILES])
    rest = total - min(len(paths), _FILES)
    return f"{named} and {rest} more" if rest else named


def answer_lines(result: CircularDetectionResult) -> Iterator[str]:
    """Write whether to go on, and what to do instead."""
    yield f"{'circular' if result.is_circular else 'go on'}: {result.reasoning}"
    if result.suggested_strategy:
        yield f"  strategy  {result.suggested_strategy}"
    if result.advice:
        yield f"  advice    {plain(result.advice)}"
    for attempt in result.similar_attempts:
        yield f"  like      {_likeness(attempt)}"


def _likeness(attempt: SimilarAttempt) -> str:
    said = (("words", attempt.word_similarity), ("changes", attempt.diff_similarity))
    shares = ", ".join(f"{what} {share:.2%}" for what, share in said if share is not None)
    return f"attempt #{attempt.number}{f': {shares}' if shares else ''}"


def summary_lines(summary: Summary) -> Iterator[str]:
    """Write the figures over all subtasks."""
    yield (
        f"{counted(summary['total_attempts'], 'attempt')} of {counted(summary['subtasks'], 'subtask')}, "
        f"{summary['average_attempts_per_subtask']:.2f} on average"
    )
    for outcome, number in summary["outcomes"].items():
        yield f"  {outcome:<10} {number:,}"
    yield f"found circular {counted(summary['circular_count'], 'time')}"
    kept = counted(summary["kept_attempts"], "attempt")
    yield f"remembered now: {kept} of {counted(summary['kept_subtasks'], 'subtask')}"
