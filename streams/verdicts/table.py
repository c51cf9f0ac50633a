"""The table of what is asked of sessions: fed with records, asked what one session is told now.

Pure: the time is handed in, nothing is read or written. It is bounded: of too many sessions those go first of which
nothing was heard for longest, and a session that it knows nothing of goes on.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from detectors.denial import own_denial
from schemas.events import Control, SessionEvent, ToolCall
from schemas.outputs import Directive, Termination
from streams.verdicts.asked import Asked, asked, taken_back
from streams.verdicts.model import GO_ON, CallKey, Step, Verdict
from streams.verdicts.repeats import Repeats, keep

if TYPE_CHECKING:
    from datetime import datetime

MAX_SESSIONS: Final = 20_000
"""Sessions of which something is kept, each of what is asked, said and called: some hundred MB where each has much."""

MAX_ASKED: Final = 8
"""Directives kept of one session, and terminations likewise, the newest: a ladder has seven rungs, of which most expire
within an hour."""

Noted = Directive | Termination | Asked | Control | SessionEvent | ToolCall
"""What can be noted. Other records change nothing."""

_Value = TypeVar("_Value")
_BACK: Final = frozenset(("resume", "reset", "clear", "forget"))


class Verdicts:
    """What is asked of sessions.

    Args:
        sessions: how many are remembered.

    Raises:
        ValueError: that is none.
    """

    def __init__(self, *, sessions: int = MAX_SESSIONS) -> None:
        if sessions < 1:
            raise ValueError("sessions: at least one is remembered")
        self._sessions = sessions
        self._asked: dict[str, dict[str, Asked]] = {}
        self._resumed: OrderedDict[str, datetime] = OrderedDict()
        self._spoken: OrderedDict[str, datetime] = OrderedDict()
        self._cleared: OrderedDict[str, datetime] = OrderedDict()
        self._wrong: OrderedDict[str, datetime] = OrderedDict()
        self._answered: OrderedDict[str, bool] = OrderedDict()
        self._stopped: OrderedDict[str, bool] = OrderedDict()  # terminations that were handed out
        self._over: OrderedDict[str, bool] = OrderedDict()  # those after which a session is known to be stopped
        self._ended: OrderedDict[str, datetime] = OrderedDict()
        self._repeats = Repeats(sessions)

    def __len__(self) -> int:
        """Tell of how many sessions something is asked, expired or not."""
        return len(self._asked)

    def note(self, record: Noted, *, waits: bool = False) -> None:
        """Take in a record: what is asked, what persons and orchestrators say, and what the session itself does.

        What the session does (its calls, the words of its user) is needed for denying a repeated call only: one is
        denied as long as nothing else is known to have been done in between, and it brings the same. That it ended is
        needed for answering terminations.

        Args:
            record: the record.
            waits: whether a call is known to wait for something, as from a payload of which the record has less.
        """
        if isinstance(record, Directive | Termination):
            self._ask(asked(record))
        elif isinstance(record, Asked):
            self._ask(record)
        elif isinstance(record, Control):
            self._control(record)
        elif isinstance(record, ToolCall):
            if own_denial(record) is None:  # else it was not made
                self._repeats.made(record, waits=waits, read=record.session_id in self._asked)
            self._goes_on(record.session_id, record.occurred_at)
        elif record.kind == "user_message":
            self._latest(self._spoken, record.session_id, record.occurred_at)
            self._repeats.forget(record.session_id)
            self._goes_on(record.session_id, record.occurred_at)
        elif record.kind == "ended":
            self._latest(self._ended, record.session_id, record.occurred_at)

    def verdict(self, session_id: str, now: datetime, call: CallKey | None = None) -> Verdict:
        """Tell what a session is told.

        Args:
            session_id: the session.
            now: the time.
            call: the call that is about to be made; None where the question is about the session as it stands. One that
                is not denied is noted as made.
        """
        held = self._holding(session_id, now)
        found = self._standing(held)
        if found is None and call is not None:
            found = self._denied(session_id, now, call, held)
        if found is None:
            guides = [each for each in held if each.action != "escalate_human" and each.id not in self._answered]
            cooldown = next((each for each in held if each.action == "cooldown"), None)
            if guides:
                found = _verdict("guide", guides[0], guides[0].repeats)
            elif cooldown is not None:
                found = _verdict("deny", cooldown)
        if call is not None and (found is None or found.action == "guide"):
            self._repeats.begins(session_id, call, now)
        return found or GO_ON

    def handed_out(self, verdict: Verdict) -> bool:
        """Note that a session was given a verdict: it gets this guidance no more, nor what is older. A stop holds on.

        Returns:
            Whether a directive or termination is carried out by it that was not before, here or anywhere: that is to be
            answered.
        """
        given = self._asked.get(verdict.session_id, {}).get(verdict.answers or "")
        if given is None:
            return False
        known = self._over if given.action == "terminate" else self._answered
        if given.id in known:
            return False
        for each in self._asked[verdict.session_id].values():
            if (each.action == "terminate") is (given.action == "terminate") and each.rank <= given.rank:
                if given.action == "terminate":
                    self._keep(self._stopped, each.id, value=True)
                elif each.id not in self._answered:
                    self._keep(self._answered, each.id, value=True)
        return True

    def unanswered(self, session_id: str, now: datetime) -> list[tuple[Asked, Literal["obeyed", "ended"]]]:
        """Give the terminations that are to be answered, and how: its agent was told to stop, or the session has ended.

        Args:
            session_id: the session.
            now: the time.
        """
        found: list[tuple[Asked, Literal["obeyed", "ended"]]] = []
        for each in self._holding(session_id, now):
            if each.action != "terminate" or each.id in self._over:
                continue
            if each.id in self._stopped:
                found.append((each, "obeyed"))
            elif session_id in self._ended:
                found.append((each, "ended"))
        return found

    def asked(self, session_id: str, answers: str) -> Asked | None:
        """Give what an answer is to; None when nothing such was asked of this session."""
        return self._asked.get(session_id, {}).get(answers)

    def _standing(self, held: list[Asked]) -> Verdict | None:
        """Give what holds whatever the session does: that it is stopped, or waits for a person."""
        stop = next((each for each in held if each.action == "terminate"), None)
        if stop is not None:
            return _verdict("stop", stop)
        person = next((each for each in held if each.action == "escalate_human"), None)
        if person is None or self._spoken.get(person.session_id, person.issued_at) > person.issued_at:
            return None
        return _verdict("ask", person)

    def _denied(self, session_id: str, now: datetime, call: CallKey, held: list[Asked]) -> Verdict | None:
        """Deny any call while a cooldown lasts, and the repeated one while nothing else is done."""
        cooldown = next((each for each in held if each.action == "cooldown"), None)
        if cooldown is not None:
            return _verdict("deny", cooldown)
        denying = self._repeats.denies(session_id, call, now, held)
        return None if denying is None else _verdict("deny", denying, (call.digest,))

    def _holding(self, session_id: str, now: datetime) -> list[Asked]:
        """Give what is asked of a session and holds, what matters most first."""
        kept = self._asked.get(session_id)
        if not kept:
            return []
        gone = taken_back(kept.values(), self._wrong)
        holding = [each for each in kept.values() if each.id not in gone and self._holds(each, now)]
        return sorted(holding, key=lambda each: each.rank, reverse=True)

    def _holds(self, each: Asked, now: datetime) -> bool:
        if now >= each.expires_at or (each.action != "terminate" and self._answered.get(each.id) is False):
            return False
        resumed, cleared = self._resumed.get(each.session_id), self._cleared.get(each.task_id)
        return not any(said is not None and said >= each.issued_at for said in (resumed, cleared))

    def _ask(self, new: Asked) -> None:
        kept = self._asked.setdefault(new.session_id, {})
        known = kept.get(new.id)
        if known is None or known.attempt < new.attempt:
            kept[new.id] = new
        alike = [each for each in kept.values() if each.rank[0] == new.rank[0]]
        if len(alike) > MAX_ASKED:
            del kept[min(alike, key=lambda each: each.rank).id]
        if known is None:
            self._repeats.arm(new)
        if len(self._asked) > self._sessions:
            self._make_room()

    def _make_room(self) -> None:
        """Forget sessions of which the newest thing asked is oldest, those that are not to be stopped first."""
        ranks = sorted((max(each.rank for each in kept.values()), name) for name, kept in self._asked.items())
        for _, name in ranks[: 1 + self._sessions // 16]:
            del self._asked[name]

    def _control(self, said: Control) -> None:
        if said.action in _BACK:
            self._latest(self._resumed, said.session_id, said.occurred_at)
            task_id = (said.task.id if said.task else None) or said.session_id
            if said.action == "clear" or (said.action == "forget" and task_id == said.session_id):
                self._latest(self._cleared, task_id, said.occurred_at)
            if said.action == "forget":
                self._spoken.pop(said.session_id, None)
                asked_of = self._asked.pop(said.session_id, {})
                later = {name: each for name, each in asked_of.items() if each.issued_at > said.occurred_at}
                self._asked.update({said.session_id: later} if later else {})
        elif said.action == "false_alarm" and said.answers:
            self._latest(self._wrong, said.answers, said.occurred_at)
        elif said.action in {"obeyed", "refused", "ended"} and said.answers:
            done = said.action == "obeyed" and self._answered.get(said.answers, True)
            self._keep(self._answered, said.answers, value=done)
            if said.action != "refused":
                self._keep(self._over, said.answers, value=True)

    def _goes_on(self, session_id: str, at: datetime) -> None:
        """Note that a session does something: after its end it has begun anew."""
        if session_id in self._ended and self._ended[session_id] < at:
            del self._ended[session_id]

    def _latest(self, times: OrderedDict[str, datetime], name: str, at: datetime) -> None:
        self._keep(times, name, max(at, times.get(name, at)))

    def _keep(self, entries: OrderedDict[str, _Value], name: str, value: _Value) -> None:
        keep(entries, name, value, self._sessions)


def _verdict(action: Step, about: Asked, calls: tuple[str, ...] = ()) -> Verdict:
    return Verdict(
        action=action,
        session_id=about.session_id,
        text=about.text,
        answers=about.id,
        detector=about.detector,
        loop_id=about.loop_id,
        expires_at=about.given_expiry,
        calls=tuple(CallKey(digest) for digest in calls),
    )
