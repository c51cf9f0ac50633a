"""What a session tells its task: attempts, reviews, what people say, and now and then what was spent."""

from typing import get_args

from detectors.limits import Limits
from detectors.loops import milliseconds
from detectors.state import SessionState
from detectors.tasks.attempt import cut_id, read_attempt, read_review
from detectors.tasks.facts import Attempt, Spent, TaskEvent, Word
from detectors.who import fitting_task
from schemas.events import Control, FixAttempt, Review, SessionEvent, SessionInput, ToolCall

_WORDS: dict[str, Word] = {word: word for word in get_args(Word)}


def report(
    state: SessionState, event: SessionInput, limits: Limits, derived: Attempt | None = None
) -> TaskEvent | None:
    """Return what an event means to the session's task, with what was spent since the last time; None for nothing.

    ``derived`` is the attempt that a tool call completes. What is only spent is told every so many calls and turns, and
    sooner where a budget is set, by sessions that name their task; one without has an account of its own, and tells
    what it cost at its end. What people and orchestrators say is always told, since somebody may wait for the answer;
    where there was nothing else to tell, without what was spent, of which the task would have to keep an account. A
    decision that names another task goes there, and what was spent does not.
    """
    tries, named = state.tries, state.task is not None and state.task.id is not None
    if derived is None and not named and isinstance(event, ToolCall):
        return None  # as most events are
    attempt = read_attempt(event, limits) if isinstance(event, FixAttempt) else derived
    review = read_review(event, limits) if isinstance(event, Review) else None
    word = None
    if attempt is None and review is None:
        word = _word(state, event, limits)
        if word is None and not _is_due(state, event, limits, named=named):
            return None
    else:
        tries.told = True
    if attempt is not None and not attempt.derived:
        tries.sends = True
        tries.forget_edits()
    said = event if isinstance(event, Control) else None
    own_id = (state.task.id if state.task else None) or state.session_id
    other = said is not None and said.task is not None and said.task.id not in {None, own_id}
    spent = Spent()
    if not other and (named or tries.told or word in {None, "ended"}):
        spent, tries.reported = state.spent.minus(tries.reported), state.spent
    task = fitting_task(said.task, None) if other and said and said.task else state.task
    return TaskEvent(
        event_id=cut_id(event.event_id),
        session_id=event.session_id,
        task_id=(task.id if task else None) or state.session_id,
        at_ms=milliseconds(event.occurred_at),
        agent=state.agent,
        task=task,
        spent=spent,
        attempt=attempt,
        review=review,
        word=word,
        answers=(said.answers if said else None) or "",
        until_ms=milliseconds(said.expires_at) if said and said.expires_at else None,
        actor=(said.actor if said else None) or "",
        reason=(said.reason if said else None) or "",
    )


def _word(state: SessionState, event: SessionInput, limits: Limits) -> Word | None:
    """Return what a person or orchestrator says that the task must know; None when it is the session's business."""
    if isinstance(event, Control):
        return _WORDS.get(event.action)
    if not isinstance(event, SessionEvent) or event.kind != "user_message" or state.tries.sends:
        return None
    return "user_message" if state.tries.told and limits.decision.user_message_clears else None


def _is_due(state: SessionState, event: SessionInput, limits: Limits, *, named: bool) -> bool:
    reported = state.tries.reported
    if isinstance(event, SessionEvent) and event.kind == "ended":
        unsaid = state.spent.minus(reported)
        used = unsaid.calls + unsaid.turns + unsaid.wall_ms if named or state.tries.told else 0
        return used + unsaid.tokens + unsaid.cost > 0
    if not named:
        return False
    unsaid_calls, unsaid_turns = max(0, state.calls - reported.calls), max(0, state.turns - reported.turns)
    return unsaid_calls + unsaid_turns >= limits.task_budget.report_after(state.calls + state.turns)
