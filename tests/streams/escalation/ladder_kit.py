"""A task's ladder at hand: alerts, events and time go in, short names of what comes out."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from detectors.tasks.facts import Attempt, Round, TaskEvent
from schemas.outputs import Alert, Directive, Evidence, KnownFlapping, LimitReached, Notification, Termination
from streams.escalation.ladder import Cleared, Context, Output, Tally, next_due, on_alert, on_event, on_time
from streams.escalation.state import LadderState, decode_ladder, encode_ladder
from streams.policy.model import Candidate, Ladder

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from streams.escalation.savings import Saved

NOW = datetime(2026, 12, 1, 3, tzinfo=UTC)


def an_alert(alert_id: str, **fields: Any) -> Alert:
    """Build an alert: a warning of session s1 in mode enforce, unless told otherwise."""
    defaults: dict[str, Any] = {
        "level": "warn",
        "mode": "enforce",
        "detector": "identical",
        "loop_id": "l1",
        "session_id": "s1",
        "task_id": "t1",
        "seq": 4,
        "occurred_at": NOW,
        "first_seen": NOW,
        "count": 3.0,
        "limits": (LimitReached(name="identical.warn", value=3, layer="default"),),
        "evidence": Evidence(event_ids=("e1",), calls=("read(a.py)",)),
        "reasoning": "read(a.py) was called 3 times with the same result",
        "guidance": "Stop reading a.py.",
    }
    return Alert(alert_id=alert_id, **{**defaults, **fields})


def an_attempt(outcome: Any, *, derived: bool = False) -> Attempt:
    """Build an attempt."""
    return Attempt(attempt_id="try", session=1, event_id="e", at_ms=0, outcome=outcome, derived=derived)


def a_review(verdict: Any) -> Round:
    """Build a round of review."""
    return Round(event_id="e", at_ms=0, pull_request=1, name="1", by_person=True, verdict=verdict)


@dataclass
class Desk:
    """One task's ladder, a clock, and what was counted.

    Attributes:
        policy: what holds; may be changed in between, as by a reload.
        now: what the clock shows; may be set.
        reload: the state goes through its encoded form after every step.
    """

    policy: Ladder = field(default_factory=Ladder)
    now: datetime = NOW
    state: LadderState = field(default_factory=LadderState)
    tallies: list[Tally] = field(default_factory=list)
    saved: list[Saved] = field(default_factory=list)
    asked: list[tuple[tuple[Candidate, ...], frozenset[str], str]] = field(default_factory=list)
    chosen: Candidate | None = None
    reload: bool = True
    said: int = 0

    @property
    def context(self) -> Context:
        """What the ladder is given to work with."""

        def choose(candidates: tuple[Candidate, ...], exclude: AbstractSet[str], task_type: str) -> Candidate | None:
            self.asked.append((candidates, frozenset(exclude), task_type))
            return self.chosen

        return Context(control_topic="agent.control", choose=choose, count=self.tallies.append, save=self.saved.append)

    def alert(self, alert_id: str, **fields: Any) -> list[Output]:
        """Give it an alert."""
        outputs = on_alert(self.state, an_alert(alert_id, **fields), self.now, self.policy, self.context)
        return self._after(outputs)

    def warn(self, *alert_ids: str, **fields: Any) -> list[str]:
        """Give it warnings, and return in short what comes of them."""
        return [name for alert_id in alert_ids for name in short(self.alert(alert_id, **fields))]

    def event(self, session_id: str = "s1", **fields: Any) -> list[Output]:
        """Give it an event of the task."""
        self.said += 1
        defaults: dict[str, Any] = {"event_id": f"w{self.said}", "task_id": "t1", "at_ms": 0}
        event = TaskEvent(session_id=session_id, **{**defaults, **fields})
        return self._after(on_event(self.state, event, self.now, self.policy, self.context))

    def word(self, word: Any, answers: str = "", session_id: str = "s1", **fields: Any) -> list[Output]:
        """Give it what a person or orchestrator says."""
        return self.event(session_id, word=word, answers=answers, **fields)

    def later(self, **length: float) -> list[Output]:
        """Let time pass, and look what is due."""
        self.now += timedelta(**length)
        return self.look()

    def look(self) -> list[Output]:
        """Look what is due now."""
        return self._after(on_time(self.state, self.now, self.policy, self.context))

    @property
    def due(self) -> datetime | None:
        """When something is due next."""
        ms = next_due(self.state, self.policy)
        return None if ms is None else datetime.fromtimestamp(ms / 1_000, UTC)

    def _after(self, outputs: list[Output]) -> list[Output]:
        if self.reload:
            self.state = decode_ladder(encode_ladder(self.state))
        return outputs


def short(outputs: Iterable[Output]) -> list[str]:
    """Name outputs: a directive by its action and session, what people are told by its kind, with a bang at the end."""
    return [_short(output) for output in outputs]


def _short(output: Output) -> str:
    match output:
        case Directive():
            return f"{output.action} {output.session_id}"
        case Termination():
            return f"stop {output.session_id} #{output.attempt}"
        case KnownFlapping():
            return f"list {output.task_id}"
        case Cleared():
            return f"unlist {output.task_id}"
        case Notification():
            return f"{output.kind}{' over' if output.resolves else ''}!"


def asked(outputs: Iterable[Output]) -> list[str]:
    """Name outputs without what people are told."""
    return [name for name in short(outputs) if not name.endswith("!")]


def directive(outputs: Iterable[Output]) -> Directive:
    """Return the one directive."""
    (found,) = (output for output in outputs if isinstance(output, Directive))
    return found


def termination(outputs: Iterable[Output]) -> Termination:
    """Return the one termination."""
    (found,) = (output for output in outputs if isinstance(output, Termination))
    return found


def told(outputs: Iterable[Output]) -> Notification:
    """Return the one notification."""
    (found,) = (output for output in outputs if isinstance(output, Notification))
    return found
