"""The shapes of requests as the receivers document them, as JSON Schemas written by hand from these documents."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import msgspec

TEXT: dict[str, Any] = {"type": "string", "minLength": 1}
TIME = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$"}
STRINGS = {"type": "object", "additionalProperties": TEXT}


def closed(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """Give the schema of an object that has these members and no other."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


STANDARD = closed(
    {
        "type": {"type": "string", "pattern": r"^[a-zA-Z0-9_]+(\.[a-zA-Z0-9_]+)*$"},
        "timestamp": TIME,
        "data": {"type": "object"},
    }
)
"""Standard Webhooks 1.0, "Payload structure"."""

LABELS = {
    "type": "object",
    "required": ["alertname"],
    "propertyNames": {"pattern": "^[a-zA-Z_][a-zA-Z0-9_]*$"},
    "additionalProperties": TEXT,
}

ALERTMANAGER = {
    "type": "array",
    "minItems": 1,
    "items": closed({"labels": LABELS, "annotations": STRINGS, "startsAt": TIME, "endsAt": TIME}),
}
"""Alertmanager's OpenAPI document for its API v2, ``postableAlerts``."""

STATUS = {"enum": ["firing", "resolved"]}

ALERTMANAGER_WEBHOOK = closed(
    {
        "version": {"const": "4"},
        "groupKey": TEXT,
        "truncatedAlerts": {"type": "integer", "minimum": 0},
        "status": STATUS,
        "receiver": TEXT,
        "groupLabels": STRINGS,
        "commonLabels": LABELS,
        "commonAnnotations": STRINGS,
        "externalURL": {"type": "string"},
        "alerts": {
            "type": "array",
            "minItems": 1,
            "items": closed(
                {
                    "status": STATUS,
                    "labels": LABELS,
                    "annotations": STRINGS,
                    "startsAt": TIME,
                    "endsAt": TIME,
                    "generatorURL": {"type": "string"},
                    "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{16}$"},
                }
            ),
        },
    }
)
"""Prometheus's documentation, "Alerting configuration", ``webhook_config``."""


def _slack_text(kinds: list[str], most: int) -> dict[str, Any]:
    return closed(
        {"type": {"enum": kinds}, "text": {**TEXT, "maxLength": most}},
        {"verbatim": {"type": "boolean"}, "emoji": {"type": "boolean"}},
    )


SLACK = closed(
    {
        "text": {**TEXT, "maxLength": 40_000},
        "blocks": {
            "type": "array",
            "minItems": 1,
            "maxItems": 50,
            "items": {
                "oneOf": [
                    closed({"type": {"const": "header"}, "text": _slack_text(["plain_text"], 150)}),
                    closed({"type": {"const": "section"}, "text": _slack_text(["mrkdwn", "plain_text"], 3_000)}),
                    closed(
                        {
                            "type": {"const": "section"},
                            "fields": {
                                "type": "array",
                                "minItems": 1,
                                "maxItems": 10,
                                "items": _slack_text(["mrkdwn", "plain_text"], 2_000),
                            },
                        }
                    ),
                    closed(
                        {
                            "type": {"const": "context"},
                            "elements": {
                                "type": "array",
                                "minItems": 1,
                                "maxItems": 10,
                                "items": _slack_text(["mrkdwn", "plain_text"], 3_000),
                            },
                        }
                    ),
                ]
            },
        },
    },
    {"unfurl_links": {"type": "boolean"}, "unfurl_media": {"type": "boolean"}},
)
"""Slack's documentation, "Sending messages using incoming webhooks" and "Reference: blocks"."""

_KEYS = {
    "routing_key": {"type": "string", "pattern": "^[0-9a-zA-Z]{32}$"},
    "dedup_key": {**TEXT, "maxLength": 255},
}

PAGERDUTY = {
    "oneOf": [
        closed(
            {
                **_KEYS,
                "event_action": {"const": "trigger"},
                "payload": closed(
                    {
                        "summary": {**TEXT, "maxLength": 1_024},
                        "source": TEXT,
                        "severity": {"enum": ["critical", "error", "warning", "info"]},
                    },
                    {
                        "timestamp": TIME,
                        "component": {"type": "string"},
                        "group": {"type": "string"},
                        "class": {"type": "string"},
                        "custom_details": {"type": "object"},
                    },
                ),
            },
            {"client": TEXT, "client_url": TEXT},
        ),
        closed({**_KEYS, "event_action": {"enum": ["acknowledge", "resolve"]}}),
    ]
}
"""PagerDuty's documentation, "Send an alert event" (Events API v2)."""

GITHUB_COMMENT = closed({"body": {**TEXT, "maxLength": 65_536}})
GITHUB_ISSUE = closed(
    {
        "title": {**TEXT, "maxLength": 256},
        "body": {**TEXT, "maxLength": 65_536},
        "labels": {"type": "array", "items": {**TEXT, "maxLength": 50}},
    }
)
"""GitHub's documentation, "Create an issue comment" and "Create an issue" (REST API)."""


def check(schema: dict[str, Any], value: Any) -> Any:
    """Hold a value, as JSON, against a schema, and give it."""
    found = msgspec.json.decode(msgspec.json.encode(value) if not isinstance(value, bytes) else value)
    jsonschema_rs.validate(schema, found)
    return found
