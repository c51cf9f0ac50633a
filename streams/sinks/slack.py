"""Posts notifications to a channel by an incoming webhook of Slack's.

Texts are escaped, so that nothing in them is a mention or a link. Slack knows no idempotency key: after a crash the
message that was on its way may be there twice.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from streams.escalation.text import ELLIPSIS, JOINER, line
from streams.sinks.base import HttpSink, Sent
from streams.sinks.http import Request
from streams.sinks.settings import SlackSettings
from streams.sinks.words import MOST_LINE, MOST_TEXT, MOST_TRIED, commands, facts, key, title

if TYPE_CHECKING:
    from schemas.outputs import Notification

MOST_HEADER = 150
MOST_SECTION = 3_000
MOST_FIELDS = 10
MOST_FIELD = 2_000
"""Limits of a header's text, a section's text, its fields and theirs ("Reference: blocks", Slack)."""

ANSWER = "To look and to answer, in a shell"

_FENCE = "```"
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_MARKUP = re.compile(r"[*_~`]")


class Slack(HttpSink[SlackSettings]):
    """An incoming webhook."""

    async def send(self, notification: Notification) -> Sent:
        """Post a message.

        Raises:
            Undelivered: it was not taken.
        """
        answer = await self.http.send(Request(self.url, msgspec.json.encode(message(notification))))
        return Sent(f"answered {answer.status}")


def message(notification: Notification) -> dict[str, Any]:
    """Give the message: blocks, and a text for notifications and where blocks are not shown."""
    report, text = notification.report, line(notification.text, MOST_TEXT)
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": escape(title(notification), MOST_HEADER)}},
        {"type": "section", "fields": [_field(name, value) for name, value in facts(notification)[:MOST_FIELDS]]},
    ]
    if text:
        blocks.insert(1, _section(_plain(text, MOST_SECTION)))
    if report.recurring_failure:
        blocks.append(_quoted("Recurring failure", (report.recurring_failure,)))
    if report.tried:
        blocks.append(_quoted("Tried", report.tried[:MOST_TRIED]))
    if report.look_at:
        blocks.append(_section(_plain(f"Where to begin: {line(report.look_at, MOST_LINE)}", MOST_SECTION)))
    if typed := _typed(commands(notification)):
        blocks.append(_quoted(ANSWER, typed))
    ids = f"alert {key(notification.alert_id)}, notification {key(notification.notification_id)}"
    blocks.append({"type": "context", "elements": [{"type": "plain_text", "text": ids}]})
    return {
        "text": _plain(f"{title(notification)}: {text}", MOST_SECTION),
        "blocks": blocks,
        "unfurl_links": False,
        "unfurl_media": False,
    }


def escape(text: str, most: int) -> str:
    """Escape the characters that begin mentions, links and entities ("Formatting text for app surfaces", Slack).

    Args:
        text: clean text.
        most: most characters of the result; it is not cut within an escape.
    """
    parts = [_ESCAPES.get(char, char) for char in text[:most]]
    length = sum(map(len, parts))
    if length <= most and len(text) <= most:
        return "".join(parts)
    while length >= most:
        length -= len(parts.pop())
    return "".join(parts) + ELLIPSIS


def _plain(text: str, most: int) -> str:
    """Escape text for where Slack's markup is read: its characters get a word joiner before them, and are shown."""
    return escape(_MARKUP.sub(rf"{JOINER}\g<0>", text), most)


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}


def _field(name: str, value: str) -> dict[str, Any]:
    return {"type": "mrkdwn", "text": f"*{name}*\n{_plain(value, MOST_FIELD - len(name) - 10)}", "verbatim": True}


def _typed(found: list[str]) -> tuple[str, ...]:
    """Give the commands that a block of code can show as they are, as many as fit: half a command is none."""
    shown = [each for each in found if "`" not in each]
    while len(escape("\n".join(shown), 10 * MOST_SECTION)) > MOST_SECTION - len(ANSWER) - 20:
        shown.pop()
    return tuple(shown)


def _quoted(name: str, lines: tuple[str, ...]) -> dict[str, Any]:
    """Give lines as a block of code, which nothing in them can end."""
    body = "\n".join(line(each, MOST_LINE) for each in lines).replace("`", "\u02cb")
    return _section(f"*{name}*\n{_FENCE}{escape(body, MOST_SECTION - len(name) - 20)}{_FENCE}")
