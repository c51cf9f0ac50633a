"""Makes the files that other languages read: one JSON Schema per record, and the AsyncAPI document.

``python -m schemas.generate`` writes them, ``--check`` tells whether the committed ones are what the types say. The
types are the source; nobody edits the files.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

import msgspec

from schemas.asyncapi import document
from schemas.records import DEAD_LETTER, RECORDS, RecordType

HERE = Path(__file__).resolve().parent
COMMAND = "python -m schemas.generate"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
ASYNCAPI_FILE = "asyncapi.json"

_WRAPPED = re.compile(r"(?<!\n)\n(?!\n)")


def json_schema(record: RecordType) -> dict[str, Any]:
    """Give the JSON Schema of a record: self-contained, open for fields to come.

    Args:
        record: the record.

    Returns:
        A schema of the dialect 2020-12 with an absolute ``$id``; parts that are structs themselves are in ``$defs``.
    """
    (reference,), parts = msgspec.json.schema_components([record.struct], ref_template="#/$defs/{name}")
    if record.direction == "in":
        parts = {name: _with_nulls(part) for name, part in parts.items()}
    parts = {name: _with_any(part) for name, part in parts.items()}
    own = reference["$ref"].rpartition("/")[2]
    root = _tidy(parts.pop(own))
    schema = {"$schema": DIALECT, "$id": record.schema_id, **root, "title": record.name}
    if parts:
        schema["$defs"] = {name: _tidy(part) for name, part in sorted(parts.items())}
    return schema


def files() -> dict[str, dict[str, Any]]:
    """Give every generated file: its path below this package, and its content."""
    schemas = {f"json/{record.schema_file}": json_schema(record) for record in (*RECORDS, DEAD_LETTER)}
    return {**schemas, ASYNCAPI_FILE: document()}


def text_of(content: dict[str, Any]) -> str:
    """Give a file's text."""
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def differences(directory: Path) -> list[str]:
    """List the files that are not what the types say: missing, different, or generated from a record that is gone.

    Args:
        directory: where the generated files are.
    """
    wanted = files()
    found = []
    for name, content in wanted.items():
        path = directory / name
        if not path.is_file():
            found.append(f"{path} is missing")
        elif path.read_text("utf-8") != text_of(content):
            found.append(f"{path} is not what the types say")
    strays = {path.relative_to(directory).as_posix() for path in directory.glob("json/*")} - wanted.keys()
    return [*found, *(f"{directory / name} belongs to no record" for name in sorted(strays))]


def write(directory: Path) -> None:
    """Write every generated file and remove those of records that are gone.

    Args:
        directory: where the generated files go.
    """
    wanted = files()
    (directory / "json").mkdir(exist_ok=True)
    for path in directory.glob("json/*"):
        if path.relative_to(directory).as_posix() not in wanted:
            path.unlink()
    for name, content in wanted.items():
        (directory / name).write_text(text_of(content), "utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Write or check the files.

    Args:
        arguments: those of the command line; None for the process's own.

    Returns:
        Exit code: 0 done or up to date, 1 out of date.
    """
    parser = argparse.ArgumentParser(prog=COMMAND, description="Make the JSON Schema files and the AsyncAPI document.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file is out of date")
    if not parser.parse_args(arguments).check:
        write(HERE)
        return 0
    found = differences(HERE)
    for line in found:
        sys.stderr.write(f"{line}\n")
    if found:
        sys.stderr.write(f"make them anew with: {COMMAND}\n")
    return 1 if found else 0


def _with_nulls(part: dict[str, Any]) -> dict[str, Any]:
    """Let every optional field of an object be null, which is read as absent."""
    required = part.get("required", ())
    return {
        **part,
        "properties": {
            name: field if name in required else _nullable(field) for name, field in part["properties"].items()
        },
    }


def _with_any(part: dict[str, Any]) -> dict[str, Any]:
    """Say of every field of an object that may be any JSON that it may: else code generators take it for an object."""
    return {
        **part,
        "properties": {
            name: {**field, "anyOf": [{}]} if field.keys() <= {"description", "default"} else field
            for name, field in part["properties"].items()
        },
    }


def _nullable(field: dict[str, Any]) -> dict[str, Any]:
    if "type" not in field and "enum" not in field:  # any JSON, or a union that has null in it
        return field
    outer = {key: value for key, value in field.items() if key in {"description", "default"}}
    inner = {key: value for key, value in field.items() if key not in outer}
    return {**outer, "anyOf": [inner, {"type": "null"}]}


def _tidy(schema: Any) -> Any:
    """Give every enum its type, which code generators want, and unwrap the lines of descriptions."""
    if isinstance(schema, list):
        return [_tidy(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    tidy = {key: _tidy(value) for key, value in schema.items()}
    if isinstance(tidy.get("enum"), list):
        tidy = {"type": "string", **tidy}
    if isinstance(tidy.get("description"), str):
        tidy["description"] = _WRAPPED.sub(" ", tidy["description"])
    return tidy


if __name__ == "__main__":
    sys.exit(main())
