"""The one place where what is found of a task becomes alerts, by the rules of `loops`.

Several detectors see one loop: it is one when its fingerprint is, or when more than half of its attempts are. What is
weak waits for another detector that sees the same. A loop is broken after a quiet stretch of attempts and reviews, or
at once when the task succeeds; what is said of a pull request holds as long as that is under review, however many
attempts lie between two rounds.
"""

from collections.abc import Callable, Iterable

import msgspec

from detectors.excerpt import excerpt
from detectors.guidance import guidance
from detectors.limits import Limits
from detectors.loops import (
    RANK,
    TOKENS_PER_CALL,
    alert_id,
    due,
    instant,
    lift,
    limit_reached,
    make_room,
    new_loop,
    note_alert,
    note_level,
    note_seen,
    reasoning,
    take_members,
)
from detectors.tasks import too_many_attempts
from detectors.tasks.facts import TaskEvent
from detectors.tasks.findings import TaskFinding
from detectors.tasks.state import MAX_ATTEMPTS, TaskState
from detectors.watch import DISMISSED, TERMINATED, WARN, Loop
from schemas.outputs import Alert, Evidence, Level, LimitReached

_MAX_EVENTS = 12


def decide(state: TaskState, event: TaskEvent, findings: Iterable[TaskFinding], limits: Limits) -> list[Alert]:
    """Return the alerts that an event brings about, recoveries first."""
    lift(state.loops, event.at_ms)
    asked = [finding for finding in findings if finding.detector not in limits.off]
    ranked = sorted(asked, key=lambda finding: -RANK[finding.level])  # of equal ones the most telling is first
    named = [(finding, _loop(state, finding, event)) for finding in ranked]
    alerts: dict[int, Alert] = {}
    for finding, loop in named:
        if finding.detector == too_many_attempts.NAME and _is_told(state, alerts.values()):
            continue
        derived = bool(finding.attempts) and finding.attempts[-1].derived  # who sends no attempts may mean other ones
        corroborated = _is_corroborated(named, finding, loop)
        level = due(loop, finding, limits, corroborated=corroborated, warns_only=derived)
        note_seen(loop, finding, state.steps)
        if level is not None and id(loop) not in alerts:
            note_level(loop, finding, level, limits)
            alerts[id(loop)] = _alert(state, loop, finding, level, event=event, limits=limits)
    gone = let_go(state, event, lambda loop: _is_quiet(state, loop, limits), "not seen for a while", limits)
    return [*gone, *alerts.values()]


def _is_told(state: TaskState, alerts: Iterable[Alert]) -> bool:
    """Tell whether nobody needs to hear how many attempts there were: they hear more now, or heard the last word."""
    return any(alert.level != "notice" for alert in alerts) or any(loop.level == TERMINATED for loop in state.loops)


def let_go(state: TaskState, event: TaskEvent, broken: Callable[[Loop], bool], why: str, limits: Limits) -> list[Alert]:
    """Drop the loops that are broken, and return the word of it for those that were warned about.

    What a person said of a loop stays said.
    """
    gone = [loop for loop in state.loops if loop.level != DISMISSED and broken(loop)]
    state.loops = [loop for loop in state.loops if not any(loop is each for each in gone)]
    return [_recovered(state, loop, event, why, limits) for loop in gone if loop.level == WARN]


def _is_quiet(state: TaskState, loop: Loop, limits: Limits) -> bool:
    reviewed = any(not pull.marks.isdisjoint(loop.members) for pull in state.pulls)
    return not reviewed and state.steps - loop.last_seq >= limits.tasks.rearm_after


def _loop(state: TaskState, finding: TaskFinding, event: TaskEvent) -> Loop:
    loop = next((loop for loop in state.loops if loop.fingerprint == finding.fingerprint), None)
    loop = loop or next((loop for loop in state.loops if _is_same(state, loop, finding)), None)
    if loop is not None:
        take_members(loop, finding)
        return loop
    make_room(state.loops)
    loop = new_loop(finding, state.steps, event.at_ms)
    state.loops.append(loop)
    return loop


