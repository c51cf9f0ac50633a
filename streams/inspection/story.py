"""Puts what was said and done into words, for a terminal: one line an entry, and a report without its markup.

Takes control characters out of whatever came over Kafka, as it could steer the terminal. Prints nothing itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from schemas.events import Control, Override
from schemas.outputs import Alert, Directive, KnownFlapping, Notification, Report, Termination
from streams.escalation.text import clean
from streams.timeline import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from streams.inspection.facts import Told

NEWS = frozenset({"unanswered", "recovered"})
"""Kinds of notifications that say what no other record of the timeline does."""

MOST_REPORT_CHARS = 100_000
"""A report is a page; more is somebody else's text."""

_FENCE = re.compile(r"^(`{3,})\w*$")
_HEADING = re.compile(r"^#{1,6} ")
_RULE = re.compile(r"^\|[-| ]*\|$")
_STRONG = re.compile(r"(?<![\\*])\*\*(?!\s)(.+?)(?<![\s\\])\*\*")
_SPAN = re.compile(r"(?<![\\`])`([^`\n]+)`(?!`)")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_CELL = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a timeline.

    Attributes:
        at: when it was written.
        kind: what it is: alert, directive, termination, answer, exception, known flapping, notification.
        id: its identifier; of an exception its scope.
        session_id: whose it is; of an exception or a list's entry None.
        text: what it says, one line.
    """

    at: datetime
    kind: str
    id: str
    session_id: str | None
    text: str


def entries(told: Iterable[Told]) -> Iterator[Entry]:
    """Word records, in their order; what was done and told about it is there once.

    Args:
        told: the records with their times.
    """
    for each in told:
        record: Any = each.record
        session = getattr(record, "session_id", None)
        if isinstance(record, Alert):
            yield Entry(each.at, "alert", record.alert_id, session, alert_text(record))
        elif isinstance(record, Directive):
            yield Entry(each.at, "directive", record.directive_id, session, _directive(record))
        elif isinstance(record, Termination):
            attempt = f"attempt {record.attempt}: " if record.attempt > 1 else ""
            yield Entry(each.at, "termination", record.termination_id, session, plain(f"{attempt}{record.reason}"))
        elif isinstance(record, Control):
            yield Entry(each.at, "control", record.event_id, session, _control(record))
        elif isinstance(record, Override):
            yield Entry(each.at, "override", record.scope, None, _override(record))
        elif isinstance(record, KnownFlapping):
            text = f"not to be tried again without a person until {moment(record.expires_at)}: {record.reason}"
            yield Entry(each.at, "known flapping", record.termination_id, session, plain(text))
        elif isinstance(record, Notification) and record.kind in NEWS:
            text = plain(f"{record.kind.replace('_', ' ')}: {record.text}")
            yield Entry(each.at, "notification", record.notification_id, session, text)


def alert_text(alert: Alert) -> str:
    """Word an alert: its level, what found it, why, and whether it asks anything of anyone."""
    quiet = " (muted)" if alert.muted else " (observed only)" if alert.mode == "observe" else ""
    return plain(f"{alert.level} {alert.detector}{quiet}: {alert.reasoning}")


def latest_report(told: Iterable[Told]) -> Report | None:
    """Give the report that was written last; None when there is none."""
    reports = [each.record.report for each in told if isinstance(each.record, Termination | Notification)]
    return reports[-1] if reports else None


def report_lines(report: Report) -> list[str]:
    """Give a report's Markdown as a person would read it: no escapes, no marks, code indented."""
    lines = []
    fence = ""
    for line in clean(report.markdown, MOST_REPORT_CHARS).splitlines():
        mark = _FENCE.match(line)
        if fence:
            lines += [] if line == fence else [f"    {line}"]
            fence = "" if line == fence else fence
        elif mark:
            fence = mark[1]
        elif _HEADING.match(line):
            lines.append(_unmarked(_HEADING.sub("", line)))
        elif line.startswith("|"):
            cells = [_unmarked(cell.strip()) for cell in _CELL.split(line.strip("|"))]
            lines += [] if _RULE.match(line) or not any(cells) else [f"  {cells[0]:<20}{'  '.join(cells[1:])}".rstrip()]
        else:
            lines.append(_unmarked(line))
    return lines


def moment(at: datetime) -> str:
    """Give a time to the second, in this machine's zone and with it."""
    try:
        local = at.astimezone()
    except OverflowError:  # whoever wrote the record chose the first or last day of the calendar
        local = at
    return local.strftime("%Y-%m-%d %H:%M:%S %Z")


def age(seconds: float) -> str:
    """Give a span of time in its largest unit, as `5 min`."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit}"
    return f"{max(0, int(seconds))} s"


def _unmarked(text: str) -> str:
    bare = _SPAN.sub(r"\1", _STRONG.sub(r"\1", text))
    return _ESCAPED.sub(r"\1", bare)


def _directive(record: Directive) -> str:
    more = ", ".join(f"{name}={value}" for name, value in record.parameters.items())
    first = record.text.strip().partition("\n")[0]
    return plain(f"{record.action.replace('_', ' ')}{f' ({more})' if more else ''}{f': {first}' if first else ''}")


def _control(record: Control) -> str:
    what = f"mode {record.mode or 'as by default'}" if record.action == "mode" else record.action.replace("_", " ")
    answers = f" {record.answers}" if record.answers else ""
    until = f" until {moment(record.expires_at)}" if record.expires_at else ""
    by = f", by {record.actor}" if record.actor else ""
    why = f": {record.reason}" if record.reason else ""
    return plain(f"{what}{answers}{until}{by}{why}")


def _override(record: Override) -> str:
    settings = ["muted"] if record.mute else []
    settings += [f"mode {record.mode}"] if record.mode else []
    settings += [f"{name} = {msgspec.json.encode(value).decode()}" for name, value in record.limits.items()]
    until = f" until {moment(record.expires_at)}" if record.expires_at else ""
    by = f", by {record.set_by}" if record.set_by else ""
    why = f": {record.reason}" if record.reason else ""
    return plain(f"{', '.join(settings) or 'nothing'}{until}{by}{why}")
