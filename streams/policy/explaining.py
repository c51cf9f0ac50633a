"""Puts what a policy says for one session or task into rows: each limit and key of the ladder, with who set it.

For people and programs alike; it prints nothing and resolves nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from detectors.layers import flat_limits
from streams.policy.ladder import KEYS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from detectors import Limits
    from streams.policy.model import Ladder

DEFAULT = "default"
"""The layer of what nobody set."""


class Row(NamedTuple):
    """A limit or a key of the ladder by its dotted name."""

    name: str
    value: Any
    layer: str


def limit_rows(limits: Limits, *, everything: bool) -> Iterator[Row]:
    """Give limits in the order of the documentation; those that are tables by entry, as each may be set by another.

    Args:
        limits: the limits.
        everything: also those that nobody set.
    """
    for name, value in _flat(limits).items():
        layer = limits.layers.get(name)
        if layer is None and everything:
            yield Row(name, value, limits.layer(name))
        elif layer is not None and isinstance(value, dict):
            setters = {key: limits.layers.get(f"{name}.{key}") for key in value}
            if everything:
                yield Row(name, {key: entry for key, entry in value.items() if setters[key] is None}, DEFAULT)
            for key, setter in setters.items():
                if setter is not None:
                    yield Row(f"{name}.{key}", value[key], setter)
        elif layer is not None:
            yield Row(name, value, layer)


def _flat(limits: Limits) -> dict[str, Any]:
    values = msgspec.to_builtins(msgspec.structs.replace(limits, layers={}))
    del values["layers"], values["model"]  # are no limits
    return dict(flat_limits(values))


def ladder_rows(ladder: Ladder, layers: Mapping[str, str], *, everything: bool) -> Iterator[Row]:
    """Give the keys of a ladder.

    Args:
        ladder: the ladder.
        layers: who set what of it.
        everything: also what nobody set.
    """
    for name in KEYS:
        if everything or name in layers:
            section, _, key = name.rpartition(".")
            value = getattr(ladder.budget if section else ladder, key)
            yield Row(name, msgspec.to_builtins(value), layers.get(name, DEFAULT))
