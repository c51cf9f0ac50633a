"""Reads tables of limits as a policy has them: all faults of a table are found, and told in the words of the file.

What a limit may be is the detectors' own business; nothing is decided here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from detectors import InvalidLimits, Limits, limits_from
from detectors.layers import flat_limits
from streams.policy.ladder import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_DEFAULTS: Mapping[str, Any] = dict(flat_limits(msgspec.to_builtins(Limits())))


def read_limits(table: Mapping[str, Any], on: Limits) -> tuple[dict[str, Any], list[Problem]]:
    """Read a table of limits.

    Args:
        table: as TOML gives it.
        on: the limits that it lies over.

    Returns:
        The values by dotted name, and what is wrong with the others, whose keys are named in the words.
    """
    values = dict(flat_limits(table))
    problems: list[Problem] = []
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
    shared = _sections(first) & _sections(second)
    if all(key in second for key in first if key.partition(".")[0] in shared):
        return ""  # the second says again whatever the first says of the same detectors
    try:
        limits_from([("", first), ("", second)], on)
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


def _sections(keys: Iterable[str]) -> set[str]:
    return {key.partition(".")[0] for key in keys}
