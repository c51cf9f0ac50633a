"""What comes off the wire is either a record or a refusal with the right reason, whatever the bytes."""

import json
import traceback
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import schemas
from schemas.decode import MAX_VALUE_BYTES, InvalidEvent, check_key, decode
from schemas.encode import encode
from schemas.events import FixAttempt, Override, ToolCall
from schemas.records import BY_STRUCT
from schemas.topics import CONTROL, FIX_ATTEMPTS, OVERRIDES, TOOL_CALLS, TOPICS
from schemas.values import MAX_DEPTH

EXAMPLES = Path(schemas.__file__).parent / "examples"
INPUTS = [topic for topic in TOPICS if topic.direction == "in"]
REQUIRED = b'"event_id":"e1","session_id":"s1","occurred_at":"2026-11-30T10:00:00Z","tool":"Bash"'
SECRET = "hunter2-hunter2"  # noqa: S105 - what must not come back in a message


def call(extra: str = "") -> bytes:
    """Give a tool call with more members."""
    return b"{" + REQUIRED + (f",{extra}".encode() if extra else b"") + b"}"


def nested(depth: int) -> str:
    """Give a JSON value nested so deep."""
    return "[" * depth + "]" * depth


def objects(depth: int) -> str:
    """Give JSON objects nested so deep."""
    return '{"a":' * (depth - 1) + "{}" + "}" * (depth - 1)


def refusal(value: bytes | None, topic: Any = TOOL_CALLS, headers: Any = None) -> InvalidEvent:
    """Give the refusal of a value that must be refused."""
    with pytest.raises(InvalidEvent) as caught:
        decode(topic, value, headers)
    return caught.value


