"""The tables of the plain model of the ladder, one per fact, and what counts, what begins and what ends in them.

Apart from the code: of that it uses nothing but the records' types and the bounds of the state.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from copy import copy
from typing import TYPE_CHECKING, Any

from streams.escalation import state as limits

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from typing import Self

    from detectors import TaskEvent
    from schemas.common import Agent, Task
    from schemas.outputs import Alert
    from streams.policy.model import Ladder

Told = tuple[Any, ...]
Config = tuple[str, str, str, str]

OF_THE_TASK = {"rotate_strategy", "escalate_human", "abandon"}


def digest(*parts: str) -> str:
    """Give the id of an output: digest of its parts, a zero byte between them."""
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


def ms_of(seconds: float) -> int:
    """Give a length of time in milliseconds."""
    return round(seconds * 1000)


def label(name: str, model: str, config: str) -> str:
    """Give the name of a configuration as rotations write it."""
    return "/".join(part for part in (name, model, config) if part) or "unknown"


class LadderBook:
    """What is known of one task. A climb is named by its session, that of the task itself by the empty name."""

    def __init__(self, task_id: str) -> None:
        self.task_id = task_id
        self.tallies: Counter[tuple[str, ...]] = Counter()
        self.forget()

    def forget(self) -> None:
        """Know nothing any more; what was counted stays counted."""
        self.last = 0
        self.agent: Agent | None = None
        self.task: Task | None = None
        self.seen: list[str] = []
        self.heard: dict[str, int] = {}
        self.climbs: dict[str, int] = {}  # the time of the latest alert
        self.taken: list[tuple[str, str]] = []  # climb and rung; all those of the task have the climb ""
        self.refused: list[tuple[str, str]] = []  # likewise
        self.highest: dict[str, str] = {}
        self.noticed: list[str] = []
        self.loops: list[tuple[str, str]] = []
        self.cooldown: dict[str, int] = {}
        self.alerts: dict[str, list[str]] = {}
        self.answered: dict[str, tuple[Alert, str, str]] = {}  # the alert, the directive's id, the rung
        self.incidents: dict[str, str] = {}
        self.joint: dict[str, str] = {}  # the task's incident, of sessions that are to be stopped for the task
        self.pending: dict[str, dict[str, Any]] = {}
        self.unstopped: dict[str, dict[str, Any]] = {}  # like pending, of those refused or never answered
        self.stopped: dict[str, int] = {}  # when it was said
        self.flapping = (0, "")
        self.rotated: list[str] = []
        self.configs: dict[Config, frozenset[str]] = {}
        self.blamed: dict[Config, str] = {}  # the alert by which it flapped

    def copy(self) -> Self:
        """Give another one that knows the same; what tables hold is never changed, only replaced."""
        other = copy(self)
        other.__dict__ |= {name: copy(value) for name, value in self.__dict__.items() if name not in {"now", "policy"}}
        return other

    def climbed(self) -> dict[str, Told]:
        """Say how far each climb is."""
        return {
            climb: (
                self.highest.get(climb, ""),
                Counter(rung for at, rung in self.taken if at == climb and rung not in OF_THE_TASK),
                self.noticed.count(climb),
                [loop for at, loop in self.loops if at == climb],
                self.cooldown.get(climb, 0),
                self.incidents.get(climb, ""),
                self.stopped.get(climb, 0),
                self.joint.get(climb, ""),
                self.unstopped.get(climb, {"id": ""})["id"],
                [rung for at, rung in self.refused if at == climb and rung not in OF_THE_TASK],
            )
            for climb in self.climbs
        }

    # Every call

    def _begin_call(self, now: datetime, policy: Ladder) -> None:
        """Let no time that is kept lie further ahead than it could."""
        self.now, self.policy, self.here = now, policy, round(now.timestamp() * 1000)
        self.out: list[Told] = []
        self.last = min(self.last, self.here)
        self.heard = {session: min(when, self.here) for session, when in self.heard.items()}
        self.climbs = {climb: min(when, self.here) for climb, when in self.climbs.items()}
        self.stopped = {session: min(when, self.here) for session, when in self.stopped.items()}
        most = self.here + ms_of(policy.cooldown_seconds)
        self.cooldown = {climb: min(until, most) for climb, until in self.cooldown.items()}
        latest = self.here + ms_of(policy.answer_seconds)
        self.pending = {climb: {**found, "due": min(found["due"], latest)} for climb, found in self.pending.items()}
        until, alert_id = self.flapping
        self.flapping = (min(until, self.here + ms_of(policy.flapping_days * 86_400)), alert_id)

    def _met(self, record: Alert | TaskEvent) -> None:
        self.last = self.here
        self.agent = record.agent or self.agent
        self.task = record.task or self.task
        self.heard[record.session_id] = self.here
        while len(self.heard) > limits.MAX_ACTIVE:
            del self.heard[min(self.heard, key=self.heard.__getitem__)]

    def _tell(self, climb: str, kind: str, severity: str, cause: str, answers: str) -> None:
        """Tell people."""
        self._open(climb, cause)
        self.out.append(("notification", kind, severity, False, self.incidents[climb], self.policy.notify, answers))

    def _open(self, climb: str, cause: str) -> None:
        """Begin an incident, named after what caused it; one of the task that sessions have part in goes on."""
        joint = next(iter(self.joint.values()), "") if climb == "" else ""
        self.incidents.setdefault(climb, joint or digest("incident", self.task_id, climb, cause))

    # What is over

    def _drop(self, climb: str) -> None:
        """Forget a climb with all that belongs to it."""
        self._settle(climb)
        for table in (self.climbs, self.answered, self.alerts, self.incidents, self.pending, self.stopped):
            table.pop(climb, None)
        self.joint.pop(climb, None)
        self.unstopped.pop(climb, None)

    def _settle(self, climb: str) -> None:
        """Let a climb begin from the bottom; what was used up of the task's rungs stays so."""
        self.taken = [taken for taken in self.taken if taken[0] != climb or taken[1] in OF_THE_TASK]
        self.refused = [taken for taken in self.refused if taken[0] != climb or taken[1] in OF_THE_TASK]
        self.loops = [loop for loop in self.loops if loop[0] != climb]
        self.noticed = [noticed for noticed in self.noticed if noticed != climb]
        self.highest.pop(climb, None)
        self.cooldown.pop(climb, None)
        if climb in self.answered:
            self.answered[climb] = (self.answered[climb][0], "", "")

    def _resolve(self, kind: str, incidents: Sequence[str]) -> None:
        """Tell that incidents are over, but for those that a session has part in which is still to be stopped."""
        for incident in dict.fromkeys(incidents):
            sharing = {climb for climb in self.climbs if incident in self._has_part(climb)}
            if not sharing & {*self.pending, *self.unstopped}:
                for climb in sharing:
                    self._part(climb, incident)
                self.out.append(("notification", kind, "info", True, incident, self.policy.notify, None))

    def _has_part(self, climb: str) -> list[str]:
        """Give the incidents of a climb: its own one, and the task's one that its session is to be stopped for."""
        return [table[climb] for table in (self.incidents, self.joint) if climb in table]

    def _part(self, climb: str, incident: str) -> None:
        for table in (self.incidents, self.joint):
            if table.get(climb) == incident:
                del table[climb]

    def _give_up(self, climb: str, kind: str) -> None:
        """Let a climb that stays have no part in its incident any more; if it is stopped, not in the task's either."""
        names = self._has_part(climb)
        if kind == "recovered":
            names = [name for name in names if name != self.joint.get(climb)]
        for name in names:
            self._part(climb, name)
        self._resolve(kind, names)

    def _close(self, kind: str, climbs: Sequence[str], no_more: Sequence[str] = ()) -> None:
        """Forget climbs, and the terminations by which sessions in ``no_more`` are to be stopped."""
        incidents = [incident for climb in climbs for incident in self._has_part(climb)]
        for climb in climbs:
            self._drop(climb)
        for session in no_more:
            self.pending.pop(session, None)
            self.unstopped.pop(session, None)
        self._resolve(kind, incidents)

    def _unlist(self) -> None:
        if self.flapping[0]:
            self.out.append(("cleared", self.task_id))
        self.flapping = (0, "")

    def _fresh_task(self) -> None:
        self.taken = [taken for taken in self.taken if taken[1] not in OF_THE_TASK]
        self.refused = [taken for taken in self.refused if taken[1] not in OF_THE_TASK]
        self.rotated = []
        self._unlist()

    # Counting

    def _config(self, agent: Agent | None, task: Task | None) -> Config:
        task = task or self.task
        kind = (task.type if task else None) or ""
        names = (agent.name, agent.model, agent.config) if agent else ("", "", "")
        return (names[0] or "", names[1] or "", names[2] or "", kind)

    def _once(self, config: Config, what: str = "tasks") -> None:
        """Count something of a configuration, unless it was counted for this task."""
        if config not in self.configs:
            while len(self.configs) >= limits.MAX_CONFIGS:
                del self.configs[next(iter(self.configs))]
            self.configs[config] = frozenset()
        for counted in {"tasks", what} - self.configs[config]:
            self.tallies[*config, counted] += 1
        self.configs[config] |= {"tasks", what}

    def _blame(self, config: Config, alert_id: str) -> None:
        """Count that a task flapped, and note by which alert."""
        if "flapped" not in self.configs.get(config, ()):
            self.blamed[config] = alert_id
        self._once(config, "flapped")

    def _absolve(self, wrong: set[str]) -> None:
        """Take back what was counted of a task that flapped, where the alert by which it did was wrong."""
        for config, counted in self.configs.items():
            if "flapped" in counted and self.blamed[config] in wrong:
                self.configs[config] = counted - {"flapped"}
                self.tallies[*config, "flapped"] -= 1

    def _count(self, event: TaskEvent) -> None:
        config = self._config(event.agent, event.task)
        self._once(config)
        self.tallies[*config, "tokens"] += event.spent.tokens
        self.tallies[*config, "cents"] += round(event.spent.cost * 100)
        if event.attempt and event.attempt.outcome != "skipped":
            self.tallies[*config, "attempts"] += 1
        succeeded = event.attempt is not None and event.attempt.outcome == "success"
        if succeeded or (event.review and event.review.verdict == "merged"):
            self._once(config, "converged")
