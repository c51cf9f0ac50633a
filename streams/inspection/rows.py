"""How sessions and tasks stand, one row each: what was last said of them, what was done, what is being waited for.

Pure: made of facts and the time that is handed in. It words nothing but what an orchestrator's script may compare.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from streams.inspection.facts import sessions_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from schemas.common import Agent
    from schemas.events import Control, Override
    from schemas.outputs import Alert
    from streams.escalation.state import Climb, LadderState
    from streams.inspection.facts import Facts

SessionState = Literal[
    "waiting",
    "refused",
    "unanswered",
    "stopped",
    "muted",
    "for_person",
    "cooling_down",
    "resumed",
    "false_alarm",
    "observed",
    "noticed",
    "warned",
    "recovered",
    "quiet",
]
"""waiting: asked to be stopped, no answer yet. refused: it is not stopped, as the orchestrator says. unanswered: nobody
answered, and nobody is asked any more. stopped: it was, or ended. muted: an exception silences it. for_person: a person
was called. cooling_down: told to pause. resumed, false_alarm: a person said so since its latest alert. observed: the
mode lets nothing be done. noticed, warned, recovered: by its latest alert. quiet: its task was spoken of, not
itself."""

_SAID: Mapping[str, SessionState] = {
    "resume": "resumed",
    "reset": "resumed",
    "clear": "resumed",
    "forget": "resumed",
    "false_alarm": "false_alarm",
    "ended": "stopped",
}
"""How a session stands after a word about it."""

TaskState = Literal["known_flapping", "climbing", "quiet"]
"""known_flapping: not to be tried again without a person. climbing: something was done about it, and it is not over."""


@dataclass(frozen=True, slots=True)
class SessionRow:
    """How one session stands.

    Attributes:
        session_id: the session.
        task_id: the task it was heard of with last.
        agent: who acts, as far as known.
        state: how it stands.
        until: when that ends, or what is waited for is due; None where nothing is timed.
        attempt: how often it was asked to be stopped; None when nobody waits.
        rung: what was done last: a step of the ladder, empty when nothing was.
        level: of its latest alert, as far as it is known.
        detector: likewise.
        alert_id: likewise.
        alerts: how many there are in the time that was looked at.
        last_alert: when the latest was written.
    """

    session_id: str
    task_id: str
    agent: str
    state: SessionState
    until: datetime | None
    attempt: int | None
    rung: str
    level: str
    detector: str
    alert_id: str
    alerts: int
    last_alert: datetime | None


@dataclass(frozen=True, slots=True)
class TaskRow:
    """How one task stands.

    Attributes:
        task_id: the task.
        state: how it stands.
        until: until when it is known to flap; None when it is not.
        rung: the step of the ladder that was taken last, for it or one of its sessions; empty when none was.
        used: how often each step was taken, over all its sessions.
        sessions: those heard of lately.
        detector: that brought it there.
        alert_id: the alert likewise.
        reason: one sentence, where it is known to flap.
        tried: configurations of agents that were tried and left.
    """

    task_id: str
    state: TaskState
    until: datetime | None
    rung: str
    used: dict[str, int]
    sessions: tuple[str, ...]
    detector: str
    alert_id: str
    reason: str
    tried: tuple[str, ...]


def session_rows(facts: Facts, now: datetime, since: datetime | None = None) -> list[SessionRow]:
    """Give how sessions stand about which something was said or done, the one of which that was last first.

    Args:
        facts: what is known.
        now: the time.
        since: only those of which that was since, or for which something is being waited; None for all.
    """
    alerts: defaultdict[str, list[tuple[datetime, Alert]]] = defaultdict(list)
    for at, alert in facts.alerts:
        alerts[alert.session_id].append((at, alert))
    task_of = {found[-1][1].session_id: found[-1][1].task_id for found in alerts.values()}
    for task_id, ladder in facts.ladders.items():
        for session_id in ladder.climbs.keys() - {""}:
            task_of.setdefault(session_id, task_id)
    rows = []
    for session_id, task_id in task_of.items():
        session = _Session(
            session_id, task_id, facts.ladders.get(task_id), alerts[session_id], facts.words.get(session_id, [])
        )
        row = session.row(facts, now)
        if since is None or session.heard >= since or row.until is not None:
            rows.append((session.heard, session_id, row))
    return [row for *_, row in sorted(rows, key=lambda each: each[:2], reverse=True)]


@dataclass(frozen=True, slots=True)
class _Session:
    """What is known of one session."""

    session_id: str
    task_id: str
    ladder: LadderState | None
    alerts: list[tuple[datetime, Alert]]
    words: list[tuple[datetime, Control]]

    @property
    def climb(self) -> Climb | None:
        return self.ladder.climbs.get(self.session_id) if self.ladder else None

    @property
    def latest(self) -> Alert | None:
        return self.alerts[-1][1] if self.alerts else self.climb.alert if self.climb else None

    @property
    def agent(self) -> Agent | None:
        """Who acts: an alert that the ladder keeps says it less than the ladder itself."""
        latest = self.latest
        return latest.agent if latest and latest.agent else self.ladder.agent if self.ladder else None

    @property
    def heard(self) -> datetime:
        """When an alert was written about it or something was done, whatever was last."""
        return max(self.alerts[-1][0] if self.alerts else instant(0), instant(self.climb.last_ms if self.climb else 0))

    def row(self, facts: Facts, now: datetime) -> SessionRow:
        climb, latest = self.climb, self.latest
        last_alert = self.alerts[-1][0] if self.alerts else instant(climb.last_ms) if climb and latest else None
        state, until = self._state(self._mute(facts, now), now)
        return SessionRow(
            session_id=self.session_id,
            task_id=self.task_id,
            agent=who(self.agent),
            state=state,
            until=until,
            attempt=climb.pending.attempt if climb and climb.pending else None,
            rung=(climb.rung if climb else "") or self._stopped_by(facts, state),
            level=latest.level if latest else "",
            detector=latest.detector if latest else "",
            alert_id=latest.alert_id if latest else "",
            alerts=len(self.alerts),
            last_alert=last_alert,
        )

    def _state(self, mute: Override | None, now: datetime) -> tuple[SessionState, datetime | None]:
        """Give how it stands, the gravest first, and until when."""
        climb = self.climb
        if climb and climb.pending:
            return "waiting", instant(climb.pending.due_ms)
        if climb and climb.unstopped:
            return "refused" if self._has_refused(climb.unstopped.termination_id) else "unanswered", None
        if climb and climb.stopped_ms:
            return "stopped", None
        if mute is not None:
            return "muted", mute.expires_at
        climbs = self._climbs()
        refused = self.ladder.refused if self.ladder else []
        if "escalate_human" not in refused and any(each.rung == "escalate_human" and each.loops for each in climbs):
            return "for_person", None
        cooldown = max((instant(each.cooldown_ms) for each in climbs), default=now)
        return ("cooling_down", cooldown) if cooldown > now else (self._said() or _by_alert(self.latest), None)

    def _climbs(self) -> list[Climb]:
        """Give its own climb, and its task's where that is about an alert of this session."""
        climb = self.ladder.climbs.get("") if self.ladder else None
        ours = climb is not None and climb.alert is not None and climb.alert.session_id == self.session_id
        return [each for each in (self.climb, climb if ours else None) if each is not None]

    def _has_refused(self, termination_id: str) -> bool:
        """Tell whether the last answer to a termination was to refuse it; the ladder does not keep which it was."""
        answers = [word.action for _, word in self.words if word.answers == termination_id]
        return answers[-1:] == ["refused"]

    def _stopped_by(self, facts: Facts, state: SessionState) -> str:
        """Give what stopped it, which the ladder forgets since it begins anew."""
        obeyed = (word.answers for _, word in self.words if word.action == "obeyed")
        return "terminate" if state == "stopped" and not facts.terminations.isdisjoint(filter(None, obeyed)) else ""

    def _said(self) -> SessionState | None:
        """Give what the last word since its latest alert makes of it; None when there was none that counts."""
        since = self.alerts[-1][0] if self.alerts else instant(0)
        words = [_SAID[word.action] for at, word in self.words if at >= since and word.action in _SAID]
        return words[-1] if words else None

    def _mute(self, facts: Facts, now: datetime) -> Override | None:
        """Give the narrowest exception that silences the session now."""
        latest, ladder = self.latest, self.ladder
        task = latest.task if latest and latest.task else ladder.task if ladder else None
        scopes = [f"session:{self.session_id}", f"task:{self.task_id}"]
        scopes += [f"repo:{task.repo}"] if task else []
        scopes += [f"role:{self.agent.role}"] if self.agent else []
        held = (facts.overrides[scope] for scope in scopes if scope in facts.overrides)
        return next((each for each in held if each.mute and (each.expires_at is None or each.expires_at > now)), None)


