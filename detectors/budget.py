"""Session budget: calls, turns, tokens, cost and wall time of one session (flapping and convergence).

A hard limit terminates. Eighty per cent of it is a notice, and a warn once something else is wrong as well: spending
alone is no loop. There are no limits until they are set.
"""

from collections.abc import Iterator

from detectors.about import About
from detectors.canonical import digest
from detectors.facts import Call, Mark
from detectors.findings import Finding
from detectors.limits import Limits
from detectors.state import DISMISSED, WARN, SessionState

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


def observe(state: SessionState, call: Call, limits: Limits) -> Iterator[Finding]:
    """Yield which budgets are used up, or nearly."""
    group = limits.budget
    spent = {
        "calls": state.calls,
        "turns": state.turns,
        "tokens": state.tokens,
        "cost_usd": state.cost,
        "wall_s": (call.mark.at_ms - state.first_ms) / 1_000,
    }
    for name, used in spent.items():
        hard = getattr(group, name)
        if not hard or used < hard * group.soft_share:
            continue
        over = used >= hard
        troubled = any(WARN <= loop.level < DISMISSED and loop.detector != NAME for loop in state.loops)
        yield Finding(
            detector=NAME,
            level="terminate" if over else "warn" if troubled else "notice",
            fingerprint=digest(NAME, name),
            members=(digest(NAME, name),),
            hard=over,
            count=used,
            limit=f"{NAME}.{name}",
            value=hard,
            mark=Mark(state.first_ms),
            what=_WORDS[name].format(used, hard),
        )
