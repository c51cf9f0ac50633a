"""What each session called last, and whether asking for it again is the repetition that a directive is about.

Pure and bounded. It denies nothing that the detector of identical calls would not warn of: not after another call, not
what waits or brings something new, and not after the pause from which that detector takes a repetition for polling.
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, TypeVar

from detectors import Limits
from streams.verdicts.model import UNLIKE, CallKey, Outcome, call_key, outcome_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from schemas.events import ToolCall
    from streams.verdicts.asked import Asked

MOST_DENIALS: Final = 3
"""How often a repeated call is denied because of one directive. An agent that goes on all the same is let through: what
is not called is not seen, and the next step would never follow."""

PATIENCE: Final = timedelta(seconds=Limits().identical.patient_s)
"""From which time on between the beginnings of two equal calls that were made the second counts as polling, as the
detector of identical calls has it. A call that was denied was not made.

By default limits, also where a policy has others: who asks here has no policy, and knows neither role nor repository of
a session, nor overrides. Where `identical.patient_s` is longer, such calls are let through after this time and counted;
where it is shorter, a call may be denied that the detector would take for polling, `MOST_DENIALS` times at most."""

_Value = TypeVar("_Value")


class _Latest:
    """The latest call of one session that was made.

    Attributes:
        digest: names the call; empty for one that equals no other.
        at: when something was heard of it last.
        began: when it was made last.
        open: whether its end is still to be heard of.
        outcome: what it brought last, as a digest; 0 where that is not known.
        armed: which directives deny it if it comes again, and how often they did so far.
    """

    __slots__ = ("armed", "at", "began", "digest", "open", "outcome")

    def __init__(self, digest: str, at: datetime) -> None:
        self.digest = digest
        self.at = self.began = at
        self.open = False
        self.outcome = 0
        self.armed: dict[str, int] = {}


class Repeats:
    """The latest calls of sessions.

    Args:
        sessions: how many are remembered.
    """

    def __init__(self, sessions: int) -> None:
        self._sessions = sessions
        self._latest: OrderedDict[str, _Latest] = OrderedDict()

    def begins(self, session_id: str, call: CallKey, at: datetime) -> None:
        """Note that a call is let through, and hence about to be made."""
        self._note(session_id, call.digest, at).open = True

    def made(self, event: ToolCall, *, waits: bool, read: bool) -> None:
        """Note a call that was made, and what it brought: one that brings something new may well be made again.

        Args:
            event: the call.
            waits: whether it is known to wait for something; such a call is taken to equal no other.
            read: whether its result matters, since something is asked of the session; to read it takes a while.
        """
        session_id, at = event.session_id, event.occurred_at
        outcome = outcome_of(event) if read else Outcome()
        key = None if waits or outcome.waits else call_key(event)
        before = self._latest.get(session_id)
        begun = before.began if before is not None and before.open else None
        latest = self._note(session_id, (key or UNLIKE).digest, at)
        if latest is before and begun is not None:
            latest.began = begun
        elif latest.began == at and event.duration_ms is not None:
            latest.began = at - timedelta(milliseconds=event.duration_ms)
        latest.open = False
        if outcome.digest:
            if latest.outcome not in {0, outcome.digest}:
                latest.armed.clear()
            latest.outcome = outcome.digest

    def arm(self, asked: Asked) -> None:
        """Have a directive that is new deny the session's latest call, if it is about that one."""
        latest = self._latest.get(asked.session_id)
        if latest is not None and latest.digest in asked.repeats:
            latest.armed[asked.id] = 0

    def denies(self, session_id: str, call: CallKey, now: datetime, held: Iterable[Asked]) -> Asked | None:
        """Give the directive that denies a call which is about to be made, and count that; None where none does.

        Args:
            session_id: the session.
            call: the call.
            now: the time.
            held: the directives that hold, what matters most first.
        """
        latest = self._latest.get(session_id)
        if latest is None or latest.digest != call.digest or not timedelta(0) <= now - latest.began < PATIENCE:
            return None
        for each in held:
            denials = latest.armed.get(each.id, MOST_DENIALS)
            if call.digest in each.repeats and denials < MOST_DENIALS:
                latest.armed[each.id] = denials + 1
                return each
        return None

    def forget(self, session_id: str) -> None:
        """Forget what a session called last, since something else was done."""
        self._latest.pop(session_id, None)

    def _note(self, session_id: str, digest: str, at: datetime) -> _Latest:
        """Note a call: another one than the one before ends what was denied."""
        latest = self._latest.get(session_id)
        if latest is not None and latest.digest != digest and at < latest.at:
            latest = _Latest("", latest.at)  # it came late, so that which is the latest is not certain
        elif latest is None or latest.digest != digest or not digest:
            latest = _Latest(digest, at)
        latest.at = latest.began = max(latest.at, at)
        keep(self._latest, session_id, latest, self._sessions)
        return latest


def keep(entries: OrderedDict[str, _Value], name: str, value: _Value, most: int) -> None:
    """Keep a value as the newest of so many at most."""
    entries[name] = value
    entries.move_to_end(name)
    while len(entries) > most:
        entries.popitem(last=False)
