"""The ladder told a second time, as plainly as can be, for tests to compare the code with.

Written from what the ladder is to do and not from the code. It says what comes out as plain tuples; wording is not
modelled.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from streams.escalation import state as limits
from tests.streams.escalation.ladder_book import OF_THE_TASK, LadderBook, Told, digest, label, ms_of

if TYPE_CHECKING:
    from datetime import datetime

    from detectors import TaskEvent
    from schemas.outputs import Alert
    from streams.policy.model import Ladder

READING = {"analysis", "rereads", "fruitless_search", "revisits", "category", "same_answer"}
LAST = {"abandon", "terminate"}
SEVERITY = {
    "inject_guidance": "info",
    "cooldown": "info",
    "rotate_strategy": "warning",
    "force_implementation": "warning",
    "escalate_human": "error",
    "abandon": "error",
    "skip_subtask": "error",
    "terminate": "critical",
}
HOUR_MS = 3_600_000
WEEK_MS = 7 * 24 * HOUR_MS


class LadderModel(LadderBook):
    """One task: what comes in, and what comes of it."""

    def alert(self, alert: Alert, now: datetime, policy: Ladder) -> list[Told]:
        """Say what comes of an alert."""
        self._begin_call(now, policy)
        if alert.alert_id not in self.seen:
            self.seen = [*self.seen, alert.alert_id][-limits.MAX_SEEN :]
            self._met(alert)
            climb = "" if alert.scope == "task" else alert.session_id
            if alert.level == "recovered":
                self._recovered(climb, alert.loop_id)
            elif not alert.muted and alert.mode != "observe":
                self._once(self._config(alert.agent or self.agent, alert.task))
                self._judge(climb, alert)
        return self.out

    def event(self, event: TaskEvent, now: datetime, policy: Ladder) -> list[Told]:
        """Say what comes of what an event means to the task."""
        self._begin_call(now, policy)
        if event.word == "forget":  # of it nothing is noted, not even that it was heard of
            self._forget(event.session_id)
            return self.out
        self._met(event)
        self._count(event)
        sent = event.attempt is not None and event.attempt.outcome == "success" and not event.attempt.derived
        if sent or (event.review and event.review.verdict == "merged"):
            self._fresh_task()
            self._close("recovered", [""])
        elif event.word in {"resume", "reset"}:
            self._fresh_task()
            self._close("resumed", [event.session_id, ""])
        elif event.word == "clear":
            self._clear()
        elif event.word in {"ended", "obeyed"}:
            self._stop(event.session_id, event.word, event.answers)
        elif event.word == "refused" and event.answers:
            self._refused(event.session_id, event.answers)
        elif event.word == "false_alarm" and event.answers:
            self._false_alarm(event.session_id, event.answers)
        elif event.word == "terminate":
            self._person(event)
        return self.out

    def time(self, now: datetime, policy: Ladder) -> list[Told]:
        """Say what comes of time alone."""
        self._begin_call(now, policy)
        self.cooldown = {climb: until for climb, until in self.cooldown.items() if until > self.here}
        for session, found in tuple(self.pending.items()):
            if found["due"] <= self.here and found["attempt"] < policy.answer_attempts:
                again = {**found, "attempt": found["attempt"] + 1, "due": self.here + ms_of(policy.answer_seconds)}
                self.pending[session] = again
                told = (session, again["attempt"], again["alert_id"], again["id"], again["issued"])
                self.out.append(("termination", *told))
            elif found["due"] <= self.here:
                self._unwelcome("unanswered", session)
        if self.flapping[0] <= self.here:
            self._unlist()
        if self.last and max(self.last + WEEK_MS, self.flapping[0]) <= self.here and not self.pending:
            self.forget()
        return self.out

    # Alerts

    def _judge(self, climb: str, alert: Alert) -> None:
        if climb in self.climbs:
            self.climbs[climb] = self.here
        if self._free(alert.session_id):
            self.stopped.pop(alert.session_id, None)  # it goes on, or began anew
        if self._held(climb, alert):
            return
        if alert.level == "notice":
            self._notice(climb, alert)
            return
        self._make_climb(climb)
        self._remember(climb, alert.alert_id)
        if (climb, alert.loop_id) not in self.loops:
            mine = [loop for loop in self.loops if loop[0] == climb]
            if len(mine) == limits.MAX_LOOPS:
                self.loops.remove(mine[0])
            self.loops.append((climb, alert.loop_id))
        gravest = alert.level == "terminate" and alert.mode == "enforce"
        if gravest or self.cooldown.get(climb, 0) <= self.here:
            self._up(climb, alert)

    def _make_climb(self, climb: str) -> None:
        """Make one where there is none; for one too many another session's goes, one that waits for no answer first."""
        if climb not in self.climbs:
            if len(self.climbs) == limits.MAX_CLIMBS:
                others = [other for other in self.climbs if other]
                quiet = [other for other in others if other not in self.pending] or others
                self._drop(min(quiet, key=self.climbs.__getitem__))
            self.climbs[climb] = self.here

    def _remember(self, climb: str, alert_id: str) -> None:
        self.alerts[climb] = [*self.alerts.get(climb, ()), alert_id][-limits.MAX_LOOPS :]

    def _free(self, session: str) -> bool:
        """Say whether a session is neither to be stopped nor was stopped a moment ago."""
        moment = ms_of(self.policy.answer_seconds)
        return session not in self.pending and not self.here <= self.stopped.get(session, -moment) + moment

    def _to_stop(self, alert: Alert) -> list[str]:
        sessions = [alert.session_id]
        if alert.scope == "task":
            lately = [session for session, when in self.heard.items() if self.here - when <= HOUR_MS]
            since = [session for session in lately if self.heard[session] > self.stopped.get(session, -1)]
            sessions += [session for session in since if session != alert.session_id]
        return [session for session in sessions if self._free(session)]

    def _held(self, climb: str, alert: Alert) -> bool:
        """Say whether all that an alert is about is to be stopped already."""
        return not self._free(climb) or not self._to_stop(alert)

    def _recovered(self, climb: str, loop_id: str) -> None:
        if (climb, loop_id) not in self.loops:
            return
        self.climbs[climb] = self.here
        self.loops.remove((climb, loop_id))
        if not [loop for loop in self.loops if loop[0] == climb]:
            self._settle(climb)
            self._give_up(climb, "recovered")

    def _notice(self, climb: str, alert: Alert) -> None:
        if (
            "inject_guidance" in self.policy.order
            and self.highest.get(climb, "inject_guidance") == "inject_guidance"
            and self.cooldown.get(climb, 0) <= self.here
            and self.noticed.count(climb) < self.policy.notices
        ):
            self._make_climb(climb)
            self._remember(climb, alert.alert_id)
            self.noticed.append(climb)
            self._direct(climb, "inject_guidance", alert)

    def _left(self, climb: str, rung: str) -> bool:
        named = ("" if rung in OF_THE_TASK else climb, rung)
        return named not in self.refused and self.taken.count(named) < int(getattr(self.policy.budget, rung))

    def _use(self, climb: str, rung: str) -> None:
        self.taken.append(("" if rung in OF_THE_TASK else climb, rung))

    def _reach(self, climb: str, alert: Alert) -> list[str]:
        """Give the rungs that an alert may take, the mildest first, whatever is left of them."""
        order = list(self.policy.order)
        at = self.highest.get(climb)
        start, end = order.index(at) if at in order else 0, len(order)
        if alert.level == "warn" or alert.mode == "warn":
            if self.policy.warn_most in order:
                end = order.index(self.policy.warn_most) + 1
            else:
                end = min([order.index(rung) for rung in LAST if rung in order], default=end)
        elif self.policy.on_terminate in order:
            start = max(start, order.index(self.policy.on_terminate))
        else:
            start = end - 1
        return [rung for rung in order[max(0, start) : end] if alert.mode == "enforce" or rung not in LAST]

    def _up(self, climb: str, alert: Alert) -> bool:
        """Take the next rung, and say whether there is one."""
        for rung in self._reach(climb, alert):
            if self._left(climb, rung) and (rung != "force_implementation" or alert.detector in READING):
                self.highest[climb] = rung  # never lower: the reach begins where the climb stands
                self._use(climb, rung)
                self._do(climb, rung, alert)
                return True
        return False

    def _do(self, climb: str, rung: str, alert: Alert) -> None:
        if rung in {"escalate_human", "abandon", "terminate"}:
            self._blame(self._config(alert.agent or self.agent, alert.task), alert.alert_id)
        if rung == "terminate":
            action, answers = rung, self._terminate(climb, alert)
        else:
            action, answers = self._direct(climb, rung, alert)
        if action == "abandon":
            self._list(alert.session_id, alert.alert_id, answers)
        self._tell(climb, action, SEVERITY[action], alert.alert_id, answers)

    def _direct(self, climb: str, rung: str, alert: Alert, *, along: bool = False) -> tuple[str, str]:
        subtask = rung == "abandon" and alert.suggested_strategy == "skip_subtask"
        action = "skip_subtask" if subtask and not along else rung
        expires = self.now + timedelta(minutes=self.policy.directive_minutes)
        parameters: Told = ()
        if rung == "inject_guidance":
            expires = self.now + timedelta(minutes=self.policy.guidance_minutes)
        elif rung == "cooldown":
            expires = self.now + timedelta(seconds=self.policy.cooldown_seconds)
            parameters = (self.policy.cooldown_seconds, expires)
            self.cooldown[climb] = self.here + ms_of(self.policy.cooldown_seconds)
        elif rung == "rotate_strategy":
            parameters = self._rotation(alert)
        directive_id = digest(action, alert.alert_id)
        self.answered[climb] = (alert, directive_id, rung)
        self.out.append(("directive", alert.session_id, action, alert.alert_id, directive_id, expires, parameters))
        return action, directive_id

    def _rotation(self, alert: Alert) -> Told:
        agent = alert.agent or self.agent
        running = self._config(agent, alert.task)[:3]
        filled = [
            (to.name or running[0], to.model or running[1], to.config or running[2]) for to in self.policy.candidates
        ]
        avoid = list(self.rotated)
        # The test's chooser takes the first that may be taken.
        chosen = [names for names in filled if label(*names) not in {*avoid, label(*running)}][:1]
        for name in (label(*running), *(label(*names) for names in chosen)):
            if name not in self.rotated:
                self.rotated = [*self.rotated, name][-limits.MAX_TRIED :]
        rotation = self.taken.count(("", "rotate_strategy"))
        of = self.policy.budget.rotate_strategy
        return (rotation, of, label(*running), *chosen, alert.suggested_strategy, tuple(avoid))

    def _terminate(self, climb: str, alert: Alert) -> str:
        if alert.scope == "task" and "abandon" in self.policy.order and self._left(climb, "abandon"):
            self._use(climb, "abandon")
            self._direct(climb, "abandon", alert, along=True)
        self.answered[climb] = (alert, "", "terminate")
        self._open(climb, alert.alert_id)
        ids = []
        for session in self._to_stop(alert):
            ids.append(self._ask_to_stop(session, alert.alert_id))
            if alert.scope == "task":
                self.incidents.setdefault(session, self.incidents[climb])
                self.joint[session] = self.incidents[climb]
        self._list(alert.session_id, alert.alert_id, ids[0])
        return ids[0]

    def _ask_to_stop(self, session: str, alert_id: str) -> str:
        self._make_climb(session)
        found = {"id": digest("termination", alert_id, session), "attempt": 1, "alert_id": alert_id}
        self.unstopped.pop(session, None)
        self.pending[session] = {**found, "issued": self.now, "due": self.here + ms_of(self.policy.answer_seconds)}
        self.out.append(("termination", session, 1, alert_id, found["id"], self.now))
        return str(found["id"])

    def _list(self, session: str, alert_id: str, cause: str) -> None:
        self.flapping = (self.here + ms_of(self.policy.flapping_days * 86_400), alert_id)
        self.out.append(("flapping", session, alert_id, cause, self.now + timedelta(days=self.policy.flapping_days)))

    # Words

    def _clear(self) -> None:
        self._fresh_task()
        self._close("resumed", list(self.climbs))
        self.forget()

    def _forget(self, session: str) -> None:
        """Know nothing of a session any more, nor what the task climbed for because of it; or of the whole task."""
        if session == self.task_id:
            self._clear()
            return
        self.heard.pop(session, None)
        because = {session, "" if "" in self.answered and self.answered[""][0].session_id == session else session}
        closed = [climb for climb in self.climbs if climb in because]
        self._close("resumed", closed)
        if not self.climbs and not self.heard:
            self._unlist()
            self.forget()
        elif closed and not any(self.flapping[1] in self._known(climb) for climb in self.climbs):
            self._unlist()

    def _known(self, climb: str) -> set[str]:
        """Give the alerts that a climb is known to be for."""
        alert = self.answered.get(climb, (None, "", ""))[0]
        return {*self.alerts.get(climb, ()), *([alert.alert_id] if alert else ()), *self._asked(climb, "alert_id")}

    def _stop(self, session: str, word: str, answers: str) -> None:
        if word == "ended":
            self.heard.pop(session, None)
            if session not in self.climbs:
                return
        elif answers not in self._asked(session):
            return
        self._settle(session)
        self.pending.pop(session, None)
        self.unstopped.pop(session, None)
        self.stopped[session] = self.here
        self._give_up(session, "ended")

    def _asked(self, session: str, what: str = "id") -> set[str]:
        """Give the termination by which a session is still to be stopped, or the alert that it was for."""
        return {str(table[session][what]) for table in (self.pending, self.unstopped) if session in table}

    def _unwelcome(self, kind: str, session: str) -> None:
        found = self.unstopped[session] = self.pending.pop(session)
        if session in self.joint:
            self.incidents.setdefault(session, self.joint[session])
        self._tell(session, kind, "critical", found["alert_id"], found["id"])

    def _refused(self, session: str, answers: str) -> None:
        if session in self.pending and self.pending[session]["id"] == answers:
            self._unwelcome("refused", session)
            return
        for climb in (session, ""):
            alert, directive_id, rung = self.answered.get(climb, (None, "", ""))
            if alert is None or directive_id != answers or self._held(climb, alert):
                continue
            named = ("" if rung in OF_THE_TASK else climb, rung)
            if named not in self.refused:
                self.refused.append(named)
            if rung == "cooldown":
                self.cooldown.pop(climb, None)
            if alert.level != "notice" and not self._up(climb, alert):
                self._nothing_left(climb, alert, directive_id)

    def _nothing_left(self, climb: str, alert: Alert, directive_id: str) -> None:
        known = digest("refused", directive_id)
        if known not in self.seen:
            self.seen = [*self.seen, known][-limits.MAX_SEEN :]
            self._tell(climb, "refused", "critical", alert.alert_id, directive_id)

    def _false_alarm(self, session: str, answers: str) -> None:
        wrong: set[str] = set()
        closed = []
        for climb in (session, ""):
            alert, directive_id, _ = self.answered.get(climb, (None, "", ""))
            about = {*self.alerts.get(climb, ()), alert.alert_id if alert else ""}
            if answers in about | {directive_id} | self._asked(climb):
                wrong |= about | self._asked(climb, "alert_id")
                closed.append(climb)
        self._absolve(wrong)
        others = [name for name in self.climbs if name not in closed and self._asked(name, "alert_id") & wrong]
        nothing_else = [name for name in others if name not in self.alerts and name not in self.stopped]
        self._close("false_alarm", [*closed, *nothing_else], others)
        if self.flapping[1] in wrong:
            self._unlist()

    def _person(self, event: TaskEvent) -> None:
        session, verdict = event.session_id, digest("termination", event.event_id, event.session_id)
        if session not in self.pending and verdict not in self.seen:
            self.seen = [*self.seen, verdict][-limits.MAX_SEEN :]
            self._ask_to_stop(session, event.event_id)
            self._list(session, event.event_id, verdict)
            self._tell(session, "terminate", "critical", event.event_id, verdict)
