"""The compatibility check refuses each kind of breaking change by name of the field, and lets additions pass."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import schemas
from schemas import compat
from schemas.compat import incompatible, incompatible_topics, main
from schemas.generate import ASYNCAPI_FILE, files

RELEASED = Path(schemas.__file__).parent / "released"
Schema = dict[str, Any]
Change = Callable[[Schema], object]

TOOL_CALL: Schema = {
    "$id": "urn:test:v1",
    "type": "object",
    "required": ["tool"],
    "properties": {
        "tool": {"type": "string", "minLength": 1, "maxLength": 256},
        "status": {"anyOf": [{"type": "string", "enum": ["ok", "error"]}, {"type": "null"}]},
        "version": {"type": "string", "pattern": "^1"},
        "at": {"type": "string", "format": "date-time"},
        "note": {"type": "string"},
        "sequence": {"type": "integer", "minimum": 0, "maximum": 100},
        "share": {"type": ["number", "string"]},
        "arguments": {"description": "any JSON"},
        "task": {"anyOf": [{"$ref": "#/$defs/Task"}, {"type": "null"}]},
        "limits": {"type": "object", "additionalProperties": {"type": "number"}, "propertyNames": {"maxLength": 9}},
        "owner": {"$ref": "#/$defs/Task"},
        "kind": {"const": "call"},
    },
    "$defs": {
        "Task": {
            "type": "object",
            "required": ["id"],
            "properties": {
                "id": {"type": "string"},
                "paths": {"type": "array", "items": {"type": "string", "maxLength": 99}, "maxItems": 10},
            },
        }
    },
}


def changed(change: Change) -> Schema:
    """Give the schema with a change."""
    new = copy.deepcopy(TOOL_CALL)
    change(new)
    return new


def fields(schema: Schema) -> Schema:
    """Give the properties of a record."""
    found: Schema = schema["properties"]
    return found


def task(schema: Schema) -> Schema:
    """Give the shared part."""
    found: Schema = schema["$defs"]["Task"]
    return found


BREAKING: dict[str, tuple[Change, str]] = {
    "removed": (lambda s: fields(s).pop("note"), "note: was removed or renamed"),
    "renamed": (lambda s: fields(s).update(remark=fields(s).pop("note")), "note: was removed or renamed"),
    "removed below": (lambda s: task(s)["properties"].pop("paths"), "task.paths: was removed or renamed"),
    "type": (lambda s: fields(s)["tool"].update(type="integer"), "tool: no longer takes the type string"),
    "type below": (
        lambda s: task(s)["properties"]["paths"]["items"].update(type="integer"),
        "task.paths[]: no longer takes the type string",
    ),
    "one type of two": (lambda s: fields(s)["share"].update(type="number"), "share: no longer takes the type string"),
    "null": (
        lambda s: fields(s).update(status={"type": "string", "enum": ["ok", "error"]}),
        "status: no longer takes the type null",
    ),
    "number to integer": (
        lambda s: fields(s)["share"].update(type=["integer", "string"]),
        "share: no longer takes the type number",
    ),
    "any to object": (
        lambda s: fields(s)["arguments"].update(type="object"),
        "arguments: no longer takes the type any",
    ),
    "required": (lambda s: s["required"].append("note"), "note: is now required"),
    "required and new": (lambda s: s["required"].append("mood"), "mood: is now required"),
    "required below": (lambda s: task(s)["required"].append("paths"), "task.paths: is now required"),
    "maxLength lower": (lambda s: fields(s)["tool"].update(maxLength=255), "tool: maxLength changed from 256 to 255"),
    "minLength up": (lambda s: fields(s)["tool"].update(minLength=2), "tool: minLength changed from 1 to 2"),
    "maxLength new": (lambda s: fields(s)["note"].update(maxLength=9), "note: maxLength 9 was added"),
    "minimum up": (lambda s: fields(s)["sequence"].update(minimum=1), "sequence: minimum changed from 0 to 1"),
    "maximum down": (lambda s: fields(s)["sequence"].update(maximum=99), "sequence: maximum changed from 100 to 99"),
    "maxItems down": (
        lambda s: task(s)["properties"]["paths"].update(maxItems=9),
        "task.paths: maxItems changed from 10 to 9",
    ),
    "maxLength of items": (
        lambda s: task(s)["properties"]["paths"]["items"].update(maxLength=98),
        "task.paths[]: maxLength changed from 99 to 98",
    ),
    "enum value removed": (
        lambda s: fields(s)["status"]["anyOf"][0].update(enum=["ok"]),
        "status: the value 'error' was removed",
    ),
    "enum new": (lambda s: fields(s)["note"].update(enum=["a"]), "note: only the values ['a'] are now allowed"),
    "const changed": (lambda s: fields(s)["kind"].update(const="other"), "kind: the value 'call' was removed"),
    "pattern changed": (
        lambda s: fields(s)["version"].update(pattern="^2"),
        "version: pattern changed from '^1' to '^2'",
    ),
    "pattern new": (lambda s: fields(s)["note"].update(pattern="a"), "note: pattern 'a' was added"),
    "format changed": (
        lambda s: fields(s)["at"].update(format="date"),
        "at: format changed from 'date-time' to 'date'",
    ),
    "closed": (lambda s: s.update(additionalProperties=False), ".*: is no longer allowed"),
    "closed to a type": (
        lambda s: s.update(additionalProperties={"type": "string"}),
        ".*: no longer takes the type any",
    ),
    "values of a map": (
        lambda s: fields(s)["limits"].update(additionalProperties={"type": "integer"}),
        "limits.*: no longer takes the type number",
    ),
    "names of a map": (
        lambda s: fields(s)["limits"].update(propertyNames={"maxLength": 8}),
        "limits names: maxLength changed from 9 to 8",
    ),
    "beside a union": (lambda s: fields(s)["status"].update(maxLength=3), "status: maxLength 3 was added"),
    "beside a reference": (lambda s: fields(s)["owner"].update(maxProperties=1), "owner: maxProperties 1 was added"),
    "not understood": (
        lambda s: fields(s)["note"].update({"not": {"const": "x"}}),
        "note: not {'const': 'x'} was added",
    ),
    "identifier": (lambda s: s.update({"$id": "urn:test:v2"}), "$id changed from urn:test:v1 to urn:test:v2"),
}

HARMLESS: dict[str, Change] = {
    "optional field": lambda s: fields(s).update(mood={"type": "string", "maxLength": 3}),
    "optional field below": lambda s: task(s)["properties"].update(mood={"type": "string"}),
    "description": lambda s: fields(s)["tool"].update(description="another"),
    "default": lambda s: fields(s)["sequence"].update(default=3),
    "examples and title": lambda s: s.update(title="x", examples=[{}]),
    "enum value": lambda s: fields(s)["status"]["anyOf"][0].update(enum=["ok", "error", "denied"]),
    "maxLength up": lambda s: fields(s)["tool"].update(maxLength=512),
    "minimum down": lambda s: fields(s)["sequence"].update(minimum=-1),
    "limit dropped": lambda s: fields(s)["tool"].pop("maxLength"),
    "order of a union": lambda s: fields(s)["status"]["anyOf"].reverse(),
    "any JSON in other words": lambda s: fields(s)["arguments"].update(anyOf=[{}]),
    "part inlined": lambda s: fields(s).update(task={"anyOf": [copy.deepcopy(task(s)), {"type": "null"}]}),
}

BREAKING_FOR_READERS: dict[str, tuple[Change, str]] = {
    "now optional": (lambda s: s.update(required=[]), "tool: was always there and is now optional"),
    "another type": (
        lambda s: fields(s)["note"].update(type=["string", "integer"]),
        "note: may now be of the type integer",
    ),
    "null": (lambda s: fields(s)["note"].update(type=["string", "null"]), "note: may now be of the type null"),
    "integer to number": (
        lambda s: fields(s)["sequence"].update(type="number"),
        "sequence: may now be of the type number",
    ),
    "format dropped": (lambda s: fields(s)["at"].pop("format"), "at: format 'date-time' is no longer kept"),
    "pattern dropped": (lambda s: fields(s)["version"].pop("pattern"), "version: pattern '^1' is no longer kept"),
}


@pytest.mark.parametrize("direction", ["in", "out"])
@pytest.mark.parametrize("case", BREAKING)
def test_breaking_changes_are_refused(case: str, direction: Any) -> None:
    """Whatever shuts out a producer, or takes back what readers were promised, is named with its field, and alone."""
    change, expected = BREAKING[case]

    found = [line for line in incompatible(TOOL_CALL, changed(change), direction) if "may now be" not in line]

    assert found
    assert all(line.startswith(expected) or "owner" in line for line in found), found
    assert any(line.startswith(expected) for line in found)


@pytest.mark.parametrize("direction", ["in", "out"])
@pytest.mark.parametrize("case", HARMLESS)
def test_harmless_changes_pass(case: str, direction: Any) -> None:
    """Additions, wider limits and words are what a minor version is for."""
    assert incompatible(TOOL_CALL, changed(HARMLESS[case]), direction) == []


@pytest.mark.parametrize("case", BREAKING_FOR_READERS)
def test_what_is_published_keeps_its_promises(case: str) -> None:
    """Readers count on a field being there and of its type; producers would not mind the same change."""
    change, expected = BREAKING_FOR_READERS[case]

    assert [line.startswith(expected) for line in incompatible(TOOL_CALL, changed(change), "out")] == [True]
    assert incompatible(TOOL_CALL, changed(change), "in") == []


def test_the_contract_is_compatible_with_its_releases(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody who goes by a released version is broken by today's."""
    assert main([]) == 0
    assert capsys.readouterr().err == ""


