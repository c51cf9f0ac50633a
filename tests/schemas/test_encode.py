"""What Traction publishes carries its version, its key and its CloudEvents attributes; dead letters say why."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest

import schemas
from schemas.decode import decode
from schemas.encode import MAX_MESSAGE_CHARS, dead_letter_headers, encode, headers, record_key
from schemas.events import Override, ToolCall
from schemas.records import BY_STRUCT
from schemas.testing import at, tool_call
from schemas.topics import TOPICS

HERE = Path(schemas.__file__).parent
PUBLISHED = [topic for topic in TOPICS if topic.direction == "out" and topic.record is not None]
WHERE: dict[str, Any] = {"topic": "agent.tool-calls", "partition": 3, "offset": 42, "timestamp_ms": 1796030145123}
WHY: dict[str, Any] = {"group": "traction", "stage": "decode", "reason": "not_json", "message": "not JSON; send JSON"}


def example(name: str) -> Any:
    """Give an example of a published record."""
    struct = next(struct for struct, kind in BY_STRUCT.items() if name.startswith(f"{kind.name}/"))
    topic = next(topic for topic in TOPICS if topic.record is struct)
    return decode(topic, (HERE / "examples" / f"{name}.json").read_bytes())


def validator(file: str) -> Any:
    """Give the independent validator of a schema."""
    return jsonschema_rs.Draft202012Validator(json.loads((HERE / "json" / file).read_text("utf-8")))


@pytest.mark.parametrize("topic", PUBLISHED, ids=lambda topic: topic.name)
def test_published_records_are_what_their_schema_says(topic: Any) -> None:
    """Readers that validate can: each example, once read and written again, still is what the schema says."""
    kind = BY_STRUCT[topic.record]
    for path in sorted((HERE / "examples" / kind.name).iterdir()):
        written = encode(decode(topic, path.read_bytes()))
        validator(kind.schema_file).validate(json.loads(written))


@pytest.mark.parametrize("topic", PUBLISHED, ids=lambda topic: topic.name)
def test_published_records_carry_their_version(topic: Any) -> None:
    """The version is written although it is the default, so that a reader need not guess it."""
    record = next((HERE / "examples" / BY_STRUCT[topic.record].name).iterdir())

    assert json.loads(encode(decode(topic, record.read_bytes())))["schema_version"] == "1.0"


def test_events_carry_their_version() -> None:
    """What the importers and emitters send says by which version, too."""
    override = Override(scope="repo:acme/shop", set_at=at(0))

    assert json.loads(encode(tool_call(1)))["schema_version"] == "1.0"
    assert json.loads(encode(override)) == {
        "scope": "repo:acme/shop",
        "set_at": "2026-01-01T00:00:00Z",
        "schema_version": "1.0",
    }


def test_keys_are_what_the_topics_say() -> None:
    """Each record goes to the partition of what it is about."""
    assert record_key(tool_call(1, session_id="sé")) == "sé".encode()
    assert record_key(Override(scope="task:T-1", set_at=at(0))) == b"task:T-1"
    assert record_key(example("alert/warn")) == b"SHOP-412"
    assert record_key(example("alert/task-notice")) == b"SHOP-412"
    assert record_key(example("directive/inject-guidance")) == b"claude-6f0e2a91"
    assert record_key(example("termination/identical-loop")) == b"claude-6f0e2a91"
    assert record_key(example("known-flapping/task")) == b"SHOP-412"


def test_headers_are_cloudevents_in_binary_mode() -> None:
    """Each attribute is where the binding wants it, and the trace context is that of the cause."""
    trace = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    assert headers(example("alert/warn"), source="/traction/worker", traceparent=trace) == [
        ("ce_specversion", b"1.0"),
        ("ce_id", b"6e2f0d1d4b0c9f7a1c35e0c2a8f1b7d4"),
        ("ce_source", b"/traction/worker"),
        ("ce_type", b"traction.alert.v1"),
        ("ce_subject", b"SHOP-412"),
        ("ce_time", b"2026-11-30T09:15:02.551000+00:00"),
        ("content-type", b"application/json"),
        ("traceparent", trace),
    ]
    assert "traceparent" not in dict(headers(example("alert/warn"), source="/traction/worker"))


def test_events_of_one_source_have_identifiers_of_their_own() -> None:
    """A reader that drops repeats by identifier loses neither the entry of a verdict nor a verdict that is repeated."""
    first = msgspec.structs.replace(example("termination/identical-loop"), attempt=1)
    second = msgspec.structs.replace(first, attempt=2)
    others = ("directive/inject-guidance", "known-flapping/task", "alert/warn")
    everything = [first, second, *map(example, others)]

    identifiers = {dict(headers(record, source="/traction"))["ce_id"] for record in everything}

    assert len(identifiers) == len(everything)
    assert first.termination_id.encode() in identifiers


def test_a_record_without_identifier_has_no_cloudevents_headers() -> None:
    """An override is not identified, and made-up identifiers would break readers that drop repeats."""
    with pytest.raises(TypeError, match="Override has no identifier"):
        headers(Override(scope="repo:acme/shop", set_at=at(0)), source="/traction")


def test_dead_letters_keep_their_headers_and_say_why() -> None:
    """What came stays in its order, repeated names and odd bytes too; ours follow and are what the schema says."""
    original = [("x", b"\xff"), ("traceparent", b"t"), ("x", None)]

    found = dead_letter_headers(original, **WHERE, **WHY)

    assert found[:3] == original
    ours = {name: (value or b"").decode() for name, value in found[3:]}
    validator("dead-letter-headers.v1.json").validate(ours)
    assert ours["__traction.errors.offset"] == "42"
    assert ours["__traction.errors.timestamp"] == "1796030145123"
    assert ours["__traction.errors.message"] == ours["__streams.errors.message"] == "not JSON; send JSON"
    assert ours["__streams.errors.exception"] == "decode:not_json"


def test_a_dead_letter_that_fails_again_has_one_answer() -> None:
    """Headers of an earlier refusal do not stay beside those of the later one."""
    once = dead_letter_headers([("x", b"1")], **WHERE, **WHY)

    twice = dead_letter_headers(once, **{**WHERE, "offset": 77}, **WHY)

    assert [name for name, _ in twice] == [name for name, _ in once]
    assert dict(twice)["__traction.errors.offset"] == dict(twice)["__streams.errors.offset"] == b"77"


def test_a_dead_letters_message_is_short() -> None:
    """Headers stay small whatever the message."""
    found = dict(dead_letter_headers([], **WHERE, **{**WHY, "message": "x" * 5_000}))

    assert found["__traction.errors.message"] == b"x" * MAX_MESSAGE_CHARS


def test_a_time_the_producer_made_up_is_no_obstacle() -> None:
    """A record's time may be missing or absurd; the dead letter is written all the same."""
    for timestamp in (-1, 2**63 - 1):
        found = {
            name: (value or b"").decode()
            for name, value in dead_letter_headers([], **{**WHERE, "timestamp_ms": timestamp}, **WHY)
        }
        validator("dead-letter-headers.v1.json").validate(found)
        assert found["__traction.errors.timestamp"] == str(timestamp)


def test_written_events_are_read_back_equal() -> None:
    """Publishing a recorded session and reading it gives the same events, empty result and all."""
    events = [
        tool_call(1, result=""),
        tool_call(2, arguments={"a": [1, 2.5, None, "é\x00\u2028"]}, result={"k": []}, error="E1"),
        tool_call(3, arguments=None, result=None),
    ]
    topic = next(topic for topic in TOPICS if topic.record is ToolCall)

    assert [decode(topic, encode(event)) for event in events] == events