HOSTILE = {
    "null": (None, "decode", "empty", None),
    "empty": (b"", "decode", "empty", None),
    "white space": (b" \n", "decode", "not_json", None),
    "not JSON": (b"tool=Bash", "decode", "not_json", None),
    "cut short": (call()[:-1], "decode", "not_json", None),
    "two values": (call() + call(), "decode", "not_json", None),
    "NaN": (call('"duration_ms":NaN'), "decode", "not_json", None),
    "NaN in arguments": (call('"arguments":{"x":NaN}'), "decode", "not_json", None),
    "Infinity in what is ignored": (call('"other":-Infinity'), "decode", "not_json", None),
    "byte-order mark": (b"\xef\xbb\xbf" + call(), "decode", "not_json", None),
    "UTF-16": (call().decode().encode("utf-16"), "decode", "not_utf8", None),
    "bad UTF-8": (b"{" + REQUIRED + b',"result":"\xff"}', "decode", "not_utf8", None),
    "bad UTF-8 in what is ignored": (b"{" + REQUIRED + b',"other":"\xc3"}', "decode", "not_utf8", None),
    "surrogate in bytes": (b"{" + REQUIRED + b',"result":"\xed\xa0\x80"}', "decode", "not_utf8", None),
    "lone surrogate": (call(r'"result":"\ud800"'), "decode", "not_json", None),
    "lone low surrogate": (call(r'"result":"x\udc80y"'), "decode", "not_json", None),
    "lone surrogate in a key": (call(r'"arguments":{"\ud83d":1}'), "decode", "not_json", None),
    "100,000 arrays in arguments": (call(f'"arguments":{nested(100_000)}'), "decode", "too_deep", None),
    "100,000 objects in result": (call(f'"result":{objects(100_000)}'), "decode", "too_deep", None),
    "100,000 arrays in what is ignored": (call(f'"other":{nested(100_000)}'), "decode", "too_deep", None),
    "100,000 objects opened": (b'{"a":' * 100_000, "decode", "too_deep", None),
    "too deep by one": (call(f'"arguments":{nested(MAX_DEPTH + 1)}'), "decode", "too_deep", "arguments"),
    "objects too deep by one": (call(f'"result":{objects(MAX_DEPTH + 1)}'), "decode", "too_deep", "result"),
    "an array": (b"[" + call() + b"]", "validate", "wrong_type", None),
    "a text": (b'"Bash"', "validate", "wrong_type", None),
    "JSON null": (b"null", "validate", "wrong_type", None),
    "empty object": (b"{}", "validate", "missing_field", "event_id"),
    "null where required": (call('"tool":null'), "validate", "missing_field", "tool"),
    "wrong type": (call('"sequence":"7"'), "validate", "wrong_type", "sequence"),
    "wrong type inside": (call('"task":{"paths":["a",7]}'), "validate", "wrong_type", "task.paths[1]"),
    "wrong type beside null": (call('"agent":null,"usage":7'), "validate", "wrong_type", "usage"),
    "fraction for integer": (call('"sequence":1.5'), "validate", "wrong_type", "sequence"),
    "unknown status": (call(f'"status":"{SECRET}"'), "validate", "invalid_value", "status"),
    "identifier too long": (call(f'"call_id":"{"x" * 257}"'), "validate", "invalid_value", "call_id"),
    "identifier empty": (call('"call_id":""'), "validate", "invalid_value", "call_id"),
    "integer beyond 64 bits": (call(f'"sequence":{2**63}'), "validate", "invalid_value", "sequence"),
    "integer of 5,000 digits": (call(f'"sequence":{"9" * 5_000}'), "validate", "invalid_value", "sequence"),
    "integer of 5,000 digits inside": (call(f'"result":[{"9" * 5_000}]'), "validate", "invalid_value", "result[0]"),
    "number beyond double": (call('"duration_ms":1e400'), "validate", "invalid_value", "duration_ms"),
    "negative duration": (call('"duration_ms":-1'), "validate", "invalid_value", "duration_ms"),
    "major 2": (call('"schema_version":"2.0"'), "validate", "unsupported_version", "schema_version"),
    "no time": (call('"occurred_at":"yesterday"'), "validate", "invalid_value", "occurred_at"),
    "time without offset": (call('"occurred_at":"2026-11-30T10:00:00"'), "validate", "invalid_value", "occurred_at"),
    "time as a number": (call('"occurred_at":1796030145'), "validate", "wrong_type", "occurred_at"),
    "year 1969": (call('"occurred_at":"1969-12-31T23:59:59Z"'), "validate", "invalid_value", "occurred_at"),
    "year 3000": (call('"occurred_at":"3000-01-01T00:00:00Z"'), "validate", "invalid_value", "occurred_at"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_values_are_refused_with_their_reason(case: str) -> None:
    """Every kind of bad input has its own answer: stage, code and field."""
    value, stage, reason, field = HOSTILE[case]

    error = refusal(value)

    assert (error.stage, error.reason, error.field) == (stage, reason, field)


@pytest.mark.parametrize("case", HOSTILE)
def test_a_refusal_says_what_is_wrong_and_what_to_do(case: str) -> None:
    """A producer's author can act on the message; it is short and names the field."""
    error = refusal(HOSTILE[case][0])

    problem, _, remedy = str(error).partition("; ")
    assert problem
    assert remedy
    assert str(error).startswith(f"{error.field}: " if error.field else "")
    assert len(str(error)) < 300


@pytest.mark.parametrize("field", ["status", "schema_version", "occurred_at", "agent", "sequence", "phase"])
def test_a_refusal_never_quotes_the_record(field: str) -> None:
    """Payloads hold secrets, and refusals go to logs and headers: neither text nor traceback has any of the value."""
    error = refusal(call(f'"{field}":"{SECRET}","arguments":"{SECRET}"'))

    assert error.field == field
    assert SECRET not in "".join(traceback.format_exception(error))


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (b"\xef\xbb\xbf" + call(), "byte-order mark"),
        (call(r'"result":"\ud800"'), "surrogate"),
        (call(r'"result":"\udfff\ud83d\ude00"'), "surrogate"),
        (call(r'"result":"\ud83d\ude00"')[:-1], "cut short"),
    ],
)
def test_the_usual_causes_of_bad_json_are_named(value: bytes, hint: str) -> None:
    """What encoders do wrong unseen is said in words: a mark before the text, half a character, an end cut off."""
    assert hint in str(refusal(value))


@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH])
def test_nesting_just_within_the_limit_is_read(depth: int) -> None:
    """The limit of depth refuses nothing that it allows."""
    event = decode(TOOL_CALLS, call(f'"arguments":{objects(depth)},"result":{nested(depth)}'))

    assert isinstance(event, ToolCall)
    assert encode(event).count(b"[") == depth


