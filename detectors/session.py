"""One event of one session: recognise repeats, keep the account, let the detectors look, and decide.

This is the only entry into detection. It changes the given state in place and returns the alerts; it must not look at
the clock or remember anything elsewhere.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, get_args

import msgspec

from detectors import (
    alternation,
    analysis,
    budget,
    category,
    error_streak,
    fruitless_search,
    identical,
    progress,
    refused_edits,
    rereads,
    revisits,
    same_answer,
    same_failure,
    same_write,
    spin_score,
    stuck_check,
)
from detectors.call import read_call
from detectors.canonical import digest
from detectors.decision import decide
from detectors.denial import counted
from detectors.facts import Call, Mark
from detectors.findings import Finding
from detectors.fitting import fit, note_growth
from detectors.forgetting import forget_session
from detectors.limits import MAX_WINDOW_CALLS, Limits
from detectors.loops import dismiss, lift, milliseconds, quiet_until
from detectors.state import (
    MAX_CLEARS,
    MAX_SEEN,
    MAX_SEEN_CALLS,
    MAX_SEEN_IDS,
    PRINT_BYTES,
    Clear,
    SeenCall,
    SessionState,
    Streak,
    holds_print,
    print_of,
)
from detectors.tasks.derive import derive
from detectors.tasks.facts import TaskEvent
from detectors.tasks.report import report
from detectors.who import fitting_agent, fitting_task
from schemas.common import Usage
from schemas.events import Control, FixAttempt, SessionEvent, SessionInput, ToolCall
from schemas.outputs import Alert

DETECTORS = (
    identical,
    alternation,
    error_streak,
    same_failure,
    same_write,
    refused_edits,
    stuck_check,
    same_answer,
    fruitless_search,
    revisits,
    rereads,
    analysis,
    category,
    budget,
    spin_score,
)
"""All detectors of a session, in the order in which they look."""

_Observe = Callable[[SessionState, Call, Limits], Sequence[Finding]]
_ALL: Final[tuple[_Observe, ...]] = tuple(detector.observe for detector in DETECTORS)
_OF_TALK: Final[tuple[_Observe, ...]] = (identical.observe, category.observe, budget.observe)
_OF_READS: Final[tuple[_Observe, ...]] = (revisits.observe, rereads.observe, spin_score.observe)

_ID_BYTES = 64  # of the event ids of earlier calls; longer ones are left out of the evidence

_UNIQUE_ID = re.compile(  # as model providers make them; looked for where a word begins only, which takes no squares
    r"(?<![A-Za-z0-9-])(?=[A-Za-z-]*[0-9])[A-Za-z0-9-]{16}"
)
_SAME_CALL_MS = 10_000
_MAX_RECORDS_PER_CALL = 3  # hook, log and span
_BOOKED = 1  # action of a call of which neither arguments nor result are known: no detector looked at it yet

_MOST_LATE_RUNS = 2  # late events in a row, and once more: two clocks may take turns

_MAX_TOKENS = 2**62  # sums stop here: beyond it the compact form of the state has no integer
_MAX_COST = 1e15

_KIND_NAMES = {kind: kind.__name__ for kind in get_args(SessionInput)}


class Step(NamedTuple):
    """What one event of a session brings about: alerts, and what it means to the session's task, if anything."""

    alerts: list[Alert]
    task_event: TaskEvent | None = None


def observe(state: SessionState, event: SessionInput, limits: Limits) -> list[Alert]:
    """Apply one event to the state of its session and return the alerts: `step` for those who follow no tasks."""
    return step(state, event, limits).alerts


