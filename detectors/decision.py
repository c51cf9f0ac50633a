"""The one place where findings become alerts.

A loop is known by its fingerprint and by the actions it is made of; what is due to be said of it is decided in `loops`.
It counts as broken after a quiet stretch. What a weak rule finds needs a second kind of evidence: another detector, or
the spin score.
"""

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from detectors import analysis, category, spin_score
from detectors.call import print_of_action
from detectors.excerpt import excerpt
from detectors.facts import Call
from detectors.features import WINDOW_CALLS
from detectors.findings import Finding
from detectors.guidance import guidance
from detectors.limits import MAX_WINDOW_CALLS, Limits
from detectors.loops import (
    RANK,
    TOKENS_PER_CALL,
    alert_id,
    due,
    instant,
    limit_reached,
    make_room,
    new_loop,
    note_alert,
    note_level,
    note_seen,
    reasoning,
    take_members,
    warn_limit,
)
from detectors.state import SessionState
from detectors.watch import DISMISSED, WARN, Loop
from schemas.outputs import Alert, Evidence, Level, LimitReached

_BROAD = "revisits"
_COUNTING = frozenset({category.NAME, analysis.NAME})  # count calls, whatever they bring
_OF_ONE_CALL = frozenset(
    ("identical.warn", "identical.terminate", "identical.window_warn", "identical.window_terminate")
)
_MAX_EVENT_IDS = 12


def decide(state: SessionState, call: Call, findings: Sequence[Finding], limits: Limits) -> list[Alert]:
    """Return the alerts that the current call brings about, recoveries first.

    Steps: 1. name the loop each finding speaks of; 2. alert what is due; 3. let go of loops not seen for long.
    """
    asked = [finding for finding in findings if finding.detector not in limits.off] if findings else []
    if not asked:
        return _recoveries(state, call, limits) if state.loops else []
    weighed = [_weighed(state, finding, limits) for finding in asked]
    ranked = sorted(_without_told(state, weighed, call), key=lambda finding: (-RANK[finding.level], finding.weak))
    named = [(finding, _loop(state, finding, call)) for finding in ranked]
    spins = state.spin.above > 0 and (state.latest_score or 0.0) >= limits.spin_warn
    alerts: dict[int, Alert] = {}
    for finding, loop in named:
        level = due(loop, finding, limits, corroborated=_is_corroborated(state, named, finding, loop, borne_out=spins))
        note_seen(loop, finding, call.seq)
        if level is not None and id(loop) not in alerts:
            note_level(loop, finding, level, limits)
            alerts[id(loop)] = _alert(state, loop, finding, level, call=call, limits=limits)
    return [*_recoveries(state, call, limits), *alerts.values()]


def _loop(state: SessionState, finding: Finding, call: Call) -> Loop:
    """Return the loop that a finding speaks of, a new one when none under watch is it.

    It is the same when the fingerprints agree, or when more than half of the members of one are among those of another
    seen in the latest calls: three detectors that see one loop must not make three.
    """
    loop = next((loop for loop in state.loops if loop.fingerprint == finding.fingerprint), None)
    loop = loop or next((loop for loop in state.loops if _is_same(loop, finding, call)), None)
    if loop is not None:
        take_members(loop, finding)
        return loop
    make_room(state.loops)
    loop = new_loop(finding, call.seq, call.mark.at_ms)
    state.loops.append(loop)
    return loop


def _weighed(state: SessionState, finding: Finding, limits: Limits) -> Finding:
    """Return the finding as it stands with the spin score: a notice when it is weak and the score speaks against it.

    A limit that somebody has set is their word, which the score does not overrule.
    """
    score = state.latest_score
    if score is None or not finding.weak or finding.hard or finding.level == "notice":
        return finding
    if finding.detector == spin_score.NAME:
        return finding
    needed = limits.spin_notice if finding.detector in _COUNTING else limits.spin_weak_needs
    if score >= needed or {limits.layer(finding.limit), limits.layer(warn_limit(finding))} != {"default"}:
        return finding
    return replace(finding, level="notice", what=f"{finding.what}, though the spin score is only {score:.3f}")


def _without_told(state: SessionState, asked: list[Finding], call: Call) -> list[Finding]:
    """Return the findings without the score's own where a rule warns now or did lately: it says better what repeats."""
    if all(finding.detector != spin_score.NAME for finding in asked):
        return asked
    rules = [finding for finding in asked if finding.detector != spin_score.NAME]
    warned = spin_score.rule_warned(state, call, WINDOW_CALLS)
    if not warned and all(finding.level == "notice" for finding in rules):
        return asked
    for loop in state.loops:
        if loop.detector == spin_score.NAME:
            loop.last_seq = call.seq  # it goes on
    return rules


def _is_corroborated(
    state: SessionState, named: list[tuple[Finding, Loop]], finding: Finding, loop: Loop, *, borne_out: bool
) -> bool:
    """Tell whether another detector sees the same loop now, or warned of another one since this finding began.

    What is weak itself is no second kind of evidence, with one exception: a rule that only counts calls, whatever they
    bring, is borne out by a spin score that would be a warn alone. The other weak rules see what the score sees.
    """
    if borne_out and finding.detector in _COUNTING:
        return True
    if any(same is loop and other.detector != finding.detector and not other.weak for other, same in named):
        return True
    return any(
        other is not loop
        and other.detector != finding.detector
        and WARN <= other.level < DISMISSED
        and not other.weak
        and other.last_seq + 1 >= finding.mark.calls
        for other in state.loops
    )


