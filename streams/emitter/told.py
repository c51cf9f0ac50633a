"""What the gateway has told of sessions, for the agents of this process: the latest verdict of each, bounded.

Guidance is given until it was answered, and denies the call that it is about as `streams.verdicts.table` says. Sends
nothing; may be used from any thread.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, TypeVar

from streams.verdicts.asked import Asked
from streams.verdicts.model import GO_ON
from streams.verdicts.table import Noted, Verdicts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from streams.verdicts.model import CallKey, Verdict

T = TypeVar("T")

MAX_SESSIONS: Final = 10_000
"""Sessions of which something is known: as many as one process has agents, and then some."""

_LASTING: Final = timedelta(minutes=15)  # of guidance that does not say so


class Told:
    """The latest verdicts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: OrderedDict[str, Verdict] = OrderedDict()
        self._table = Verdicts(sessions=MAX_SESSIONS)
        self._changes: OrderedDict[str, tuple[str, str | None]] = OrderedDict()
        self._guides: OrderedDict[str, Verdict] = OrderedDict()  # that were not given yet

    def take(self, asked: Collection[str], verdicts: Iterable[Verdict]) -> list[Verdict]:
        """Take in an answer of the gateway, and give what is new in it.

        Args:
            asked: the sessions that it was about; those without a verdict go on.
            verdicts: the others.
        """
        found = {verdict.session_id: verdict for verdict in verdicts}
        new = []
        with self._lock:
            for session in asked:
                if found.setdefault(session, GO_ON).action == "go_on":
                    self._end(session)
            for session, verdict in found.items():
                if verdict.action == "go_on":
                    continue
                if verdict.action == "guide":
                    self._held.pop(session, None)
                    self._table.note(_asked(verdict))
                    _keep(self._guides, session, verdict)
                else:
                    _keep(self._held, session, verdict)
                change = (verdict.action, verdict.answers)
                if self._changes.get(session) != change:
                    new.append(verdict)
                _keep(self._changes, session, change)
        return new

    def verdict(self, session_id: str, call: CallKey | None = None) -> Verdict:
        """Give what a session is told, as far as is known here; see `Verdicts.verdict`."""
        now = datetime.now(UTC)
        with self._lock:
            held = self._held.get(session_id)
            if held is not None and _holds(held, now) and (not held.calls or call in held.calls):
                return held
            return self._table.verdict(session_id, now, call)

    def note(self, event: Noted) -> None:
        """Take in what a session does."""
        with self._lock:
            self._table.note(event)

    def handed_out(self, verdict: Verdict) -> bool:
        """Note that a verdict was given, and tell whether that is to be answered."""
        with self._lock:
            self._guides.pop(verdict.session_id, None)
            return self._table.handed_out(verdict)

    def _end(self, session: str) -> None:
        """Note that a session goes on: what was asked of it was taken back, or answered by another process."""
        self._held.pop(session, None)
        self._changes.pop(session, None)
        guide = self._guides.pop(session, None)
        if guide is not None:
            self._table.handed_out(guide)

    def forked(self) -> None:
        """Make a lock for a child process, in which nobody holds one."""
        self._lock = threading.Lock()


def _holds(verdict: Verdict, now: datetime) -> bool:
    return verdict.expires_at is None or now < verdict.expires_at


def _keep(entries: OrderedDict[str, T], session: str, value: T) -> None:
    entries[session] = value
    entries.move_to_end(session)
    while len(entries) > MAX_SESSIONS:
        entries.popitem(last=False)


def _asked(verdict: Verdict) -> Asked:
    """Give guidance as the table takes it."""
    now = datetime.now(UTC)
    answers = verdict.answers or f"{verdict.loop_id}-{verdict.detector}"
    return Asked(
        id=answers,
        action="inject_guidance",
        session_id=verdict.session_id,
        task_id=verdict.session_id,
        alert_id=answers,
        loop_id=verdict.loop_id,
        detector=verdict.detector,
        text=verdict.text,
        issued_at=now,
        expires_at=verdict.expires_at or now + _LASTING,
        given_expiry=verdict.expires_at,
        repeats=tuple(call.digest for call in verdict.calls),
    )
