"""The limits of what is judged over one task, with their defaults and where these come from.

The sources are the circular-fix detection guide ("circular-fix guide") and the problem description "Flapping and
Convergence"; a limit without a source is ours.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from detectors.tasks.state import MAX_ATTEMPTS
from schemas.common import Name, Share

Positive = Annotated[int, Meta(ge=1, le=1_000_000)]
Number = Annotated[int, Meta(ge=0)]
Amount = Annotated[float, Meta(ge=0)]
Attempts = Annotated[int, Meta(ge=1, le=MAX_ATTEMPTS)]
Weight = Annotated[float, Meta(gt=0, le=MAX_ATTEMPTS)]


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Common settings of the sections below."""


class TaskLimits(_Section, frozen=True, kw_only=True):
    """What holds for tasks as a whole (circular-fix guide: 7 days)."""

    derive: bool = True  # read attempts from tool calls where a session sends none
    retention_days: Annotated[float, Meta(gt=0, le=3_650)] = 7.0
    rearm_after: Positive = 5  # attempts and rounds of review without the loop until it counts as broken


class CircularFixLimits(_Section, frozen=True, kw_only=True):
    """Attempts that resemble failed ones in words (circular-fix guide: 0.30, 2 of the last 5).

    Words alone warn; a terminate needs the changes, or the failure and the files, to agree as well.
    """

    similarity: Share = 0.30
    warn: Weight = 2.0
    terminate: Weight = 3.0
    lookback: Attempts = 5
    stopwords: Annotated[tuple[Name, ...], Meta(max_length=10_000)] = ()  # none: the list that comes with Traction


class ApproachChurnLimits(_Section, frozen=True, kw_only=True):
    """Approaches that were left and are taken up again: returns to a warn, full rounds to a terminate."""

    similarity: Share = 0.70
    warn: Attempts = 1
    terminate: Annotated[int, Meta(ge=2, le=MAX_ATTEMPTS)] = 2


class DiffReversalLimits(_Section, frozen=True, kw_only=True):
    """Changes that take back the one before (flapping and convergence: 70 %), counted where the lines are the same."""

    share: Annotated[float, Meta(gt=0, le=1)] = 0.70
    notice: Attempts = 1
    warn: Attempts = 2
    terminate: Attempts = 4


class StateCycleLimits(_Section, frozen=True, kw_only=True):
    """One state again within a window of attempts (flapping and convergence: 3); a near return counts half."""

    window: Attempts = 3
    warn: Weight = 1.0
    terminate: Weight = 2.0


class FixBreakLimits(_Section, frozen=True, kw_only=True):
    """What was fixed fails again, and what failed is fixed: returns to a warn, and to a terminate."""

    warn: Attempts = 1
    terminate: Attempts = 2


class FlakyTestsLimits(_Section, frozen=True, kw_only=True):
    """Rounds in which a check fails again that no change concerns. Never terminates alone."""

    warn: Attempts = 3


class TooManyAttemptsLimits(_Section, frozen=True, kw_only=True):
    """Failed attempts of any kind (circular-fix guide: more than 5); those read from tool calls have a limit apart."""

    warn: Positive = 6
    derived_warn: Positive = 20


class TaskBudgetLimits(_Section, frozen=True, kw_only=True):
    """What one task may spend over all its sessions; 0 for no limit.

    Warned at the soft share once something else is wrong as well. A session reports what it spent every so many calls
    and turns, with each attempt and review, and at its end; where one of these is limited, also whenever its calls and
    turns have doubled, so that many short sessions spend no more unseen than half of what they spend.
    """

    attempts: Number = 0
    calls: Number = 0
    turns: Number = 0
    tokens: Number = 0
    cost_usd: Amount = 0.0
    wall_s: Amount = 0.0
    soft_share: Annotated[float, Meta(gt=0, le=1)] = 0.8
    every: Annotated[int, Meta(ge=1, le=1_000)] = 10

    def report_after(self, used: int) -> int:
        """Return the calls and turns not yet reported at which a session reports, of ``used`` in all."""
        spends = self.calls or self.turns or self.tokens or self.cost_usd or self.wall_s
        return min(self.every, (used + 1) // 2) if spends else self.every


class PingPongLimits(_Section, frozen=True, kw_only=True):
    """Rounds in which a reviewing agent asks for changes, without a merge or a person's decision."""

    warn: Positive = 3
    terminate: Positive = 5
    unfixed_warn: Positive = 2  # rounds that make the same remark again
    returned_warn: Positive = 1  # remarks that were settled and are made again


class CommentVelocityLimits(_Section, frozen=True, kw_only=True):
    """Comments on a pull request that is neither merged nor closed (flapping and convergence: more than 20)."""

    warn: Positive = 21
