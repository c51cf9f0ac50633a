"""What the detectors of a task report: findings about the latest attempt or review, for the decision to weigh."""

from dataclasses import dataclass
from typing import Literal

from detectors.findings import Finding
from detectors.tasks.facts import Attempt
from schemas.outputs import Strategy

Pattern = Literal["fix_break_oscillation", "review_ping_pong", "approach_churn", "flaky_test_loop"]
"""The kinds of flapping of the problem description "Flapping and Convergence"."""


@dataclass(frozen=True, slots=True)
class TaskFinding(Finding):
    """One detector's word on the latest attempt or review of a task.

    Beside what `Finding` has: the ``pattern``, the attempts that make the loop, how alike they are in words and in what
    they change (None where nothing is known), what to try instead and why, and the ids of the events where there are no
    attempts.
    """

    pattern: Pattern | None = None
    attempts: tuple[Attempt, ...] = ()
    word_similarity: float | None = None
    diff_similarity: float | None = None
    strategy: Strategy | None = None
    advice: str = ""
    event_ids: tuple[str, ...] = ()
