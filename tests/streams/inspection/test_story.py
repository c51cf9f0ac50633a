"""Timelines say each thing once and cannot steer a terminal; a report's Markdown reads as plain text."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from schemas.events import Override
from schemas.outputs import Notification
from schemas.testing import control
from streams.escalation.report import report as word
from streams.inspection.facts import Told
from streams.inspection.story import age, alert_text, entries, latest_report, moment, report_lines
from tests.streams.outputs_kit import alert, directive, known_flapping, now, report, termination

NOW = now()


def notification(kind: str, *, resolves: bool = False) -> Notification:
    """Make a notification."""
    fields: dict[str, Any] = {
        "notification_id": kind, "kind": kind, "severity": "info", "incident_id": "i", "session_id": "s1",
        "task_id": "t1", "alert_id": "alert-1", "loop_id": "l1", "detector": "identical", "issued_at": NOW,
        "text": "It is over.", "report": report(),
    }  # fmt: skip
    return Notification(resolves=resolves, **fields)


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Los_Angeles"])
def test_any_time_can_be_told(monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    """Also where this machine's zone would have it on a day before or after all others."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        told = moment(datetime.min.replace(tzinfo=UTC)), moment(datetime.max.replace(tzinfo=UTC))
        assert moment(NOW)[-3:] != "UTC"
    time.tzset()
    assert any(each.endswith("UTC") for each in told)


def test_every_kind_of_record_is_worded() -> None:
    """What it is, whose, its id and what it says; what another record says already is left out."""
    records = [
        alert(), directive(parameters={"seconds": 300}), termination(), termination(attempt=2),
        control(1, "refused", answers="d1", actor="fleet", reason="no such prompt"), control(2, "mode", mode="explore"),
        Override(scope="session:s1", set_at=NOW, mute=True, limits={"identical.warn": 4}, set_by="dana"),
        known_flapping(), notification("unanswered"), notification("recovered", resolves=True),
        notification("terminate"), notification("resumed", resolves=True),
    ]  # fmt: skip
    found = list(entries(Told(NOW, record) for record in records))
    assert [(each.kind, each.id) for each in found] == [
        ("alert", "alert-1"), ("directive", "d1"), ("termination", "x1"), ("termination", "x1"),
        ("control", "s1-refused-1"), ("control", "s1-mode-2"), ("override", "session:s1"), ("known flapping", "x1"),
        ("notification", "unanswered"), ("notification", "recovered"),
    ]  # fmt: skip
    texts = [each.text for each in found]
    assert texts[1] == "inject guidance (seconds=300): Stop."
    assert texts[3].startswith("attempt 2: ")
    assert texts[4] == "refused d1, by fleet: no such prompt"
    assert texts[5] == "mode explore"
    assert texts[6] == "muted, identical.warn = 4, by dana"
    assert found[6].session_id is None


def test_nothing_in_a_record_steers_the_terminal() -> None:
    """Control characters and line ends of names, reasons and texts are gone."""
    bad = "\x1b[2J\r\nnext\u202e"
    records = [alert(reasoning=bad), directive(text=bad), termination(reason=bad), control(1, "resume", reason=bad)]
    for each in entries(Told(NOW, record) for record in records):
        assert each.text.isprintable()


def test_alerts_that_ask_nothing_say_so() -> None:
    """Muted, or only observed."""
    assert "(muted)" in alert_text(alert(muted=True))
    assert "(observed only)" in alert_text(alert(mode="observe"))
    assert alert_text(alert()) == "warn identical: read(a.py) was called 3 times"


def test_the_latest_report_is_given() -> None:
    """Of terminations and notifications, the one that was written last; none where there is none."""
    first, last = termination(report=msgspec.structs.replace(report(), title="first")), notification("recovered")
    assert latest_report([Told(NOW, alert())]) is None
    found = latest_report([Told(NOW, first), Told(NOW, last), Told(NOW, alert())])
    assert found is not None
    assert found.title == report().title


def test_a_report_is_read_without_its_markup() -> None:
    """Headings, tables, code, strong words and escapes of what the escalation writes are what they say."""
    hard = "a\\b *x* `y` @dana http://x.y |z| **w** #1 <b>"
    found = alert(reasoning=hard, detector="identical", limits=alert().limits)
    lines = report_lines(word(found))
    assert hard in lines
    assert any(line.split() == ["task", "t1"] for line in lines)
    assert "    read(a.py)" in lines
    assert "Where to begin" in lines
    assert not [line for line in lines if line.startswith(("|", "#", "```"))]


@pytest.mark.parametrize(
    ("markdown", "wanted"),
    [
        ("**strong** and `code`", ["strong and code"]),
        ("\\*\\*not strong\\*\\*", ["**not strong**"]),
        ("````text\n```\n# no heading\n````\nafter", ["    ```", "    # no heading", "after"]),
        ("# claude-6f0E spins", ["claude-6f0E spins"]),
        ("# ti\x1btle\u200b", ["title"]),
        ("```\nnever closed", ["    never closed"]),
    ],
)
def test_marks_are_taken_for_what_they_are(markdown: str, wanted: list[str]) -> None:
    """Escaped ones are text, code is kept as it stands, control characters go."""
    assert report_lines(msgspec.structs.replace(report(), markdown=markdown)) == wanted


@pytest.mark.parametrize(
    ("seconds", "wanted"), [(-1, "0 s"), (59.9, "59 s"), (60, "1 min"), (3_600, "1 h"), (86_400, "1 d")]
)
def test_ages(seconds: float, wanted: str) -> None:
    """In the largest unit that it fills."""
    assert age(seconds) == wanted
