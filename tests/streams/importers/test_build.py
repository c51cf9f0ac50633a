"""What all formats share: identifiers, long texts, and records that keep to the contract."""

from __future__ import annotations

import hashlib

import pytest

from schemas.common import MAX_ID_CHARS
from schemas.decode import decode
from schemas.encode import encode
from schemas.events import ToolCall
from schemas.topics import SESSION_INPUTS
from streams.importers import Session, read_path
from streams.importers.build import MAX_RESULT_CHARS, Builder, Call, identifier, recording_id


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
