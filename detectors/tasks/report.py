"""What a session tells its task: attempts, reviews, what people say, and now and then what was spent."""

from detectors.limits import Limits
from detectors.state import SessionState
from detectors.tasks.attempt import cut_id, read_attempt, read_review
from detectors.tasks.facts import Attempt, TaskEvent, Word
from schemas.events import Control, FixAttempt, Review, SessionEvent, SessionInput

_WORDS: dict[str, Word] = {"resume": "resume", "reset": "reset", "false_alarm": "false_alarm"}


def report(
    state: SessionState, event: SessionInput, limits: Limits, derived: Attempt | None = None
) -> TaskEvent | None:
    """Return what an event means to the session's task, with what was spent since the last time; None for nothing.

    ``derived`` is the attempt that a tool call completes. What is only spent is told every so many calls and turns, and
    at the session's end, by sessions that name their task: one without has an account of its own. What people say is
    told once there was something to speak of.
    """
    tries, named = state.tries, state.task is not None and state.task.id is not None
    attempt = read_attempt(event, limits) if isinstance(event, FixAttempt) else derived
    review = read_review(event, limits) if isinstance(event, Review) else None
    word = None
    if attempt is None and review is None:
        word = _word(state, event, limits) if tries.told or named else None
        if word is None and not (named and _is_due(state, event, limits)):
            return None
    else:
        tries.told = True
    if attempt is not None and not attempt.derived:
        tries.sends = True
        tries.forget_edits()
    spent, tries.reported = state.spent.minus(tries.reported), state.spent
    return TaskEvent(
        event_id=cut_id(event.event_id),
        session_id=event.session_id,
        task_id=(state.task.id if state.task else None) or state.session_id,
        at_ms=int(event.occurred_at.timestamp() * 1_000),
        agent=state.agent,
        task=state.task,
        spent=spent,
        attempt=attempt,
        review=review,
        word=word,
        answers=(event.answers or "") if isinstance(event, Control) else "",
    )


def _word(state: SessionState, event: SessionInput, limits: Limits) -> Word | None:
    """Return what a person or orchestrator says that the task must know; None when it is the session's business."""
    if isinstance(event, Control):
        return _WORDS.get(event.action)
    if not isinstance(event, SessionEvent) or event.kind != "user_message" or state.tries.sends:
        return None
    return "user_message" if state.tries.told and limits.decision.user_message_clears else None


def _is_due(state: SessionState, event: SessionInput, limits: Limits) -> bool:
    unsaid = state.spent.minus(state.tries.reported)
    if isinstance(event, SessionEvent) and event.kind == "ended":
        return unsaid.calls + unsaid.turns + unsaid.wall_ms > 0
    return unsaid.calls + unsaid.turns >= limits.task_budget.every
