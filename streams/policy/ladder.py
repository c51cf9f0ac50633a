"""Reads and merges the keys of the ladder: each layer says some of them, later layers win, and who set what is kept.

Pure, and made like the detectors' layers of limits. What a rung does is decided elsewhere.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from streams.config import suggest
from streams.policy.model import ENDING, RUNGS, Budgets, Candidate, Ladder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_BUDGET = "budget"
_PATH = re.compile(r" - at `\$(?P<path>[^`]*)`$")
_WHOLE_PATH = re.compile(r"\.?[\w.\[\]]*")


class Problem(NamedTuple):
    """What is wrong with a key: where it is, and what to do."""

    key: str
    told: str


class Merged(NamedTuple):
    """A ladder, and for each key that is not a default the layer that set it."""

    ladder: Ladder
    layers: dict[str, str]


def _fields() -> dict[str, msgspec.structs.FieldInfo]:
    fields = {field.name: field for field in msgspec.structs.fields(Ladder) if field.name != _BUDGET}
    return fields | {f"{_BUDGET}.{field.name}": field for field in msgspec.structs.fields(Budgets)}


KEYS = _fields()
"""Every key of a ladder by its dotted name."""


def read_ladder(table: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """Read a table of a ladder.

    Args:
        table: as TOML gives it.

    Returns:
        The values by dotted name, and what is wrong with the others.
    """
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for key, value in _flat(table):
        if key == _BUDGET:
            problems.append(Problem(key, f"is no table; write for example {_BUDGET}.{RUNGS[0]} = 2"))
            continue
        if key not in KEYS:
            remedy = f"write {_BUDGET}.{key}" if key in RUNGS else suggest(key, KEYS)
            problems.append(Problem(key, f"there is no such key; {remedy}"))
            continue
        try:
            read = msgspec.convert(value, KEYS[key].type)
        except msgspec.ValidationError as error:
            problems.append(_wrong(key, value, str(error)))
            continue
        if senseless := list(_senseless(key, read)):
            problems += senseless
        else:
            values[key] = read
    return values, problems


def _flat(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if key == _BUDGET and isinstance(value, dict):
            yield from ((f"{key}.{rung}", number) for rung, number in value.items())
        else:
            yield key, value


def _wrong(key: str, value: Any, error: str) -> Problem:
    """Say what is wrong with a value, in the file's words."""
    found = _PATH.search(error)
    path = found["path"] if found and _WHOLE_PATH.fullmatch(found["path"]) else ""
    told = _PATH.sub("", error)
    if told.startswith("Invalid enum value"):
        given = value
        if index := re.fullmatch(r"\[(\d+)\]", path):
            given = value[int(index[1])]
        return Problem(f"{key}{path}", f"there is no such rung; {suggest(str(given), RUNGS)}")
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", told):
        return Problem(f"{key}{path}.{unknown[1]}", f"there is no such key; {suggest(unknown[1], _CANDIDATE)}")
    return Problem(f"{key}{path}", f"{told}; for example {key} = {_sample(key)}")


_CANDIDATE = Candidate.__struct_fields__


def _sample(key: str) -> str:
    if key == "candidates":
        return '[{ model = "another-model" }]'
    if key == "notify":
        return '["on-call"]'
    return msgspec.json.encode(KEYS[key].default).decode()


def _senseless(key: str, value: Any) -> Iterator[Problem]:
    """Find what the types allow and which makes no sense."""
    if key == "order":
        if not value:
            yield Problem(key, 'is empty; name a rung, or set limits.mode = "observe" to do nothing')
        for place, rung in enumerate(value):
            if rung in value[:place]:
                yield Problem(f"{key}[{place}]", f"{rung} stands there before; name each rung once")
    if key == "candidates":
        for place, candidate in enumerate(value):
            if candidate == Candidate():
                yield Problem(f"{key}[{place}]", f"changes nothing; set one of {', '.join(_CANDIDATE)}")


def merge(layers: Sequence[tuple[str, Mapping[str, Any]]]) -> Merged:
    """Merge layers, each a name and values by dotted name; later ones win.

    Where nobody says so, a termination begins at the last rung when there is no `terminate`, and a warning climbs to
    the last rung below any of the gravest when there is no `escalate_human`.
    """
    values: dict[str, Any] = {}
    names: dict[str, str] = {}
    for layer, given in layers:
        values |= given
        names |= dict.fromkeys(given, layer)
    budget = {key.partition(".")[2]: value for key, value in values.items() if key.startswith(f"{_BUDGET}.")}
    plain = {key: value for key, value in values.items() if not key.startswith(f"{_BUDGET}.")}
    ladder = Ladder(**plain, budget=Budgets(**budget))
    for key, rungs in (
        ("on_terminate", ladder.order),
        ("warn_most", list(itertools.takewhile(lambda rung: rung not in ENDING, ladder.order))),
    ):
        if getattr(ladder, key) not in ladder.order and rungs:
            ladder = msgspec.structs.replace(ladder, **{key: rungs[-1]})
            names.setdefault(key, names["order"])
    return Merged(ladder, names)


def contradictions(layers: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Problem]:
    """Find what layers that are fine alone say against each other: a rung is named that the order has not."""
    values: dict[str, Any] = {}
    for _, given in layers:
        values |= given
    order = values.get("order", RUNGS)
    return [
        Problem(key, f"{values[key]} is not in order ({', '.join(order)}); add it there, or name one of these")
        for key in ("on_terminate", "warn_most")
        if values.get(key, order[0]) not in order
    ]
