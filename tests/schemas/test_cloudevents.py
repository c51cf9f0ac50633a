"""CloudEvents 1.0 are read as the CNCF's own package writes them, and what we write, that package reads."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from cloudevents.core.bindings.kafka import (
    KafkaMessage,
    from_kafka_event,
    to_binary_event,
    to_structured_event,
)
from cloudevents.core.exceptions import CloudEventValidationError
from cloudevents.core.v1.event import CloudEvent
from hypothesis import given
from hypothesis import strategies as st

from schemas.decode import InvalidEvent, decode
from schemas.encode import encode, headers, record_key
from schemas.events import Override, ToolCall
from schemas.testing import tool_call
from schemas.topics import ALERTS, OVERRIDES, TOOL_CALLS

AT = datetime(2026, 11, 30, 10, 0, 0, 250_000, tzinfo=UTC)
DATA = {"tool": "Bash", "arguments": {"command": "ls"}, "result": "a\nb", "status": "ok"}
COMPLETE = {**DATA, "event_id": "e1", "session_id": "s1", "occurred_at": "2026-11-30T10:00:00.250000Z"}
MODES = pytest.mark.parametrize("write", [to_binary_event, to_structured_event])


def attributes(**more: Any) -> dict[str, Any]:
    """Give the attributes of a CloudEvent."""
    return {"type": "traction.tool-call.v1", "source": "/hooks/test", "id": "e1", "subject": "s1", "time": AT, **more}


def read(message: KafkaMessage, topic: Any = TOOL_CALLS) -> Any:
    """Read a message that the package made."""
    return decode(topic, message.value, list(message.headers.items()))


def envelope(**changes: Any) -> bytes:
    """Give a structured event; a change to None takes the member away."""
    members = {**attributes(time="2026-11-30T10:00:00.25Z"), "specversion": "1.0", "data": DATA, **changes}
    return json.dumps({name: value for name, value in members.items() if value is not None}).encode()


def refusal(value: bytes | None, headers: Any, topic: Any = TOOL_CALLS) -> tuple[str, str | None]:
    """Give reason and field of the refusal of what must be refused."""
    with pytest.raises(InvalidEvent) as caught:
        decode(topic, value, headers)
    return caught.value.reason, caught.value.field


STRUCTURED = [("content-type", b"application/cloudevents+json; charset=UTF-8")]
BINARY = {
    "ce_specversion": b"1.0",
    "ce_id": b"e1",
    "ce_source": b"/hooks/test",
    "ce_type": b"traction.tool-call.v1",
    "ce_subject": b"s1",
    "ce_time": b"2026-11-30T10:00:00.25Z",
}


@MODES
def test_attributes_fill_what_the_data_leave_out(write: Any) -> None:
    """An event whose identifier, time and session are attributes is the same record as a plain one."""
    assert read(write(CloudEvent(attributes(), dict(DATA)))) == decode(TOOL_CALLS, json.dumps(COMPLETE).encode())


@MODES
def test_data_win_over_attributes(write: Any) -> None:
    """Where both say something, the record itself is believed."""
    data = {**COMPLETE, "event_id": "own", "session_id": "own-session", "occurred_at": "2026-01-01T00:00:00Z"}

    event = read(write(CloudEvent(attributes(), dict(data))))

    assert event == decode(TOOL_CALLS, json.dumps(data).encode())


@MODES
@pytest.mark.parametrize(
    ("field", "own"), [("event_id", "own"), ("session_id", "own"), ("occurred_at", "2026-01-01T00:00:00Z")]
)
def test_each_field_of_the_data_wins_by_itself(write: Any, field: str, own: str) -> None:
    """Data that say one of the three and leave out the others keep theirs and get the rest."""
    event = read(write(CloudEvent(attributes(), {**DATA, field: own})))

    assert event == decode(TOOL_CALLS, json.dumps({**COMPLETE, field: own}).encode())


@MODES
def test_null_in_the_data_is_filled_as_well(write: Any) -> None:
    """An encoder that writes null for what it leaves to the attributes is understood."""
    assert read(write(CloudEvent(attributes(), {**DATA, "session_id": None, "task": None}))).session_id == "s1"


@MODES
def test_overrides_take_scope_and_time(write: Any) -> None:
    """A record with other names for its key and time is filled likewise."""
    event = read(write(CloudEvent(attributes(subject="repo:acme/shop"), {"mute": True})), OVERRIDES)

    assert event == Override(scope="repo:acme/shop", set_at=AT, mute=True)


def test_a_structured_event_is_known_by_its_content() -> None:
    """Bridges drop headers; the event is still read."""
    assert decode(TOOL_CALLS, envelope()) == decode(TOOL_CALLS, envelope(), STRUCTURED)
    assert decode(TOOL_CALLS, envelope(), [("content-type", b"application/json")]) == decode(TOOL_CALLS, envelope())


def test_the_content_type_decides_before_headers() -> None:
    """A structured event whose attributes are repeated as headers is structured, as the binding says."""
    event = decode(TOOL_CALLS, envelope(), [*BINARY.items(), ("content-type", b"Application/CloudEvents")])

    assert event == decode(TOOL_CALLS, envelope())


def test_headers_may_be_spelled_in_any_case_and_the_last_counts() -> None:
    """Header names are compared without case, and a repeated one is the later one."""
    spelled = [("ce_id", b"first"), *((name.upper(), value) for name, value in BINARY.items()), ("Ce_Id", b"last")]

    event = decode(TOOL_CALLS, json.dumps(DATA).encode(), spelled)

    assert isinstance(event, ToolCall)
    assert event.event_id == "last"


def test_a_plain_record_may_mention_cloudevents() -> None:
    """A record that is complete is not taken for an envelope, whatever its own arguments hold."""
    event = decode(TOOL_CALLS, json.dumps({**COMPLETE, "specversion": "0.3", "arguments": {"specversion": 1}}).encode())

    assert isinstance(event, ToolCall)
    assert event.arguments == {"specversion": 1}


def test_other_headers_are_nobodys_business() -> None:
    """Trace context, foreign headers and extensions that are not UTF-8 do not matter."""
    others = [("traceparent", b"\xff"), ("content-type", b"\xfe"), ("x", None), ("ce_ext", b"\xff"), ("ce_id", None)]

    plain = decode(TOOL_CALLS, json.dumps(COMPLETE).encode(), others)
    binary = decode(TOOL_CALLS, json.dumps(COMPLETE).encode(), [*others, *BINARY.items()])

    assert plain == binary == decode(TOOL_CALLS, json.dumps(COMPLETE).encode())


REFUSED_ENVELOPES = {
    "version 0.3": (envelope(specversion="0.3"), ("cloudevents_version", "specversion")),
    "version as a number": (envelope(specversion=1.0), ("cloudevents_version", "specversion")),
    "no version": (envelope(specversion=None), ("cloudevents_version", "specversion")),
    "no id": (envelope(id=None), ("cloudevents_attribute", "id")),
    "empty source": (envelope(source=""), ("cloudevents_attribute", "source")),
    "type as a number": (envelope(type=7), ("cloudevents_attribute", "type")),
    "subject as a list": (envelope(subject=["s1"]), ("cloudevents_attribute", "subject")),
    "no data": (envelope(data=None), ("cloudevents_data", "data")),
    "data null": (envelope().replace(json.dumps(DATA).encode(), b"null"), ("cloudevents_data", "data")),
    "data_base64": (envelope(data=None, data_base64="e30="), ("cloudevents_data", "data_base64")),
    "data as JSON in a text": (envelope(data=json.dumps(COMPLETE)), ("wrong_type", "data")),
    "data without tool": (envelope(data={}), ("missing_field", "data.tool")),
    "wrong type in data": (envelope(data={**DATA, "sequence": "1"}), ("wrong_type", "data.sequence")),
    "no time at all": (envelope(time=None), ("missing_field", "data.occurred_at")),
    "time that is none": (envelope(time="soon"), ("invalid_value", "time")),
    "time beyond reason": (envelope(time="9999-12-31T23:59:59Z"), ("invalid_value", "occurred_at")),
    "id too long": (envelope(id="x" * 257), ("invalid_value", "id")),
    "array": (b"[" + envelope() + b"]", ("cloudevents_version", "specversion")),
    "cut short": (envelope()[:-1], ("not_json", None)),
    "not UTF-8": (envelope().replace(b"Bash", b"\xff"), ("not_utf8", None)),
    "deep": (envelope(data=None, extension=1).replace(b": 1}", b":" + b"[" * 100_000), ("too_deep", None)),
}


@pytest.mark.parametrize("case", REFUSED_ENVELOPES)
def test_structured_events_that_cannot_be_read_are_refused(case: str) -> None:
    """Each fault of an envelope has its reason, and the field is named where the producer wrote it."""
    value, expected = REFUSED_ENVELOPES[case]

    assert refusal(value, STRUCTURED) == expected


REFUSED_HEADERS: dict[str, tuple[dict[str, bytes | None], tuple[str, str]]] = {
    "version 0.3": ({"ce_specversion": b"0.3"}, ("cloudevents_version", "ce_specversion")),
    "no source": ({"ce_source": None}, ("cloudevents_attribute", "ce_source")),
    "empty id": ({"ce_id": b""}, ("cloudevents_attribute", "ce_id")),
    "id not UTF-8": ({"ce_id": b"\xff"}, ("not_utf8", "ce_id")),
    "subject not UTF-8": ({"ce_subject": b"\xc3"}, ("not_utf8", "ce_subject")),
    "no subject": ({"ce_subject": None}, ("missing_field", "session_id")),
    "subject too long": ({"ce_subject": b"s" * 257}, ("invalid_value", "ce_subject")),
    "time without offset": ({"ce_time": b"2026-11-30T10:00:00"}, ("invalid_value", "ce_time")),
    "a batch": ({"content-type": b"application/cloudevents-batch+json"}, ("cloudevents_format", "content-type")),
    "Avro": ({"content-type": b"application/cloudevents+avro"}, ("cloudevents_format", "content-type")),
    "structured by mistake": (
        {"content-type": b"application/cloudevents+json"},
        ("cloudevents_version", "specversion"),
    ),
}


@pytest.mark.parametrize("case", REFUSED_HEADERS)
def test_binary_events_that_cannot_be_read_are_refused(case: str) -> None:
    """Each fault of the headers has its reason, and the header is named."""
    changes, expected = REFUSED_HEADERS[case]

    assert refusal(json.dumps(DATA).encode(), list({**BINARY, **changes}.items())) == expected


@pytest.mark.parametrize("value", [None, b""])
def test_a_binary_event_without_data_is_no_record(value: bytes | None) -> None:
    """A tombstone with CloudEvents headers is still a tombstone."""
    assert refusal(value, list(BINARY.items())) == ("empty", None)


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=20)


@given(identifier=TEXTS, subject=TEXTS, at=st.datetimes(datetime(1971, 1, 1), datetime(2999, 1, 1)), data=st.data())  # noqa: DTZ001 - made aware below
def test_both_modes_agree_with_the_package(identifier: str, subject: str, at: datetime, data: st.DataObject) -> None:
    """Whatever the attributes are, either mode gives what the package reads from the same message."""
    members = attributes(id=identifier, subject=subject, time=at.replace(tzinfo=UTC))
    write = data.draw(st.sampled_from([to_binary_event, to_structured_event]))
    message = write(CloudEvent(members, dict(DATA)))

    ours, theirs = read(message), from_kafka_event(message)

    assert (ours.event_id, ours.session_id) == (theirs.get_id(), theirs.get_subject())
    assert ours.occurred_at == theirs.get_time()
    assert {"tool": ours.tool, "arguments": ours.arguments, "result": ours.result, "status": ours.status} == DATA


@pytest.mark.parametrize("name", ["ce_source", "ce_type"])
def test_what_the_package_refuses_we_refuse(name: str) -> None:
    """An attribute that CloudEvents requires is required here."""
    changed = {header: value for header, value in BINARY.items() if header != name}

    with pytest.raises(CloudEventValidationError):
        from_kafka_event(KafkaMessage(headers=changed, key=None, value=json.dumps(DATA).encode()))
    assert refusal(json.dumps(DATA).encode(), list(changed.items())) == ("cloudevents_attribute", name)


def test_what_we_write_the_package_reads() -> None:
    """The headers of a record are a CloudEvent in binary mode, its data the record."""
    record = tool_call(7, "Bash", {"command": "ls"}, session_id="s-é")

    message = KafkaMessage(
        headers=dict(headers(record, source="/traction/replay", traceparent=b"00-0-0-00")),
        key=record_key(record),
        value=encode(record),
    )
    event = from_kafka_event(message)

    assert (event.get_id(), event.get_source(), event.get_type()) == (
        record.event_id,
        "/traction/replay",
        "traction.tool-call.v1",
    )
    assert (event.get_subject(), event.get_time()) == ("s-é", record.occurred_at)
    assert event.get_data() == json.loads(encode(record))
    assert read(message) == record


def test_published_records_are_read_by_the_same_code() -> None:
    """The escalation consumer reads alerts as the worker reads events."""
    with pytest.raises(InvalidEvent, match="alert_id: required and missing"):
        decode(ALERTS, b"{}")
