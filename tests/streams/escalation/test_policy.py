"""The policy: what follows from an alert, whatever its fields say."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas import topics
from schemas.decode import decode
from schemas.encode import encode
from schemas.outputs import Alert, Directive, Evidence, KnownFlapping, Level, LimitReached, Mode, Strategy, Termination
from streams.escalation.policy import FALLBACK, MOST_TEXT, PolicySettings, output_id, respond

if TYPE_CHECKING:
    from tests.streams.escalation.conftest import MakeAlert

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SETTINGS = PolicySettings(control_topic="agent.control")

texts = st.text(max_size=300)
instants = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
alerts = st.builds(
    Alert,
    alert_id=st.text(min_size=1, max_size=64),
    level=st.sampled_from(get_args(Level)),
    scope=st.sampled_from(["session", "task"]),
    mode=st.sampled_from(get_args(Mode)),
    muted=st.booleans(),
    detector=texts,
    loop_id=texts,
    session_id=st.text(min_size=1, max_size=256),
    task_id=st.text(min_size=1, max_size=256),
    seq=st.integers(0, 2**40),
    occurred_at=instants,
    first_seen=instants,
    count=st.floats(0, 1e6),
    limits=st.lists(st.builds(LimitReached, name=texts, value=st.floats(0, 1e6), layer=texts), max_size=2).map(tuple),
    evidence=st.builds(
        Evidence,
        event_ids=st.lists(texts, max_size=20).map(tuple),
        calls=st.lists(texts, max_size=30).map(tuple),
        error=st.none() | texts,
        attempt_ids=st.lists(texts, max_size=20).map(tuple),
        derived=st.booleans(),
        word_similarity=st.none() | st.floats(0, 1),
        diff_similarity=st.none() | st.floats(0, 1),
    ),
    pattern=st.none() | texts,
    suggested_strategy=st.none() | st.sampled_from(get_args(Strategy)),
    reasoning=texts,
    guidance=st.text(max_size=3 * MOST_TEXT),
    tokens_wasted=st.integers(0, 2**40),
    cost_wasted=st.none() | st.floats(0, 1e6),
)


@pytest.mark.parametrize("level", ["notice", "warn"])
def test_a_notice_or_warning_becomes_guidance_that_expires(alert: MakeAlert, level: str) -> None:
    """It leads to one directive: the detector's guidance, its expiry, and how to answer it."""
    (directive,) = respond(alert(level=level, session_id="s9", guidance="Stop.\nThink."), NOW, SETTINGS)
    assert isinstance(directive, Directive)
    assert directive.action == "inject_guidance"
    assert (directive.session_id, directive.text) == ("s9", "Stop.\nThink.")
    assert (directive.issued_at, directive.expires_at) == (NOW, NOW + timedelta(minutes=15))
    assert directive.acknowledge.topic == "agent.control"
    assert directive.acknowledge.answers == directive.directive_id
    assert directive.acknowledge.actions == ("obeyed", "refused", "ended")


def test_a_termination_becomes_a_verdict_and_a_listed_task(alert: MakeAlert) -> None:
    """A terminate leads to one termination with a report, and one entry for its task that expires after a week."""
    termination, entry = respond(
        alert(level="terminate", count=5.0, task_id="t7", evidence=Evidence(calls=("ls",), error="boom")), NOW, SETTINGS
    )
    assert isinstance(termination, Termination)
    assert termination.acknowledge.answers == termination.termination_id
    assert (termination.report.tried, termination.report.times) == (("ls",), 5.0)
    assert termination.report.recurring_failure == "boom"
    assert termination.expires_at is None
    assert isinstance(entry, KnownFlapping)
    assert (entry.task_id, entry.termination_id) == ("t7", termination.termination_id)
    assert entry.expires_at - entry.since == timedelta(days=7)


def test_a_spinning_task_asks_it_of_the_session_that_tried_last(alert: MakeAlert) -> None:
    """The verdict is that session's, the entry is the task's and says in which way it flaps."""
    found = alert(level="terminate", scope="task", session_id="s9", task_id="t7", pattern="fix_break_oscillation")
    termination, entry = respond(found, NOW, SETTINGS)
    assert isinstance(termination, Termination)
    assert isinstance(entry, KnownFlapping)
    assert (termination.session_id, termination.task_id) == ("s9", "t7")
    assert (entry.task_id, entry.session_id, entry.pattern) == ("t7", "s9", "fix_break_oscillation")
    (directive,) = respond(alert(scope="task", session_id="s9"), NOW, SETTINGS)
    assert isinstance(directive, Directive)
    assert directive.session_id == "s9"


