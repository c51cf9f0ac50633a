"""What the words of other systems are with us: settings of a `replay_config`, and names of detectors.

A scenario that depends on its author's numbers is played under them. What we have no rule for leaves the scenario out,
with the reason; a limit named here that does not exist is a fault of the scenario, told and not raised. Nothing here
may look at what a scenario expects beyond its kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from detectors import Limits
from detectors.limits import MAX_SEARCHES, MAX_WINDOW_CALLS

Figure = int | float | bool


def as_it_is(value: Figure) -> Figure:
    """Give the number itself."""
    return value


@dataclass(frozen=True, slots=True)
class To:
    """The setting is these limits of ours, its value put into our measure, and those ``beside`` them go with it."""

    names: tuple[str, ...]
    measure: Callable[[Figure], Figure] = as_it_is
    beside: Mapping[str, Figure] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Kept:
    """The setting says what we do in any case, or makes no difference; why."""

    why: str


@dataclass(frozen=True, slots=True)
class Missing:
    """We have no such rule, and why: scenarios that need it are left out."""

    why: str


def halved(value: Figure) -> Figure:
    """Calls whose arguments changed count half with us (CycleDetector's halved counting) and whole with others."""
    return math.ceil(value / 2)


def returns(value: Figure) -> Figure:
    """So many equal states are one return fewer, and a return of which only the state is known counts half with us."""
    return (value - 1) / 2


def at_most(longest: int) -> Callable[[Figure], Figure]:
    """Our windows have a greatest length; a longer one of theirs is that."""
    return lambda value: min(value, longest)


_CATEGORIES = ("explore", "act", "plan", "other", "execute", "execute_write")
_DEFAULT = Limits()

TABLE: Mapping[str, To | Kept | Missing] = {
    # Equal calls.
    "identical_warn": To(("identical.warn",)),
    "identical_terminate": To(("identical.terminate",)),
    "identical_window": To(("identical.window",), at_most(MAX_WINDOW_CALLS)),
    "identical_in_window_warn": To(("identical.window_warn",)),
    "args_only_warn": To(("identical.moving_warn",)),
    "result_aware": Kept("equal calls with equal results are a loop either way"),
    "escalate_on_same_fingerprint": Kept("a loop is terminated only after its own warning"),
    "reset_on_user_message": To(("decision.user_message_clears",)),
    # One factor moves both limits of a poller; the later entry of a scenario decides.
    "poll_warn": To(("decision.poller_factor",), lambda value: value / _DEFAULT.identical.warn),
    "poll_terminate": To(("decision.poller_factor",), lambda value: value / _DEFAULT.identical.terminate),
    # Cycles.
    "cycle_laps_warn": To(("alternation.warn", "alternation.edited_warn")),
    "cycle_laps_terminate": To(("alternation.terminate", "alternation.edited_terminate")),
    "cycle_max_period": To(("alternation.max_period",)),
    # Failures.
    "error_warn": To(("error_streak.warn", "error_streak.same_call_warn")),
    "error_terminate": To(("error_streak.terminate", "error_streak.same_call_terminate")),
    "unknown_tool_terminate": To(("error_streak.denied_terminate",)),
    "timeout_terminate": To(("same_failure.terminate",)),
    "reflection_limit": To(("same_failure.warn",)),
    "error_from_text": Kept("where there is no flag the text is read; where it says success, equal results are seen"),
    "error_key": Kept("failures count per tool and program"),
    "error_similarity": Kept("failures are compared by their masked template"),
    "reset_on_edit": Kept("an accepted edit clears the calls that failed before it"),
    "transient": Kept("outages neither add nor clear"),
    "compare_error_text": Missing("a failure that says something new counts half, whoever asks"),
    "mask_line_numbers": Missing("line numbers of failures are always masked"),
    # Answers that do not change.
    "same_result_warn": To(("same_answer.warn", "fruitless_search.warn")),
    "same_result_terminate": To(("same_answer.terminate",)),
    "same_result_window": To(("fruitless_search.window",), at_most(MAX_SEARCHES)),
    "overview_terminate": Missing("overviews of a repository have no rule of their own"),
    # Categories and rereads.
    "category_warn": To(tuple(f"category.{name}_warn" for name in _CATEGORIES), halved),
    "no_change_calls_warn": To(("category.explore_warn",), halved),
    "rewrites_one_target_warn": To(("category.act_warn",), halved),
    "range_repeat_warn": To(("rereads.warn",)),
    # Budgets.
    # Turns of the model where these are told, else calls. The task is told of each, so that none is over the limit.
    "turn_limit": To(("budget.calls", "task_budget.turns"), beside={"task_budget.every": 1}),
    "turn_limit_warn": To(("budget.calls",)),
    "tool_caps": Missing("calls of one tool have no cap of their own"),
    "compaction_streak_warn": Missing("trims of the context are not counted; they are no calls"),
    # Tasks. That fewer checks fail sets back none of our counts of attempts: ours speak no later than theirs.
    "no_progress_warn": To(("too_many_attempts.warn", "too_many_attempts.derived_warn")),
    "carry_deleted_tests": Missing("a check that is gone is not told from one that passes"),
    "equal_state_warn": To(("state_cycle.warn",), returns),
    "review_rounds_warn": To(("ping_pong.warn",)),
    "review_rounds_terminate": To(("ping_pong.terminate",)),
    "same_finding_unfixed_warn": To(("ping_pong.unfixed_warn",)),
    "human_resets": Kept("a person's decision sets the rounds back"),
    "approval_resets": Kept("an approval sets the rounds back"),
}

_SAME_TRIED = {"circular_fix", "approach_churn", "state_cycle", "diff_reversal", "fix_break", "too_many_attempts"}
_TRIED = {*_SAME_TRIED, "flaky_tests"}
_REVIEWED = {"ping_pong", "comment_velocity"}
_SAME_CALLS = {"identical", "alternation", "revisits", "same_answer", "same_write", "stuck_check", "rereads"}
_SAME_THING = {*_SAME_CALLS, *_SAME_TRIED}
_FAILURES = {"error_streak", "same_failure", "refused_edits", "stuck_check", "identical", "alternation", *_TRIED}
_NOTHING_NEW = {*_SAME_THING, *_FAILURES, "fruitless_search"}
_MOVING_ABOUT = {"category", "analysis", "rereads", "revisits", "same_answer", "same_write"}
ACCEPTED: Mapping[str, set[str]] = {
    "identical": _SAME_THING,
    "identical_calls": _SAME_THING,
    "majority": _SAME_THING,
    "alternation": _SAME_THING,
    "cycle": _SAME_THING,
    "reread": {*_SAME_CALLS, "analysis"},
    "rereads": {*_SAME_CALLS, "analysis"},
    "error": _FAILURES,
    "error_streak": _FAILURES,
    "same_failure": _FAILURES,
    "unknown_tool": _FAILURES,
    "refused_edits": _FAILURES,
    "stuck_check": {"stuck_check", "identical", "error_streak", "same_failure", *_TRIED},
    "fix_attempts": {"stuck_check", "error_streak", "alternation", *_TRIED},
    "same_patch": {"same_write", "refused_edits", "stuck_check", "identical", *_SAME_TRIED},
    "same_write": {"same_write", "identical"},
    "fruitless_search": {"fruitless_search", "same_answer", "same_failure"},
    "same_answer": {"same_answer", "fruitless_search", "identical"},
    "fingerprint": _NOTHING_NEW,
    "diff_reversal": {*_SAME_THING, "category"},
    "circular_fix": {*_SAME_THING, *_FAILURES},
    "pingpong": _REVIEWED,
    "category": _MOVING_ABOUT,
    "budget": {"budget", "task_budget"},
}
"""Our detectors that mean what a scenario's word means. Generous: what matters is that the loop is seen, and when."""


def missing(config: Mapping[str, Any]) -> list[str]:
    """Give the reasons why a scenario with this configuration cannot be played."""
    entries = [TABLE.get(key) for key in config]
    return [entry.why for entry in entries if isinstance(entry, Missing)]


def unknown(config: Mapping[str, Any]) -> list[str]:
    """Give what is not known: settings that the table lacks, and limits it names that do not exist."""
    known = known_limits()
    settings = [f"no entry for the setting {key}" for key in config if key not in TABLE]
    entries = [entry for entry in map(TABLE.get, config) if isinstance(entry, To)]
    names = [name for entry in entries for name in (*entry.names, *entry.beside)]
    return settings + [f"no limit {name}" for name in names if name not in known]


def limits_for(config: Mapping[str, Any], *, negative: bool) -> dict[str, Figure]:
    """Give our limits for the settings of a scenario, those beside them moved so that they agree."""
    values: dict[str, Figure] = {}
    for key, value in config.items():
        entry = TABLE.get(key)
        if isinstance(entry, To):
            values.update({**dict.fromkeys(entry.names, entry.measure(value)), **entry.beside})
    known = known_limits()
    for name in [name for name in values if name.endswith("terminate")]:
        _warn_before(values, name, known, negative=negative)
    for name in [name for name in values if name.endswith("warn")]:
        terminate = f"{name.removesuffix('warn')}terminate"
        if terminate in known:
            values.setdefault(terminate, max(known[terminate], values[name]))
    _fit_window(values, known)
    return values


def _warn_before(values: dict[str, Figure], terminate: str, known: Mapping[str, Figure], *, negative: bool) -> None:
    """Place the warning of a system that has only a last word.

    We warn of each loop before we end it, so where the last word is expected the warning comes a call before; where
    silence is expected, it is expected up to the last word.
    """
    warn = f"{terminate.removesuffix('terminate')}warn"
    if warn in known and warn not in values:
        values[warn] = values[terminate] if negative else max(1, min(known[warn], values[terminate] - 1))


def _fit_window(values: dict[str, Figure], known: Mapping[str, Figure]) -> None:
    """Have the majority rule, which others lack, speak no earlier than their streak, and within its window."""
    window = values.get("identical.window", known["identical.window"])
    for level in ("warn", "terminate"):
        name = f"identical.window_{level}"
        lowest = max(known[name], values.get(f"identical.{level}", 0))
        if name in values or lowest > known[name] or window < known[name]:
            values[name] = min(window, values.get(name, lowest))


def known_limits() -> dict[str, Figure]:
    """Give the numbers and switches among our limits by dotted name, with their defaults."""
    sections = msgspec.to_builtins(Limits())
    return {
        f"{section}.{name}": value
        for section, group in sections.items()
        if isinstance(group, dict)
        for name, value in group.items()
        if isinstance(value, int | float)
    }
