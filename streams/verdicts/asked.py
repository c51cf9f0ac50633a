"""What is kept of a directive or termination, and what takes one back: no report, no parameters, texts cut.

Pure. Whether one still holds is told from times and ids alone, so that it does not matter in which order records of
several topics are read.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from schemas.outputs import Action, Directive, Termination
from schemas.topics import CONTROL
from streams.escalation.text import tame

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

HOLDS: Final = timedelta(hours=CONTROL.retention_hours or 0)
"""How long a termination holds at most. Words that take it back are kept as long; an older one may have been taken back
without a trace."""

MAX_TEXT_CHARS: Final = 4_000
"""Of a directive's text, as long as escalation writes it."""

_MAX_REASON_CHARS: Final = 1_000

AskedAction = Action | Literal["terminate"]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is asked of one session: what a directive or termination says, as far as it is kept.

    Attributes:
        given_expiry: what people are told of its expiry; None where none was given.
        repeats: digests of the calls that may be denied.
    """

    id: str
    action: AskedAction
    session_id: str
    task_id: str
    alert_id: str
    loop_id: str
    detector: str
    text: str
    issued_at: datetime
    expires_at: datetime
    given_expiry: datetime | None
    attempt: int = 1
    repeats: tuple[str, ...] = ()

    @property
    def rank(self) -> tuple[bool, datetime, str]:
        """Which of several matters more: terminations, then what is newer; equal for no two."""
        return self.action == "terminate", self.issued_at, self.id


def asked(record: Directive | Termination) -> Asked:
    """Keep what matters of a record."""
    if isinstance(record, Termination):
        latest = record.issued_at + HOLDS
        return Asked(
            id=record.termination_id,
            action="terminate",
            session_id=record.session_id,
            task_id=record.task_id,
            alert_id=record.alert_id,
            loop_id=record.loop_id,
            detector=record.detector,
            text=_stop_text(record),
            issued_at=record.issued_at,
            expires_at=min(record.expires_at or latest, latest),
            given_expiry=record.expires_at,
            attempt=record.attempt,
        )
    return Asked(
        id=record.directive_id,
        action=record.action,
        session_id=record.session_id,
        task_id=record.task_id,
        alert_id=record.alert_id,
        loop_id=record.loop_id,
        detector=record.detector,
        text=record.text[:MAX_TEXT_CHARS],
        issued_at=record.issued_at,
        expires_at=record.expires_at,
        given_expiry=record.expires_at,
        repeats=record.repeats,
    )


def taken_back(kept: Iterable[Asked], wrong: Mapping[str, datetime]) -> set[str]:
    """Name what was asked because of an alert that a person marked as wrong: it, and what came of that loop till then.

    Args:
        kept: what is asked of one session.
        wrong: when each alert, directive or termination was marked.
    """
    if not wrong:
        return set()
    gone: set[str] = set()
    until: dict[str, datetime] = {}
    for each in kept:
        said = [wrong[name] for name in (each.id, each.alert_id) if name in wrong]
        if said:
            gone.add(each.id)
            until[each.loop_id] = max(said if each.loop_id not in until else [*said, until[each.loop_id]])
    gone |= {
        each.id for each in kept if each.loop_id and each.loop_id in until and each.issued_at <= until[each.loop_id]
    }
    return gone


def _stop_text(record: Termination) -> str:
    reason = tame(record.reason, _MAX_REASON_CHARS)
    return (
        f"Traction has stopped this session. {reason}\n"
        f"A person who has looked at it lets it go on with: traction sessions resume {tame(record.session_id, 300)}"
    )
