"""Decides what follows from an alert: nothing, guidance for the agent, or the end of the session.

Pure: no clock, no I/O; the same alert gives outputs with the same ids, so that a reader can drop a repetition. It must
not judge whether the alert is right: that is the detectors' decision.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from schemas.outputs import Acknowledgement, Alert, Directive, KnownFlapping, Termination
from streams.escalation.report import report
from streams.escalation.text import clean, line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

Output = Directive | Termination | KnownFlapping

ANSWERS = ("obeyed", "refused", "ended")
"""What an orchestrator may answer to a directive or termination: actions of a control record."""

MOST_TEXT = 4_000
"""Characters of a directive's text: a page; more would crowd out the agent's own context."""

MOST_REASON = 1_000

FALLBACK = (
    "You are repeating yourself without progress. Stop, say what you have learnt, and take a step that is different; "
    "if there is none, say so and end."
)
"""Guidance where the detector had none."""


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """What the policy leaves to whoever runs it.

    Attributes:
        control_topic: where orchestrators answer, by its name on the brokers.
        guidance_expires: after this, guidance is too late: the agent has gone on.
        flapping_expires: how long a task stays listed as not to be retried without a person (DETECTORS, "Responses").
    """

    control_topic: str
    guidance_expires: timedelta = timedelta(minutes=15)
    flapping_expires: timedelta = timedelta(days=7)


def respond(alert: Alert, now: datetime, settings: PolicySettings) -> Sequence[Output]:
    """Say what follows from an alert.

    Recoveries ask nothing of anyone, nor does anything muted or observed only. A notice and a warning become guidance;
    so does a termination where the mode is `warn`. Else a termination becomes a verdict, and its task is listed. Where
    a task spins, all this is for the session whose event brought the alert about.

    Args:
        alert: the alert.
        now: when this is decided.
        settings: see `PolicySettings`.
    """
    if alert.muted or alert.mode == "observe" or alert.level == "recovered":
        return ()
    if alert.level in {"notice", "warn"} or alert.mode == "warn":
        return (_guidance(alert, now, settings),)
    termination = _termination(alert, now, settings)
    return (termination, _known_flapping(alert, termination, now, settings))


def output_id(kind: str, alert_id: str) -> str:
    """Derive an output's id from its alert: 32 hexadecimal digits.

    Args:
        kind: what the output is: one alert has at most one of each kind.
        alert_id: the alert's.
    """
    return hashlib.blake2b(f"{kind}\0{alert_id}".encode(), digest_size=16).hexdigest()


def _guidance(alert: Alert, now: datetime, settings: PolicySettings) -> Directive:
    directive_id = output_id("inject_guidance", alert.alert_id)
    return Directive(
        directive_id=directive_id,
        action="inject_guidance",
        session_id=alert.session_id,
        task_id=alert.task_id,
        alert_id=alert.alert_id,
        loop_id=alert.loop_id,
        detector=alert.detector,
        text=clean(alert.guidance, MOST_TEXT) or FALLBACK,
        issued_at=now,
        expires_at=now + settings.guidance_expires,
        acknowledge=_acknowledge(directive_id, settings),
    )


def _termination(alert: Alert, now: datetime, settings: PolicySettings) -> Termination:
    termination_id = output_id("termination", alert.alert_id)
    return Termination(
        termination_id=termination_id,
        session_id=alert.session_id,
        task_id=alert.task_id,
        alert_id=alert.alert_id,
        loop_id=alert.loop_id,
        detector=alert.detector,
        reason=line(alert.reasoning, MOST_REASON),
        agent=alert.agent,
        task=alert.task,
        issued_at=now,
        acknowledge=_acknowledge(termination_id, settings),
        report=report(alert),
    )


def _known_flapping(alert: Alert, termination: Termination, now: datetime, settings: PolicySettings) -> KnownFlapping:
    return KnownFlapping(
        task_id=alert.task_id,
        session_id=alert.session_id,
        alert_id=alert.alert_id,
        termination_id=termination.termination_id,
        loop_id=alert.loop_id,
        detector=alert.detector,
        pattern=alert.pattern,
        reason=termination.reason,
        task=alert.task,
        since=now,
        expires_at=now + settings.flapping_expires,
    )


def _acknowledge(answers: str, settings: PolicySettings) -> Acknowledgement:
    return Acknowledgement(topic=settings.control_topic, answers=answers, actions=ANSWERS)