def test_depth_is_nesting_and_not_the_number_of_brackets() -> None:
    """Many shallow containers, and brackets within a text, are no depth."""
    shallow = ",".join(["[{}]"] * 500)

    event = decode(TOOL_CALLS, call(f'"arguments":[{shallow}],"result":"{"[{" * 5_000}"'))

    assert isinstance(event, ToolCall)
    assert isinstance(event.arguments, list)
    assert len(event.arguments) == 500


def test_the_size_limit_is_exact() -> None:
    """A value of the largest size is read, one byte more is refused."""
    room = MAX_VALUE_BYTES - len(call('"other":""'))

    assert isinstance(decode(TOOL_CALLS, call(f'"other":"{"x" * room}"')), ToolCall)
    error = refusal(call(f'"other":"{"x" * (room + 1)}"'))

    assert (error.stage, error.reason) == ("decode", "too_large")
    assert str(MAX_VALUE_BYTES) in str(error)


@pytest.mark.parametrize("field", ["expires_at", "occurred_at"])
def test_every_instant_of_a_record_is_checked(field: str) -> None:
    """A time that arithmetic cannot stand is refused in whichever field it is."""
    fields = {"event_id": "e", "session_id": "s", "occurred_at": "2026-11-30T10:00:00Z", "action": "resume"}
    fields[field] = "9999-12-31T23:59:59Z"

    error = refusal(json.dumps(fields).encode(), CONTROL)

    assert (error.reason, error.field) == ("invalid_value", field)


def test_integers_beyond_64_bits_become_their_text() -> None:
    """Large integers in arguments stay apart from each other and can be written by any JSON encoder."""
    event = decode(TOOL_CALLS, call(f'"arguments":{{"a":[{2**64},{2**64 - 1},{-(2**63) - 1}]}},"result":{10**30}'))

    assert isinstance(event, ToolCall)
    assert event.arguments == {"a": [str(2**64), 2**64 - 1, str(-(2**63) - 1)]}
    assert event.result == str(10**30)
    assert orjson.dumps([event.arguments, event.result])


def test_null_is_absent_in_every_optional_field() -> None:
    """Encoders that write null for what is not set, as in Go, lose nothing."""
    nulls = dict.fromkeys(("files", "failing", "replacements", "diff", "agent", "sequence", "schema_version"))
    task = {"id": "t1", "paths": None}
    fields = {"event_id": "e", "session_id": "s", "occurred_at": "2026-11-30T10:00:00Z"}
    fields |= {"attempt_id": "1", "outcome": "failed"}

    event = decode(FIX_ATTEMPTS, json.dumps({**fields, **nulls, "task": task}).encode())

    assert event == decode(FIX_ATTEMPTS, json.dumps({**fields, "task": {"id": "t1"}}).encode())
    assert isinstance(event, FixAttempt)
    assert (event.files, event.replacements, event.agent) == ((), (), None)


def test_null_within_arguments_is_kept() -> None:
    """What the producer's own JSON says is not touched, even where null elsewhere had to be taken for absent."""
    event = decode(TOOL_CALLS, call('"task":{"paths":null},"arguments":{"limit":null}'))

    assert isinstance(event, ToolCall)
    assert event.arguments == {"limit": None}


def test_unknown_fields_are_ignored_and_kept_out() -> None:
    """A producer of a later minor version is understood, and nothing of what is not known is kept."""
    event = decode(TOOL_CALLS, call(f'"schema_version":"1.7","mood":"{SECRET}","agent":{{"id":"a","mood":"{SECRET}"}}'))

    assert SECRET not in repr(event)


def test_the_last_of_two_equal_names_counts() -> None:
    """A repeated member is read as JSON decoders read it everywhere, so that all of them see one record."""
    event = decode(TOOL_CALLS, call('"tool":"Read"'))

    assert isinstance(event, ToolCall)
    assert event.tool == "Read"


def test_times_keep_their_instant() -> None:
    """Offsets, lower case and nanoseconds are all the same instant to microseconds."""
    spellings = ("2026-11-30T12:00:00.123456+02:00", "2026-11-30t10:00:00.123456z", "2026-11-30T10:00:00.123456000Z")

    instants = {decode(TOOL_CALLS, call(f'"occurred_at":"{spelling}"')).occurred_at for spelling in spellings}  # type: ignore[attr-defined]

    assert [instant.astimezone(UTC).isoformat() for instant in instants] == ["2026-11-30T10:00:00.123456+00:00"]


