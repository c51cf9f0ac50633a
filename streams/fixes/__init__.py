"""Circular fixes in one's own process: record what was tried, and ask whether the next approach goes round in a circle.

The rules are those of the worker (`detectors.tasks`), under the names of the circular-fix detection guide. The history
is in memory, or in a file that many processes share. Nothing here touches Kafka.
"""

from streams.fixes.detector import CircularFixDetector
from streams.fixes.records import (
    AlternativeStrategy,
    CircularDetectionResult,
    FixAttempt,
    FixesError,
    FixOutcome,
    InvalidAttempt,
    InvalidFixConfig,
    SimilarAttempt,
    StoreError,
    Summary,
    TimelineEntry,
)

__all__ = [
    "AlternativeStrategy",
    "CircularDetectionResult",
    "CircularFixDetector",
    "FixAttempt",
    "FixOutcome",
    "FixesError",
    "InvalidAttempt",
    "InvalidFixConfig",
    "SimilarAttempt",
    "StoreError",
    "Summary",
    "TimelineEntry",
]
