"""Stuck check: the same check or run with the same failing answer, whatever is edited in between.

Running a check after each edit is healthy, and so are three or four equal answers; five mean that the edits do not
touch the cause. A changed answer clears, and a green check never counts (flapping and convergence).
"""

from collections.abc import Sequence

from detectors.about import About
from detectors.canonical import digest
from detectors.facts import Call
from detectors.findings import Finding, level_of
from detectors.limits import Limits
from detectors.state import MAX_CHECKS, Check, SessionState

NAME = "stuck_check"
ABOUT = About(
    rule="The same check or run with the same failing answer, whatever is edited between.",
    source="flapping and convergence (5); terminates where CycleDetector's error streak does (15)",
    cleared_by="another answer, a green check",
)


def observe(state: SessionState, call: Call, limits: Limits) -> Sequence[Finding]:
    """Count the call's failing answer, or let another answer clear it, and return what limits are reached."""
    if call.kind not in {"check", "run"} or not call.action:
        return ()
    failure = call.failure
    seen = next((check for check in state.checks if check.action == call.action), None)
    if failure is None or failure.transient or not call.recorded:
        if seen is not None and call.succeeded:
            state.checks.remove(seen)
        return ()
    others = [check for check in state.checks if check is not seen]
    answer = call.answer or call.key
    if seen is None or seen.key != answer:
        seen = Check(call.action, answer, 0, call.mark)
    seen.count += 1
    state.checks = [*others[1 - MAX_CHECKS :], seen]
    group = limits.stuck_check
    level = level_of(seen.count, group.warn, group.terminate)
    if level is None:
        return ()
    found = Finding(
        detector=NAME,
        level=level,
        fingerprint=digest("call", call.action),
        members=(call.action,),
        count=seen.count,
        limit=f"{NAME}.{level}",
        value=group.terminate if level == "terminate" else group.warn,
        mark=seen.mark,
        what=f"the same check with the same failing answer {seen.count} times, whatever was changed between",
        calls=(call.text,),
        failure=failure,
        weak=failure.from_text,
    )
    return (found,)
