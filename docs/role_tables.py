# ruff: noqa: INP001 - part of `docs/generate.py`
"""Writes the table of roles: what each may do on the brokers, as `streams/access/roles.toml` has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docs.limit_tables import table
from streams.access.roles import roles

if TYPE_CHECKING:
    from streams.access.roles import Role


def role_table() -> str:
    """Write every role with its rights; topics of the contract without their prefix."""
    rows = [
        (f"`{name}`", role.about, _names(role.read), _names(role.write), _others(role))
        for name, role in roles().items()
    ]
    return table(("role", "who", "reads", "writes", "else"), rows)


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{_shown(name)}`" for name in names)


def _others(role: Role) -> str:
    told = []
    if role.groups:
        told.append(f"group {_names(role.groups)}")
    if role.transactions:
        told.append(f"transactional ids {_names(tuple(f'{name}-N' for name in role.transactions))}")
    if role.ids:
        told.append(f"transactional id {_names(role.ids)}")
    if role.create:
        told.append("creates and describes the topics")
    elif role.configs:
        told.append("describes the topics and their configuration")
    return "; ".join(told)


def _shown(name: str) -> str:
    return name.replace("{", "<").replace("}", ">").replace("_", " ")
