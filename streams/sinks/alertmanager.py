"""Makes alerts of notifications: for an Alertmanager's API v2, and in the form of the webhook that one sends itself.

An alert is known by its labels, so only what does not change within an incident is one; the severity does, and each has
an alert of its own, which ends when another severity takes over. Nothing in here repeats an alert by itself.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from streams.escalation.text import line
from streams.sinks.base import HttpSink, Sent
from streams.sinks.http import Request
from streams.sinks.settings import AlertmanagerSettings
from streams.sinks.words import MOST_ID, MOST_LINE, MOST_TEXT, facts, key, title

if TYPE_CHECKING:
    from collections.abc import Iterable

    from schemas.outputs import Notification, NotificationKind, Severity

ALERT_NAME = "TractionLoop"

SEVERITIES: dict[NotificationKind, Severity] = {
    "inject_guidance": "info",
    "cooldown": "info",
    "rotate_strategy": "warning",
    "force_implementation": "warning",
    "escalate_human": "error",
    "abandon": "error",
    "skip_subtask": "error",
    "terminate": "critical",
    "refused": "critical",
    "unanswered": "critical",
}
"""What escalation gives the kinds that open an incident or go on with it."""

SKEW = timedelta(minutes=1)
"""How far before now an alert is said to have ended. Alertmanager keeps the later of two ends unless one has passed by
its own clock, so that with a clock behind ours it would go on."""

NEVER = "0001-01-01T00:00:00Z"
"""What Alertmanager's webhook has as the end of an alert that has none (Go's zero time)."""


class Alertmanager(HttpSink[AlertmanagerSettings]):
    """An Alertmanager."""

    async def send(self, notification: Notification) -> Sent:
        """Post the alert, and the end of those of the same incident with other severities.

        Raises:
            Undelivered: it was not taken.
        """
        body = msgspec.json.encode(
            posted(notification, self.settings.kinds, timedelta(hours=self.settings.firing_hours))
        )
        url = f"{self.url.rstrip('/')}/api/v2/alerts"
        answer = await self.http.send(Request(url, body))
        return Sent(f"answered {answer.status}")


def posted(notification: Notification, kinds: Iterable[NotificationKind], firing: timedelta) -> list[dict[str, Any]]:
    """Give the alerts to post to the API v2.

    Args:
        notification: the notification.
        kinds: the kinds that the sink tells, hence the severities that it may have told before.
        firing: how long an alert lasts that nothing resolves.
    """
    told = {SEVERITIES[kind] for kind in kinds if kind in SEVERITIES}
    now = None if notification.resolves else notification.severity
    alerts = []
    for severity in sorted({*told, *((now,) if now else ())}):
        begins = notification.issued_at if severity == now else notification.issued_at - SKEW
        ends = begins + firing if severity == now else begins
        alerts.append(
            {
                "labels": _labels(notification, severity),
                "annotations": _annotations(notification),
                "startsAt": begins.isoformat(),
                "endsAt": ends.isoformat(),
            }
        )
    return alerts


def webhook_body(notification: Notification, receiver: str) -> bytes:
    """Give the body that an Alertmanager sends to webhooks, version 4 ("Alerting configuration", webhook_config).

    Args:
        notification: the notification.
        receiver: the sink's name.
    """
    # Each delivery has one alert; a receiver that knows alerts by their labels sees one severity replace another.
    labels = _labels(notification, notification.severity)
    annotations = _annotations(notification)
    status = "resolved" if notification.resolves else "firing"
    issued = notification.issued_at.isoformat()
    group = {"alertname": ALERT_NAME, "incident_id": labels["incident_id"]}
    return msgspec.json.encode(
        {
            "version": "4",
            "groupKey": f'{{}}:{{alertname="{ALERT_NAME}", incident_id="{key(notification.incident_id)}"}}',
            "truncatedAlerts": 0,
            "status": status,
            "receiver": receiver,
            "groupLabels": group,
            "commonLabels": labels,
            "commonAnnotations": annotations,
            "externalURL": "",
            "alerts": [
                {
                    "status": status,
                    "labels": labels,
                    "annotations": annotations,
                    "startsAt": issued,
                    "endsAt": issued if notification.resolves else NEVER,
                    "generatorURL": "",
                    "fingerprint": hashlib.blake2b(msgspec.json.encode(labels), digest_size=8).hexdigest(),
                }
            ],
        }
    )


def _labels(notification: Notification, severity: str) -> dict[str, str]:
    """Give the labels; Alertmanager takes an empty one for one that is missing, so none is empty."""
    repo = notification.task.repo if notification.task else None
    found = {
        "alertname": ALERT_NAME,
        "severity": severity,
        "incident_id": key(notification.incident_id),
        "task_id": line(notification.task_id, MOST_ID),
        "repo": line(repo or "", MOST_ID),
    }
    return {name: value for name, value in found.items() if value}


def _annotations(notification: Notification) -> dict[str, str]:
    told = {
        "summary": title(notification),
        "description": line(notification.text, MOST_TEXT),
        "look_at": line(notification.report.look_at, MOST_LINE),
        "failure": line(notification.report.recurring_failure or "", MOST_LINE),
        "notification_id": key(notification.notification_id),
        **{name.replace(" ", "_"): value for name, value in facts(notification)},
    }
    return {name: value for name, value in told.items() if value}
