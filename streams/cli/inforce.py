"""Finds out which settings are in force for a command and where each comes from, and which variables mean nothing.

It asks the commands' own options, so that it cannot say otherwise than they do. It never gives a secret, only where one
comes from.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from streams.cli.secrets import SECRETS, secret
from streams.cli.sections import SharedOption
from streams.config import SHARED_TABLE, flag, suggest

if TYPE_CHECKING:
    from streams.config import Config

PREFIX = "TRACTION_"

DEFAULT = "default"

SINKS = "sinks"
"""The table of a policy whose keys that end in `_env` name variables with secrets."""

OF_DEVELOPERS = frozenset(
    f"{PREFIX}{name}"
    for name in ("CRASH_ROUNDS", "CRASH_SEED", "MATRIX_EXAMPLES", "PICTURES", "RECORDINGS", "TEST_KAFKA")
)
"""Variables that the Makefile and the tests read, and no command."""


OF_AGENTS = frozenset(
    f"{PREFIX}{name}" for name in ("GATEWAY_TOKEN_FILE", "GATEWAY_URL", "HOOK_TIMEOUT_MS", "SPOOL_DIR")
)
"""Variables that `traction-hook` and the emitter read, in the environment of agents."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting as it is in force.

    Attributes:
        name: of the option, as settings files name it; of a secret, what its variable is called without the prefix.
        value: its value as JSON can say it; of a secret "set" or "not set".
        source: the variable, the file and its table, or "default".
    """

    name: str
    value: Any
    source: str

    @property
    def chosen(self) -> bool:
        """Whether somebody set it."""
        return self.source != DEFAULT


def leaves(context: click.Context) -> Iterator[click.Context]:
    """Give a context for each command that does something, from a group's or a command's own.

    Args:
        context: of the group or the command.
    """
    command = context.command
    if not isinstance(command, click.Group):
        yield context
        return
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        if inner is not None:
            yield from leaves(within(context, inner, name))


def within(context: click.Context, command: click.Command, name: str) -> click.Context:
    """Give the context that a command has in its group's, nothing parsed."""
    return click.Context(command, context, info_name=name, **command.context_settings)


def settings(context: click.Context, config: Config) -> list[Setting]:
    """List the settings of a command, sorted, with what takes the place of flags left out.

    Args:
        context: of the command, with the defaults of the settings file.
        config: the settings file.

    Raises:
        click.UsageError: a value that the command would refuse, or a file with a secret that cannot be read.
    """
    options = {flag(each): each for each in _options(context)}
    found = {name: _setting(name, option, context, config) for name, option in options.items()}
    for variable, its in SECRETS.items():
        if its.file in found:
            name = variable.removeprefix(PREFIX).lower()
            found[name] = _secret(name, variable, found.pop(its.file), f"--{its.file.replace('_', '-')}")
    return [found[name] for name in sorted(found)]


def _options(context: click.Context) -> list[click.Option]:
    return [each for each in context.command.params if isinstance(each, click.Option) and not each.is_eager]


def _setting(name: str, option: click.Option, context: click.Context, config: Config) -> Setting:
    with context.scope(cleanup=False):
        value, source = option.consume_value(context, {})
        if source in {ParameterSource.ENVIRONMENT, ParameterSource.DEFAULT_MAP}:
            value = option.type_cast_value(context, value)
    if source == ParameterSource.ENVIRONMENT:
        where = next(each for each in variables_of(option, context) if os.environ.get(each))
    elif source == ParameterSource.DEFAULT_MAP:
        where = f"{config.path} {_table(name, context, config)}"
    else:
        where = DEFAULT
    return Setting(name, _plain(value), where)


def _table(name: str, context: click.Context, config: Config) -> str:
    path = context.command_path.split()[1:]
    table: Any = config.tables
    for each in path:
        table = table.get(each, {})
    return f"[{'.'.join(path) if name in table else SHARED_TABLE}]"


def _secret(name: str, variable: str, file: Setting, option: str) -> Setting:
    if file.value is not None:
        secret(variable, Path(file.value), option)
        return Setting(name, "set", file.value)
    if os.environ.get(variable):
        return Setting(name, "set", variable)
    return Setting(name, "not set", DEFAULT)


def _plain(value: object) -> Any:
    """Give a value as JSON can say it; click has an object of its own for what has no default."""
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    if isinstance(value, (str, int, float)):
        return value
    return str(value) if isinstance(value, (Path, timedelta)) else None


def variables_of(option: click.Option, context: click.Context) -> list[str]:
    """List the variables that set an option, the one that wins first."""
    own = option.envvar or (f"{context.auto_envvar_prefix}_{option.name}".upper() if option.name else None)
    names = [own] if isinstance(own, str) else list(own or ())
    if isinstance(option, SharedOption):
        names.append(f"{PREFIX}{flag(option).upper()}")
    return names


def unknown_variables(root: click.Context, named: Iterable[str] = ()) -> dict[str, str]:
    """Find variables that look like settings of ours and set nothing.

    Args:
        root: the context of the whole command line.
        named: further variables that are read, since a policy names them.

    Returns:
        For each what was meant, in words.
    """
    known = {*SECRETS, *OF_AGENTS, *OF_DEVELOPERS, *named}
    for context in [root, *_all(root)]:
        for each in _options(context):
            known.update(variables_of(each, context))
    return {name: _meant(name, known) for name in sorted(os.environ) if name.startswith(PREFIX) and name not in known}


def _all(context: click.Context) -> Iterator[click.Context]:
    """Give the contexts of all commands and groups below one: options of groups are settings too."""
    command = context.command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                below = within(context, inner, name)
                yield from (below, *_all(below))


def _meant(name: str, known: set[str]) -> str:
    words = suggest(name, known)
    return words if words.startswith("did") else "traction settings lists what there is"


def named_by_policy(file: str | None) -> set[str]:
    """List the variables that a policy names for the secrets of its sinks; none of a policy that cannot be read.

    Args:
        file: the policy.
    """
    try:
        tables = tomllib.loads(Path(file).read_text("utf-8")) if file is not None else {}
    except (OSError, ValueError):
        return set()
    sinks = tables.get(SINKS)
    return {
        value
        for sink in (sinks.values() if isinstance(sinks, Mapping) else ())
        if isinstance(sink, Mapping)
        for key, value in sink.items()
        if key.endswith("_env") and isinstance(value, str)
    }
