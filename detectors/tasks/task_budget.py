"""Task budget: what one task may spend over all its sessions (flapping and convergence).

Each run may be within its own bounds and the retries together beyond them: 5 turns in each of 8 attempts are 40. A hard
limit terminates. Eighty per cent of it is a notice, and a warn once something else is wrong as well: spending alone is
no loop. There are no limits until they are set.
"""

from collections.abc import Iterator

from detectors.about import About
from detectors.budget import nearly_used_up
from detectors.canonical import digest
from detectors.facts import Mark
from detectors.limits import Limits
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
    for use in nearly_used_up(spent, group, [loop for loop in state.loops if loop.detector != NAME]):
        yield TaskFinding(
            detector=NAME,
            level=use.level,
            fingerprint=digest(NAME, state.task_id, use.name),
            members=(digest(NAME, use.name),),
            hard=use.level == "terminate",
            count=use.used,
            limit=f"{NAME}.{use.name}",
            value=use.limit,
            mark=Mark(state.first_ms),
            what=_WORDS[use.name].format(use.used, use.limit),
            strategy="escalate_human" if use.level == "terminate" else None,
            event_ids=(event_id,),
        )
