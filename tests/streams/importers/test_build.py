"""What all formats share: identifiers, long texts, and records that keep to the contract."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

import pytest
from msgspec import UNSET

from detectors import Limits, SessionState, step
from detectors.denial import CLASSES, own_denial
from schemas.common import MAX_ID_CHARS, ErrorInfo
from schemas.decode import decode
from schemas.encode import encode
from schemas.events import ToolCall
from schemas.topics import SESSION_INPUTS
from streams.identity import identifier
from streams.importers import Session, read_path
from streams.importers.build import MAX_RESULT_CHARS, Builder, Call, recording_id
from streams.verdicts.model import CallKey, Verdict
from streams.verdicts.refusal import refusal


def test_long_identifiers_are_cut_and_stay_different():
    """An identifier keeps to the contract's length, and two that differ at the end still differ."""
    one, other = identifier("x" * 400), identifier("x" * 399 + "y")
    assert len(one) == len(other) == MAX_ID_CHARS
    assert one != other
    assert identifier("short") == "short"


def test_a_long_result_is_cut_with_length_and_digest():
    """A huge result keeps its beginning, its whole length and the digest of the whole."""
    text = "é" * (MAX_RESULT_CHARS + 5)
    builder = Builder("s")
    builder.call(Call("t", result=text))
    (event,) = builder.build("f", "x").events
    assert isinstance(event, ToolCall)
    assert event.result == "é" * MAX_RESULT_CHARS
    assert event.result_length == MAX_RESULT_CHARS + 5
    assert event.result_digest == f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def test_a_nameless_tool_gets_a_name():
    """A call whose tool's name is lost is still a call."""
    builder = Builder("s")
    builder.call(Call("  "))
    (event,) = builder.build("f", "x").events
    assert isinstance(event, ToolCall)
    assert event.tool == "(unnamed)"


@pytest.mark.parametrize("status", ["error", "denied", None])
def test_calls_that_our_own_word_kept_from_being_made_are_no_failures(status):
    """However often a paused agent asked: as in live operation, they are told by our text, and count for nothing."""
    paused = refusal(Verdict(action="deny", text="Wait."))

    def alerts(text):
        builder = Builder("s")
        for n in range(20):
            builder.call(Call("Bash", {"command": "make"}, call_id=f"c{n}", result=text, status=status))
        events, state = builder.build("f", "x").events, SessionState()
        found = [alert.level for event in events for alert in step(state, event, Limits()).alerts]
        return [own_denial(event) for event in events if isinstance(event, ToolCall)], found

    assert alerts(paused) == (["other"] * 20, [])
    denials, found = alerts(paused.removeprefix("[Traction] "))
    assert set(denials) == {None}
    assert "terminate" in found


def test_a_repetition_that_was_denied_counts_as_one():
    """Its class is that of a repetition, whatever the recording says of its failure, and its text stays."""
    said = f"PreToolUse:Bash hook error: {refusal(Verdict(action='deny', text='No.', calls=(CallKey('0f'),)))}"
    builder = Builder("s")
    builder.call(Call("Bash", result=said, status="error", error=ErrorInfo(code=1)))
    (event,) = builder.build("f", "x").events
    assert isinstance(event, ToolCall)
    assert (own_denial(event), event.status, event.error, event.result) == (
        "repeat",
        "denied",
        ErrorInfo(type=CLASSES["repeat"]),
        said,
    )


NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)


def test_what_is_settled_is_taken_once_and_the_rest_waits():
    """A call that is done passes one of its batch that still runs; what a person says then waits for both."""
    builder = Builder("s")
    slow = builder.call(Call("slow", call_id="a"))
    quick = builder.call(Call("quick", call_id="b"))
    builder.happened("user_message")
    assert builder.take(NOW) == []
    quick.result, quick.settled = "done", True
    assert [event.event_id for event in builder.take(NOW)] == ["s/b"]
    assert builder.take(NOW) == []
    slow.result, slow.settled = "done", True
    assert [event.event_id for event in builder.take(NOW)] == ["s/a", "s#user_message-0"]
    assert builder.build("f", "x").events == []


def test_an_agent_that_went_on_leaves_a_call_without_its_result():
    """What has no result when the next answer comes is given without one, and its payload is kept no longer."""
    builder = Builder("s")
    call = builder.call(Call("t", {"a": 1}))
    builder.settle()
    (event,) = builder.take(NOW)
    assert isinstance(event, ToolCall)
    assert (event.arguments, event.result) == ({"a": 1}, UNSET)
    assert call.arguments is UNSET


def test_events_taken_apart_have_the_identifiers_and_times_of_those_taken_together():
    """Position, number of the kind and the latest time go on from one taking to the next; an id is given once."""
    whole, parts = Builder("s"), Builder("s")
    taken = []
    first, later = datetime(2026, 3, 2, 8, tzinfo=UTC), datetime(2026, 3, 2, 8, 1, tzinfo=UTC)
    for at, name in ((first, "a"), (None, None), (later, "b"), (None, None)):
        for builder in (whole, parts):
            builder.call(Call("t", at=at, call_id=name, settled=True))
            builder.happened("user_message")
        taken += parts.take(NOW)
    assert taken == whole.build("f", "x").events
    parts.call(Call("t", call_id="a", settled=True))
    assert [event.event_id for event in parts.take(NOW)] == ["s#4"]


def test_events_before_any_time_have_that_of_the_follower():
    """Where a recording tells no time yet, a follower's clock does."""
    builder = Builder("s")
    builder.happened("started")
    assert [event.occurred_at for event in builder.take(NOW)] == [NOW]


def test_the_name_of_a_recording_is_its_content():
    """The same content gives the same name, other content another."""
    assert recording_id("n", b"1") == recording_id("n", b"1") != recording_id("n", b"2")


def test_reading_twice_gives_the_same_events(data):
    """Identifiers and times do not depend on when and how often a recording is read."""
    first, second = ([found for found in read_path(data) if isinstance(found, Session)] for _ in range(2))
    assert first == second


@pytest.mark.parametrize("topic", SESSION_INPUTS, ids=lambda topic: topic.name)
def test_events_keep_to_the_contract(data, topic):
    """What importers make is what the contract's own decoder reads back unchanged."""
    for session in read_path(data):
        assert isinstance(session, Session)
        for event in session.events:
            if isinstance(event, topic.record):
                assert decode(topic, encode(event)) == event
