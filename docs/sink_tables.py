# ruff: noqa: INP001 - beside a script, no part of a package
"""Writes the tables of the sinks' settings, with the sentences of `meanings.toml`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

from docs.limit_tables import meanings, table
from streams.sinks.settings import TYPES, HttpSettings, SinkSettings

if TYPE_CHECKING:
    from collections.abc import Iterator


def common_keys() -> str:
    """Write the keys that all sinks have."""
    return _keys(SinkSettings)


def http_keys() -> str:
    """Write the keys that those have which are reached by HTTP."""
    return _keys(HttpSettings, SinkSettings)


def type_keys(name: str) -> str:
    """Write the keys of a type of sink, but for those that are written elsewhere and have no default of its own."""
    return _keys(TYPES[name], HttpSettings, SinkSettings)


def _keys(kind: type[SinkSettings], *above: type[SinkSettings]) -> str:
    of = meanings(
        "sinks", {field.name for each in (SinkSettings, HttpSettings, *TYPES.values()) for field in _of(each)}
    )
    written = {(field.name, str(field.default)) for each in above for field in _of(each)}
    rows = [
        (f"`{field.name}`", _default(field.default), _allowed(msgspec.inspect.type_info(field.type)), of[field.name])
        for field in _of(kind)
        if (field.name, str(field.default)) not in written
    ]
    return table(("key", "default", "may be", "meaning"), rows)


def _of(kind: type[SinkSettings]) -> Iterator[msgspec.structs.FieldInfo]:
    return (field for field in msgspec.structs.fields(kind) if field.name != "name")


def _default(value: object) -> str:
    if value is msgspec.NODEFAULT:
        return "has none"
    if isinstance(value, tuple):
        return ", ".join(f"`{each}`" for each in value)
    return "" if value is None else f"`{json.dumps(value)}`"


def _allowed(of: msgspec.inspect.Type) -> str:
    if isinstance(of, msgspec.inspect.UnionType):
        (of,) = [each for each in of.types if not isinstance(each, msgspec.inspect.NoneType)]
    if isinstance(of, msgspec.inspect.LiteralType):
        return ", ".join(f"`{value}`" for value in of.values)
    if isinstance(of, msgspec.inspect.BoolType):
        return "`true`, `false`"
    if isinstance(of, msgspec.inspect.VarTupleType):
        return "a list"
    if isinstance(of, msgspec.inspect.FloatType):
        low = f"above {of.gt:g}" if of.gt is not None else f"{of.ge:g}"
        return f"{low} to {of.le:,g}"
    return "text"
