"""The hand-written examples: valid ones pass an independent validator and our reader, invalid ones neither."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import schemas
from schemas.common import SCHEMA_VERSION
from schemas.decode import InvalidEvent, check_key, decode
from schemas.events import Event
from schemas.records import DEAD_LETTER, RECORDS
from schemas.topics import TOPICS

HERE = Path(schemas.__file__).parent
TOPIC_OF = {topic.record: topic for topic in TOPICS}
VALIDATORS: dict[str, Any] = {
    record.name: jsonschema_rs.Draft202012Validator(
        json.loads((HERE / "json" / record.schema_file).read_text("utf-8")), validate_formats=True
    )
    for record in (*RECORDS, DEAD_LETTER)
}
INPUTS = [record for record in RECORDS if record.direction == "in"]
STRUCTS = {record.name: record.struct for record in RECORDS}
CURRENT = HERE / "examples"
EARLIER = sorted(path / "examples" for path in (HERE / "released").iterdir())
VALID = [
    pytest.param(name, path, id=str(path.relative_to(HERE)))
    for examples in (CURRENT, *EARLIER)
    for name in VALIDATORS
    for path in sorted((examples / name).glob("*.json"))
]
INVALID = sorted((CURRENT / "invalid").glob("*.json"))
CLOUDEVENTS = [path for examples in (CURRENT, *EARLIER) for path in sorted((examples / "cloudevents").glob("*.json"))]


def read(name: str, value: bytes) -> msgspec.Struct:
    """Read a value as the record of that name."""
    return decode(TOPIC_OF[STRUCTS[name]], value)


@pytest.mark.parametrize(("name", "path"), VALID)
def test_examples_are_valid(name: str, path: Path) -> None:
    """What we show producers and readers is right by two validators, and so is all that an earlier release showed."""
    value = path.read_bytes()

    VALIDATORS[name].validate(json.loads(value))
    if name == DEAD_LETTER.name:
        msgspec.json.decode(value, type=DEAD_LETTER.struct)
    else:
        assert type(read(name, value)) is STRUCTS[name]


@pytest.mark.parametrize("path", CLOUDEVENTS, ids=lambda path: str(path.relative_to(HERE)))
def test_cloudevents_examples_are_read(path: Path) -> None:
    """Each of the forms shown is read, and its key is the right one."""
    example = json.loads(path.read_bytes())
    topic = next(topic for topic in TOPICS if topic.name == example["topic"])
    headers = [(name, text.encode()) for name, text in example["headers"].items()]

    event = decode(topic, json.dumps(example["value"]).encode(), headers)

    check_key(topic, event, example["key"].encode())


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_invalid_examples_are_refused_by_both(path: Path) -> None:
    """Our reader refuses for the reason shown, and a producer's validator would have said so before."""
    example = json.loads(path.read_bytes())

    assert not VALIDATORS[example["record"]].is_valid(example["value"])
    with pytest.raises(InvalidEvent) as caught:
        read(example["record"], json.dumps(example["value"]).encode())
    assert (caught.value.reason, caught.value.field) == (example["reason"], example["field"])


def shown(*records: str) -> set[str]:
    """Give the fields that examples of these records have."""
    paths = [path for name in records for path in (CURRENT / name).glob("*.json")]
    return {field for path in paths for field in json.loads(path.read_bytes())}


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_every_field_is_shown(record: Any) -> None:
    """Each field of a record is in one of its examples; those common to all events, in one of any event's."""
    common = {field.encode_name for field in msgspec.structs.fields(Event)}
    fields = {field.encode_name for field in msgspec.structs.fields(record.struct)}

    assert fields - common - shown(record.name) == set()
    assert common - shown(*(record.name for record in INPUTS)) == set()


def test_the_first_event_shown_is_read() -> None:
    """The least event that the contract's page shows is one."""
    page = (HERE / "README.md").read_text("utf-8")
    (value,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)

    assert type(read("tool-call", value.encode())) is STRUCTS["tool-call"]


def test_a_release_is_complete() -> None:
    """The current version's baseline holds all that readers of it went by."""
    released = HERE / "released"
    major = SCHEMA_VERSION.split(".", maxsplit=1)[0]

    assert [path.name for path in released.iterdir() if path.name.startswith(f"{major}.")]
    for release in released.iterdir():
        assert (release / "asyncapi.json").is_file()
        assert list((release / "json").glob("*.json"))
        assert list((release / "examples").glob("*/*.json"))


FIELDS = sorted({field.encode_name for record in RECORDS for field in msgspec.structs.fields(record.struct)})
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not number.is_integer())
    | st.text(max_size=4)
    | st.sampled_from(
        ["x" * 256, "x" * 257, "ok", "explore", "1.9", "2.0", "task:é", "2026-11-30T10:00:00Z", "2026-02-30T10:00:00Z"]
    )
    | st.sampled_from(["1969-12-31T23:59:59Z", "2999-12-31T23:59:59.5+14:00", "2026-11-30T25:00:00Z", "2026-11-30"])
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "paths", "text", "path", "code", "usage", "input_tokens"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
BASES = {
    record.name: [path.read_bytes() for path in sorted((CURRENT / record.name).glob("*.json"))] for record in INPUTS
}


@settings(max_examples=400)
@given(data=st.data())
def test_reader_and_schema_agree(data: st.DataObject) -> None:
    """A producer that validates by the schema is never refused, and one that is read could have validated.

    Left out on purpose: numbers such as 1.0, an integer to JSON Schema and not to us (schemas/README.md).
    """
    record = data.draw(st.sampled_from(INPUTS))
    value = json.loads(data.draw(st.sampled_from(BASES[record.name])))
    for name in data.draw(st.lists(st.sampled_from(FIELDS), max_size=2, unique=True)):
        value[name] = data.draw(ANYTHING)
    for name in data.draw(st.lists(st.sampled_from(sorted(value)), max_size=1)):
        del value[name]

    try:
        read(record.name, json.dumps(value).encode())
        accepted = True
    except InvalidEvent:
        accepted = False

    assert accepted == VALIDATORS[record.name].is_valid(value)
