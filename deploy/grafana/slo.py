"""The objectives and limits that panels show, as the alerting rules have them; a test compares the two."""

from __future__ import annotations

from dataclasses import dataclass

WORKER = 'job="traction-worker"'
"""Scrape job of the workers, as the rules expect it: other processes count events of their own by the same name."""

ALERT_SECONDS = 1.0
"""An agent's alert is to be out so soon after the broker's append of the event that brought it about."""

RESPONSE_SECONDS = 5.0
"""What is done about an alert is to be out so soon after the alert's record."""

BEHIND_SECONDS = 60.0
"""A consumer that is further behind for long is reported."""

COMMIT_AGE_SECONDS = 300.0
"""So old may a process's last commit be while records wait for it."""

COMMIT_SECONDS = 2.5
"""One transaction of a hundred may take so long."""

PUBLISH_SECONDS = 2.5
"""One request to the gateway of a hundred may wait so long for the brokers."""

VERDICTS_SECONDS = 60.0
"""So old may be what a gateway knows of directives and terminations."""

QUEUE_SECONDS = 300.0
"""So old may the notification be that a sink is trying to deliver."""

FALSE_SHARE = 0.2
"""So many of a detector's warnings of a day may be marked as false alarms."""

FLAPPING_SHARE = 0.3
"""So many of a repository's tasks of a day may flap."""

SPINNING_SHARE = 0.4
"""So many calls may have a spin score above 0.3."""

FULL_CORE = 0.9
"""A process uses one core at most; above this share of it, it is at its limit."""

LIVE_SHARE = 0.95
"""A worker that keeps more of the sessions decoded that it may soon decodes others for each event."""

CERTIFICATE_SECONDS = 7 * 86_400
"""A certificate that is valid for less has not been renewed when it should."""


@dataclass(frozen=True, slots=True)
class Objective:
    """A service level objective over 30 days.

    Attributes:
        bad: share of what may be bad.
        series: the recorded share of what is bad, without its window.
        alert: the alert that the budget burns fast.
        ticket: the alert that it burns for long.
    """

    bad: float
    series: str
    alert: str
    ticket: str

    def over(self, window: str) -> str:
        """Name the recorded series over a window: 5m, 30m, 1h, 6h, 3d or 30d."""
        return f"{self.series}:ratio_rate{window}"


IN_TIME = Objective(0.01, "fleet:traction_append_to_alert_slow", "TractionAlertsLate", "TractionAlertsOftenLate")
RESPONDED = Objective(
    0.01, "fleet:traction_alert_to_response_slow", "TractionResponsesLate", "TractionResponsesOftenLate"
)
READABLE = Objective(0.001, "fleet:traction_dead_events", "TractionDeadLetters", "TractionDeadLettersOften")
ANSWERED = Objective(
    0.001,
    "fleet:traction_terminations_unanswered",
    "TractionTerminationsUndelivered",
    "TractionTerminationsOftenUndelivered",
)

FAST_BURN = 14.4
"""A budget that burns so many times too fast over an hour is gone within two days: somebody is woken."""
