"""Every limit of detection with its default, and where it comes from.

Defaults are those of the detector specification; where it names a source, the field's comment does too. A set of
limits is immutable and remembers which layer set each value, so that an alert can say so.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from detectors.catalogue import Tools
from detectors.state import MAX_PERIOD_CALLS
from detectors.tasks.limits import (
    ApproachChurnLimits,
    CircularFixLimits,
    CommentVelocityLimits,
    DiffReversalLimits,
    FixBreakLimits,
    FlakyTestsLimits,
    PingPongLimits,
    StateCycleLimits,
    TaskBudgetLimits,
    TaskLimits,
    TooManyAttemptsLimits,
)
from detectors.weights import DEFAULT_MODEL, Model
from schemas.common import Share

Positive = Annotated[int, Meta(ge=1, le=1_000_000)]
Factor = Annotated[float, Meta(ge=1, le=1_000)]
MAX_WINDOW_CALLS = 12
MAX_EDITS = 12  # latest edits that are remembered
MAX_SEARCHES = 10  # latest searches
MAX_SPANS = 16  # latest ranges of lines read of one file


DetectorName = Literal[
    "identical",
    "alternation",
    "error_streak",
    "same_failure",
    "same_write",
    "refused_edits",
    "stuck_check",
    "same_answer",
    "fruitless_search",
    "revisits",
    "rereads",
    "analysis",
    "category",
    "budget",
    "spin_score",
    "circular_fix",
    "approach_churn",
    "diff_reversal",
    "state_cycle",
    "fix_break",
    "flaky_tests",
    "too_many_attempts",
    "task_budget",
    "ping_pong",
    "comment_velocity",
]


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Common settings of the sections below."""


class IdenticalLimits(_Section, frozen=True, kw_only=True):
    """Equal calls with equal results (CycleDetector, first dimension: 3 and 5).

    The window catches what one foreign call between would hide; the batch limit is for equal calls that one response
    asks for in parallel, which otherwise count once. Where results were not recorded, or move each time, only the
    actions are equal: these have high limits and never terminate. Interfaces as a rule answer with a picture, so that
    an interaction needs fewer, and scrolling, waiting and speaking somewhat more.
    """

    warn: Positive = 3
    terminate: Positive = 5
    unrecorded_warn: Positive = 20
    unrecorded_interaction_warn: Positive = 8
    unrecorded_look_warn: Positive = 12
    moving_warn: Positive = 50
    window: Annotated[int, Meta(ge=2, le=MAX_WINDOW_CALLS)] = MAX_WINDOW_CALLS
    window_warn: Annotated[int, Meta(ge=1, le=MAX_WINDOW_CALLS)] = 5
    window_terminate: Annotated[int, Meta(ge=1, le=MAX_WINDOW_CALLS)] = 7
    batch_warn: Positive = 12
    page_warn: Positive = 6
    unhurried_s: Annotated[float, Meta(gt=0)] = 10.0  # between polls, on the average; these never terminate
    patient_s: Annotated[float, Meta(gt=0)] = 60.0  # between equal calls; whoever waits so long is polling


class RevisitsLimits(_Section, frozen=True, kw_only=True):
    """Calls among the latest that brought only what the session had seen before, in whatever order."""

    window: Annotated[int, Meta(ge=2, le=MAX_WINDOW_CALLS)] = MAX_WINDOW_CALLS
    warn: Annotated[int, Meta(ge=1, le=MAX_WINDOW_CALLS)] = 10


