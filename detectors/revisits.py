"""Revisits: nearly all of the latest calls brought what the session had seen before, in whatever order they came.

Streaks and cycles need a regular order; agents that go round often have none. A call is stale when it was made before
with the same result; an accepted edit makes everything new again.
"""

from collections.abc import Sequence

from detectors import spin_score
from detectors.about import About
from detectors.canonical import digest
from detectors.facts import Call
from detectors.findings import Finding
from detectors.limits import Limits
from detectors.state import MAX_KNOWN, PRINT_BYTES, SessionState, holds_print, print_of

NAME = "revisits"
ABOUT = About(
    rule=(
        "Nearly all of the latest calls brought what the session had seen before, in any order. Never terminates alone."
    ),
    source="recorded sessions",
    cleared_by="an accepted edit, new results",
)

_FINGERPRINT = digest(NAME)


def observe(state: SessionState, call: Call, limits: Limits) -> Sequence[Finding]:
    """Note whether the call is stale, and say when most of the window is; `state.recent` ends with this call."""
    if call.applied:
        state.known = b""
        return ()
    if not call.key or not call.recorded:
        return ()
    mark = print_of(call.key)
    call.stale = holds_print(state.known, mark)
    if not call.stale:
        state.known = (state.known + mark)[-MAX_KNOWN * PRINT_BYTES :]
        return ()
    window = state.recent[-limits.revisits.window :]
    stale = [seen for seen in window if seen.stale]
    if len(stale) < limits.revisits.warn or any(seen.applied or seen.polls for seen in window):
        return ()
    if _is_named(state, call, len(window)):
        return ()
    found = Finding(
        detector=NAME,
        level="warn",
        fingerprint=_FINGERPRINT,
        members=tuple(dict.fromkeys(seen.action for seen in stale)),
        count=len(stale),
        limit="revisits.warn",
        value=limits.revisits.warn,
        mark=stale[0].mark,
        what=f"{len(stale)} of the last {len(window)} calls brought only what was known before",
        calls=tuple(dict.fromkeys(seen.text for seen in stale)),
        weak=True,
    )
    return (found,)


def _is_named(state: SessionState, call: Call, window: int) -> bool:
    """Tell whether another rule sees a loop in the window: it says better what repeats, unless this was said."""
    if any(loop.fingerprint == _FINGERPRINT for loop in state.loops):
        return False
    return spin_score.rule_warned(state, call, window)
