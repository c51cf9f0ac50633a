# ruff: noqa: INP001 - beside a script, no part of a package
"""Writes the tables of detectors, of limits and of the ladder's keys, with the sentences of `meanings.toml`."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from detectors import Limits
from detectors.session import DETECTORS
from detectors.tasks.observe import TASK_DETECTORS
from detectors.weights import DEFAULT_MODEL
from streams.policy.ladder import KEYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

MEANINGS = Path(__file__).with_name("meanings.toml")


def meanings(table: str, names: Iterable[str]) -> dict[str, str]:
    """Give the sentences of one table of `meanings.toml`.

    Raises:
        KeyError: a name has no sentence, or a sentence no name.
    """
    found: dict[str, str] = tomllib.loads(MEANINGS.read_text("utf-8"))[table]
    differing = found.keys() ^ set(names)
    if differing:
        raise KeyError(f"docs/meanings.toml [{table}] and the code differ in: {', '.join(sorted(differing))}")
    return found


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Write a table in Markdown."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def limits() -> str:
    """Write all limits with their defaults and what they may be."""
    rows = []
    of = meanings("limits", [name for name, _ in _limits(Limits)])
    for name, field in _limits(Limits):
        default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        rows.append((f"`{name}`", _value(default, name), _range(msgspec.inspect.type_info(field.type)), of[name]))
    return table(("limit", "default", "may be", "meaning"), rows)


def ladder() -> str:
    """Write all keys of the ladder likewise."""
    of = meanings("ladder", KEYS)
    rows = []
    for name, field in KEYS.items():
        default = "all" if field.default is None else f"`{json.dumps(msgspec.to_builtins(field.default))}`"
        rows.append((f"`{name}`", default, _ladder_range(msgspec.inspect.type_info(field.type)), of[name]))
    return table(("key", "default", "may be", "meaning"), rows)


def _ladder_range(of: msgspec.inspect.Type) -> str:
    if isinstance(of, msgspec.inspect.LiteralType):
        return "a rung of the order"
    if isinstance(of, msgspec.inspect.UnionType):
        of = next(each for each in of.types if not isinstance(each, msgspec.inspect.NoneType))
    if not isinstance(of, msgspec.inspect.VarTupleType):
        return _range(of)
    item = of.item_type
    if isinstance(item, msgspec.inspect.StructType):
        return f"a list of tables with {', '.join(f'`{field.name}`' for field in item.fields)}"
    return "a list of rungs" if isinstance(item, msgspec.inspect.LiteralType) else "a list of names"


def detectors() -> str:
    """Write every detector of a session: its rule, limits and defaults, where they come from, and what clears it."""
    return _detectors(DETECTORS)


def task_detectors() -> str:
    """Write every detector of a task likewise."""
    return _detectors(TASK_DETECTORS)


def _detectors(modules: Iterable[ModuleType]) -> str:
    rows = []
    for module in modules:
        section = getattr(Limits(), module.NAME)
        fields = ((field.name, getattr(section, field.name)) for field in msgspec.structs.fields(section))
        shown = [f"{name} {_value(value, f'{module.NAME}.{name}')}" for name, value in fields]
        about = module.ABOUT
        rows.append((f"`{module.NAME}`", about.rule, ", ".join(shown), about.source, about.cleared_by))
    return table(("detector", "rule", "defaults", "source", "cleared by"), rows)


def _value(value: object, limit: str = "") -> str:
    """Write a default; of the spin score's limits the ones that come with the weights."""
    if limit.startswith("spin_score."):
        return f"learned: `{getattr(DEFAULT_MODEL.source, limit.partition('.')[2]):g}`"
    return f"`{json.dumps(value)}`"


def _limits(section: type[msgspec.Struct], prefix: str = "") -> Iterator[tuple[str, msgspec.structs.FieldInfo]]:
    for field in msgspec.structs.fields(section):
        if f"{prefix}{field.name}" in {"tools", "model", "layers"}:
            continue
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from _limits(field.type, f"{field.name}.")
        else:
            yield f"{prefix}{field.name}", field


def _range(of: msgspec.inspect.Type) -> str:
    if isinstance(of, msgspec.inspect.LiteralType):
        shown = (value or '""' for value in sorted(of.values, key=str))
        return ", ".join(f"`{value}`" for value in shown)
    if isinstance(of, msgspec.inspect.BoolType):
        return "`true`, `false`"
    if isinstance(of, msgspec.inspect.DictType):
        return "a table by name"
    if isinstance(of, msgspec.inspect.VarTupleType):
        return "a list of names"
    if not isinstance(of, msgspec.inspect.IntType | msgspec.inspect.FloatType):
        raise TypeError(f"the range of {of} cannot be told")
    low = f"above {of.gt:,}" if of.gt is not None else f"{of.ge:,}"
    return f"{low} to {of.le:,}" if of.le is not None else f"{low} or more"
