"""What people and orchestrators decide: it reaches the session and its task, and is counted where it takes effect."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast, get_args

import pytest

from detectors import TaskEvent, decode_task
from detectors.limits import DetectorName
from schemas import topics
from schemas.common import Task
from schemas.decode import decode
from schemas.events import Control, ControlAction, Review
from schemas.outputs import Alert
from tests.kit import BEGIN, tool_call
from tests.streams.worker.conftest import SETTINGS, Bench, task_event

if TYPE_CHECKING:
    from collections.abc import Iterable

    from schemas.events import SessionInput
    from streams.worker.outgoing import Outgoing
    from tests.streams.worker.conftest import MakeRecord

OWN = frozenset({"mode", "force"})
"""What concerns the session alone."""


def said(action: str, number: int = 100, **fields: Any) -> Control:
    """Build a decision about a session, so many seconds after the beginning."""
    defaults: dict[str, Any] = {
        "event_id": f"{action}:{number}",
        "session_id": "s",
        "occurred_at": BEGIN + timedelta(seconds=number),
    }
    return Control(**defaults | {"action": action} | fields)


def played(bench: Bench, record: MakeRecord, events: Iterable[SessionInput]) -> list[Outgoing]:
    """Apply events, and what they mean to their tasks after each, as it comes back; give all that was written."""
    written: list[Outgoing] = []
    for event in events:
        bench.apply([record(event)])
        new = cast("list[Outgoing]", taken.outgoing) if (taken := bench.commit()) else []
        for out in (out for out in new if out.topic == SETTINGS.task_events):
            bench.apply([record(task_event(), key=out.key, value=out.value, headers=tuple(out.headers))])
            later = bench.commit()
            written += later.outgoing
        written += new
    return written


def alerts(written: list[Outgoing]) -> list[Alert]:
    """Give the alerts of what was written."""
    found = [decode(topics.ALERTS, out.value) for out in written if out.topic == SETTINGS.alerts]
    return cast("list[Alert]", found)


@pytest.mark.parametrize("action", get_args(ControlAction))
def test_every_word_reaches_the_task_that_it_names(bench: Bench, record: MakeRecord, action: str) -> None:
    """Also of a session that was never seen; what concerns the session alone does not. Each is counted."""
    (*told,) = played(bench, record, [said(action, task=Task(id="t7"), answers="a1", actor="mira")])
    events = [(out.key, decode_task(out.value or b"", TaskEvent)) for out in told]
    wanted = [] if action in OWN else [(b"t7", action, "s", "a1", "mira")]
    assert [(key, event.word, event.session_id, event.answers, event.actor) for key, event in events] == wanted
    assert bench.value("traction_control_total", action=action) == 1
    assert bench.value("traction_task_events_total", kind="word") == len(wanted)


def test_a_decision_that_changes_nothing_is_not_counted(bench: Bench, record: MakeRecord) -> None:
    """It came before, or is much too late."""
    late = said("resume", occurred_at=BEGIN - timedelta(days=1), event_id="late")
    bench.apply(map(record, [said("resume"), said("resume"), late]))
    assert bench.value("traction_control_total", action="resume") == 1


def test_all_actions_and_detectors_are_counted_from_nothing(bench: Bench) -> None:
    """A query sees the first of them."""
    page = {(sample.name, *sample.labels.values()) for each in bench.registry.collect() for sample in each.samples}
    assert {("traction_control_total", action) for action in get_args(ControlAction)} <= page
    assert {("traction_false_alarms_total", name) for name in get_args(DetectorName)} <= page


def test_a_false_alarm_of_a_session_is_counted_once_by_its_detector(bench: Bench, record: MakeRecord) -> None:
    """However often it is said; one that answers nothing is none, and the loop is quiet."""
    same = [tool_call("s", number, arguments={"path": "a"}, result="the same") for number in range(9)]
    (alert,) = alerts(played(bench, record, same[:3]))
    words = [said("false_alarm", number, answers=alert.alert_id) for number in range(3)]
    nothing = said("false_alarm", 50, answers="no such alert")
    assert alerts(played(bench, record, [*words, nothing, *same[3:]])) == []
    assert bench.value("traction_false_alarms_total", detector=alert.detector) == 1
    assert bench.value("traction_control_total", action="false_alarm") == 4


def test_a_false_alarm_of_a_task_is_counted_there(bench: Bench, record: MakeRecord) -> None:
    """Said to another session of the task; the word goes by way of the task's topic, with its time."""

    def rounds(first: int) -> list[SessionInput]:
        return [
            Review(
                event_id=f"r{number}",
                session_id="s",
                occurred_at=BEGIN + timedelta(hours=number),
                task=Task(id="t"),
                pull_request="o/r#1",
                author="agent",
                verdict="changes_requested",
            )
            for number in range(first, first + 3)
        ]

    written = played(bench, record, rounds(0))
    (alert,) = alerts(written)
    assert {out.key for out in written if out.topic == SETTINGS.alerts} == {b"t"}
    end = BEGIN + timedelta(hours=5, minutes=30)
    word = said("false_alarm", 10_800, session_id="other", task=Task(id="t"), answers=alert.alert_id, expires_at=end)
    assert alerts(played(bench, record, [word, *rounds(3)])) == []
    assert bench.value("traction_false_alarms_total", detector="ping_pong") == 1
    assert [alert.level for alert in alerts(played(bench, record, rounds(6)))][:1] == ["warn"]


def test_alerts_of_a_session_go_by_the_task_that_it_has_then(bench: Bench, record: MakeRecord) -> None:
    """So that all that is said of a task, over all its sessions, is in one partition and in order."""
    for task, session in ((None, "s"), ("t", "s"), ("t", "u"), ("v", "u")):
        calls = [
            tool_call(
                session, number, event_id=f"{task}{session}{number}", arguments={"path": f"{task}"}, result="same"
            )
            for number in range(3)
        ]
        if task:
            calls[0] = tool_call(
                session, 0, event_id=f"{task}{session}", task=Task(id=task), arguments={"path": task}, result="same"
            )
        written = played(bench, record, calls)
        (out,) = [out for out in written if out.topic == SETTINGS.alerts]
        assert (out.key, alerts([out])[0].session_id) == ((task or session).encode(), session)