def test_recoveries_ask_nothing_of_anyone(alert: MakeAlert) -> None:
    """What only informs leads to no output."""
    assert respond(alert(level="recovered"), NOW, SETTINGS) == ()


@pytest.mark.parametrize("level", ["notice", "warn", "terminate"])
@pytest.mark.parametrize("fields", [{"mode": "observe"}, {"muted": True}, {"mode": "warn", "muted": True}])
def test_muted_and_observed_alerts_ask_nothing_of_anyone(alert: MakeAlert, level: str, fields: dict[str, Any]) -> None:
    """Neither an observed nor a muted alert leads to an output, however grave it is."""
    assert respond(alert(level=level, **fields), NOW, SETTINGS) == ()


def test_mode_warn_never_terminates(alert: MakeAlert) -> None:
    """In mode warn a terminate becomes guidance, and its task is not listed."""
    (directive,) = respond(alert(level="terminate", mode="warn"), NOW, SETTINGS)
    assert isinstance(directive, Directive)
    assert directive.action == "inject_guidance"


def test_an_alert_without_guidance_gets_ours(alert: MakeAlert) -> None:
    """A directive always tells the agent something."""
    (directive,) = respond(alert(guidance=" \x00\n"), NOW, SETTINGS)
    assert isinstance(directive, Directive)
    assert directive.text == FALLBACK


def test_expiries_are_settings(alert: MakeAlert) -> None:
    """Whoever runs it decides how long guidance and entries hold."""
    ours = PolicySettings("c", guidance_expires=timedelta(seconds=1), flapping_expires=timedelta(hours=1))
    (directive,) = respond(alert(), NOW, ours)
    _, entry = respond(alert(level="terminate"), NOW, ours)
    assert isinstance(directive, Directive)
    assert isinstance(entry, KnownFlapping)
    assert directive.expires_at == NOW + timedelta(seconds=1)
    assert entry.expires_at == NOW + timedelta(hours=1)


@given(alert=alerts, later=st.timedeltas(timedelta(), timedelta(days=30)))
def test_the_same_alert_gives_the_same_ids(alert: Alert, later: timedelta) -> None:
    """Whenever an alert is answered again, its outputs have the ids they had, so that readers can drop them."""

    def ids(now: datetime) -> list[str]:
        return [
            output.directive_id if isinstance(output, Directive) else output.termination_id
            for output in respond(alert, now, SETTINGS)
        ]

    assert ids(NOW) == ids(NOW + later)


@given(first=st.text(min_size=1), second=st.text(min_size=1))
def test_different_alerts_give_different_ids(first: str, second: str) -> None:
    """Ids of two alerts, or of two kinds of output for one alert, are never equal."""
    assert (output_id("x", first) == output_id("x", second)) == (first == second)
    assert output_id("termination", first) != output_id("inject_guidance", first)


@given(alert=alerts)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_outputs_are_valid_records_and_harmless_text(alert: Alert) -> None:
    """Whatever an alert quotes: outputs keep the contract, their text is capped and has no control characters."""
    for output in respond(alert, NOW, SETTINGS):
        topic = {
            Directive: topics.DIRECTIVES,
            Termination: topics.TERMINATIONS,
            KnownFlapping: topics.KNOWN_FLAPPING,
        }[type(output)]
        assert decode(topic, encode(output)) == output
        for text in said(output):
            assert not [char for char in text if char != "\n" and unicodedata.category(char) == "Cc"]
        if isinstance(output, Directive):
            assert 0 < len(output.text) <= MOST_TEXT
        if isinstance(output, Termination):
            assert "\n" not in output.reason
            assert len(encode(output)) < 200_000


def said(output: Directive | Termination | KnownFlapping) -> list[str]:
    """List the words of an output that people or agents read."""
    if isinstance(output, Directive):
        return [output.text]
    if isinstance(output, KnownFlapping):
        return [output.reason]
    report = output.report
    return [output.reason, report.title, *report.tried, report.recurring_failure or "", report.look_at, report.markdown]
