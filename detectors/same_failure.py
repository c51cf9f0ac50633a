"""Same failure: calls of any tool, each with other arguments, that fail in a row for one reason.

Parsers that refuse every message, a command that is not found, one syntax error for ever new texts. Two reasons in turn
count as one. A call that was made in the row before adds one and a half, since it cannot bring news. A session whose
every call failed from the first on is judged whatever the reasons.
"""

from collections.abc import Iterator

from detectors.about import About
from detectors.canonical import digest
from detectors.facts import Call
from detectors.findings import Finding, level_of
from detectors.limits import Limits
from detectors.state import MAX_KINDS, MAX_ROW, FailingRow, SessionState

NAME = "same_failure"
ABOUT = About(
    rule=(
        "Calls of any tool in a row that fail for one reason, or two in turn, the arguments different each "
        "time; a repeated call adds 1½."
    ),
    source="CycleDetector, third dimension; limits from recorded sessions",
    cleared_by="any call that succeeds",
)

_AGAIN = 1.5


def observe(state: SessionState, call: Call, limits: Limits) -> Iterator[Finding]:
    """Count the call into the row of failures, or let its success end it, and yield what limits are reached."""
    if call.talks:
        return
    failure = call.failure
    if failure is None:
        if call.succeeded:
            state.row = FailingRow()
        return
    kind = failure.kind or call.answer
    if failure.transient or not kind or (call.kind == "search" and call.empty):
        return
    row = _extend(state.row, call, kind)
    count, kinds = _in_turn(row.kinds)
    if state.denied.count >= limits.error_streak.denied_warn and (failure.denied or failure.unknown_tool):
        return  # a row of calls that are not allowed has limits of its own
    group = limits.same_failure
    if row.calls == state.calls and row.calls >= group.warn > count:
        count = row.calls  # nothing has worked since the session began
    level = level_of(count, group.warn, group.terminate)
    limit, what = f"{NAME}.{level}", _what(row, kinds)
    if level is None:
        among = [seen for seen in state.recent[-group.window :] if seen.failure and seen.failure.kind == kind]
        if len(among) >= group.window_warn:
            level, limit, count = "warn", f"{NAME}.window_warn", len(among)
            what = f"{count} of the last {group.window} calls failed for one reason"
    if level:
        yield Finding(
            detector=NAME,
            level=level,
            fingerprint=digest(NAME, min(kinds)),
            members=(*kinds, *row.actions),
            count=count,
            limit=limit,
            value=limits.value(limit),
            mark=row.mark,
            what=what,
            calls=(call.text,),
            failure=failure,
            weak=failure.from_text,
        )


def _extend(row: FailingRow, call: Call, kind: int) -> FailingRow:
    if not row.calls:
        row.mark = call.mark
    row.calls += 1
    row.kinds = [*row.kinds[1 - MAX_ROW :], (kind, call.action in row.actions)]
    row.actions = [*[seen for seen in row.actions if seen != call.action][1 - MAX_KINDS :], call.action]
    return row


def _in_turn(kinds: list[tuple[int, bool]]) -> tuple[float, tuple[int, ...]]:
    """Return how the latest failures count that have one reason, or two in turn, and the reasons.

    Two reasons are in turn when the first came back after the second; else the second is where the agent now is.
    """
    latest = kinds[-1][0]
    one = _tail(kinds, {latest})
    before = next((kind for kind, _ in reversed(kinds) if kind != latest), None)
    if before is None:
        return _weight(kinds[one:]), (latest,)
    two = _tail(kinds, {latest, before})
    if all(kind != latest for kind, _ in kinds[two:one]):
        return _weight(kinds[one:]), (latest,)
    return _weight(kinds[two:]), (latest, before)


def _tail(kinds: list[tuple[int, bool]], wanted: set[int]) -> int:
    """Return where the run at the end begins that has only these kinds."""
    start = len(kinds)
    while start and kinds[start - 1][0] in wanted:
        start -= 1
    return start


def _weight(kinds: list[tuple[int, bool]]) -> float:
    return sum(_AGAIN if again else 1.0 for _, again in kinds)


def _what(row: FailingRow, kinds: tuple[int, ...]) -> str:
    reasons = "one reason" if len(kinds) == 1 else "two reasons in turn"
    return f"{row.calls} failing calls in a row, for {reasons}"
