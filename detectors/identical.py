"""Identical calls: the same tool, the same arguments and the same result, again and again.

The result is part of what must be equal, else honest polling would count (CycleDetector, first dimension). Calls whose
results were not recorded are judged by their arguments alone, at a higher limit, and never terminate.
"""

from collections.abc import Sequence

from detectors.about import About
from detectors.canonical import digest
from detectors.facts import Call, Mark
from detectors.findings import Finding, level_of
from detectors.limits import Limits
from detectors.state import SessionState, Streak

NAME = "identical"
ABOUT = About(
    rule=(
        "The same call with the same result, in a row or as the majority of the latest calls; the action "
        "alone, at higher limits, where results were not recorded, move each time or show the same page."
    ),
    source="CycleDetector, first dimension (3, 5); other tiers from what peers' users reported",
    cleared_by="another call or another result; for a majority an accepted edit",
)

_GREEN_FACTOR = 3  # of the terminate limit for a check that passes: whoever has mended a flaky one runs it often
_SCROLL_FACTOR = 2  # of the limits for scrolling, paging and single keys, which are there to be repeated
_LOOKING_ROUND = 3  # different calls between equal ones
_ACTIONS_ONLY = {
    "identical.moving_warn",
    "identical.page_warn",
    "identical.unrecorded_warn",
    "identical.unrecorded_interaction_warn",
    "identical.unrecorded_look_warn",
}


def observe(state: SessionState, call: Call, limits: Limits) -> Sequence[Finding]:
    """Count the call into the streak and return what limits it reaches; `state.recent` ends with this call."""
    if not call.action:
        state.streak = Streak()
        state.moving = Streak()
        return ()
    talks = call.talks
    streak = state.said if talks else state.streak
    if streak.key == call.key:
        streak.count += 1
        streak.batch, streak.in_batch = call.batch, 1
    else:
        streak = Streak(call.key, 1, call.mark, call.batch, 1)
    if talks:
        state.said = streak
    else:
        state.streak = streak
    if not call.recorded:
        state.moving = state.page = Streak()
        return _unrecorded_row(state, call, streak, limits)
    group = limits.identical
    if streak.count >= group.warn or streak.count >= group.terminate:  # the factors only raise them
        found = _row(state, call, streak, limits)
        if found:
            return found
    if talks:
        return ()
    return (*_majority(state, call, limits), *_moving(state, call, limits), *_page(state, call, limits))


def _row(state: SessionState, call: Call, streak: Streak, limits: Limits) -> Sequence[Finding]:
    """Judge equal calls with equal results in a row."""
    waiting = waits(state, call, limits)
    factor = limits.decision.poller_factor if waiting else 1
    factor = max(factor, _SCROLL_FACTOR) if call.scrolls else factor
    warn, terminate = limits.identical.warn * factor, limits.identical.terminate * factor
    if call.kind == "check" and call.program != call.tool and call.failure is None:
        terminate *= _GREEN_FACTOR
    level = level_of(streak.count, warn, terminate)
    if level is None:
        return ()
    value = terminate if level == "terminate" else warn
    weak = waiting and unhurried(call, streak.mark.at_ms, streak.count, limits)
    return (_finding(call, streak.count, f"identical.{level}", value, streak.mark, weak=weak),)


def _unrecorded_row(state: SessionState, call: Call, streak: Streak, limits: Limits) -> Sequence[Finding]:
    """Judge equal calls in a row whose results are not known."""
    waiting = waits(state, call, limits)
    patient = waiting and not call.met_outage and (not call.polls or call.executes)
    limit = f"identical.unrecorded_{_unrecorded(call)}warn"
    warn = limits.value(limit) * (limits.decision.poller_factor if patient else 1)
    return (_finding(call, streak.count, limit, warn, streak.mark),) if streak.count >= warn else ()


def waits(state: SessionState, call: Call, limits: Limits) -> bool:
    """Tell whether the call waits for something, or repeats after a long pause."""
    return waits_after(state.recent[-2] if len(state.recent) > 1 else call, call, limits)


def waits_after(before: Call, call: Call, limits: Limits) -> bool:
    """Tell the same of a call and the one before it."""
    if call.waits:
        return True
    patient = call.mark.at_ms - before.mark.at_ms >= limits.identical.patient_s * 1_000
    return patient and before.action == call.action and not call.edits


def unhurried(call: Call, since_ms: int, times: int, limits: Limits) -> bool:
    """Tell whether what waits has let enough time pass between so many looks: it does not spin."""
    return call.mark.at_ms - since_ms >= limits.identical.unhurried_s * 1_000 * (times - 1)


def _unrecorded(call: Call) -> str:
    """Return which limit judges a call whose result is not known."""
    if call.operates:
        return "interaction_"
    looks = call.kind in {"interact", "talk"} or (call.polls and not call.executes)
    return "look_" if looks else ""


