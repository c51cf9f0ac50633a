"""Same failure: calls of any tool, each with other arguments, that fail in a row for one reason.

Parsers that refuse every message, a command that is not found, one syntax error for ever new texts. Two reasons in turn
count as one. A call that was made in the row before adds one and a half, unless its failure brings news. Where every
call of a session failed from the first on, it is judged whatever the reasons.
"""

from collections.abc import Sequence

from detectors.about import About
from detectors.canonical import digest
from detectors.facts import Call
from detectors.failure import Failure
from detectors.findings import Finding, level_of
from detectors.limits import Limits
from detectors.nothing import brought_nothing
from detectors.state import MAX_KINDS, FailingRow, SessionState

NAME = "same_failure"
ABOUT = About(
    rule=(
        "Calls of any tool in a row that fail for one reason, or two in turn, the arguments different each "
        "time; a repeated call adds 1½."
    ),
    source="CycleDetector, third dimension; limits from recorded sessions",
    cleared_by="any call that succeeds, a run that gets further; for seven of ten other calls, by the window",
)

_AGAIN = 1.5


def observe(state: SessionState, call: Call, limits: Limits) -> Sequence[Finding]:
    """Count the call into the row of failures, or let its success end it, and return what limits are reached."""
    failure = call.failure
    if failure is None:
        if state.row.calls and not call.polls and call.succeeded:
            state.row = FailingRow()
        return ()
    if call.polls:
        return ()
    kind = failure.kind or call.answer
    if failure.transient or not kind or (call.kind == "search" and call.empty):
        return ()
    if call.further:
        state.row = FailingRow()
    row = state.row
    _extend(row, call, kind, news=_tells_news(state, failure))
    count, kinds = (row.pair, (kind, row.other)) if row.in_turn else (row.block, (kind,))
    if state.denied.count >= limits.error_streak.denied_warn and (failure.denied or failure.unknown_tool):
        return ()  # a row of calls that are not allowed has limits of its own
    group = limits.same_failure
    mark, fingerprint = row.mark, digest(NAME, row.first if row.in_turn else kind)
    if row.calls == call.seq + 1 and row.calls >= group.warn > count:
        count, fingerprint = row.calls, digest(NAME, "from the first call on")
    level = level_of(count, group.warn, group.terminate)
    limit, what = f"{NAME}.{level}", _what(row, kinds)
    if level is None:
        among = [
            seen
            for seen in _since_further(state.recent[-group.window :])
            if seen.failure and (seen.failure.kind or seen.answer) == kind
        ]
        if len(among) < group.window_warn:
            return ()
        level, limit, count, mark = "warn", f"{NAME}.window_warn", len(among), among[0].mark
        what = f"{count} of the last {min(group.window, len(state.recent))} calls failed for one reason"
    found = Finding(
        detector=NAME,
        level=level,
        fingerprint=fingerprint,
        members=(*kinds, *row.actions),
        count=count,
        limit=limit,
        value=limits.value(limit),
        mark=mark,
        what=what,
        calls=(call.text,),
        failure=failure,
        weak=failure.from_text or (call.kind in {"read", "search"} and brought_nothing(failure.template)),
    )
    return (found,)


def _since_further(calls: list[Call]) -> list[Call]:
    """Return the calls from the last one on that got further than those before."""
    return calls[max((at for at, call in enumerate(calls) if call.further), default=0) :]


def _tells_news(state: SessionState, failure: Failure) -> bool:
    """Tell whether a failure names what none of the row named."""
    first = state.row.mark.calls - 1 if state.row.calls else state.calls
    row = (seen for seen in state.recent[:-1] if seen.seq >= first)
    return all(seen.failure is None or seen.failure.about != failure.about for seen in row)


def _extend(row: FailingRow, call: Call, kind: int, *, news: bool) -> None:
    """Count a failure for this reason into the row.

    Two reasons are in turn when the first came back after the second; else the second is where the agent now is.
    """
    weight = _AGAIN if call.action in row.actions and not news else 1.0
    if not row.calls:
        row.mark = call.mark
    row.calls += 1
    row.actions = [*[seen for seen in row.actions if seen != call.action][1 - MAX_KINDS :], call.action]
    if kind == row.kind:
        row.block += weight
        row.pair += weight
    elif kind == row.other:
        row.kind, row.other, row.in_turn = kind, row.kind, True
        row.block = weight
        row.pair += weight
    else:
        row.kind, row.other, row.in_turn = kind, row.kind, False
        row.first = row.other or kind
        row.pair = row.block + weight
        row.block = weight


def _what(row: FailingRow, kinds: tuple[int, ...]) -> str:
    reasons = "one reason" if len(kinds) == 1 else "two reasons in turn"
    return f"{row.calls} failing calls in a row, for {reasons}"