def _is_same(state: TaskState, loop: Loop, finding: TaskFinding) -> bool:
    if too_many_attempts.NAME in {loop.detector, finding.detector}:
        return False  # it is about all attempts, whatever they have in common
    known, members = set(loop.members), set(finding.members)
    lately = state.steps - loop.last_seq <= MAX_ATTEMPTS
    return lately and 2 * len(known & members) > min(len(known), len(members))


def _is_corroborated(named: list[tuple[TaskFinding, Loop]], finding: TaskFinding, loop: Loop) -> bool:
    return any(same is loop and other.detector != finding.detector and not other.weak for other, same in named)


def _alert(
    state: TaskState, loop: Loop, finding: TaskFinding, level: Level, *, event: TaskEvent, limits: Limits
) -> Alert:
    reached = limit_reached(finding, level, limits)
    error = excerpt(finding.error, limits.decision.excerpt_chars)
    spent, mark = state.spent, loop.mark
    tokens = spent.tokens - mark.tokens if spent.metered else (spent.calls - mark.calls) * TOKENS_PER_CALL
    attempts = finding.attempts[-_MAX_EVENTS:]
    events = dict.fromkeys((*finding.event_ids, *(attempt.event_id for attempt in attempts)))
    alert = msgspec.structs.replace(
        _about(state, loop, level, event, limits),
        detector=finding.detector,
        count=finding.count,
        limits=(reached,),
        evidence=Evidence(
            event_ids=tuple(events)[-_MAX_EVENTS:],
            calls=finding.calls,
            error=error or None,
            weak=finding.from_text,
            attempt_ids=tuple(attempt.attempt_id for attempt in attempts),
            derived=any(attempt.derived for attempt in attempts),
            word_similarity=_rounded(finding.word_similarity),
            diff_similarity=_rounded(finding.diff_similarity),
        ),
        pattern=finding.pattern,
        suggested_strategy=finding.strategy,
        reasoning=_reasoning(finding, reached, error),
        guidance=guidance(finding, error, finding.advice),
        tokens_wasted=max(0, tokens),
        cost_wasted=round(max(0.0, spent.cost - mark.cost), 6) if spent.priced else None,
        wasted_estimated=not spent.metered,
    )
    state.alerts += 1
    note_alert(state.told, loop, alert.alert_id, event.at_ms)
    return alert


def _reasoning(finding: TaskFinding, reached: LimitReached, error: str) -> str:
    """Return the sentence for people, with how alike the attempts are, and what it suggests."""
    alike = [
        f"{share:.2f} in {kind}"
        for kind, share in (("words", finding.word_similarity), ("changes", finding.diff_similarity))
        if share is not None
    ]
    said = reasoning(finding, reached, error)
    said = f"{said}; alike by {' and '.join(alike)}" if alike else said
    return f"{said}. {finding.advice}" if finding.advice else said


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 3)


def _recovered(state: TaskState, loop: Loop, event: TaskEvent, why: str, limits: Limits) -> Alert:
    name = "tasks.rearm_after"
    reached = LimitReached(name=name, value=limits.tasks.rearm_after, layer=limits.layer(name))
    return msgspec.structs.replace(
        _about(state, loop, "recovered", event, limits),
        limits=(reached,),
        evidence=Evidence(event_ids=(event.event_id,)),
        reasoning=f"the loop that was warned about is broken: {why}",
    )


def _about(state: TaskState, loop: Loop, level: Level, event: TaskEvent, limits: Limits) -> Alert:
    """Return what every alert of a task's loop says."""
    loop_id = f"{loop.fingerprint:016x}"
    return Alert(
        alert_id=alert_id("task", state.task_id, event.session_id, loop_id, level, event.event_id),
        level=level,
        scope="task",
        mode=limits.mode,
        detector=loop.detector,
        loop_id=loop_id,
        session_id=event.session_id,
        task_id=state.task_id,
        agent=event.agent or state.agent,
        task=state.task,
        seq=max(0, state.place - 1),
        occurred_at=instant(event.at_ms),
        first_seen=instant(loop.since_ms),
        count=loop.count,
        limits=(),
        evidence=Evidence(),
        reasoning="",
        interventions_so_far=state.alerts,
    )