def _is_same(loop: Loop, finding: Finding, call: Call) -> bool:
    """Tell whether a finding speaks of a loop that was seen lately: more than half of one's members are the other's.

    Of what is no one loop but whatever comes again, more than half of both. The spin score sees no loop but all of the
    latest calls, which makes none the same.
    """
    if spin_score.NAME in {loop.detector, finding.detector}:
        return False
    known, members = set(loop.members), set(finding.members)
    lately = call.seq - loop.last_seq <= MAX_WINDOW_CALLS
    broad = _BROAD in {loop.detector, finding.detector}
    measure = max(len(known), len(members)) if broad else min(len(known), len(members))
    return lately and 2 * len(known & members) > measure


def _recoveries(state: SessionState, call: Call, limits: Limits) -> list[Alert]:
    """Let go of loops not seen for a quiet stretch; those that were warned about are reported as recovered once."""
    quiet = [loop for loop in state.loops if call.seq - loop.last_seq >= limits.decision.rearm_after]
    gone = [loop for loop in quiet if loop.level != DISMISSED]  # what a person said of a loop stays said
    alerts = []
    for loop in gone:
        state.loops.remove(loop)
        if loop.level == WARN:
            alerts.append(_recovered(state, loop, call, limits))
    return alerts


def _alert(state: SessionState, loop: Loop, finding: Finding, level: Level, *, call: Call, limits: Limits) -> Alert:
    """Return the alert for a finding, and remember that it was given."""
    reached = limit_reached(finding, level, limits)
    error = excerpt(finding.error, limits.decision.excerpt_chars)
    spent = call.mark
    alert = msgspec.structs.replace(
        _about(state, loop, level, call, limits),
        detector=finding.detector,
        count=finding.count,
        limits=(reached,),
        evidence=Evidence(
            event_ids=_event_ids(state, finding, call),
            calls=finding.calls,
            repeats=_repeats(finding, level, call),
            error=error or None,
            weak=finding.from_text,
        ),
        reasoning=reasoning(finding, reached, error),
        guidance=guidance(finding, error),
        tokens_wasted=(
            spent.tokens - loop.mark.tokens if state.metered else (spent.calls - loop.mark.calls) * TOKENS_PER_CALL
        ),
        cost_wasted=round(spent.cost - loop.mark.cost, 6) if state.priced else None,
        wasted_estimated=not state.metered,
    )
    state.alerts += 1
    note_alert(state.told, loop, alert.alert_id, call.mark.at_ms)
    return alert


def _recovered(state: SessionState, loop: Loop, call: Call, limits: Limits) -> Alert:
    """Return the word that a loop is broken."""
    quiet = call.seq - loop.last_seq
    name = "decision.rearm_after"
    reached = LimitReached(name=name, value=limits.decision.rearm_after, layer=limits.layer(name))
    return msgspec.structs.replace(
        _about(state, loop, "recovered", call, limits),
        limits=(reached,),
        evidence=Evidence(counts={"quiet_calls": quiet}),
        reasoning=f"the loop that was warned about has not been seen for {quiet} calls",
    )


def _about(state: SessionState, loop: Loop, level: Level, call: Call, limits: Limits) -> Alert:
    """Return what every alert of a loop says: which loop, of whom, when, and the spin score it was weighed with."""
    score = state.latest_score
    return Alert(
        alert_id=alert_id(state.session_id, f"{loop.fingerprint:016x}", level, call.event_id),
        level=level,
        mode=limits.mode,
        detector=loop.detector,
        loop_id=f"{loop.fingerprint:016x}",
        session_id=state.session_id,
        task_id=(state.task.id if state.task else None) or state.session_id,
        agent=state.agent,
        task=state.task,
        seq=call.seq,
        occurred_at=instant(call.mark.at_ms),
        first_seen=instant(loop.since_ms),
        count=loop.count,
        spin_score=None if score is None else round(score, 3),
        limits=(),
        evidence=Evidence(),
        reasoning="",
        interventions_so_far=state.alerts,
    )


def _repeats(finding: Finding, level: Level, call: Call) -> tuple[str, ...]:
    """Return the digest of the one call that the loop is nothing but, where whoever refuses it would be right to.

    A call that waits for something may be right the next time, as may each call of a longer cycle after the others.
    """
    certain = finding.limit in _OF_ONE_CALL and not finding.weak and level != "notice"
    return (print_of_action(call.action),) if certain and not call.waits else ()


def _event_ids(state: SessionState, finding: Finding, call: Call) -> tuple[str, ...]:
    """Return the ids of the loop's latest calls, the triggering one last."""
    others = [seen for seen in state.recent if seen is not call and seen.event_id]
    earlier = [seen.event_id for seen in others if seen.action in finding.members]
    return (*earlier[1 - _MAX_EVENT_IDS :], call.event_id)