def step(state: SessionState, event: SessionInput, limits: Limits) -> Step:
    """Apply one event to the state of its session and return what it brings about.

    An event that came before (same ``event_id``, a ``sequence`` not above the highest of its kind, or a tool call with
    the id of an earlier one) is counted as a duplicate, one much older than what was applied as late; neither changes
    anything else. `SessionState()` is the state of a session not seen before, and of one that was to be forgotten.
    """
    if isinstance(event, Control) and event.action == "forget":
        return Step([], forget_session(state, event))
    at_ms = milliseconds(event.occurred_at)
    if _is_repeat(state, event, at_ms):
        state.duplicates += 1
        return Step([])
    if _is_late(state, event, at_ms, limits):
        state.late += 1
        return Step([])
    state.session_id = event.session_id
    state.began_ms = state.began_ms or at_ms
    _note_who(state, event)
    loops, change = len(state.loops), state.tries.change
    told = _apply(state, event, at_ms, limits)
    if told.alerts or len(state.loops) > loops:
        state.room = 0
    elif state.tries.change is not change:
        note_growth(state, state.tries.change)
    fit(state)
    return told


def _apply(state: SessionState, event: SessionInput, at_ms: int, limits: Limits) -> Step:
    if isinstance(event, ToolCall):
        return _tool_call(state, event, at_ms, limits)
    state.room = 0  # these are few, and may have calls counted anew
    if isinstance(event, SessionEvent):
        _session_event(state, event, at_ms, limits)
    elif isinstance(event, Control):
        _control(state, event, at_ms, limits)
    elif isinstance(event, FixAttempt):
        _spend(state, event.usage)
    return Step([], report(state, event, limits))


def _tool_call(state: SessionState, event: ToolCall, at_ms: int, limits: Limits) -> Step:
    """Steps: 1. read the call's facts; 2. book it; 3. ask each detector; 4. decide; 5. say what the task must know."""
    if event.phase == "start":
        return Step([])
    call = read_call(event, Mark(at_ms, state.calls + 1), limits, state.recent)
    known = _known_call(state, event, call)
    counts = counted(event, call, state.recent)
    made = counts is call
    if known is not None:
        state.duplicates += 1
        return _complete(state, known, event, call, limits) if made else Step([])
    if counts is None:
        _spend(state, event.usage)
        return Step([], report(state, event, limits))
    call = counts
    if state.clears:
        _reach_clears(state, at_ms)
    if state.recent and at_ms - state.recent[-1].mark.at_ms > limits.decision.pause_s * 1_000:
        state.forget_runs()
    state.calls += 1
    state.first_ms = state.first_ms or at_ms
    state.call_ms = at_ms
    _spend(state, event.usage)
    call.mark = Mark(at_ms, state.calls, state.tokens, state.cost)
    if state.loops:
        lift(state.loops, at_ms)
    tells = event.call_id is None or call.action or call.recorded  # else another record of this call may tell more
    found = _count(state, call, limits) if tells else budget.observe(state, call, limits)
    alerts = decide(state, call, found, limits)
    derives = made and limits.tasks.derive and not state.tries.sends
    derived = derive(state.tries, event, call, limits) if derives else None
    return Step(alerts, report(state, event, limits, derived))


def _complete(state: SessionState, known: SeenCall, event: ToolCall, call: Call, limits: Limits) -> Step:
    """Let the detectors look at a call of which a poorer record was booked before; one that they saw changes nothing.

    The account has it already, and what came in between keeps its place before it.
    """
    if known.action != _BOOKED or not call.action:
        return Step([])
    known.action = call.action
    call.seq, call.mark = state.calls - 1, Mark(call.mark.at_ms, state.calls, state.tokens, state.cost)
    alerts = decide(state, call, _count(state, call, limits), limits)
    derives = limits.tasks.derive and not state.tries.sends
    return Step(alerts, report(state, event, limits, derive(state.tries, event, call, limits) if derives else None))


def _count(state: SessionState, call: Call, limits: Limits) -> Sequence[Finding]:
    """Put the call among the latest, let each detector count it, and return what they find.

    Thoughts, plans and words to people lie between calls of work without breaking what these repeat.
    """
    if identical.repeats_in_batch(state, call):
        return identical.observe_batch(state, call, limits)
    if call.talks:
        return _ask(_OF_TALK, state, call, limits)
    state.said = Streak()
    identical.settle_runs(state, call)
    if state.recent:
        _shorten(state.recent[-1])
    state.recent.append(call)
    del state.recent[:-MAX_WINDOW_CALLS]
    same_write.note_edit(state, call)
    progress.note(state, call)
    return _ask(_ALL, state, call, limits)