def _page(state: SessionState, call: Call, limits: Limits) -> Sequence[Finding]:
    """Judge equal interactions in a row that lead to the same page, whatever else its text says."""
    key = digest("page", call.action, call.page) if call.page else 0
    page = state.page
    if not key or page.key != key:
        state.page = page = Streak(key, 0, call.mark)
    page.count += 1
    if key and page.count >= limits.identical.page_warn:
        return (_finding(call, page.count, "identical.page_warn", limits.identical.page_warn, page.mark),)
    return ()


def _moving(state: SessionState, call: Call, limits: Limits) -> Sequence[Finding]:
    """Judge equal calls in a row whose results move each time: honest polling for long, not without end."""
    moving = state.moving
    if moving.key != call.action:
        state.moving = moving = Streak(call.action, 0, call.mark)
    moving.count += 1
    if moving.count < limits.identical.moving_warn or call.operates:
        return ()
    warn = limits.identical.moving_warn * (limits.decision.poller_factor if call.polls else 1)
    return (_finding(call, moving.count, "identical.moving_warn", warn, moving.mark),) if moving.count >= warn else ()


def repeats_in_batch(state: SessionState, call: Call) -> bool:
    """Tell whether the call equals the one before and was asked for by the same response: the two count as one."""
    streak = state.streak
    return bool(call.batch and call.action) and streak.batch == call.batch and streak.key == call.key


def observe_batch(state: SessionState, call: Call, limits: Limits) -> Sequence[Finding]:
    """Count a call that repeats within its parallel batch: few are careless, a dozen are a loop."""
    state.streak.in_batch += 1
    warn = limits.identical.batch_warn
    if state.streak.in_batch >= warn:
        return (_finding(call, state.streak.in_batch, "identical.batch_warn", warn, state.streak.mark),)
    return ()


def _majority(state: SessionState, call: Call, limits: Limits) -> Sequence[Finding]:
    """Judge how many of the latest calls equal this one, since one foreign call between blinds a streak."""
    group, key = limits.identical, call.key
    window = state.recent[-group.window :]
    equal = [seen for seen in window if seen.key == key and not seen.settled]
    factor = _SCROLL_FACTOR if call.scrolls else 1
    warn, terminate = group.window_warn * factor, group.window_terminate * factor
    level = level_of(len(equal), warn, terminate)
    if level is None or _all_new_between(window[window.index(equal[0]) :], call):
        return ()
    if waits(state, call, limits) or any(seen.waits for seen in window):
        return ()  # waiting and looking in turn is polling, whatever the look is called
    value = terminate if level == "terminate" else warn
    return (_finding(call, len(equal), f"identical.window_{level}", value, equal[0].mark),)


def _all_new_between(window: list[Call], call: Call) -> bool:
    """Tell whether all that was called between the equal calls brought something new: looking round from one place."""
    others = [seen for seen in window if seen.key != call.key]
    return len(others) >= _LOOKING_ROUND and all(
        seen.recorded and not (seen.stale or seen.empty or seen.complains or seen.failure) for seen in others
    )


def settle_runs(state: SessionState, call: Call) -> None:
    """After an accepted edit, earlier calls no longer count: looking or checking again is what one should do.

    The same edit again is no reason to look again, and counts itself.
    """
    if call.applied:
        action = call.action
        for seen in state.recent:
            if seen.action != action:
                seen.settled = True


def _finding(call: Call, count: int, limit: str, value: float, mark: Mark, *, weak: bool = False) -> Finding:
    """Return the finding for a limit that was reached; ``mark`` is of the loop's first call."""
    if limit.startswith("identical.window"):
        what = (
            f"the same call with the same result {count} times among the last {call.mark.calls - mark.calls + 1} calls"
        )
    elif limit == "identical.batch_warn":
        what = f"the same call {count} times in one parallel batch"
    elif limit == "identical.page_warn":
        what = f"the same action {count} times in a row, leading to the same page"
    elif limit == "identical.moving_warn":
        what = f"the same call {count} times in a row, with ever another result"
    elif call.recorded:
        what = f"the same call with the same result {count} times in a row"
    else:
        what = f"the same call {count} times in a row, results not recorded"
    return Finding(
        detector=NAME,
        level="terminate" if limit.endswith("terminate") else "warn",
        fingerprint=digest("call", call.action),
        members=(call.action,),
        count=count,
        limit=limit,
        value=value,
        mark=mark,
        what=what,
        calls=(call.text,),
        failure=call.failure,
        weak=weak or call.met_outage or call.kind == "interact" or limit in _ACTIONS_ONLY,
        waits=call.waits and not call.met_outage,
    )
