"""Reads the TOML file of `--config` and turns it into click's `default_map`.

Flags come first, then environment variables, then this file, then an option's own default; the order itself is
click's. What the file says is checked against the options of the commands, of all that it has tables for, so that a key
misspelt is an error and not a setting that silently does nothing. It does not judge `[limits]`: the detectors' own code
does.
"""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

SHARED_TABLE = "traction"
"""The table for what several commands share."""

SHARED_KEYS = (
    "bootstrap",
    "fix_config",
    "gateway_token_file",
    "layout",
    "log_level",
    "page_certfile",
    "page_keyfile",
    "page_token_file",
    "policy",
    "prefix",
    "sasl_mechanism",
    "sasl_password_file",
    "sasl_token_file",
    "sasl_token_scope",
    "sasl_token_url",
    "sasl_username",
    "security_protocol",
    "spin_weights",
    "ssl_cafile",
    "ssl_certfile",
    "ssl_keyfile",
    "stall_seconds",
    "store",
)
"""Keys of the shared table: the options that `streams.cli.options` makes shared."""

SHARED_NUMBERS = ("stall_seconds",)
"""Those of them that are numbers; the others are strings."""

LIMITS_TABLE = "limits"
"""The table of the detectors' limits, handed on as it is."""


class ConfigError(click.ClickException):
    """The configuration file cannot be used: the message names the file, the key and the remedy. Exit code 2."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration file as it was read.

    Attributes:
        path: the file; None when none was given.
        tables: its tables as TOML gives them.
    """

    path: Path | None = None
    tables: Mapping[str, Any] = field(default_factory=dict)

    @property
    def limits(self) -> Mapping[str, Any]:
        """The `[limits]` table, unchecked; empty when there is none."""
        limits: Mapping[str, Any] = self.tables.get(LIMITS_TABLE, {})
        return limits

    @property
    def layers(self) -> list[tuple[str, Mapping[str, Any]]]:
        """The limits with their origin, as the detectors take them; none when there are no limits."""
        return [(f"file:{self.path}", self.limits)] if self.limits else []

    def defaults(self, name: str, command: click.Command) -> dict[str, Any]:
        """Give the settings of one command, checked against its options.

        Args:
            name: the command's name, which is its table's name.
            command: the command.

        Returns:
            A mapping for click's `default_map`; for a group, one mapping per subcommand beside its own options.

        Raises:
            ConfigError: a key that is no option of the command, or a value of the wrong type.
        """
        shared = self.tables.get(SHARED_TABLE, {})
        return self._table([name], command, self.tables.get(name, {}), shared)

    def check(self, name: str, command: click.Command) -> None:
        """Check the settings of a command that is not run; files that it names may be on another machine.

        Args:
            name: the command's name, which is its table's name.
            command: the command.

        Raises:
            ConfigError: a key that is no option of the command, or a value of the wrong type.
        """
        self._table([name], command, self.tables.get(name, {}), {}, files=False)

    def _table(
        self,
        path: list[str],
        command: click.Command,
        table: Mapping[str, Any],
        shared: Mapping[str, Any],
        *,
        files: bool = True,
    ) -> dict[str, Any]:
        options = {
            flag(option): option
            for option in command.params
            if isinstance(option, click.Option) and not option.is_eager
        }
        groups = command.commands if isinstance(command, click.Group) else {}
        for key in table:
            if key not in options and key not in groups:
                raise self._error(path, f"has no key `{key}`", suggest(key, [*options, *groups]))
        defaults: dict[str, Any] = {}
        for key, option in options.items():
            place, values = (path, table) if key in table else ([SHARED_TABLE], shared)
            if key in values:
                self._check(place, key, values[key], option, files=files)
                defaults[str(option.name)] = values[key]
        for key, subcommand in groups.items():
            inner = table.get(key, {})
            if not isinstance(inner, dict):
                raise self._error(path, f"has `{key}` as a value", f"make it a table, [{'.'.join([*path, key])}]")
            defaults[key] = self._table([*path, key], subcommand, inner, shared, files=files)
        return defaults

    def _check(self, path: list[str], key: str, value: object, option: click.Option, *, files: bool) -> None:
        several = option.multiple or option.nargs != 1
        if several and not isinstance(value, list):
            raise self._error(path, f"wants an array for `{key}`", f'write {key} = ["..."]')
        for item in value if isinstance(value, list) and several else [value]:
            wanted, accepted = _toml_type(option)
            # bool is a subclass of int in Python, but `port = true` is no number.
            if not isinstance(item, accepted) or (isinstance(item, bool) and bool not in accepted):
                raise self._error(path, f"wants {wanted} for `{key}`, not {item!r}", f"write {key} = {_sample(option)}")
            if isinstance(option.type, click.Path) and not files:
                continue
            try:
                option.type.convert(item, option, None)
            except click.BadParameter as problem:
                raise self._error(path, f"has a wrong `{key}`", problem.message) from problem

    def _error(self, path: list[str], what: str, remedy: str) -> ConfigError:
        return ConfigError(f"{self.path}: table [{'.'.join(path)}] {what}; {remedy}")