def _ask(observers: Iterable[_Observe], state: SessionState, call: Call, limits: Limits) -> Sequence[Finding]:
    return [found for observe in observers for found in observe(state, call, limits)]


def _shorten(call: Call) -> None:
    """Drop what is only said of the latest call: a long id, and the wording of its failure."""
    if len(call.event_id.encode()) > _ID_BYTES:
        call.event_id = ""
    if call.failure is not None:
        call.failure = msgspec.structs.replace(call.failure, template="")


def _session_event(state: SessionState, event: SessionEvent, at_ms: int, limits: Limits) -> None:
    _spend(state, event.usage)
    if event.kind == "user_message" and limits.decision.user_message_clears:
        _clear(state, at_ms, limits, Clear.COUNTS)
    elif event.kind == "context_trimmed":
        _clear(state, at_ms, limits, Clear.READS)
    elif event.kind == "started":
        _clear(state, at_ms, limits, Clear.LOOPS)
        state.ended = False
    elif event.kind == "turn":
        state.turns += 1
    elif event.kind == "ended":
        state.ended = True


def _control(state: SessionState, event: Control, at_ms: int, limits: Limits) -> None:
    """A person's or orchestrator's word: going on or starting over settles all loops so far, the rest is noted.

    Whether a session is to be stopped, and what became of that, is not detection's matter.
    """
    if event.action in {"resume", "reset", "clear"}:
        _clear(state, at_ms, limits, Clear.LOOPS)
    elif event.action == "mode":
        state.mode, state.mode_until_ms = event.mode or "", _expiry(event)
    elif event.action == "force":
        state.mode, state.mode_until_ms = "implement", _expiry(event)
    elif event.action == "ended":
        state.ended = True
    elif event.action == "false_alarm" and event.answers:
        dismiss(state.loops, state.told, event.answers, quiet_until(at_ms, _expiry(event), limits))


def _expiry(event: Control) -> int | None:
    return None if event.expires_at is None else milliseconds(event.expires_at)


def _clear(state: SessionState, at_ms: int, limits: Limits, depth: Clear) -> None:
    """Have what was counted from calls before this time forgotten, as deep as is said.

    What clears comes on another topic than the calls, and may be read before or after them. It takes effect with the
    first call that is not older; when such calls were counted already, they are counted anew.
    """
    later = [call for call in state.recent if call.mark.at_ms >= at_ms]
    if not later and at_ms > state.call_ms:
        state.clears = sorted([*state.clears, (at_ms, depth)])[-MAX_CLEARS:]
        return
    state.settle(at_ms, depth)
    if later and depth > Clear.READS:
        state.opened = later[0].seq
    for call in later:
        if depth > Clear.READS:
            _count(state, call, limits)
        else:
            _count_reads(state, call, limits)


def _count_reads(state: SessionState, call: Call, limits: Limits) -> None:
    """Let those detectors count a call again that a trimmed context sets back."""
    call.settled = False
    identical.settle_runs(state, call)
    _ask(_OF_READS, state, call, limits)


def _reach_clears(state: SessionState, at_ms: int) -> None:
    """Let take effect what clears up to the time of a call."""
    due = [clear for clear in state.clears if clear[0] <= at_ms]
    state.clears = [clear for clear in state.clears if clear[0] > at_ms]
    for clear_ms, depth in due:
        state.settle(clear_ms, Clear(depth))


