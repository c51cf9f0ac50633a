"""Error streak: calls that execute something and fail, however the wording changes (CycleDetector, third dimension).

Failures count per program, clustered by code or masked message, so that A, B, C, A in one area is one pattern. A call
that shows movement adds a half (CycleDetector's halved counting): changed arguments, a failure of a kind or about
things not seen in the streak, and after an accepted edit another kind than the last; about other things it then adds a
quarter. Where most failures are new, evidence is weak: from error to error is how builds are mended. The same call with
the same failure, and tools that do not exist or are forbidden, have limits of their own. Progress begins all anew.
"""

from collections.abc import Sequence
from typing import Literal

from detectors.about import About
from detectors.canonical import digest
from detectors.excerpt import named
from detectors.facts import Call
from detectors.failure import Failure
from detectors.findings import Finding, level_of
from detectors.identical import unhurried
from detectors.limits import Limits
from detectors.progress import area_digest, note_counts
from detectors.state import MAX_AREAS, MAX_FAILING_CALLS, MAX_KINDS, Area, Denied, FailingCall, SessionState

NAME = "error_streak"
ABOUT = About(
    rule=(
        "Failing runs of one program, whatever the wording; the same call with the same failure; calls of "
        "tools that do not exist or are denied."
    ),
    source="CycleDetector, third dimension (8, 15; 3, 5)",
    cleared_by="a success of that program or call, an accepted edit (same call), a run that gets further",
)
_ELSEWHERE = 0.25
"""Added by a failure that names what none of the streak named, after an edit: builds are mended error by error."""

UNKNOWN_TOOL = "?"  # calls of tools that do not exist count together, whatever name was invented


def observe(state: SessionState, call: Call, limits: Limits) -> Sequence[Finding]:
    """Count the call's failure, or let its success clear what it refutes, and return what limits are reached."""
    failure = call.failure
    if failure is None:
        if call.succeeded:
            _clear(state, call)
        return ()
    if failure.transient:
        return ()
    if failure.denied or failure.unknown_tool:
        return _denied(state, call, failure, limits)
    found = _same_call(state, call, failure, limits)
    return (*found, *_area(state, call, failure, limits)) if call.runs and not call.polls else found


def _clear(state: SessionState, call: Call) -> None:
    """A success clears its own program and call; an accepted edit clears calls that failed before it."""
    if state.denied.count and state.denied.tool in {call.tool, UNKNOWN_TOOL}:
        state.denied = Denied()
    if call.edits:
        state.failing_calls.clear()
        for area in state.areas:
            area.edited = True
    elif state.failing_calls:
        state.failing_calls = [seen for seen in state.failing_calls if seen.action != call.action]
    if state.areas and call.runs:
        passed = area_digest(call)
        state.areas = [seen for seen in state.areas if seen.area != passed]


def _denied(state: SessionState, call: Call, failure: Failure, limits: Limits) -> Sequence[Finding]:
    tool = UNKNOWN_TOOL if failure.unknown_tool else call.tool
    if state.denied.tool != tool:
        state.denied = Denied(tool, 0, call.mark)
    denied = state.denied
    denied.count += 1
    group = limits.error_streak
    level = level_of(denied.count, group.denied_warn, group.denied_terminate)
    if level is None:
        return ()
    found = Finding(
        detector=NAME,
        level=level,
        fingerprint=digest("denied", tool),
        members=(digest("denied", tool),),
        count=denied.count,
        limit=f"error_streak.denied_{level}",
        value=group.denied_terminate if level == "terminate" else group.denied_warn,
        mark=denied.mark,
        what=f"{denied.count} calls of {_whose(tool)}",
        calls=(call.text,),
        failure=failure,
        weak=failure.from_text,
    )
    return (found,)


def _whose(tool: str) -> str:
    return "tools that do not exist" if tool == UNKNOWN_TOOL else f"{named(tool)}, which is not allowed"