def flag(option: click.Option) -> str:
    """Name an option in the file and in the environment: its flag, with _ for -."""
    return max(option.opts, key=len).lstrip("-").replace("-", "_")


def load(path: Path, commands: Collection[str]) -> Config:
    """Read a configuration file.

    Args:
        path: the file.
        commands: the names of all commands, each of which may have a table.

    Returns:
        The file, its tables' names and the shared keys checked.

    Raises:
        ConfigError: the file cannot be read, is not TOML, or has a table or shared key that means nothing.
    """
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
    except OSError as problem:
        raise ConfigError(f"{path}: cannot be read ({problem.strerror}); give --config a TOML file") from problem
    except UnicodeDecodeError as problem:
        raise ConfigError(f"{path}: is not UTF-8 ({problem.reason} at byte {problem.start}); save it as such") from None
    except (ValueError, RecursionError) as problem:  # a number of thousands of digits is no TOMLDecodeError
        raise ConfigError(f"{path}: is not TOML: {problem}; mend it there") from problem
    for name, table in tables.items():
        _check_table(path, name, table, commands)
    for key, value in tables.get(SHARED_TABLE, {}).items():
        if key not in SHARED_KEYS:
            raise ConfigError(f"{path}: table [{SHARED_TABLE}] has no key `{key}`; {suggest(key, SHARED_KEYS)}")
        if key in SHARED_NUMBERS:
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ConfigError(f"{path}: table [{SHARED_TABLE}] wants a number for `{key}`; write {key} = 120")
        elif not isinstance(value, str):
            raise ConfigError(f'{path}: table [{SHARED_TABLE}] wants a string for `{key}`; write {key} = "..."')
    return Config(path, tables)


def _check_table(path: Path, name: str, table: object, commands: Collection[str]) -> None:
    known = [SHARED_TABLE, LIMITS_TABLE, *commands]
    if name in known and not isinstance(table, dict):
        raise ConfigError(f"{path}: `{name}` is a value; make it a table, [{name}]")
    if name not in known and not isinstance(table, dict):
        raise ConfigError(f"{path}: `{name}` stands outside of any table; put it under [{SHARED_TABLE}] or a command")
    if name not in known:
        raise ConfigError(f"{path}: there is no table [{name}]; {suggest(name, known)}")


def suggest(name: str, known: Collection[str]) -> str:
    """Say which known name is nearest to one that is not known, or which there are."""
    near = difflib.get_close_matches(name.replace("-", "_"), known, n=1)
    return f"did you mean `{near[0]}`?" if near else f"known are: {', '.join(sorted(known)) or 'none'}"


def _toml_type(option: click.Option) -> tuple[str, tuple[type, ...]]:
    if isinstance(option.type, click.types.IntParamType):
        return "an integer", (int,)
    if isinstance(option.type, click.types.FloatParamType):
        return "a number", (int, float)
    if isinstance(option.type, click.types.BoolParamType):
        return "true or false", (bool,)
    return "a string", (str,)


def _sample(option: click.Option) -> str:
    samples = {int: "1", float: "0.5", bool: "true", str: '"..."'}
    return samples[_toml_type(option)[1][-1]]
