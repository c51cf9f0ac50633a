"""Reads tables of limits as a policy has them: all faults of a table are found, and told in the words of the file.

What a limit may be is the detectors' own business; nothing is decided here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from detectors import InvalidLimits, Limits, limits_from
from detectors.layers import PAIRS, flat_limits
from streams.config import suggest
from streams.policy.ladder import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_DEFAULTS: Mapping[str, Any] = dict(flat_limits(msgspec.to_builtins(Limits())))
_ENTRIES = frozenset(key for key, value in _DEFAULTS.items() if isinstance(value, dict))
_SECTIONS = frozenset(key.rpartition(".")[0] for key in _DEFAULTS if not key.startswith("model."))

MOST_PROBLEMS = 100
"""Faults that are looked for in one table: after each the rest is read anew, and such a file is none that was meant."""


def read_limits(table: Mapping[str, Any], on: Limits) -> tuple[dict[str, Any], list[Problem]]:
    """Read a table of limits.

    Args:
        table: as TOML gives it.
        on: the limits that it lies over.

    Returns:
        The values by dotted name, none where far too much is wrong, and what is wrong with the others, whose keys are
        named in the words.
    """
    values = dict(flat_limits(table))
    problems = list(_senseless_tables(table))
    faulty: set[str] = set()
    while True:
        try:
            limits_from([("", values)], on)
        except InvalidLimits as problem:
            blamed = next((key for key in problem.keys if key in values), None)
            # What contradicts the default in place of a limit that could not be read is likely to be right.
            if blamed is None or not faulty.intersection(problem.keys):
                problems.append(_told(problem))
            if blamed is None:  # nothing of ours; what is left cannot be judged
                return {}, problems
            if len(problems) >= MOST_PROBLEMS:
                return {}, problems
            faulty.add(blamed)
            del values[blamed]
        else:
            return values, problems


def beside(first: Mapping[str, Any], second: Mapping[str, Any], on: Limits) -> str:
    """Say what two sets of limits that are fine alone say against each other when both hold; empty when nothing.

    Args:
        first: limits by dotted name.
        second: those that lie over them.
        on: the limits that both lie over.
    """
    # Of a pair of which one says both, or neither, it is known already: what each says was tried.
    mixed = [
        (one, other) for one, other in PAIRS if {_setter(one, first, second), _setter(other, first, second)} == {1, 2}
    ]
    keys = {key for pair in mixed for key in pair}
    if not keys:
        return ""
    try:
        limits_from([("", {key: value for key, value in each.items() if key in keys}) for each in (first, second)], on)
    except InvalidLimits as problem:
        return problem.told
    return ""


def _told(problem: InvalidLimits) -> Problem:
    """Put what is wrong with a limit into the file's words."""
    if not problem.told.startswith(problem.keys):
        return Problem("limits", problem.told)
    key = problem.keys[0]
    told = problem.told.removesuffix(f" - at `$.{key}`").replace(f" - at `$.{key}`;", ";")
    if f"{key}: Expected" in told and not isinstance(_DEFAULTS.get(key, {}), dict):
        told += f"; for example {key} = {msgspec.json.encode(_DEFAULTS[key]).decode()}"
    return Problem("", f"limits.{told}")


def _setter(key: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> int:
    """Say which of two sets of limits has the last word on a limit; 0 for neither."""
    return 2 if key in second else 1 if key in first else 0


def _senseless_tables(table: Mapping[str, Any], prefix: str = "") -> Iterator[Problem]:
    """Find empty tables that stand for nothing that there is: no limit in them tells that their name is wrong."""
    for key, value in table.items():
        name = f"{prefix}{key}"
        if not isinstance(value, dict) or name in _ENTRIES:
            continue
        if value:
            yield from _senseless_tables(value, f"{name}.")
        elif name in _DEFAULTS:
            yield Problem(f"limits.{name}", "is a limit and no table; give it a value, or take it out")
        elif name not in _SECTIONS:
            yield Problem(f"limits.{name}", f"there is no such table; {suggest(name, (_SECTIONS | _ENTRIES) - {''})}")
