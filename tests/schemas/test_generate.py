"""The committed files are what the types say, and what other languages need."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

import schemas
from schemas import generate
from schemas.common import SCHEMA_VERSION
from schemas.generate import DIALECT, differences, files, json_schema, main, write
from schemas.records import DEAD_LETTER, MAJOR, RECORDS

HERE = Path(schemas.__file__).parent
ALL = [*RECORDS, DEAD_LETTER]


def objects(schema: Any, path: str = "") -> list[tuple[str, dict[str, Any]]]:
    """Give every subschema that has properties, with where it is."""
    if not isinstance(schema, dict):
        return []
    found = [(path, schema)] if "properties" in schema else []
    for name, part in schema.items():
        found += objects(part, f"{path}/{name}")
    return found


def test_committed_files_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    """A change of the types without the files that other languages read does not pass."""
    assert main(["--check"]) == 0
    assert capsys.readouterr().err == ""


def test_drift_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever changed a type is told which files are out of date and which command remakes them."""
    monkeypatch.setattr(generate, "HERE", tmp_path)
    write(tmp_path)
    (tmp_path / "json/alert.v1.json").write_text("{}\n", "utf-8")
    (tmp_path / "json/review.v1.json").unlink()
    (tmp_path / "json/mood.v1.json").write_text("{}\n", "utf-8")

    assert main(["--check"]) == 1
    said = capsys.readouterr().err

    assert re.search(r"alert\.v1\.json is not what the types say", said)
    assert re.search(r"review\.v1\.json is missing", said)
    assert re.search(r"mood\.v1\.json belongs to no record", said)
    assert "python -m schemas.generate\n" in said
    assert main([]) == 0
    assert differences(tmp_path) == []


@pytest.mark.parametrize("record", ALL, ids=lambda record: record.name)
def test_schemas_are_valid_and_say_who_they_are(record: Any) -> None:
    """Each file is a schema of the dialect it names, under an absolute identifier with the major version."""
    schema = json_schema(record)

    jsonschema_rs.meta.validate(schema)
    assert schema["$schema"] == DIALECT
    assert schema["$id"] == f"urn:traction:schema:{record.name}:v{MAJOR}"
    assert SCHEMA_VERSION.split(".", maxsplit=1)[0] == str(MAJOR)


@pytest.mark.parametrize("record", ALL, ids=lambda record: record.name)
def test_schemas_are_open(record: Any) -> None:
    """Fields to come must pass today's validators, at every level."""
    for path, part in objects(json_schema(record)):
        assert part.get("additionalProperties", True) is True, path
        assert "unevaluatedProperties" not in part, path


@pytest.mark.parametrize("record", ALL, ids=lambda record: record.name)
def test_every_field_is_explained(record: Any) -> None:
    """The schema is the reference of the contract: no field without a description, its own or that of its type."""
    schema = json_schema(record)
    for path, part in objects(schema):
        for name, field in part["properties"].items():
            references = [
                option["$ref"].rpartition("/")[2] for option in (field, *field.get("anyOf", ())) if "$ref" in option
            ]
            explained = field.get("description") or [
                schema["$defs"][reference]["description"] for reference in references
            ]
            assert explained, f"{path}/{name}"


def test_little_is_required() -> None:
    """A producer's first event needs few fields; more than these would shut out simple producers."""
    required = {record.name: json_schema(record)["required"] for record in RECORDS if record.direction == "in"}

    assert required == {
        "tool-call": ["event_id", "session_id", "occurred_at", "tool"],
        "fix-attempt": ["event_id", "session_id", "occurred_at", "attempt_id", "outcome"],
        "review": ["event_id", "session_id", "occurred_at", "pull_request", "author", "verdict"],
        "session-event": ["event_id", "session_id", "occurred_at", "kind"],
        "control": ["event_id", "session_id", "occurred_at", "action"],
        "override": ["scope", "set_at"],
    }


def test_generation_is_repeatable() -> None:
    """The same types give the same text, so that the check means something."""
    assert json.dumps(files()) == json.dumps(files())