def _by_alert(latest: Alert | None) -> SessionState:
    """Give how a session stands for whom nothing is done, by its latest alert."""
    if latest is None:
        return "quiet"
    if latest.level == "recovered":
        return "recovered"
    if latest.muted:
        return "muted"
    if latest.mode == "observe":
        return "observed"
    return "noticed" if latest.level == "notice" else "warned"


def task_rows(facts: Facts, now: datetime) -> list[TaskRow]:
    """Give how tasks stand that are known to flap or about which something is being done, those first that flap.

    Args:
        facts: what is known.
        now: the time.
    """
    rows = [task_row(facts, task_id, now) for task_id in sorted({*facts.ladders, *facts.flapping})]
    return sorted(
        (row for row in rows if row.state != "quiet"), key=lambda row: (row.state != "known_flapping", row.task_id)
    )


def task_row(facts: Facts, task_id: str, now: datetime) -> TaskRow:
    """Give how one task stands.

    Args:
        facts: what is known.
        task_id: the task.
        now: the time.
    """
    entry = facts.flapping.get(task_id)
    if entry is not None and entry.expires_at <= now:
        entry = None
    state = facts.ladders.get(task_id)
    climbs = sorted(state.climbs.values(), key=lambda climb: climb.last_ms) if state else []
    doing = [climb for climb in climbs if climb.rung or climb.pending]
    alert = next((climb.alert for climb in reversed(doing) if climb.alert is not None), None)
    used: defaultdict[str, int] = defaultdict(int, state.used if state else {})
    for climb in climbs:
        for rung, count in climb.used.items():
            used[rung] += count
    return TaskRow(
        task_id=task_id,
        state="known_flapping" if entry else "climbing" if doing else "quiet",
        until=entry.expires_at if entry else None,
        rung=doing[-1].rung if doing else "",
        used=dict(used),
        sessions=tuple(sorted(sessions_of(state) | ({entry.session_id} if entry else set()))),
        detector=entry.detector if entry else alert.detector if alert else "",
        alert_id=entry.alert_id if entry else alert.alert_id if alert else "",
        reason=entry.reason if entry else "",
        tried=tuple(state.rotated) if state else (),
    )


def instant(ms: int) -> datetime:
    """Give a time that is kept in milliseconds since 1970."""
    return datetime.fromtimestamp(ms / 1_000, UTC)


def who(agent: Agent | None) -> str:
    """Name an agent by what it says of itself: product, role, model; empty when it says nothing."""
    return "" if agent is None else " ".join(part for part in (agent.name or agent.id, agent.role, agent.model) if part)