def test_every_field_of_the_real_contract_is_watched() -> None:
    """The check sees every field of every record: taking any one away is noticed and named."""
    for name, schema in files().items():
        if name == ASYNCAPI_FILE:
            continue
        for field in schema["properties"]:
            new = copy.deepcopy(schema)
            del new["properties"][field]
            assert f"{field}: was removed or renamed" in incompatible(schema, new, "in")


def test_the_command_names_file_field_and_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever broke the contract learns where, against which release, and what would be allowed."""
    today = copy.deepcopy(files())
    del today["json/alert.v1.json"]["properties"]["loop_id"]
    del today["json/review.v1.json"]
    monkeypatch.setattr(compat, "files", lambda: today)

    assert main([str(RELEASED / "1.0")]) == 1
    said = capsys.readouterr().err

    assert f"{RELEASED / '1.0'}: alert.v1.json: loop_id: was removed or renamed" in said
    assert "review.v1.json: was released and is no longer made" in said
    assert "schemas/README.md" in said
    assert main([str(RELEASED / "1.0/json/control.v1.json")]) == 0
    assert main([str(RELEASED / "1.0/json/alert.v1.json")]) == 1
    capsys.readouterr()
    assert main([str(tmp_path)]) == 2
    assert "name a directory of a released contract" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_baseline_that_cannot_be_read_is_no_pass(text: str, tmp_path: Path) -> None:
    """A damaged baseline fails the check instead of comparing nothing."""
    (tmp_path / "json").mkdir()
    (tmp_path / "json/alert.v1.json").write_text(text, "utf-8")

    assert main([str(tmp_path)]) == 2


def test_without_any_release_there_is_no_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that compared nothing does not say that all is well."""
    monkeypatch.setattr(compat, "RELEASED", tmp_path)

    assert main([]) == 2


