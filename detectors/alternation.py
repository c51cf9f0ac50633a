"""Alternation: a block of 2 to 8 calls that repeats with equal results (A, B, A, B …).

A lap in which an edit was accepted moved something and has higher limits: an edit that is undone and made again.
One counter per period is enough: how many calls in a row equalled the call that many places before. A block counts at
its smallest period only, so that A-B is not taken for A-B-A-B.
"""

from collections.abc import Sequence

from detectors.about import About
from detectors.canonical import digest
from detectors.facts import Call
from detectors.findings import Finding, level_of
from detectors.identical import unhurried
from detectors.limits import Limits
from detectors.state import Cycle, SessionState

NAME = "alternation"
ABOUT = About(
    rule=(
        "A block of 2 to 8 calls that repeats with equal results, in whole laps of its shortest period; "
        "higher limits when an edit is accepted in each lap."
    ),
    source="flapping and convergence (3, 5)",
    cleared_by="a broken lap",
)


def observe(state: SessionState, call: Call, limits: Limits) -> Sequence[Finding]:
    """Count the call into each period and return what limits it reaches; `state.recent` ends with this call."""
    recent, key = state.recent, call.key
    cycles = state.cycles[: limits.alternation.max_period - 1]
    keys = [seen.key for seen in recent[-2 - len(cycles) : -2]]  # of the calls that lie a period back
    if not key or key not in keys:
        for cycle in cycles:
            cycle.run = 0
        return ()
    found: list[Finding] = []
    for period, cycle in enumerate(cycles, 2):
        if len(recent) <= period or recent[-1 - period].key != key:
            cycle.run = 0
            continue
        cycle.run += 1
        if cycle.run == 1:
            cycle.since_ms, cycle.mark = recent[-1 - period].mark.at_ms, recent[-2].mark
        laps = cycle.run // period + 1
        if laps > 1 and not _has_smaller_period(state, period):
            found += _judge(recent[-period:], cycle, laps, limits)
    return found


def _has_smaller_period(state: SessionState, period: int) -> bool:
    """Tell whether the latest block is itself a repetition of a shorter one."""
    if _equal_tail(state.recent, period) >= period:
        return True
    return any(
        period % divisor == 0 and state.cycles[divisor - 2].run >= period - divisor for divisor in range(2, period)
    )


def _equal_tail(recent: list[Call], most: int) -> int:
    """Count the equal calls at the end, up to ``most``."""
    count = 1
    while count < most and recent[-1 - count].key == recent[-1].key:
        count += 1
    return count


def _judge(block: list[Call], cycle: Cycle, laps: int, limits: Limits) -> Sequence[Finding]:
    factor = limits.decision.poller_factor if any(seen.waits for seen in block) else 1
    if all(seen.recorded for seen in block):
        group, kind = limits.alternation, "edited_" if any(seen.applied for seen in block) else ""
        warn = (group.edited_warn if kind else group.warn) * factor
        terminate = (group.edited_terminate if kind else group.terminate) * factor
        level = level_of(laps, warn, terminate)
        limit, value = f"alternation.{kind}{level}", terminate if level == "terminate" else warn
    else:
        kind = "interaction_" if all(seen.kind == "interact" for seen in block) else ""
        limit = f"alternation.unrecorded_{kind}warn"
        value = limits.value(limit) * factor
        level = "warn" if laps >= value else None
    if level is None:
        return ()
    start = min(range(len(block)), key=lambda place: _rotated(block, place))
    members = _rotated(block, start)
    found = Finding(
        detector=NAME,
        level=level,
        fingerprint=digest("cycle", *members),
        members=members,
        count=laps,
        limit=limit,
        value=value,
        since_ms=cycle.since_ms,
        mark=cycle.mark,
        what=f"a block of {len(block)} calls with equal results {laps} times over",
        calls=tuple(seen.text for seen in block[start:] + block[:start]),
        weak=any(seen.met_outage for seen in block)
        or (factor > 1 and unhurried(block[-1], cycle.since_ms, laps, limits)),
    )
    return (found,)


def _rotated(block: list[Call], start: int) -> tuple[int, ...]:
    """Return the block's actions from ``start`` on; the smallest rotation names the cycle wherever it was cut."""
    return tuple(seen.action for seen in block[start:] + block[:start])
