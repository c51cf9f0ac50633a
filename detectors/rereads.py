"""Rereads: reading what was read, judged by coverage (analysis-loop guide: one file three times).

What counts is how often the lines asked for were read, on the average: a read that brings new lines is progress, one
that pages round and round a file is a reread though no two calls are equal. An edit of the file, new content in it, and
a trimmed context clear.
"""

from collections.abc import Sequence

from detectors.about import About
from detectors.canonical import digest
from detectors.facts import Call
from detectors.findings import Finding
from detectors.identical import waits
from detectors.limits import MAX_SPANS, Limits
from detectors.state import MAX_READS, Read, SessionState

NAME = "rereads"
ABOUT = About(
    rule="Reads of lines that were read before: how often, on the average. Below the warn it is a notice.",
    source="analysis-loop guide (3)",
    cleared_by="an edit of the file, new content, a trimmed context",
)

_WHOLE = (0, 0)


def observe(state: SessionState, call: Call, limits: Limits) -> Sequence[Finding]:
    """Book what the call read, and say when it is one reread too many."""
    if state.reads:
        _refute(state, call)
    if call.kind != "read" or not call.target or call.failure is not None or not call.recorded:
        return ()
    if waits(state, call, limits):
        return ()  # a look at what goes on asks whether it has changed
    group = limits.rereads
    read = _take(state, call, limits)
    read.times = 1 + int(_times_read(read, call) + group.new_share)
    read.spans = [*read.spans[1 - MAX_SPANS :], _span(call)]
    if read.times < group.notice:
        return ()
    level, value = ("warn", group.warn) if read.times >= group.warn else ("notice", group.notice)
    found = Finding(
        detector=NAME,
        level="warn" if level == "warn" else "notice",
        fingerprint=digest(NAME, call.target),
        members=(call.action,),
        count=read.times,
        limit=f"{NAME}.{level}",
        value=value,
        mark=read.mark,
        what=f"the same lines read {read.times} times, with next to nothing new",
        calls=(call.text,),
        weak=True,
    )
    return (found,)


def _refute(state: SessionState, call: Call) -> None:
    """Forget what was read of what the call may have changed."""
    if call.operates:
        state.reads = []  # what is looked at in a world or an interface may have changed
    elif call.applied:
        unknown = call.executes or not call.target  # what a command changes, its line does not say
        state.reads = [] if unknown else [read for read in state.reads if read.target != call.target]


def _take(state: SessionState, call: Call, limits: Limits) -> Read:
    """Return what is known of the call's target, the latest one last; nothing when it is too old or has new content."""
    read = next((seen for seen in state.reads if seen.target == call.target), None)
    others = [seen for seen in state.reads if seen is not read]
    if (
        read is None
        or call.seq - read.last_seq > limits.rereads.within
        or _key_before(state, call) != call.key
        or _is_new(read, call)
    ):
        read = Read(call.target, 0, [], call.seq, call.mark)
    read.last_seq = call.seq
    if _span(call) == _WHOLE:
        read.whole = call.key
    state.reads = [*others[1 - MAX_READS :], read]
    return read


def _key_before(state: SessionState, call: Call) -> int:
    """Return what the same call brought the last time; what it brings now when there was none."""
    return next((seen.key for seen in reversed(state.recent[:-1]) if seen.action == call.action), call.key)


def _span(call: Call) -> tuple[int, int]:
    """Return the lines asked for; of a range without an end, only where it begins is known."""
    return (call.start, call.end or call.start) if call.start > 1 or call.end else _WHOLE


def _is_new(read: Read, call: Call) -> bool:
    """Tell whether all of the target is not what it was."""
    return _span(call) == _WHOLE and read.whole not in {0, call.key}


def _times_read(read: Read, call: Call) -> float:
    """Return how often the lines asked for were read before, on the average; all of it is asked for by (0, 0)."""
    whole = read.spans.count(_WHOLE)
    first, last = _span(call)
    if (first, last) == _WHOLE:
        return whole
    asked = max(1, last - first + 1)
    return whole + sum(max(0, min(last, end) - max(first, start) + 1) for start, end in read.spans) / asked