def _same_call(state: SessionState, call: Call, failure: Failure, limits: Limits) -> Sequence[Finding]:
    """Count the same call with the same failure, whatever was called in between but an accepted edit."""
    if not call.action or failure.kind is None:
        return ()
    seen = next((seen for seen in state.failing_calls if seen.action == call.action), None)
    within = limits.error_streak.same_call_within
    same = seen is not None and (seen.kind, seen.about) == (failure.kind, failure.about)
    if seen is None or not same or call.seq - seen.last_seq > within:
        state.failing_calls = [other for other in state.failing_calls if other is not seen][1 - MAX_FAILING_CALLS :]
        failing, passing = (None, None) if seen is None else (seen.failing, seen.passing)
        seen = FailingCall(call.action, failure.kind, 0, call.mark, call.seq, failing, passing, failure.about)
    else:
        state.failing_calls.remove(seen)
        if call.further:
            seen.count, seen.mark = 0, call.mark
    state.failing_calls.append(seen)
    seen.count += 1
    seen.last_seq = call.seq
    note_counts(seen, failure)
    factor = limits.decision.poller_factor if call.polls else 1
    warn, terminate = (
        limits.error_streak.same_call_warn * factor,
        limits.error_streak.same_call_terminate * factor,
    )
    level = level_of(seen.count, warn, terminate)
    if level is None:
        return ()
    found = Finding(
        detector=NAME,
        level=level,
        fingerprint=digest("call", call.action),
        members=(call.action,),
        count=seen.count,
        limit=f"error_streak.same_call_{level}",
        value=terminate if level == "terminate" else warn,
        mark=seen.mark,
        what=f"the same call failing the same way {seen.count} times, no accepted edit between",
        calls=(call.text,),
        failure=failure,
        weak=failure.from_text or (call.polls and unhurried(call, seen.mark.at_ms, seen.count, limits)),
        waits=call.polls,
    )
    return (found,)


def _area(state: SessionState, call: Call, failure: Failure, limits: Limits) -> Sequence[Finding]:
    area = _take_area(state, call)
    if call.further:
        area.count, area.again, area.mark = 0.0, 0.0, call.mark
        area.kinds.clear()
        area.abouts.clear()
    note_counts(area, failure)
    kind = failure.kind or 0
    new = kind not in area.kinds or (area.edited and failure.about not in area.abouts)
    weight = _weight(area, call, failure, new=new) if area.count else 1.0
    area.count += weight
    area.again += 0.0 if new else weight
    area.edited = False
    area.actions = [*[seen for seen in area.actions if seen != call.action][1 - MAX_KINDS :], call.action]
    area.kinds = [*[seen for seen in area.kinds if seen != kind][1 - MAX_KINDS :], kind]
    area.abouts = [*[seen for seen in area.abouts if seen != failure.about][1 - MAX_KINDS :], failure.about]
    level = level_of(area.count, limits.error_streak.warn, limits.error_streak.terminate)
    return (_area_finding(area, call, failure, level, limits),) if level else ()


def _weight(area: Area, call: Call, failure: Failure, *, new: bool) -> float:
    """Return what a failure adds to a streak: the less, the more it shows that the agent moves."""
    if failure.about not in area.abouts:
        return _ELSEWHERE if area.edited else 0.5
    return 0.5 if new or _moved(area, call, failure.kind or 0) else 1.0


def _moved(area: Area, call: Call, kind: int) -> bool:
    """Tell whether the agent moved: another call, or a failure of another kind than the last after an edit."""
    return call.action != area.actions[-1] or (area.edited and kind != area.kinds[-1])


def _area_finding(
    area: Area, call: Call, failure: Failure, level: Literal["warn", "terminate"], limits: Limits
) -> Finding:
    kinds = f"{len(area.kinds)} kinds in turn" if len(area.kinds) > 1 else "one kind"
    return Finding(
        detector=NAME,
        level=level,
        fingerprint=digest("errors", area.area),
        members=tuple(area.actions),
        count=area.count,
        limit=f"error_streak.{level}",
        value=limits.error_streak.terminate if level == "terminate" else limits.error_streak.warn,
        mark=area.mark,
        what=f"failures of {named(call.program)} without a success between: {kinds}, counted as {area.count:g}",
        calls=(call.text,),
        failure=failure,
        weak=failure.from_text or 2 * area.again < area.count,
    )


def _take_area(state: SessionState, call: Call) -> Area:
    """Return the area of this call, the latest one last; the oldest gives way when there are too many."""
    wanted = area_digest(call)
    area = next((seen for seen in state.areas if seen.area == wanted), None)
    others = [seen for seen in state.areas if seen is not area]
    if area is None:
        area = Area(wanted, actions=[call.action], mark=call.mark)
    state.areas = [*others[1 - MAX_AREAS :], area]
    return area