def _is_late(state: SessionState, event: SessionInput, at_ms: int, limits: Limits) -> bool:
    """Tell whether an event is from another time than what was applied, and move the session's time on if not.

    Each kind comes on a topic of its own, of which one may be read hours before another: each has its own time. Events
    dated far ahead must not blind the watch for good: after some late ones in a row their time is believed, and where
    more of a session was late than counted, at once.
    """
    kind, in_row = _KIND_NAMES[type(event)], limits.decision.late_in_row
    newest_ms, late = state.clocks.get(kind, (at_ms, 0))
    if at_ms >= newest_ms - limits.decision.late_after_s * 1_000:
        newest_ms = max(newest_ms, at_ms)
    elif late < in_row and state.late < max(state.calls, _MOST_LATE_RUNS * in_row):
        state.clocks[kind] = newest_ms, late + 1
        return True
    else:
        newest_ms = at_ms
    state.clocks[kind] = newest_ms, 0
    return False


def _is_repeat(state: SessionState, event: SessionInput, at_ms: int) -> bool:
    """Tell whether the event came before, and remember it.

    A sequence that is not above the highest of its kind is one that came before, unless it is newer than that: then the
    producer counts anew.
    """
    seen = digest("event", event.event_id)
    if seen in state.seen:
        return True
    state.seen.append(seen)
    del state.seen[:-MAX_SEEN]
    if event.sequence is None:
        return False
    kind = _KIND_NAMES[type(event)]
    highest, highest_ms = state.sequences.get(kind, (-1, at_ms))
    if event.sequence <= highest and at_ms <= highest_ms:
        return True
    state.sequences[kind] = (event.sequence, at_ms)
    return False


def _known_call(state: SessionState, event: ToolCall, call: Call) -> SeenCall | None:
    """Return the call that was counted and that this is another record of, as from a hook and a span; else remember it.

    Ids that look random are unique. Others may be used again: another record comes soon after the first, and there are
    few of them; once an id came with another action, or too often, ids say nothing in this session. A record without
    arguments has the action of the other one; and of one call, a hook and a log may name tool and arguments otherwise.
    """
    if event.call_id is None or state.reuses_call_ids:
        return None
    wanted = digest("call id", event.call_id)
    unique = _UNIQUE_ID.search(event.call_id) is not None
    came = unique and holds_print(state.seen_ids, print_of(wanted))
    action = call.action or (0 if call.recorded else _BOOKED)
    seen = None
    if came or not unique:  # a unique one among the latest calls is among those remembered for long as well
        seen = next((seen for seen in state.seen_calls if seen.call_id == wanted), None)
    if seen is None:
        fresh = SeenCall(wanted, action, call.mark.at_ms)
        if came:
            return fresh  # a compacted transcript repeats old calls
        state.seen_calls.append(fresh)
        del state.seen_calls[:-MAX_SEEN_CALLS]
        if unique:
            state.seen_ids = (state.seen_ids + print_of(wanted))[-MAX_SEEN_IDS * PRINT_BYTES :]
        return None
    seen.repeats += 1
    soon = abs(call.mark.at_ms - seen.at_ms) <= _SAME_CALL_MS and seen.repeats < _MAX_RECORDS_PER_CALL
    equal = seen.action == action or bool({seen.action, action} & {0, _BOOKED})
    same = (equal and (soon or unique)) or (soon and unique)
    state.reuses_call_ids = not same
    return seen if same else None


def _note_who(state: SessionState, event: SessionInput) -> None:
    """Keep who acts and for which task. What a decision says of a task says where it goes, not what is worked on."""
    if event.agent is not None and event.agent != state.agent:
        state.agent, state.room = fitting_agent(event.agent), 0
    if event.task is not None and event.task != state.task and not isinstance(event, Control):
        task = fitting_task(event.task, state.task)
        if task != state.task:
            state.task, state.room = task, 0


def _spend(state: SessionState, usage: Usage | None) -> None:
    """Add what was consumed to the session's account."""
    if usage is None:
        return
    if usage.input_tokens is not None or usage.output_tokens is not None:
        state.tokens = min(state.tokens + (usage.input_tokens or 0) + (usage.output_tokens or 0), _MAX_TOKENS)
        state.metered = True
    if usage.cost_usd is not None:
        state.cost = min(state.cost + usage.cost_usd, _MAX_COST)
        state.priced = True