def test_a_key_must_be_the_session() -> None:
    """A record under another key would split its session over two partitions, so it is refused."""
    event = decode(TOOL_CALLS, call('"session_id":"sé1"'))

    check_key(TOOL_CALLS, event, "sé1".encode())
    for key, reason in ((None, "key_missing"), (b"", "key_mismatch"), (b"s\xe91", "key_mismatch")):
        with pytest.raises(InvalidEvent) as caught:
            check_key(TOOL_CALLS, event, key)
        assert (caught.value.stage, caught.value.reason, caught.value.field) == ("route", reason, "session_id")


def test_the_key_of_an_override_is_its_scope() -> None:
    """Compaction keeps one record per key, so an override under another key would never be replaced."""
    event = decode(OVERRIDES, b'{"scope":"repo:acme/shop","set_at":"2026-11-30T10:00:00Z"}')

    assert isinstance(event, Override)
    check_key(OVERRIDES, event, b"repo:acme/shop")
    with pytest.raises(InvalidEvent) as caught:
        check_key(OVERRIDES, event, b"acme/shop")
    assert (caught.value.reason, caught.value.field) == ("key_mismatch", "scope")


def records() -> list[tuple[str, dict[str, Any]]]:
    """Give every example of an input record with the name of its topic."""
    return [
        (topic.name, json.loads(path.read_text("utf-8")))
        for topic in INPUTS
        if topic.record is not None
        for path in sorted(EXAMPLES.glob(f"{BY_STRUCT[topic.record].name}/*.json"))
    ]


RECORDS = records()
NAMES = sorted(
    {name for _, record in RECORDS for name in record} | {"id", "paths", "specversion", "data", "type", "source"}
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.just(SECRET),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES) | st.text(), inner, max_size=4),
    max_leaves=12,
)
HEADER_NAMES = ("ce_specversion", "ce_id", "ce_source", "ce_type", "ce_subject", "ce_time", "content-type", "CE_ID")
HEADER_VALUES = (b"1.0", b"0.3", b"2026-11-30T10:00:00Z", b"application/cloudevents+json", b"\xff", b"s1", b"")
HEADERS = st.lists(
    st.tuples(
        st.sampled_from(HEADER_NAMES) | st.text(max_size=8),
        st.none() | st.sampled_from(HEADER_VALUES) | st.binary(max_size=12),
    ),
    max_size=8,
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Give a good record in which a few members were exchanged for anything."""
    _, record = draw(st.sampled_from(RECORDS))
    changed = {**record, **draw(st.dictionaries(st.sampled_from(NAMES), JSON, max_size=3))}
    return json.dumps(changed).encode("utf-8", "surrogatepass")


VALUES = (
    st.none() | st.binary() | mutated() | JSON.map(lambda value: json.dumps(value).encode("utf-8", "surrogatepass"))
)


@given(topic=st.sampled_from(INPUTS), value=VALUES, headers=st.none() | HEADERS)
@example(topic=TOOL_CALLS, value=b'{"specversion":[],"data":{}}', headers=None)
def test_anything_is_a_record_or_a_refusal(topic: Any, value: bytes | None, headers: Any) -> None:
    """No bytes and no headers raise anything else, and no refusal quotes the value."""
    try:
        event = decode(topic, value, headers)
    except InvalidEvent as error:
        assert SECRET not in str(error)  # noqa: PT017 - either outcome is right
        assert error.__suppress_context__ or error.__context__ is None  # noqa: PT017 - nor does its traceback
        return
    assert type(event) is topic.record


@given(topic=st.sampled_from(INPUTS), value=mutated(), headers=st.none() | HEADERS)
def test_what_is_read_is_safe_to_use(topic: Any, value: bytes, headers: Any) -> None:
    """A record that was read can be written again to the same bytes, sorted by any encoder, and reckoned with."""
    try:
        event: Any = decode(topic, value, headers)
    except InvalidEvent:
        return
    written = encode(event)

    assert encode(decode(topic, written)) == written
    assert orjson.dumps(msgspec.to_builtins(event), option=orjson.OPT_SORT_KEYS)
    instant = event.set_at if isinstance(event, Override) else event.occurred_at
    assert instant.astimezone(UTC) + timedelta(days=366) > instant
