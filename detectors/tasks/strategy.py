"""What to try instead of a circular fix, and why: the circular-fix guide's strategies, the first that fits.

1. More than 5 failed attempts: `escalate_human`.
2. A module is missing: `analyze_root_cause`, since no edit brings it.
3. More than 70 % alike in words: `different_method`.
4. All in the same one or two files: `different_files`.
5. Else: `analyze_root_cause`.

`skip_subtask` is not suggested here: whether a part may be left out is for the policy to say.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from detectors.excerpt import named
from detectors.limits import Limits
from detectors.tasks.attempt import UNNAMED
from detectors.tasks.facts import Attempt
from detectors.tasks.history import percent
from detectors.tasks.words import each
from schemas.outputs import Strategy

VERY_SIMILAR: Final = 0.70
FEW_FILES: Final = 2


class Suggestion(NamedTuple):
    """What to try instead, why in one sentence, and a hint where there is one."""

    strategy: Strategy
    reasoning: str
    advice: str = ""

    @property
    def text(self) -> str:
        """All of it in words."""
        return f"{self.reasoning} {self.advice}".rstrip()


def suggest(attempts: Sequence[Attempt], tried: int, similarity: float, limits: Limits) -> Suggestion:
    """Return what to try instead.

    ``attempts`` are those that resemble each other, the latest last; ``tried`` is how many failed in all, and
    ``similarity`` the highest of words.
    """
    if tried >= limits.too_many_attempts.warn:
        return exhausted(tried)
    missing = [attempt.missing for attempt in attempts if attempt.missing or attempt.error]
    if missing and all(missing):
        module = missing[-1]
        package = "the package" if module == UNNAMED else f"the package that provides {module}"
        return Suggestion(
            "analyze_root_cause",
            "A module is missing each time, and no edit brings it. Recommend deeper root cause analysis.",
            f"Check that {package} is installed in the environment that runs the check.",
        )
    if similarity > VERY_SIMILAR:
        return Suggestion(
            "different_method", f"Very high similarity ({percent(similarity)}). Try a completely different approach."
        )
    touched = {mark for attempt in attempts for mark in each(attempt.files)}
    if all(attempt.files for attempt in attempts) and len(touched) <= FEW_FILES:
        names = dict.fromkeys(name for attempt in attempts for name in attempt.names)
        where = " and ".join(map(named, names)) or "the same files"
        return Suggestion(
            "different_files", f"Repeatedly modifying {where}. Try different files.", "Look at what they depend on."
        )
    return Suggestion("analyze_root_cause", "Detected a circular pattern. Recommend deeper root cause analysis.")


def exhausted(tried: int) -> Suggestion:
    """Return what to do when the task was tried too often."""
    return Suggestion("escalate_human", f"Already tried {tried} times. Human intervention recommended.")
