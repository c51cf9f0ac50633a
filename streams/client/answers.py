"""Makes the control record with which an orchestrator answers a directive or termination.

Pure: the same answer is the same record but for its time, so that one that is sent again is recognised as such. Sends
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from schemas.common import Task
from schemas.events import Control
from schemas.outputs import Termination

if TYPE_CHECKING:
    from datetime import datetime

    from schemas.outputs import Directive

Answer = Literal["obeyed", "refused", "ended"]
"""What an orchestrator may say: done; it will not be done; the session had ended before."""

MOST_REASON_CHARS = 4_096
"""Longest reason that the contract takes; a longer one is cut."""


def answer_to(
    item: Directive | Termination, action: Answer, *, actor: str, reason: str | None, now: datetime
) -> Control:
    """Make an answer.

    Its `event_id` is made of the answered id, the attempt and the action: a repeated answer has the same one, and the
    answer to a termination that was repeated has another.

    Args:
        item: what is answered.
        action: the answer.
        actor: who answers.
        reason: why, for people.
        now: when.

    Raises:
        ValueError: the item does not take this answer; the message names those that it takes.
    """
    takes = item.acknowledge.actions
    if action not in takes:
        kind = "termination" if isinstance(item, Termination) else f"directive {item.action}"
        raise ValueError(f"a {kind} is answered with {' or '.join(takes)}, not with {action!r}")
    return answer_record(
        item.acknowledge.answers,
        item.attempt if isinstance(item, Termination) else 1,
        action,
        session_id=item.session_id,
        task_id=item.task_id,
        actor=actor,
        reason=reason,
        now=now,
    )


def answer_record(
    answers: str,
    attempt: int,
    action: Answer,
    *,
    session_id: str,
    task_id: str,
    actor: str,
    reason: str | None,
    now: datetime,
) -> Control:
    """Make an answer where the item itself is not at hand, only what names it; see `answer_to`.

    Args:
        answers: id of what is answered.
        attempt: of the termination; 1 for a directive.
        action: the answer.
        session_id: the session that it is about.
        task_id: its task.
        actor: who answers.
        reason: why, for people.
        now: when.
    """
    return Control(
        event_id=f"{answers}-{attempt}-{action}",
        session_id=session_id,
        occurred_at=now,
        action=action,
        answers=answers,
        task=Task(id=task_id),
        actor=actor,
        reason=None if reason is None else reason[:MOST_REASON_CHARS],
    )
