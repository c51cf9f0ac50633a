"""Analysis loop: looking and looking without doing anything (analysis-loop guide).

The last calls only read or search. By role and profile it takes five to fifteen of them; the same one in a row counts
once. Real work opens with reading, so the first calls of a task are exempt, and so is a session in explore mode. Alone
it is a notice with guidance; with rereads, or when two notices in one stretch changed nothing, a warn that asks to
implement.
"""

from collections.abc import Sequence

from detectors.about import About
from detectors.canonical import digest
from detectors.facts import Call
from detectors.findings import Finding, Level
from detectors.limits import Limits
from detectors.state import SessionState

NAME = "analysis"
ABOUT = About(
    rule=(
        "Calls in a row that only read or search, after a task's first ones. A notice; a warn with rereads or "
        "when two notices changed nothing."
    ),
    source="analysis-loop guide (5 of 10; by role 5 to 10; profiles 8 and 3)",
    cleared_by="any call that does something; explore mode",
)

_PROFILES = {"standard": 5, "conservative": 8, "aggressive": 3}


def observe(state: SessionState, call: Call, limits: Limits) -> Sequence[Finding]:
    """Count the call into the looks in a row, and say when there are too many; `state.reads` includes it."""
    if call.kind not in {"read", "search"}:
        if not call.polls:
            state.looks = state.look_notices = 0
        return ()
    if _asks_again(state, call):
        return ()
    state.looks += 1
    if call.seq + 1 - state.opened <= limits.analysis.exempt or explores(state, limits):
        return ()
    limit, threshold = _threshold(state, limits)
    if state.looks < threshold:
        return ()
    group = limits.analysis
    ignored = state.look_notices >= group.interventions and state.looks >= group.ignored_warn
    due = state.looks >= threshold * 2**state.look_notices
    state.look_notices += due  # also when it is a warn: a context trimmed late must not tell
    first = state.recent[-min(state.looks, len(state.recent))]
    if ignored or _rereads(state, limits):
        if ignored:
            limit, threshold = "analysis.ignored_warn", group.ignored_warn
        return (_finding(call, state.looks, "warn", (limit, threshold), first),)
    return (_finding(call, state.looks, "notice", (limit, threshold), first),) if due else ()


def _asks_again(state: SessionState, call: Call) -> bool:
    """Tell whether this is the look before once more: it waits for another answer, or is the matter of `identical`."""
    before = next((seen for seen in reversed(state.recent[:-1]) if not seen.polls), None)
    return before is not None and before.action == call.action != 0


def _finding(call: Call, looks: int, level: Level, limit: tuple[str, int], first: Call) -> Finding:
    name, threshold = limit
    return Finding(
        detector=NAME,
        level=level,
        fingerprint=digest(NAME),
        members=(digest(NAME),),
        count=looks,
        limit=name,
        value=threshold,
        mark=first.mark,
        what=f"{looks} calls in a row only read or search",
        calls=(call.text,),
        weak=True,
    )


def explores(state: SessionState, limits: Limits) -> bool:
    """Tell whether the session was told to explore: then looking is the work."""
    expired = state.mode_until_ms is not None and state.call_ms >= state.mode_until_ms
    return (limits.session_mode or ("" if expired else state.mode)) == "explore"


def _threshold(state: SessionState, limits: Limits) -> tuple[str, int]:
    """Return which limit says how many looks in a row are too many, and its value: the profile, or the agent's role."""
    group = limits.analysis
    role = (state.agent.role if state.agent else None) or ""
    if group.profile == "standard" and role in group.roles:
        return "analysis.roles", group.roles[role]
    return "analysis.profile", _PROFILES[group.profile]


def _rereads(state: SessionState, limits: Limits) -> bool:
    return any(read.times >= limits.rereads.warn and state.calls - read.last_seq <= state.looks for read in state.reads)
