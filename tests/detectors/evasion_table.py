"""Plays evasions through the detectors, says when each loop is found, and writes it as tables for SECURITY.md.

Budgets are set beside the default limits, to show which account stops what no other detector finds.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice

from detectors import Limits, SessionState, TaskState, limits_from, observe_task, step
from schemas.events import SessionInput
from schemas.outputs import Alert
from tests.detectors.evasion_loops import ATTEMPTS, LOOPS
from tests.detectors.evasions import EVASIONS, EVASIONS_OF_ATTEMPTS, Evasion, evaded, evaded_attempts

BUDGET_CALLS = 100
BUDGET_ATTEMPTS = 15
MOST_EVENTS = 250
MOST_ATTEMPTS = 20

BUDGETS = limits_from(
    [
        (
            "budgets",
            {
                "budget": {"calls": BUDGET_CALLS, "soft_share": 1.0},
                "task_budget": {"calls": BUDGET_CALLS, "soft_share": 1.0},
            },
        )
    ]
)
"""The default limits, and budgets that say nothing before they are spent."""

BUDGETS_OF_ATTEMPTS = limits_from([("budgets", {"task_budget": {"attempts": BUDGET_ATTEMPTS, "soft_share": 1.0}})])
"""The same for attempts."""

ACCOUNTS = {"budget": "session", "task_budget": "task"}
NOTHING = "nothing"
_DASH = "\u2013"


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of a loop: after how many events it was warned about and ended by detectors, 0 for never.

    Attributes:
        warn: events until the first warn, or terminate, of a detector that is no budget.
        by: that detector.
        terminate: events until the first terminate of such a detector.
        account: whose budget ended it where no detector did: "session" or "task"; empty where none did either.
    """

    warn: int = 0
    by: str = ""
    terminate: int = 0
    account: str = ""

    @property
    def cell(self) -> str:
        """Both counts, as the tables show them."""
        if not self.warn:
            return _DASH
        return f"{self.warn} / {self.terminate or _DASH}"


def watch(events: Iterable[SessionInput], most: int, limits: Limits) -> Seen:
    """Apply so many events to their sessions and tasks, up to the first terminate, and say what came of it."""
    sessions: dict[str, SessionState] = {}
    tasks: dict[str, TaskState] = {}
    warn, by = 0, ""
    for number, event in enumerate(islice(events, most), 1):
        loud = [alert for alert in _alerts(event, sessions, tasks, limits) if alert.level in {"warn", "terminate"}]
        rules = [alert for alert in loud if alert.detector not in ACCOUNTS]
        ends = [ACCOUNTS[alert.detector] for alert in loud if alert.level == "terminate" and alert.detector in ACCOUNTS]
        if ends:  # what a rule ends with it rests on it
            return Seen(warn, by, 0, ends[0])
        if rules and not warn:
            warn, by = number, rules[0].detector
        if any(alert.level == "terminate" for alert in rules):
            return Seen(warn, by, number)
    return Seen(warn, by)


def _alerts(
    event: SessionInput, sessions: dict[str, SessionState], tasks: dict[str, TaskState], limits: Limits
) -> list[Alert]:
    alerts, told = step(sessions.setdefault(event.session_id, SessionState()), event, limits)
    if told is None:
        return alerts
    return alerts + observe_task(tasks.setdefault(told.task_id, TaskState()), told, limits)


@cache
def of_calls() -> dict[str, dict[str, Seen]]:
    """Give what came of each way and each loop of calls."""
    return {
        name: {loop: watch(evaded(loop, evasion), MOST_EVENTS, BUDGETS) for loop in LOOPS}
        for name, evasion in EVASIONS.items()
    }


@cache
def of_attempts() -> dict[str, dict[str, Seen]]:
    """Give what came of each way and each loop of fix attempts."""
    return {
        name: {loop: watch(evaded_attempts(loop, evasion), MOST_ATTEMPTS, BUDGETS_OF_ATTEMPTS) for loop in ATTEMPTS}
        for name, evasion in EVASIONS_OF_ATTEMPTS.items()
    }


def summary() -> str:
    """Write how many of all these a detector warns about and ends, how many a budget alone, and how many nothing."""
    lines: list[tuple[str, ...]] = [
        ("who evades", "cases", "a detector warns", "a detector ends", "only a budget ends", "nothing ends")
    ]
    lines += [("---",) * 6]
    for by in ("agent", "writer", "control"):
        seen = [
            each
            for ways, all_seen in ((EVASIONS, of_calls()), (EVASIONS_OF_ATTEMPTS, of_attempts()))
            for name, row in all_seen.items()
            if ways[name].by == by and name != "none"
            for each in row.values()
        ]
        ended = sum(1 for each in seen if each.terminate)
        budget = sum(1 for each in seen if each.account)
        warned = sum(1 for each in seen if each.warn)
        lines.append((by, *map(str, (len(seen), warned, ended, budget, len(seen) - ended - budget))))
    return _markdown(lines)


def calls_table() -> str:
    """Write the table of calls."""
    return _table(tuple(LOOPS), of_calls(), EVASIONS)


def attempts_table() -> str:
    """Write the table of fix attempts."""
    return _table(tuple(ATTEMPTS), of_attempts(), EVASIONS_OF_ATTEMPTS)


def _table(loops: tuple[str, ...], seen: Mapping[str, Mapping[str, Seen]], evasions: Mapping[str, Evasion]) -> str:
    lines = [("way", "by", *loops, "first seen by", "budget"), ("---",) * (len(loops) + 4)]
    for name, row in seen.items():
        who = _distinct(each.by for each in row.values())
        cells = (each.cell for each in row.values())
        lines.append((name, evasions[name].by, *cells, ", ".join(f"`{each}`" for each in who), _accounts(row)))
    return _markdown(lines)


def _markdown(lines: Iterable[Iterable[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _accounts(row: Mapping[str, Seen]) -> str:
    """Say whose budget ends what no detector ended: of each loop where that differs."""
    left = {loop: each.account or NOTHING for loop, each in row.items() if not each.terminate}
    found = _distinct(left.values())
    if len(found) < 2:
        return "".join(found) or _DASH
    return "; ".join(f"{account}: {', '.join(loop for loop in left if left[loop] == account)}" for account in found)


def _distinct(names: Iterable[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if name]