class AlternationLimits(_Section, frozen=True, kw_only=True):
    """Blocks of 2 to 8 calls that repeat with equal results, counted in whole laps (flapping and convergence: 3, 5)."""

    warn: Annotated[int, Meta(ge=2, le=1_000_000)] = 3
    terminate: Annotated[int, Meta(ge=2, le=1_000_000)] = 5
    edited_warn: Annotated[int, Meta(ge=2, le=1_000_000)] = 4
    edited_terminate: Annotated[int, Meta(ge=2, le=1_000_000)] = 6
    unrecorded_warn: Annotated[int, Meta(ge=2, le=1_000_000)] = 10
    unrecorded_interaction_warn: Annotated[int, Meta(ge=2, le=1_000_000)] = 5
    max_period: Annotated[int, Meta(ge=2, le=MAX_PERIOD_CALLS)] = MAX_PERIOD_CALLS


class CategoryLimits(_Section, frozen=True, kw_only=True):
    """Calls of one category in a row (CycleDetector, second dimension, with its overrides for tools that execute).

    A call with other arguments than the last one adds a half. ``alone`` lets a terminate rest on the category.
    """

    explore_warn: Positive = 100
    explore_terminate: Positive = 200
    act_warn: Positive = 50
    act_terminate: Positive = 100
    plan_warn: Positive = 30
    plan_terminate: Positive = 60
    other_warn: Positive = 50
    other_terminate: Positive = 100
    execute_warn: Positive = 50
    execute_terminate: Positive = 100
    execute_write_warn: Positive = 30
    execute_write_terminate: Positive = 60
    tools: dict[str, tuple[Positive, Positive]] = {}
    alone: bool = False


class ErrorStreakLimits(_Section, frozen=True, kw_only=True):
    """Failing calls (CycleDetector, third dimension: 8 and 15; the same call with the same failure: 3 and 5)."""

    warn: Positive = 8
    terminate: Positive = 15
    same_call_warn: Positive = 3
    same_call_terminate: Positive = 5
    same_call_within: Positive = 12  # calls; single failures further apart are not one loop
    denied_warn: Positive = 3
    denied_terminate: Positive = 10


class SameFailureLimits(_Section, frozen=True, kw_only=True):
    """Calls of any tool in a row that fail with one reason, or two in turn, with ever other arguments.

    The window is for those that succeed now and then, as a guess among many does.
    """

    warn: Positive = 5
    terminate: Positive = 12
    window: Annotated[int, Meta(ge=2, le=MAX_WINDOW_CALLS)] = 10
    window_warn: Annotated[int, Meta(ge=1, le=MAX_WINDOW_CALLS)] = 7


class SameWriteLimits(_Section, frozen=True, kw_only=True):
    """One and the same edit, accepted each time or failing each time."""

    warn: Annotated[int, Meta(ge=1, le=MAX_EDITS)] = 3
    terminate: Annotated[int, Meta(ge=1, le=MAX_EDITS)] = 6
    window: Annotated[int, Meta(ge=2, le=MAX_EDITS)] = MAX_EDITS
    window_warn: Annotated[int, Meta(ge=1, le=MAX_EDITS)] = 5


class RefusedEditsLimits(_Section, frozen=True, kw_only=True):
    """Edits of one target that are refused, or fail their check, for one reason or two in turn."""

    warn: Annotated[int, Meta(ge=1, le=MAX_EDITS)] = 5
    terminate: Annotated[int, Meta(ge=1, le=MAX_EDITS)] = 10
    window: Annotated[int, Meta(ge=2, le=MAX_EDITS)] = 10


class FruitlessSearchLimits(_Section, frozen=True, kw_only=True):
    """Searches and look-ups that bring nothing; fewer are enough when they share their words.

    Never terminates alone.
    """

    warn: Annotated[int, Meta(ge=1, le=MAX_SEARCHES)] = 8
    reworded_warn: Annotated[int, Meta(ge=1, le=MAX_SEARCHES)] = 5
    window: Annotated[int, Meta(ge=2, le=MAX_SEARCHES)] = MAX_SEARCHES


class StuckCheckLimits(_Section, frozen=True, kw_only=True):
    """One check or run with the same failing answer, whatever was edited between (flapping and convergence).

    Terminates where CycleDetector's error streak does: who still edits is not to be stopped as early as who does not.
    """

    warn: Positive = 5
    terminate: Positive = 15


