"""Refused edits: edits of one target that are refused, or fail their check, for one reason, the text new each time.

The reason counts, not the edit that the answer quotes; two reasons in turn count as one. An accepted edit of the target
clears, whatever else was called in between does not.
"""

from collections import Counter
from collections.abc import Sequence

from detectors.about import About
from detectors.canonical import digest
from detectors.facts import Call
from detectors.findings import Finding, level_of
from detectors.limits import Limits
from detectors.state import Edit, SessionState

NAME = "refused_edits"
ABOUT = About(
    rule=(
        "Edits of one target that are refused, or fail their check, for one reason or two in turn, the text "
        "different each time."
    ),
    source="recorded sessions",
    cleared_by="an accepted edit of the target",
)

_REASONS_IN_TURN = 2


def observe(state: SessionState, call: Call, limits: Limits) -> Sequence[Finding]:
    """Return what limits the call's refusal reaches; `state.edits` ends with the call when it is an edit."""
    failure = call.failure
    if failure is None or not state.edits or state.edits[-1].seq != call.seq or not state.edits[-1].reason:
        return ()
    group = limits.refused_edits
    refused = _refused(state.edits[-group.window :])
    level = level_of(len(refused), group.warn, group.terminate)
    if level is None:
        return ()
    found = Finding(
        detector=NAME,
        level=level,
        fingerprint=digest(NAME, call.target or call.tool),
        members=tuple({edit.action for edit in refused}),
        count=len(refused),
        limit=f"{NAME}.{level}",
        value=group.terminate if level == "terminate" else group.warn,
        mark=refused[0].mark,
        what=f"{len(refused)} edits of one target refused or failing for the same reasons, none accepted between",
        calls=(call.text,),
        failure=failure,
        weak=failure.from_text,
    )
    return (found,)


def _refused(edits: list[Edit]) -> list[Edit]:
    """Return the edits since the last accepted one of the latest's target that failed for its reason or one other."""
    latest = edits[-1]
    failing: list[Edit] = []
    for edit in reversed(edits):
        if edit.target == latest.target:
            if not edit.reason:
                break
            failing.append(edit)
    reasons = Counter(edit.reason for edit in failing if edit.reason != latest.reason)
    counted = {latest.reason, *(reason for reason, _ in reasons.most_common(_REASONS_IN_TURN - 1))}
    return [edit for edit in reversed(failing) if edit.reason in counted]
