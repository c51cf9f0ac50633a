"""Session budget: calls, turns, tokens, cost and wall time of one session (flapping and convergence).

A hard limit terminates. Eighty per cent of it is a notice, and a warn once something else is wrong as well: spending
alone is no loop. There are no limits until they are set.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from detectors.about import About
from detectors.canonical import digest
from detectors.facts import Call, Mark
from detectors.findings import Finding, Level
from detectors.limits import BudgetLimits, Limits
from detectors.state import SessionState
from detectors.tasks.limits import TaskBudgetLimits
from detectors.watch import DISMISSED, WARN, Loop

NAME = "budget"
ABOUT = About(
    rule=(
        "What the session may spend: calls, turns, tokens, cost, time. A notice at 80 %, a warn when "
        "something else is wrong as well, a terminate at the limit."
    ),
    source="flapping and convergence",
    cleared_by="nothing",
)

_WORDS = {
    "calls": "{:,.0f} of {:,.0f} calls are spent",
    "turns": "{:,.0f} of {:,.0f} turns are spent",
    "tokens": "{:,.0f} of {:,.0f} tokens are spent",
    "cost_usd": "{:,.2f} of {:,.2f} US dollars are spent",
    "wall_s": "{:,.0f} of {:,.0f} seconds are spent",
}


def observe(state: SessionState, call: Call, limits: Limits) -> Sequence[Finding]:
    """Return which budgets are used up, or nearly."""
    group = limits.budget
    if not (group.calls or group.turns or group.tokens or group.cost_usd or group.wall_s):
        return ()
    spent = {
        "calls": state.calls,
        "turns": state.turns,
        "tokens": state.tokens,
        "cost_usd": state.cost,
        "wall_s": (call.mark.at_ms - state.first_ms) / 1_000,
    }
    others = [loop for loop in state.loops if loop.detector != NAME]
    return [_finding(use, Mark(state.first_ms)) for use in nearly_used_up(spent, group, others)]


class Use(NamedTuple):
    """What was used of a budget, its limit, and how grave that is."""

    name: str
    used: float
    limit: float
    level: Level


def _finding(use: Use, began: Mark) -> Finding:
    return Finding(
        detector=NAME,
        level=use.level,
        fingerprint=digest(NAME, use.name),
        members=(digest(NAME, use.name),),
        hard=use.level == "terminate",
        count=use.used,
        limit=f"{NAME}.{use.name}",
        value=use.limit,
        mark=began,
        what=_WORDS[use.name].format(use.used, use.limit),
    )


def nearly_used_up(
    spent: Mapping[str, float], group: BudgetLimits | TaskBudgetLimits, loops: Iterable[Loop]
) -> Iterator[Use]:
    """Yield the budgets whose soft share is reached: a warn only when something else was warned about as well."""
    troubled = any(WARN <= loop.level < DISMISSED for loop in loops)
    for name, used in spent.items():
        hard = getattr(group, name)
        if hard and used >= hard * group.soft_share:
            yield Use(name, used, hard, "terminate" if used >= hard else "warn" if troubled else "notice")