TOPIC_CHANGES: dict[str, tuple[Change, str]] = {
    "topic removed": (lambda d: d["channels"].pop("reviews"), "reviews: the topic was removed"),
    "topic renamed": (
        lambda d: d["channels"]["reviews"].update(address="agent.pull-requests"),
        "reviews: the topic was renamed from agent.reviews to agent.pull-requests",
    ),
    "record moved": (
        lambda d: d["channels"]["reviews"].update(messages={"other": {}}),
        "reviews: no longer carries review",
    ),
    "direction turned": (
        lambda d: d["operations"].update({"send-reviews": d["operations"].pop("receive-reviews")}),
        "receive-reviews: the operation was removed, or is now the other way round",
    ),
}


@pytest.mark.parametrize("case", TOPIC_CHANGES)
def test_topics_stay(case: str) -> None:
    """A topic keeps its name, what it carries and its direction."""
    change, expected = TOPIC_CHANGES[case]
    old = files()[ASYNCAPI_FILE]
    new = copy.deepcopy(old)
    change(new)

    assert incompatible_topics(old, new) == [expected]


def test_a_new_topic_is_an_addition() -> None:
    """Topics may be added within a major version."""
    old = json.loads((RELEASED / "1.0" / ASYNCAPI_FILE).read_text("utf-8"))
    new = copy.deepcopy(old)
    new["channels"]["reports"] = new["channels"]["alerts"]

    assert incompatible_topics(old, new) == []
