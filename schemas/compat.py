"""Tells whether today's contract still serves those who wrote or read by an earlier one.

``python -m schemas.compat`` compares with every release in ``schemas/released``, or with the directories and files that
are named. Producers keep sending what was valid; readers keep finding what was promised. What only explains (text,
examples, defaults) is not compared, and what this check does not understand is refused, never waved through.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

from schemas.generate import ASYNCAPI_FILE, HERE, files
from schemas.records import DEAD_LETTER, RECORDS

COMMAND: Final = "python -m schemas.compat"
RELEASED: Final = HERE / "released"

Schema = dict[str, Any]
Direction = Literal["in", "out"]

_EXPLAINING = frozenset(
    ("$schema", "$id", "$ref", "$defs", "$comment", "title", "description", "default", "examples", "deprecated")
)
_LOWEST = frozenset(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"))
_HIGHEST = frozenset(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"))
_EXACT = frozenset(("pattern", "format", "multipleOf", "uniqueItems"))
_COMPARED = frozenset(
    ("type", "anyOf", "enum", "const", "required", "properties", "items", "additionalProperties", "propertyNames")
)


class Unreadable(ValueError):
    """What to compare with cannot be read: the message names the file and says what to do."""


def incompatible(old: Schema, new: Schema, direction: Direction) -> list[str]:
    """List what in a record's schema breaks those who went by the old one.

    Args:
        old: the JSON Schema of an earlier release.
        new: today's.
        direction: ``in`` for what is sent to us, where only new demands hurt; ``out`` for what we publish, where taking
            back a promise hurts as well.

    Returns:
        One line per field, which it names; empty when everything goes on working.
    """
    return list(_Comparison(old, new, direction).compare("", old, new))


def incompatible_topics(old: Schema, new: Schema) -> list[str]:
    """List what in an AsyncAPI document breaks those who went by the old one: topics, and what is on them.

    Args:
        old: the document of an earlier release.
        new: today's.
    """
    found = []
    for name, channel in old["channels"].items():
        today = new["channels"].get(name)
        if today is None:
            found.append(f"{name}: the topic was removed")
            continue
        if today["address"] != channel["address"]:
            found.append(f"{name}: the topic was renamed from {channel['address']} to {today['address']}")
        found.extend(f"{name}: no longer carries {record}" for record in channel["messages"].keys() - today["messages"])
    gone = old["operations"].keys() - new["operations"].keys()
    found.extend(f"{name}: the operation was removed, or is now the other way round" for name in gone)
    return sorted(found)


def compare_with(base: Path) -> list[str]:
    """Compare today's contract with an earlier one.

    Args:
        base: a directory of a release, or one of its files.

    Returns:
        One line per incompatible change, which names file and field.

    Raises:
        Unreadable: there is nothing to compare with, or it is no JSON.
    """
    directions: dict[str, Direction] = {record.schema_file: record.direction for record in (*RECORDS, DEAD_LETTER)}
    today = {Path(name).name: content for name, content in files().items()}
    found = []
    for path in _schema_files(base):
        old = _read(path)
        new = today.get(path.name)
        if new is None:
            found.append(f"{path.name}: was released and is no longer made")
        elif path.name == ASYNCAPI_FILE:
            found.extend(f"{path.name}: {line}" for line in incompatible_topics(old, new))
        else:
            found.extend(f"{path.name}: {line}" for line in incompatible(old, new, directions[path.name]))
    return found


def main(arguments: list[str] | None = None) -> int:
    """Compare, and print what is incompatible.

    Args:
        arguments: those of the command line; None for the process's own.

    Returns:
        Exit code: 0 compatible, 1 not, 2 nothing to compare with.
    """
    parser = argparse.ArgumentParser(prog=COMMAND, description="Compare the contract with earlier releases of it.")
    parser.add_argument(
        "base", nargs="*", type=Path, help="directory or file of an earlier release; none: all released"
    )
    bases: list[Path] = parser.parse_args(arguments).base or sorted(
        path for path in RELEASED.iterdir() if path.is_dir()
    )
    if not bases:
        sys.stderr.write(f"{RELEASED}: no release in it; name a directory of a released contract\n")
        return 2
    found: list[str] = []
    try:
        for base in bases:
            found.extend(f"{base}: {line}" for line in compare_with(base))
    except Unreadable as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for line in found:
        sys.stderr.write(f"{line}\n")
    if found:
        sys.stderr.write(
            "within a major version: add optional fields; anything else is a new major (schemas/README.md)\n"
        )
    return 1 if found else 0


class _Comparison:
    """Walks two schemas of one record side by side."""

    def __init__(self, old: Schema, new: Schema, direction: Direction) -> None:
        self._old = old
        self._new = new
        self._direction = direction

    def compare(self, path: str, old: Schema, new: Schema) -> Iterator[str]:
        """Compare two schemas of one place, whose path is given."""
        if not path and old.get("$id") != new.get("$id"):
            yield f"$id changed from {old.get('$id')} to {new.get('$id')}"
        before, after = _variants(old, self._old), _variants(new, self._new)
        for kind, variant in before.items():
            others = ("number",) if kind == "integer" else ()
            match = next((after[each] for each in (kind, "any", *others) if each in after), None)
            if match is None:
                yield _line(path, f"no longer takes the type {kind}, only {', '.join(sorted(after))}")
            else:
                yield from self._constraints(path, variant, match)
                yield from self._values(path, variant, match)
                yield from self._parts(path, variant, match)
        if self._direction == "out":
            for kind in after.keys() - before.keys():
                yield _line(path, f"may now be of the type {kind}, which readers do not expect")

    def _constraints(self, path: str, old: Schema, new: Schema) -> Iterator[str]:
        """Compare what limits the values of one type."""
        for keyword, value in new.items():
            before = old.get(keyword)
            if keyword in _EXPLAINING or keyword in _COMPARED or value == before:
                continue
            known = keyword in _LOWEST or keyword in _HIGHEST
            if before is None:
                yield _line(path, f"{keyword} {value!r} was added")
            elif keyword in _EXACT or not known or (value > before) == (keyword in _LOWEST):
                yield _line(path, f"{keyword} changed from {before!r} to {value!r}")
        if self._direction == "out":
            for keyword in sorted(_EXACT & (old.keys() - new.keys())):
                yield _line(path, f"{keyword} {old[keyword]!r} is no longer kept, which readers rely on")

    def _values(self, path: str, old: Schema, new: Schema) -> Iterator[str]:
        """Compare lists of allowed values. A reader takes a value that it does not know as one more kind."""
        before, allowed = _allowed(old), _allowed(new)
        if allowed is None:
            return
        if before is None:
            yield _line(path, f"only the values {allowed!r} are now allowed")
        for value in before or ():
            if value not in allowed:
                yield _line(path, f"the value {value!r} was removed")

    def _parts(self, path: str, old: Schema, new: Schema) -> Iterator[str]:
        """Compare the members of an object and the items of an array."""
        members: Schema = new.get("properties", {})
        for name, part in old.get("properties", {}).items():
            if name in members:
                yield from self.compare(_below(path, name), part, members[name])
            else:
                yield _line(_below(path, name), "was removed or renamed")
        before, after = set(old.get("required", ())), set(new.get("required", ()))
        for name in sorted(after - before):
            yield _line(_below(path, name), "is now required")
        if self._direction == "out":
            for name in sorted(before - after):
                yield _line(_below(path, name), "was always there and is now optional")
        for keyword, mark in (("items", "[]"), ("additionalProperties", ".*"), ("propertyNames", " names")):
            yield from self._open(f"{path}{mark}", old.get(keyword, True), new.get(keyword, True))

    def _open(self, path: str, old: Schema | bool, new: Schema | bool) -> Iterator[str]:  # noqa: FBT001 - a schema
        """Compare schemas that may be the trivial ones: true takes everything, false nothing."""
        if new is True or old is False or old == new:
            return
        if new is False:
            yield _line(path, "is no longer allowed")
        elif isinstance(new, dict):
            yield from self.compare(path, old if isinstance(old, dict) else {}, new)


def _variants(schema: Schema, root: Schema) -> dict[str, Schema]:
    """Split a schema by the types of value that it takes; ``any`` where it says none."""
    while "$ref" in schema:
        part: Any = root
        for step in schema["$ref"].removeprefix("#/").split("/"):
            part = part[step]
        schema = {**part, **_without(schema, "$ref")}
    if "anyOf" in schema:
        common = _without(schema, "anyOf")
        found: dict[str, Schema] = {}
        for option in schema["anyOf"]:
            for kind, variant in _variants({**common, **option}, root).items():
                name = kind
                while name in found:  # two of one type: in the order in which they stand
                    name += "'"
                found[name] = variant
        return found
    kinds = schema.get("type", "any")
    return dict.fromkeys(kinds if isinstance(kinds, list) else [kinds], schema)


def _without(schema: Schema, keyword: str) -> Schema:
    """Give the assertions of a schema but for one."""
    return {key: value for key, value in schema.items() if key != keyword and key not in _EXPLAINING}


def _allowed(schema: Schema) -> list[Any] | None:
    """List the only values allowed; None when it is not a matter of a list."""
    if "const" in schema:
        return [schema["const"]]
    values: list[Any] | None = schema.get("enum")
    return values


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _line(path: str, what: str) -> str:
    return f"{path or 'the record'}: {what}"


def _schema_files(base: Path) -> list[Path]:
    if base.is_file():
        return [base]
    found = [path for path in (base / ASYNCAPI_FILE, *sorted(base.glob("json/*.json"))) if path.is_file()]
    if not found:
        raise Unreadable(
            f"{base}: no {ASYNCAPI_FILE} and no json/*.json in it; name a directory of a released contract"
        )
    return found


def _read(path: Path) -> Schema:
    try:
        content = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise Unreadable(f"{path}: no JSON ({error}); name a file of a released contract") from None
    if not isinstance(content, dict):
        raise Unreadable(f"{path}: no JSON object; name a file of a released contract")
    return content


if __name__ == "__main__":
    sys.exit(main())
