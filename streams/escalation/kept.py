"""What a ladder's state keeps of alerts, agents and tasks: cut, so that its size is bounded whatever they hold.

Nothing is cut in what is put out for the first time; what is worded again later is worded from this.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from detectors.excerpt import cut
from schemas.common import SCHEMA_VERSION, Agent, Task
from schemas.outputs import Alert, Evidence
from streams.escalation.text import line
from streams.policy.model import Candidate

if TYPE_CHECKING:
    from datetime import datetime

    from streams.escalation.state import Climb, LadderState, Pending

MOST_ID_BYTES = 64
"""Ids of ours have 16 or 32 characters; a longer one is kept as a digest."""

MOST_NAME_BYTES = 64
"""Of a name by which a configuration is known. The longest names of models in use have about 50 characters."""

_MOST_FIELD_BYTES = 256  # of an agent or task by which the policy is chosen; an ASCII one is never cut
_MOST_PATHS_BYTES = 1_024
_MOST_CALLS, _MOST_CALL_BYTES = 3, 100
_MOST_ERROR_BYTES = 160
_MOST_REASON_BYTES = 240
_MOST_IDS = 2
_ELSEWHERE = "-"  # an id that the state has anyway, and that may not be empty


def brief(name: str) -> str:
    """Return an id as it is kept: a digest of it when it is long."""
    raw = name.encode("utf-8", "replace")
    return name if len(raw) <= MOST_ID_BYTES else hashlib.blake2b(raw, digest_size=16).hexdigest()


def kept_agent(agent: Agent) -> Agent:
    """Return an agent with its names cut."""
    return Agent(
        **{name: value and cut(value, _MOST_FIELD_BYTES) for name, value in msgspec.structs.asdict(agent).items()}
    )


def kept_task(task: Task) -> Task:
    """Return a task with its names cut, and the first of its paths."""
    left, paths = _MOST_PATHS_BYTES, []
    for path in task.paths:
        left -= len(path.encode("utf-8", "replace"))
        if left < 0:
            break
        paths.append(path)
    return Task(
        type=task.type and cut(task.type, _MOST_FIELD_BYTES),
        repo=task.repo and cut(task.repo, _MOST_FIELD_BYTES),
        ref=task.ref and cut(task.ref, _MOST_FIELD_BYTES),
        paths=tuple(paths),
    )


def told_task(task: Task | None) -> Task | None:
    """Return a task as it is put out: cut likewise, since a thousand paths are more than a broker takes."""
    return task and msgspec.structs.replace(kept_task(task), id=task.id)


def kept_reason(reason: str) -> str:
    """Return a sentence for people, cut."""
    return cut(line(reason, _MOST_REASON_BYTES), _MOST_REASON_BYTES)


def kept_alert(alert: Alert, key: str) -> Alert:
    """Return what is kept of an alert: enough to word a report, without what the state has elsewhere.

    Args:
        alert: any alert.
        key: of the climb that it is kept in.
    """
    agent, task, evidence = alert.agent, alert.task, alert.evidence
    position = evidence.position
    return msgspec.structs.replace(
        alert,
        alert_id=brief(alert.alert_id),
        schema_version=SCHEMA_VERSION,
        detector=brief(alert.detector),
        loop_id=brief(alert.loop_id),
        session_id=_ELSEWHERE if key else alert.session_id,
        task_id=_ELSEWHERE,
        agent=agent
        and Agent(
            role=kept_name(agent.role) or None,
            name=kept_name(agent.name) or None,
            model=kept_name(agent.model) or None,
            config=kept_name(agent.config) or None,
        ),
        task=task and Task(type=kept_name(task.type) or None, repo=kept_name(task.repo) or None),
        limits=tuple(
            msgspec.structs.replace(limit, name=brief(limit.name), layer=brief(limit.layer))
            for limit in alert.limits[:1]
        ),
        evidence=Evidence(
            event_ids=tuple(brief(each) for each in evidence.event_ids[-_MOST_IDS:]),
            position=position and msgspec.structs.replace(position, topic=cut(position.topic, MOST_NAME_BYTES)),
            calls=tuple(cut(call, _MOST_CALL_BYTES) for call in evidence.calls[:_MOST_CALLS]),
            error=evidence.error and cut(evidence.error, _MOST_ERROR_BYTES),
            weak=evidence.weak,
            attempt_ids=tuple(brief(each) for each in evidence.attempt_ids[-_MOST_IDS:]),
            derived=evidence.derived,
            word_similarity=evidence.word_similarity,
            diff_similarity=evidence.diff_similarity,
        ),
        pattern=alert.pattern and brief(alert.pattern),
        reasoning=kept_reason(alert.reasoning),
        guidance="",
    )


def recalled(state: LadderState, key: str, climb: Climb) -> Alert | None:
    """Return the alert that a climb was for at last, as far as it was kept; None when there was none."""
    if climb.alert is None:
        return None
    session = key or climb.alert.session_id
    return msgspec.structs.replace(climb.alert, session_id=session, task_id=state.task_id)


def recalled_pending(state: LadderState, key: str, climb: Climb, pending: Pending) -> Alert:
    """Return the alert that a termination was for, as far as it was kept: with its own ids, whatever else is known."""
    own, of_task = climb.alert, state.climbs.get("")
    if (own is None or own.alert_id != pending.alert_id) and of_task is not None and of_task.alert is not None:
        own = of_task.alert if of_task.alert.alert_id == pending.alert_id else own
    return msgspec.structs.replace(
        own or unfounded(state, key, pending.issued_at),
        alert_id=pending.alert_id,
        loop_id=pending.loop_id,
        detector=pending.detector,
        reasoning=pending.reason,
        session_id=key,
        task_id=state.task_id,
    )


def unfounded(state: LadderState, session_id: str, at: datetime) -> Alert:
    """Return what stands for an alert where there is none, since a person decided; they fill in who it was."""
    return Alert(
        alert_id=_ELSEWHERE,
        level="terminate",
        mode="enforce",
        detector="",
        loop_id="",
        session_id=session_id,
        task_id=state.task_id,
        agent=state.agent,
        task=state.task,
        seq=0,
        occurred_at=at,
        first_seen=at,
        count=0.0,
        limits=(),
        evidence=Evidence(),
        reasoning="",
    )


def configuration(agent: Agent | None) -> Candidate:
    """Return in which configuration an agent runs; what is not known is empty."""
    if agent is None:
        return Candidate()
    return Candidate(name=kept_name(agent.name), model=kept_name(agent.model), config=kept_name(agent.config))


def kept_name(name: str | None) -> str:
    """Return a name by which a configuration or type of task is known, cut; empty for none."""
    return cut(name or "", MOST_NAME_BYTES)