class SameAnswerLimits(_Section, frozen=True, kw_only=True):
    """One tool that gives one answer whatever it is asked."""

    warn: Annotated[int, Meta(ge=1, le=MAX_WINDOW_CALLS)] = 6
    terminate: Annotated[int, Meta(ge=1, le=MAX_WINDOW_CALLS)] = 8
    window: Annotated[int, Meta(ge=2, le=MAX_WINDOW_CALLS)] = MAX_WINDOW_CALLS


class RereadsLimits(_Section, frozen=True, kw_only=True):
    """Reads of one file in which under a tenth is new (analysis-loop guide: 3)."""

    notice: Annotated[int, Meta(ge=1, le=MAX_SPANS)] = 3
    warn: Annotated[int, Meta(ge=1, le=MAX_SPANS)] = 6
    new_share: Annotated[float, Meta(ge=0, lt=1)] = 0.1
    within: Positive = 20  # calls; a reread after more of them counts anew


class AnalysisLimits(_Section, frozen=True, kw_only=True):
    """Calls in a row that only look (analysis-loop guide: 5 of the last 10; by role 5, 6, 7, 10; profiles 8/15, 3/5).

    ``exempt`` is how many of a task's first calls do not count, since real work opens with reading. Alone it is a
    notice; together with rereads, or after so many ``interventions`` and looks in a row all the same, a warn. Of real
    healthy sessions 3 in 100 look 30 times in a row, none 40 times.
    """

    profile: Literal["standard", "conservative", "aggressive"] = "standard"
    roles: dict[str, Positive] = msgspec.field(
        default_factory=lambda: {"code": 5, "debugger": 6, "orchestrator": 7, "explore": 10}
    )
    exempt: Annotated[int, Meta(ge=0, le=1_000_000)] = 20
    interventions: Positive = 2
    ignored_warn: Positive = 40


class BudgetLimits(_Section, frozen=True, kw_only=True):
    """What one session may spend; 0 for no limit. Warned at the soft share once something else is wrong as well."""

    calls: Annotated[int, Meta(ge=0)] = 0
    turns: Annotated[int, Meta(ge=0)] = 0
    tokens: Annotated[int, Meta(ge=0)] = 0
    cost_usd: Annotated[float, Meta(ge=0)] = 0.0
    wall_s: Annotated[float, Meta(ge=0)] = 0.0
    soft_share: Annotated[float, Meta(gt=0, le=1)] = 0.8


class SpinScoreLimits(_Section, frozen=True, kw_only=True):
    """The learned score, from 0 to 1; each limit 0 for the one that was learned with the weights.

    What a weak rule found needs a score of ``weak_needs`` to be more than a notice; where the rule only counts calls,
    whatever they bring, it needs one of ``notice``.
    """

    notice: Share = 0.0
    warn: Share = 0.0
    weak_needs: Share = 0.0


class SessionLimits(_Section, frozen=True, kw_only=True):
    """How long sessions are remembered: days without a record (as tasks), hours after the session's end."""

    idle_days: Annotated[float, Meta(gt=0, le=3_650)] = 7.0
    ended_hours: Annotated[float, Meta(gt=0, le=87_600)] = 24.0  # stragglers come in minutes, producers retry for hours


class DecisionLimits(_Section, frozen=True, kw_only=True):
    """How findings become alerts."""

    rearm_after: Positive = 20  # calls without the loop until it counts as broken
    repeat_factor: Annotated[float, Meta(gt=1, le=1_000)] = 2.0  # the next warn of one loop at this multiple
    user_message_clears: bool = True
    false_alarm_days: Annotated[float, Meta(gt=0, le=3_650)] = 7.0  # as long as alerts are kept
    pause_s: Annotated[float, Meta(ge=1)] = 14_400.0  # between two calls; a longer one begins a new stretch
    late_after_s: Annotated[float, Meta(ge=0)] = 3_600.0  # older than what was applied by more than this: late
    late_in_row: Positive = 20  # so many late ones in a row: the producer's clock was wrong before, not now
    poller_factor: Factor = 3.0  # limits of declared pollers are multiplied by it
    excerpt_chars: Annotated[int, Meta(ge=0, le=200)] = 100  # of a call kept for people; 0 keeps none


