"""What a person's word to forget does to what is remembered of a session, and of a task.

Of a session nothing stays, and its task is told. Of a task that the session only worked for, what it did there goes;
sums over several sessions stay, since nobody's part in them is known. Whether records come that are older than the word
is not known here.
"""

import msgspec

from detectors.loops import milliseconds
from detectors.state import SessionState
from detectors.tasks.attempt import cut_id, session_digest
from detectors.tasks.facts import TaskEvent
from detectors.tasks.history import failed
from detectors.tasks.state import TaskState
from detectors.watch import DISMISSED
from schemas.events import Control


def forget_session(state: SessionState, event: Control) -> TaskEvent:
    """Drop all that is remembered of a session, and return what its task is to be told.

    That is the task which the word names, else the one the session was known to work for, else the session's own.
    """
    named = (event.task.id if event.task else None) or (state.task.id if state.task else None)
    for name, value in msgspec.structs.asdict(SessionState()).items():
        setattr(state, name, value)
    return TaskEvent(
        event_id=cut_id(event.event_id),
        session_id=event.session_id,
        task_id=named or event.session_id,
        at_ms=milliseconds(event.occurred_at),
        word="forget",
        answers=event.answers or "",
        actor=event.actor or "",
        reason=event.reason or "",
    )


def forget_in_task(state: TaskState, event: TaskEvent) -> None:
    """Drop what a task remembers of a session; of the session's own task everything.

    What was found in attempts of several sessions goes with the last of these attempts.
    """
    if event.task_id == event.session_id:
        state.forget()
        return
    session = session_digest(event.session_id)
    kept = [seen for seen in state.attempts if seen.session != session]
    gone = [seen for seen in state.attempts if seen.session == session]
    if not gone:
        return
    derived = [seen.derived for seen in failed(gone)]
    state.attempts = kept
    state.tried -= len(gone)
    state.failed = max(0, state.failed - derived.count(False))  # one that got further was not counted
    state.failed_derived = max(0, state.failed_derived - derived.count(True))
    if not kept:
        state.forget_attempts()
        state.loops = [loop for loop in state.loops if loop.level == DISMISSED]
