"""Task budget: what one task may spend over all its sessions (flapping and convergence).

Each run may be within its own bounds and the retries together beyond them: 5 turns in each of 8 attempts are 40. A hard
limit terminates. Eighty per cent of it is a notice, and a warn once something else is wrong as well: spending alone is
no loop. There are no limits until they are set.
"""

from collections.abc import Iterator

from detectors.about import About
from detectors.canonical import digest
from detectors.facts import Mark
from detectors.limits import Limits
from detectors.state import DISMISSED, WARN
from detectors.tasks.findings import TaskFinding
from detectors.tasks.state import TaskState

NAME = "task_budget"
ABOUT = About(
    rule=(
        "What all sessions of a task may spend together: attempts, calls, turns, tokens, cost, time. A notice at 80 %, "
        "a warn when something else is wrong as well, a terminate at the limit."
    ),
    source="flapping and convergence",
    cleared_by="a success, a merge",
)

_WORDS = {
    "attempts": "{:,.0f} of {:,.0f} attempts at the task are made",
    "calls": "{:,.0f} of {:,.0f} calls for the task are spent",
    "turns": "{:,.0f} of {:,.0f} turns for the task are spent",
    "tokens": "{:,.0f} of {:,.0f} tokens for the task are spent",
    "cost_usd": "{:,.2f} of {:,.2f} US dollars for the task are spent",
    "wall_s": "{:,.0f} of {:,.0f} seconds for the task are spent",
}


def observe(state: TaskState, event_id: str, limits: Limits) -> Iterator[TaskFinding]:
    """Yield which budgets are used up, or nearly, by the event of this id."""
    group = limits.task_budget
    spent = {
        "attempts": state.tried,
        "calls": state.spent.calls,
        "turns": state.spent.turns,
        "tokens": state.spent.tokens,
        "cost_usd": state.spent.cost,
        "wall_s": state.spent.wall_ms / 1_000,
    }
    for name, used in spent.items():
        hard = getattr(group, name)
        if not hard or used < hard * group.soft_share:
            continue
        over = used >= hard
        troubled = any(WARN <= loop.level < DISMISSED and loop.detector != NAME for loop in state.loops)
        yield TaskFinding(
            detector=NAME,
            level="terminate" if over else "warn" if troubled else "notice",
            fingerprint=digest(NAME, state.task_id, name),
            members=(digest(NAME, name),),
            hard=over,
            count=used,
            limit=f"{NAME}.{name}",
            value=hard,
            mark=Mark(state.first_ms),
            what=_WORDS[name].format(used, hard),
            strategy="escalate_human" if over else None,
            event_ids=(event_id,),
        )