class Limits(_Section, frozen=True, kw_only=True, dict=True):
    """All limits of one session and its task.

    ``layers`` maps the dotted name of every limit that is not a default to the layer that set it.
    """

    mode: Literal["observe", "warn", "enforce"] = "enforce"
    session_mode: Literal["", "explore", "implement"] = ""
    off: tuple[DetectorName, ...] = ()
    warn_only: tuple[DetectorName, ...] = ()
    identical: IdenticalLimits = IdenticalLimits()
    revisits: RevisitsLimits = RevisitsLimits()
    alternation: AlternationLimits = AlternationLimits()
    category: CategoryLimits = CategoryLimits()
    error_streak: ErrorStreakLimits = ErrorStreakLimits()
    same_failure: SameFailureLimits = SameFailureLimits()
    same_write: SameWriteLimits = SameWriteLimits()
    refused_edits: RefusedEditsLimits = RefusedEditsLimits()
    fruitless_search: FruitlessSearchLimits = FruitlessSearchLimits()
    stuck_check: StuckCheckLimits = StuckCheckLimits()
    same_answer: SameAnswerLimits = SameAnswerLimits()
    rereads: RereadsLimits = RereadsLimits()
    analysis: AnalysisLimits = AnalysisLimits()
    budget: BudgetLimits = BudgetLimits()
    spin_score: SpinScoreLimits = SpinScoreLimits()
    circular_fix: CircularFixLimits = CircularFixLimits()
    approach_churn: ApproachChurnLimits = ApproachChurnLimits()
    diff_reversal: DiffReversalLimits = DiffReversalLimits()
    state_cycle: StateCycleLimits = StateCycleLimits()
    fix_break: FixBreakLimits = FixBreakLimits()
    flaky_tests: FlakyTestsLimits = FlakyTestsLimits()
    too_many_attempts: TooManyAttemptsLimits = TooManyAttemptsLimits()
    task_budget: TaskBudgetLimits = TaskBudgetLimits()
    ping_pong: PingPongLimits = PingPongLimits()
    comment_velocity: CommentVelocityLimits = CommentVelocityLimits()
    tasks: TaskLimits = TaskLimits()
    sessions: SessionLimits = SessionLimits()
    decision: DecisionLimits = DecisionLimits()
    tools: Tools = Tools()
    model: Model = DEFAULT_MODEL
    layers: Mapping[str, str] = {}

    def value(self, name: str) -> float:
        """Return the limit of this dotted name."""
        section, _, field = name.partition(".")
        return float(getattr(getattr(self, section), field))

    @cached_property
    def scores_spin(self) -> bool:
        """Whether the spin score is computed and weighed."""
        return "spin_score" not in self.off

    @cached_property
    def spin_warn(self) -> float:
        """The score from which on there is a warn."""
        return self.spin_score.warn or max(self.model.source.warn, self.spin_score.notice)

    @cached_property
    def spin_notice(self) -> float:
        """The score from which on there is a notice."""
        return self.spin_score.notice or min(self.model.source.notice, self.spin_warn)

    @cached_property
    def spin_weak_needs(self) -> float:
        """The score below which what a weak rule found is only a notice."""
        return self.spin_score.weak_needs or self.model.source.weak_needs

    def layer(self, name: str) -> str:
        """Return the layer that set the limit of this dotted name.

        When none did, ``default``; ``weights`` for a limit that came with weights that somebody named.
        """
        learned = name.startswith("spin_score.") and self.model != DEFAULT_MODEL
        return self.layers.get(name, "weights" if learned else "default")
