"""Same write: one and the same edit again and again, so that a file grows or a refusal comes back.

Equal-result rules never see it: the results differ, or only a comment in the edit does. Edits are compared without
comments and blanks. Accepted ones count in a row, or five times among the latest twelve calls; those that were refused,
or whose check failed, count until another edit of the same target is accepted. Commands, such as one that commits, may
come after each of several other changes, whether they fail or not.
"""

from collections.abc import Sequence

from detectors.about import About
from detectors.canonical import digest
from detectors.facts import Call
from detectors.findings import Finding, level_of
from detectors.limits import MAX_EDITS, Limits
from detectors.state import Edit, SessionState

NAME = "same_write"
ABOUT = About(
    rule="One and the same edit, but for comments and blanks: accepted again and again, or failing each time.",
    source="recorded sessions",
    cleared_by=(
        "other work between those in a row, otherwise by the window; for commands any other accepted edit; for other "
        "failing edits another accepted one of the target"
    ),
)


def note_edit(state: SessionState, call: Call) -> None:
    """Remember the call among the latest edits, when it is one whose outcome is known."""
    if call.kind != "edit" or (call.failure is None and not call.succeeded):
        return
    if call.failure is not None and call.failure.transient:
        return
    reason = 0 if call.failure is None else call.failure.kind or call.answer or 1
    state.edits = [
        *state.edits[1 - MAX_EDITS :],
        Edit(call.seq, call.action, call.target, call.patch, reason, call.mark),
    ]


def observe(state: SessionState, call: Call, limits: Limits) -> Sequence[Finding]:
    """Return what limits the call's edit reaches; `state.edits` ends with it."""
    if not call.patch or not state.edits or state.edits[-1].seq != call.seq or not _writes(call):
        return ()
    group = limits.same_write
    latest = state.edits[-1]
    if latest.reason:
        same = _failing(state.edits, latest, commands=call.executes)
        level = level_of(len(same), group.warn, group.terminate)
        return (_finding(call, same, f"{NAME}.{level}", limits),) if level else ()
    row = _in_row(state)
    if level := level_of(len(row), group.warn, group.terminate):
        return (_finding(call, row, f"{NAME}.{level}", limits),)
    edits = _unmixed(state.edits) if call.executes else state.edits
    same = [edit for edit in edits if edit.patch == latest.patch and latest.seq - edit.seq < group.window]
    return (_finding(call, same, f"{NAME}.window_warn", limits),) if len(same) >= group.window_warn else ()


def _writes(call: Call) -> bool:
    """Tell whether the edit puts something down: a commit or the next ticket of a queue may well come again."""
    if call.executes:
        return call.failure is not None or ">" in call.text or "tee " in call.text
    return call.target != 0 or call.lengthy


def _failing(edits: list[Edit], latest: Edit, *, commands: bool) -> list[Edit]:
    """Return the failing edits with the latest one's patch since another one of its target, or any, was accepted.

    A commit or a rollout that failed is tried again after what it complained of was mended, wherever that was.
    """
    same: list[Edit] = []
    for edit in reversed(edits):
        if not edit.reason and (commands or latest.target in {0, edit.target}):
            break
        if edit.reason and edit.patch == latest.patch:
            same.append(edit)
    return same[::-1]


def _in_row(state: SessionState) -> list[Edit]:
    """Return the accepted edits at the end that are one patch, with no other work between them."""
    row = [state.edits[-1]]
    for edit in reversed(state.edits[:-1]):
        if edit.patch != row[0].patch or edit.reason or _works_between(state, edit, row[0]):
            break
        row.insert(0, edit)
    return row


def _unmixed(edits: list[Edit]) -> list[Edit]:
    """Return the accepted edits that are the latest's patch, since any other one was accepted."""
    same: list[Edit] = []
    for edit in reversed(edits):
        if not edit.reason:
            if edit.patch != edits[-1].patch:
                break
            same.append(edit)
    return same[::-1]


def _works_between(state: SessionState, earlier: Edit, later: Edit) -> bool:
    """Tell whether a call between two edits did something: thoughts, waits and edits of unknown outcome did not."""
    if later.seq - earlier.seq > len(state.recent):
        return True
    between = (call for call in state.recent if earlier.seq < call.seq < later.seq)
    return any(not (call.talks or call.polls or call.kind == "edit") for call in between)


def _finding(call: Call, same: list[Edit], limit: str, limits: Limits) -> Finding:
    failure = call.failure
    how = "refused or failing each time" if failure else f"among the last {call.seq - same[0].seq + 1} calls"
    return Finding(
        detector=NAME,
        level="terminate" if limit.endswith("terminate") else "warn",
        fingerprint=digest(NAME, call.patch),
        members=tuple(dict.fromkeys(edit.action for edit in same)),
        count=len(same),
        limit=limit,
        value=limits.value(limit),
        mark=same[0].mark,
        what=f"one and the same edit {len(same)} times, {how}",
        calls=(call.text,),
        failure=failure,
        weak=failure is not None and failure.from_text,
    )
