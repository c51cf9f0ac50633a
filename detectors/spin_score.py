"""Spin score: a learned measure of how little is new in the latest calls (flapping and convergence: prediction).

Rules name a loop; this sees those that nobody has named. It is the second kind of evidence: what a weak rule finds
while the score is low is only a notice. Alone it is a notice, and a warn above a limit that hardly any healthy session
reaches, unless the agent waits for something or its changes are accepted; alone it never terminates.
"""

from collections.abc import Sequence

from detectors.about import About
from detectors.canonical import digest
from detectors.facts import Call
from detectors.features import MIN_CALLS, WINDOW_CALLS, measure, note, window_of
from detectors.findings import Finding, Level
from detectors.identical import waits_after
from detectors.limits import Limits
from detectors.state import SessionState, SpinMemory
from detectors.watch import WARN

NAME = "spin_score"
ABOUT = About(
    rule=(
        f"A linear score over the last {WINDOW_CALLS} calls of how little is new, learned from labelled sessions. "
        "Alone it never terminates; what weaker rules find needs it."
    ),
    source="flapping and convergence (prediction); weights from recorded sessions",
    cleared_by="calls that bring something new, by the window",
)

_QUOTED_CALLS = 3
NEWS_PERCENT = 50  # a call of which as much is new brings news
_PROGRESS = 2  # accepted changes in the window


def observe(state: SessionState, call: Call, limits: Limits) -> Sequence[Finding]:
    """Score the latest calls up to this one, and say when little is new."""
    if not limits.scores_spin:
        state.spin = SpinMemory()
        return ()
    memory = state.spin
    note(state, call)
    window = window_of(state, call)
    memory.seq, memory.score = call.seq, None
    if len(window) < MIN_CALLS:
        return ()
    values = measure(state, window)
    memory.score = score = limits.model.score(values)
    notice, warn = limits.spin_notice, limits.spin_warn
    if score < notice or not may_speak(window, limits):
        memory.above = 0
        return ()
    if not memory.above:
        memory.mark = window[0].mark
    memory.above += 1
    level: Level = "warn" if score >= warn else "notice"
    told = limits.model.told(values, len(window))
    found = Finding(
        detector=NAME,
        level=level,
        fingerprint=_loop_of(state, call),
        members=tuple(dict.fromkeys(seen.action for seen in window)),
        count=WINDOW_CALLS - 1 + memory.above,
        limit=f"{NAME}.{level}",
        value=warn if level == "warn" else notice,
        mark=memory.mark,
        what=f"hardly anything new (spin score {score:.2f}){': ' if told else ''}{told}",
        calls=tuple(dict.fromkeys(seen.text for seen in window[-_QUOTED_CALLS:])),
        weak=True,
    )
    return (found,)


def _loop_of(state: SessionState, call: Call) -> int:
    """Return the fingerprint of the loop under watch, or of a new one, named by its first call: one at a time.

    When a person marked an earlier one as wrong, the score is wrong here, and what it sees is that one.
    """
    known = max((loop for loop in state.loops if loop.detector == NAME), key=lambda loop: loop.level, default=None)
    return digest(NAME, call.action) if known is None else known.fingerprint


def rule_warned(state: SessionState, call: Call, calls: int) -> bool:
    """Tell whether a rule warned of a loop that was seen within so many calls: it says better what repeats."""
    rules = (loop for loop in state.loops if loop.detector != NAME)
    return any(loop.level >= WARN and call.seq - loop.last_seq < calls for loop in rules)


def may_speak(window: list[Call], limits: Limits) -> bool:
    """Tell whether a high score says that the session spins.

    Not while there are few calls, at a call that works and brings news, while it waits for something, or while its
    changes are accepted: whoever gets so far may look and check the same again.
    """
    call = window[-1]
    if len(window) < WINDOW_CALLS or (call.news >= NEWS_PERCENT and call.failure is None and not call.empty):
        return False
    return sum([seen.applied for seen in window]) < _PROGRESS and not waits_after(window[-2], call, limits)
