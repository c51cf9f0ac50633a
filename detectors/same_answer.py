"""Same answer: one tool that gives one answer whatever it is asked.

Only answers that say something count: empty ones are a fruitless search, failures have detectors of their own, and
small values are data. Equal records of different things occur, so the evidence is weak. What a tool that acts
says of its success is an acknowledgement, so of those only answers that say no are counted, and pages of interfaces.
"""

from collections.abc import Sequence

from detectors.about import About
from detectors.canonical import digest
from detectors.excerpt import named
from detectors.facts import Call
from detectors.findings import Finding, level_of
from detectors.interface import fills_in
from detectors.limits import Limits
from detectors.state import SessionState

NAME = "same_answer"
ABOUT = About(
    rule=(
        "One tool that gives one answer whatever it is asked; of tools that act, only answers that say no, and the "
        "same page whatever is pressed. Never terminates alone."
    ),
    source="recorded sessions (6, 8)",
    cleared_by="other answers, by the window; an accepted edit",
)

_MIN_ACTIONS = 3  # fewer different calls than this are an identical call, or an alternation
_LOOKS = frozenset({"read", "search"})


def observe(state: SessionState, call: Call, limits: Limits) -> Sequence[Finding]:
    """Count the latest calls with this answer, and return what limits are reached; `state.recent` ends with it."""
    answer = call.answer
    if not answer or not _counts(call):
        return ()
    group = limits.same_answer
    same = [seen for seen in state.recent[-group.window :] if seen.answer == answer and not seen.settled]
    level = level_of(len(same), group.warn, group.terminate)
    if level is None or len({seen.action for seen in same}) < _MIN_ACTIONS:
        return ()
    found = Finding(
        detector=NAME,
        level=level,
        fingerprint=digest(NAME, call.answer),
        members=tuple(dict.fromkeys(seen.action for seen in same)),
        count=len(same),
        limit=f"{NAME}.{level}",
        value=group.terminate if level == "terminate" else group.warn,
        mark=same[0].mark,
        weak=True,
        what=f"{named(call.tool)} gave one answer to {len(same)} of the last {call.seq - same[0].seq + 1} calls",
        calls=tuple(dict.fromkeys(seen.text for seen in same)),
    )
    return (found,)


def _counts(call: Call) -> bool:
    """Tell whether the call's answer says something that it could also say to another question."""
    if call.failure or call.outage or not call.action or call.applied:
        return False
    if call.kind == "interact":  # whatever is pressed, the page stays; when a form is filled in, it should
        return call.recorded and not call.scrolls and not fills_in(call.tool)
    if call.kind in _LOOKS:
        return not call.empty
    return call.complains and call.kind != "check"  # which did not fail
