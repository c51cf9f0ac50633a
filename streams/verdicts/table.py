"""The table of what is asked of sessions: fed with records, asked what one session is told now.

Pure: the time is handed in, nothing is read or written. It is bounded: of too many sessions those go first of which
nothing was heard for longest, and a session that it knows nothing of goes on.
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime, timedelta
from typing import Final, TypeVar

from detectors import Limits
from schemas.events import Control, SessionEvent, ToolCall
from schemas.outputs import Directive, Termination
from streams.verdicts.asked import Asked, asked, taken_back
from streams.verdicts.model import GO_ON, CallKey, Step, Verdict, call_key

MAX_SESSIONS: Final = 20_000
"""Sessions of which something is kept, each of what is asked, said and called: some hundred MB where each has much."""

MAX_ASKED: Final = 8
"""Directives kept of one session, and terminations likewise, the newest: a ladder has seven rungs, of which most expire
within an hour."""

MOST_DENIALS: Final = 3
"""How often a repeated call is denied because of one directive. An agent that goes on all the same is let through: what
is not called is not seen, and the next step would never follow."""

PATIENCE: Final = timedelta(seconds=Limits().identical.patient_s)
"""From which pause on a repeated call counts as polling, as the detector of identical calls has it."""

Noted = Directive | Termination | Asked | Control | SessionEvent | ToolCall
"""What can be noted. Other records change nothing."""

_Value = TypeVar("_Value")
_BACK: Final = frozenset(("resume", "reset", "clear"))


class _Recent:
    """The latest call of one session, and which directives deny it if it comes again, how often they did so far."""

    __slots__ = ("armed", "at", "digest")

    def __init__(self, digest: str, at: datetime) -> None:
        self.digest = digest
        self.at = at
        self.armed: dict[str, int] = {}


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
        self._recent: OrderedDict[str, _Recent] = OrderedDict()

    def __len__(self) -> int:
        """Tell of how many sessions something is asked, expired or not."""
        return len(self._asked)

    def note(self, record: Noted) -> None:
        """Take in a record: what is asked, what persons and orchestrators say, and what the session itself does.

        What the session does (its calls, the words of its user) is needed for denying a repeated call only: one is
        denied as long as nothing else is known to have been done in between.
        """
        if isinstance(record, Directive | Termination):
            self._ask(asked(record))
        elif isinstance(record, Asked):
            self._ask(record)
        elif isinstance(record, Control):
            self._control(record)
        elif isinstance(record, ToolCall):
            self._call(record.session_id, call_key(record), record.occurred_at)
        elif record.kind == "user_message":
            self._latest(self._spoken, record.session_id, record.occurred_at)
            self._recent.pop(record.session_id, None)

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
            self._call(session_id, call, now)
        return found or GO_ON

    def handed_out(self, verdict: Verdict) -> bool:
        """Note that a session was given a verdict: it gets this guidance no more, nor what is older.

        Returns:
            Whether a directive is carried out by it that was not before, here or anywhere: that is to be answered.
        """
        given = self._asked.get(verdict.session_id, {}).get(verdict.answers or "")
        if given is None or given.action == "terminate" or given.id in self._answered:
            return False
        for each in self._asked[verdict.session_id].values():
            if each.action != "terminate" and each.rank <= given.rank and each.id not in self._answered:
                self._keep(self._answered, each.id, value=True)
        return True

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
        recent = self._recent.get(session_id)
        if recent is None or recent.digest != call.digest or not timedelta(0) <= now - recent.at < PATIENCE:
            return None
        for each in held:
            denials = recent.armed.get(each.id, MOST_DENIALS)
            if call.digest in each.repeats and denials < MOST_DENIALS:
                recent.armed[each.id] = denials + 1
                recent.at = now
                return _verdict("deny", each, (call.digest,))
        return None

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
        recent = self._recent.get(new.session_id)
        if known is None and recent is not None and recent.digest in new.repeats:
            recent.armed[new.id] = 0
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
            if said.action == "clear":
                task_id = (said.task.id if said.task else None) or said.session_id
                self._latest(self._cleared, task_id, said.occurred_at)
        elif said.action == "false_alarm" and said.answers:
            self._latest(self._wrong, said.answers, said.occurred_at)
        elif said.action in {"obeyed", "refused", "ended"} and said.answers:
            done = said.action == "obeyed" and self._answered.get(said.answers, True)
            self._keep(self._answered, said.answers, value=done)

    def _call(self, session_id: str, call: CallKey | None, at: datetime) -> None:
        """Note a call that was made: another one than the one before ends what was denied."""
        digest = call.digest if call is not None else ""
        recent = self._recent.get(session_id)
        if recent is not None and recent.digest != digest and at < recent.at:
            recent = _Recent("", recent.at)  # it came late, so that which is the latest is not certain
        elif recent is None or recent.digest != digest or not digest:
            recent = _Recent(digest, at)
        recent.at = max(recent.at, at)
        self._keep(self._recent, session_id, recent)

    def _latest(self, times: OrderedDict[str, datetime], name: str, at: datetime) -> None:
        self._keep(times, name, max(at, times.get(name, at)))

    def _keep(self, entries: OrderedDict[str, _Value], name: str, value: _Value) -> None:
        entries[name] = value
        entries.move_to_end(name)
        while len(entries) > self._sessions:
            entries.popitem(last=False)


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
