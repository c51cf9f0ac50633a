"""Triggers and resolves incidents of PagerDuty's by its Events API v2.

The key by which events are put together is the incident's: all that is told of one climb of the ladder is one incident
there, and what resolves it resolves that.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from streams.escalation.text import line
from streams.sinks.base import HttpSink, Sent
from streams.sinks.errors import InvalidSinks
from streams.sinks.http import Request
from streams.sinks.settings import PagerDutySettings
from streams.sinks.words import MOST_ID, MOST_LINE, MOST_TEXT, MOST_TRIED, commands, facts, key, title

if TYPE_CHECKING:
    from schemas.outputs import Notification

URLS = {"us": "https://events.pagerduty.com/v2/enqueue", "eu": "https://events.eu.pagerduty.com/v2/enqueue"}
"""Addresses by service region ("Service Regions", PagerDuty)."""

MOST_SUMMARY = 1_024
"""Characters of a summary ("PD-CEF", Events API v2)."""

_ROUTING_KEY = re.compile(r"[0-9A-Za-z]{32}")


class PagerDuty(HttpSink[PagerDutySettings]):
    """A service with an integration of the Events API v2.

    Args:
        settings: its settings.
        place: file and table of the settings, for messages.

    Raises:
        InvalidSinks: the routing key is missing, or is none.
    """

    def __init__(self, settings: PagerDutySettings, place: str) -> None:
        super().__init__(settings, place, URLS[settings.region])
        if not _ROUTING_KEY.fullmatch(self.secrets["routing_key"].reveal):
            raise InvalidSinks(
                f"{place}: the routing key does not have 32 letters and digits; take the integration key of the service"
            )

    async def send(self, notification: Notification) -> Sent:
        """Send the event.

        Raises:
            Undelivered: it was not taken.
        """
        body = msgspec.json.encode(event(notification, self.secrets["routing_key"].reveal))
        answer = await self.http.send(Request(self.url, body))
        return Sent(f"answered {answer.status}")


def event(notification: Notification, routing_key: str) -> dict[str, Any]:
    """Give the event: trigger, or resolve where the incident is over.

    Args:
        notification: the notification.
        routing_key: a secret.
    """
    common = {"routing_key": routing_key, "dedup_key": key(notification.incident_id)}
    if notification.resolves:
        return {**common, "event_action": "resolve"}
    report = notification.report
    told = dict(facts(notification))
    details: dict[str, Any] = {
        **told,
        "look at": line(report.look_at, MOST_LINE),
        "recurring failure": line(report.recurring_failure or "", MOST_LINE),
        "tried": [line(each, MOST_LINE) for each in report.tried[:MOST_TRIED]],
        "commands": commands(notification),
        "alert": key(notification.alert_id),
        "notification": key(notification.notification_id),
    }
    return {
        **common,
        "event_action": "trigger",
        "client": "Traction",
        "payload": {
            "summary": line(f"{title(notification)}: {line(notification.text, MOST_TEXT)}", MOST_SUMMARY),
            "source": told.get("repository") or told.get("task") or key(notification.task_id),
            "severity": notification.severity,
            "timestamp": notification.issued_at.isoformat(),
            "component": line(notification.task_id, MOST_ID),
            "group": told.get("repository", ""),
            "class": line(notification.detector, MOST_ID),
            "custom_details": {name: value for name, value in details.items() if value},
        },
    }
