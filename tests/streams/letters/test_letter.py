"""A letter gives back what came, byte for byte, or says that it cannot; nobody but us can write what counts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import topics
from schemas.decode import MAX_VALUE_BYTES
from schemas.encode import MAX_MESSAGE_CHARS
from schemas.invalid import InvalidEvent
from streams.kafka import KafkaSettings
from streams.letters.letter import (
    ATTEMPT,
    RECEIPT,
    Choice,
    Letter,
    read_letter,
    read_receipt,
    receipt_headers,
    returned_headers,
)
from streams.letters.listing import instant
from streams.letters.returns import BACK, MOST_ATTEMPTS, hindrance, only_for
from streams.received import (
    FOR_GROUP,
    MAX_KEPT_BYTES,
    MAX_KEPT_HEADER_BYTES,
    MAX_KEPT_KEY_BYTES,
    check_header_names,
    meant_for,
)
from tests.streams.letters.kit import BROKEN, as_read, came, refused

KAFKA = KafkaSettings()
CALLS = KAFKA.topic(topics.TOOL_CALLS)
THERE = {KAFKA.topic(topic): 8 for topic in topics.TOPICS}

NAMES = st.binary(max_size=8).map(lambda name: name.decode("utf-8", "surrogateescape"))
HEADERS = st.lists(st.tuples(NAMES, st.none() | st.binary(max_size=12)), max_size=4).map(tuple)
BYTES = st.none() | st.binary(max_size=40)


def letter_of(value: bytes | None = b"{", problem: InvalidEvent = BROKEN, **fields: Any) -> Letter:
    """Give the letter of a record that was refused."""
    topic = fields.pop("topic", CALLS)
    group = fields.pop("group", "g")
    letter = read_letter(as_read(refused(came(topic, value, **fields), problem, group)))
    assert letter is not None
    return letter


@settings(max_examples=300)
@given(key=BYTES, value=BYTES, headers=HEADERS)
def test_bytes_come_back(key: bytes | None, value: bytes | None, headers: tuple[tuple[str, bytes | None], ...]) -> None:
    """Whatever key, value and headers are, they come back as they were, or the letter cannot be put back."""
    problem = BROKEN
    try:
        check_header_names(headers)
    except InvalidEvent as found:
        problem = found
    letter = letter_of(value, problem, key=key, headers=headers)
    why = hindrance(KAFKA, THERE, letter)
    if problem is not BROKEN:
        assert why == "header_names"
    elif key is None and not value:
        assert why == "no_content"
    else:
        assert why is None
        assert (letter.key, letter.value) == (key, value)
        assert returned_headers(letter, group=None) == [*headers, (ATTEMPT, b"1")]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"key": bytes(MAX_KEPT_KEY_BYTES)}, None),
        ({"key": bytes(MAX_KEPT_KEY_BYTES + 1)}, "cut"),
        ({"value": bytes(MAX_VALUE_BYTES)}, None),
        ({"value": bytes(MAX_VALUE_BYTES + 1)}, "too_large"),
        ({"value": bytes(MAX_KEPT_BYTES + 1)}, "cut"),
        ({"headers": (("h", bytes(MAX_KEPT_HEADER_BYTES - 1)),)}, None),
        ({"headers": (("h", bytes(MAX_KEPT_HEADER_BYTES)),)}, "cut"),
        ({"key": None}, None),
        ({"key": None, "value": b""}, "no_content"),
        ({"value": None}, None),
        ({"partition": 7}, None),
        ({"partition": 8}, "partition_gone"),
        ({"topic": KAFKA.topic(topics.OVERRIDES)}, "override"),
        ({"topic": "traction-task-events"}, "internal"),
        ({"topic": KAFKA.topic(topics.DEAD_LETTERS)}, "internal"),
        ({"topic": KAFKA.topic(topics.TERMINATIONS)}, "internal"),
        ({"headers": ((ATTEMPT, str(MOST_ATTEMPTS - 1).encode()),)}, None),
        ({"headers": ((ATTEMPT, str(MOST_ATTEMPTS).encode()),)}, "too_often"),
        ({"headers": ((ATTEMPT, b"-9"),)}, None),
        ({"headers": ((ATTEMPT, b"9" * 5_000),)}, None),
        ({"headers": ((ATTEMPT, None),)}, None),
    ],
)
def test_what_cannot_be_put_back(fields: dict[str, Any], why: str | None) -> None:
    """Each hindrance is found where it begins and not one short of it."""
    assert hindrance(KAFKA, THERE, letter_of(**fields)) == why


def test_a_topic_that_is_gone() -> None:
    """A record whose topic is not there has no way back."""
    there = {name: count for name, count in THERE.items() if name != CALLS}
    assert hindrance(KAFKA, there, letter_of()) == "topic_gone"
    assert hindrance(KAFKA, THERE, letter_of()) is None


def test_being_put_back_often_is_overruled_by_name() -> None:
    """--again puts back what was refused as often as is allowed, and nothing else that is hindered."""
    assert hindrance(KAFKA, THERE, letter_of(headers=((ATTEMPT, b"99"),)), again=True) is None
    assert hindrance(KAFKA, THERE, letter_of(key=None, value=None), again=True) == "no_content"


def test_all_topics_that_records_go_back_to() -> None:
    """Inputs, alerts and notifications, and no topic that is compacted, where an old record would hide a newer one."""
    assert {topic.cleanup for topic in BACK} == {"delete"}
    for topic in BACK:
        assert hindrance(KAFKA, THERE, letter_of(topic=KAFKA.topic(topic))) is None


def test_attempts_are_counted_in_one_header() -> None:
    """What comes again says how often; the header of the time before is gone."""
    once = returned_headers(letter_of(headers=(("x", b"1"),)), group=None)
    assert once == [("x", b"1"), (ATTEMPT, b"1")]
    again = letter_of(headers=tuple(once))
    assert again.attempts == 1
    assert returned_headers(again, group=None) == [("x", b"1"), (ATTEMPT, b"2")]


def test_a_notification_is_for_the_sink_that_failed() -> None:
    """Put back it names that group, every other one leaves it out, and one that was never put back is for all."""
    letter = letter_of(topic=KAFKA.topic(topics.NOTIFICATIONS), group="traction-escalation-sink-chat")
    head = returned_headers(letter, group=only_for(KAFKA, letter))
    assert (FOR_GROUP, b"traction-escalation-sink-chat") in head
    assert meant_for(head, "traction-escalation-sink-chat")
    assert not meant_for(head, "traction-escalation-sink-pager")
    assert meant_for([("x", None)], "anybody")
    assert only_for(KAFKA, letter_of()) is None


def test_a_receipt_is_ours_alone() -> None:
    """It is read as a receipt and as no letter; a producer that writes its header gets an ordinary letter."""
    letter = letter_of()
    receipt = came("agent.dead-letters", b"", key=None, partition=3, offset=40, headers=receipt_headers(letter, "dana"))
    assert read_receipt(receipt) == 12
    assert read_letter(receipt) is None
    forged = as_read(refused(came(CALLS, headers=((RECEIPT, b"3"), ("x", b"1")))))
    assert read_receipt(forged) is None
    found = read_letter(forged)
    assert found is not None
    assert found.headers == [("x", b"1")]


@pytest.mark.parametrize("told", [b"40", b"41", b"-1", b"x", b"", b"9" * 400, None])
def test_a_receipt_is_of_an_earlier_offset(told: bytes | None) -> None:
    """One that names its own place or a later one, or no place, says nothing."""
    assert read_receipt(came("agent.dead-letters", b"", offset=40, headers=((RECEIPT, told),))) is None
    assert read_receipt(came("agent.dead-letters", b"", offset=40, headers=((RECEIPT, b"39"),))) == 39


@pytest.mark.parametrize("name", ["topic", "partition", "offset", "timestamp", "group", "stage", "reason", "message"])
def test_what_is_no_letter(name: str) -> None:
    """A record that lacks one of our headers, or has another value in it than we write, is none of ours."""
    headers = refused(came(CALLS)).headers
    without = tuple(each for each in headers if each[0] != f"__traction.errors.{name}")
    assert read_letter(came("agent.dead-letters", headers=without)) is None
    if name in {"partition", "offset", "timestamp"}:
        odd = (*without, (f"__traction.errors.{name}", b"1e3"))
        assert read_letter(came("agent.dead-letters", headers=odd)) is None


def test_a_forged_letter_ends_no_command() -> None:
    """With a header name that is not UTF-8, or a text longer than ours, which could fill the memory, it is not ours."""
    headers = tuple(refused(came(CALLS)).headers)
    for name in ("topic", "group", "stage", "reason", "message"):
        for size in (MAX_MESSAGE_CHARS, MAX_MESSAGE_CHARS + 1):
            long = (*headers, (f"__traction.errors.{name}", b"x" * size))
            found = read_letter(came("agent.dead-letters", headers=long))
            assert (found is not None) == (size == MAX_MESSAGE_CHARS), name
    for name in ("\udcff", "\xff"):
        found = read_letter(came("agent.dead-letters", headers=((name, b"1"), *headers)))
        assert (found is not None) == (name == "\xff")


def test_choosing() -> None:
    """Each choice lets through what fits it and nothing else."""
    letter = letter_of()
    when = instant(letter.at_ms)
    for fits, others in (
        ({"topics": (CALLS,)}, {"topics": ("agent.reviews",)}),
        ({"reasons": ("detector_error", "empty")}, {"reasons": ("empty",)}),
        ({"stages": ("detect",)}, {"stages": ("decode",)}),
        ({"groups": ("g",)}, {"groups": ("h",)}),
        ({"since": when}, {"since": instant(letter.at_ms + 1)}),
        ({"names": {(3, 12)}}, {"names": {(3, 11), (12, 3)}}),
    ):
        assert Choice(**fits).fits(letter)
        assert not Choice(**others).fits(letter)
    assert Choice().fits(letter)


@pytest.mark.parametrize("at_ms", [10**17, -(10**17), 10**14 * 3])
def test_times_beyond_the_calendar(at_ms: int) -> None:
    """Whatever time a producer gave its record, it is no reason to fail."""
    assert instant(at_ms) is None
