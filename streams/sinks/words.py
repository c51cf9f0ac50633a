"""What sinks say of a notification, and its limits: made of clean text, cut short, whatever the record had in it.

Identifiers that a receiver compares (an idempotency key, a marker) are made safe here too. Nothing in here knows a
receiver's format.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

import msgspec

from schemas.encode import encode
from schemas.outputs import Report
from streams.escalation.text import clean_page, line

if TYPE_CHECKING:
    from schemas.outputs import Notification

MOST_ID = 256
MOST_LINE = 500
MOST_TEXT = 1_000
MOST_TITLE = 160
MOST_TRIED = 20
MOST_PATHS = 20
MOST_COMMANDS = 10
MOST_MARKDOWN = 8_000

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")


def key(identifier: str) -> str:
    """Give an identifier as one that may stand in a header, a marker or a name: itself, or else a digest of it."""
    if _SAFE.fullmatch(identifier):
        return identifier
    return hashlib.blake2b(identifier.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def title(notification: Notification) -> str:
    """Give the notification's title in one line, with a word before it where the incident is over."""
    told = line(notification.report.title, MOST_TITLE) or line(notification.kind, MOST_TITLE)
    return f"Over: {told}" if notification.resolves else told


def facts(notification: Notification) -> list[tuple[str, str]]:
    """Give what a person wants to know at a glance, as names and values."""
    agent, task, report = notification.agent, notification.task, notification.report
    who = [] if agent is None else [part for part in (agent.name, agent.role, agent.model, agent.config) if part]
    cost = "" if report.cost_wasted is None else f" (${report.cost_wasted:,.2f})"
    measured = "estimated" if report.wasted_estimated else "measured"
    found = [
        ("what was done", notification.kind.replace("_", " ")),
        ("task", notification.task_id),
        ("session", notification.session_id),
        ("agent", ", ".join(who)),
        ("repository", (task.repo if task else None) or ""),
        ("detector", notification.detector),
        ("times", f"{report.times:g}"),
        ("spent on it", f"{report.tokens_wasted:,} tokens{cost}, {measured}"),
    ]
    return [(name, shown) for name, value in found if (shown := line(value, MOST_ID))]


def commands(notification: Notification) -> list[str]:
    """Give the commands by which a person looks and answers; one that is not clean or too long is left out whole."""
    found = notification.report.commands[:MOST_COMMANDS]
    return [each for each in found if each and each == line(each, MOST_LINE)]


def cleaned(notification: Notification, markdown: int = MOST_MARKDOWN) -> Notification:
    """Give a notification whose texts are clean and cut short; what tells one record from another stays as it is.

    Args:
        notification: the notification.
        markdown: most characters of its page.
    """
    report, task = notification.report, notification.task
    return msgspec.structs.replace(
        notification,
        loop_id=line(notification.loop_id, MOST_ID),
        detector=line(notification.detector, MOST_ID),
        text=line(notification.text, MOST_TEXT),
        task=None if task is None else msgspec.structs.replace(task, paths=task.paths[:MOST_PATHS]),
        report=msgspec.structs.replace(
            report,
            title=line(report.title, MOST_TITLE),
            tried=tuple(line(each, MOST_LINE) for each in report.tried[:MOST_TRIED]),
            recurring_failure=None if report.recurring_failure is None else line(report.recurring_failure, MOST_LINE),
            look_at=line(report.look_at, MOST_LINE),
            markdown=clean_page(report.markdown, markdown) if markdown else "",
        ),
    )


def within(notification: Notification, most_bytes: int) -> Notification:
    """Give a notification whose JSON has at most so many bytes: as `cleaned`, with less and less of its texts.

    Args:
        notification: the notification.
        most_bytes: at least 13,000, which its identifiers, title and text need at worst.
    """
    for markdown in (MOST_MARKDOWN, 2_000):
        found = cleaned(notification, markdown)
        if len(encode(found)) <= most_bytes:
            return found
    found = cleaned(notification, 0)
    if len(encode(found)) <= most_bytes:
        return found
    report = found.report
    return msgspec.structs.replace(
        found,
        text=line(found.text, MOST_TITLE),
        loop_id=line(found.loop_id, MOST_TITLE),
        detector=line(found.detector, MOST_TITLE),
        sinks=None,
        agent=None,
        task=None,
        report=Report(
            title=line(report.title, MOST_TITLE),
            tried=(),
            times=report.times,
            look_at="",
            markdown="",
        ),
    )


def as_lines(notification: Notification) -> bytes:
    """Give a notification as one line of JSON, clean and cut short."""
    return encode(cleaned(notification)) + b"\n"
