"""`traction settings`: which settings are in force and where each comes from. Only words and options here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import orjson

from streams.cli.inforce import Setting, leaves, named_by_policy, unknown_variables, within
from streams.cli.inforce import settings as in_force
from streams.cli.looking import table
from streams.config import Config

if TYPE_CHECKING:
    from collections.abc import Mapping


@click.command(
    epilog="""\b
Examples:
  traction settings                                   what is set, for every command
  traction settings worker                            all settings of the worker
  traction settings topics create --json
  traction --config traction.toml settings escalate

\b
Exit codes:
  0  settings can be used
  1  there are variables of the environment that begin with TRACTION_ and set nothing
  2  wrong use, or a value that the command would refuse
""",
)
@click.argument("command", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def settings(context: click.Context, *, command: tuple[str, ...], as_json: bool) -> int:
    """See which settings are in force for a command, and where each comes from.

    Without COMMAND, what is set for any command and is not its default. A flag would come before all of these. Secrets
    are never printed, only whether they are set. Variables that no command knows are pointed out, with the nearest
    name: they are most likely misspelt. Each value is checked by itself; options that contradict each other are told
    when the command starts.
    """
    config = context.obj or Config()
    root = context.find_root()
    asked = _find(root, command, config)
    found = {
        each.command_path.partition(" ")[2]: [one for one in in_force(each, config) if command or one.chosen]
        for each in leaves(asked)
    }
    policies = {one.value for rows in found.values() for one in rows if one.name == "policy"}
    unknown = unknown_variables(root, {name for policy in policies for name in named_by_policy(policy)})
    limits = dict(_flat(config.limits))
    if as_json:
        told = {
            "file": str(config.path) if config.path is not None else None,
            "commands": {
                name: {one.name: {"value": one.value, "from": one.source} for one in rows}
                for name, rows in found.items()
            },
            "limits": limits,
            "unknown": unknown,
        }
        click.echo(orjson.dumps(told, option=orjson.OPT_INDENT_2).decode())
        return 1 if unknown else 0
    _print(found, limits, config)
    for name, meant in unknown.items():
        click.echo(f"{name} is no setting: {meant}", err=True)
    return 1 if unknown else 0


def _find(root: click.Context, words: tuple[str, ...], config: Config) -> click.Context:
    """Give the context of the command that words name, with what the settings file says for it."""
    group = root.command
    if isinstance(group, click.Group):
        names = words[:1] or tuple(group.list_commands(root))
        commands = {name: each for name in names if (each := group.get_command(root, name)) is not None}
        root.default_map = {name: config.defaults(name, each) for name, each in commands.items()}
    context = root
    for word in words:
        command = context.command
        inner = command.get_command(context, word) if isinstance(command, click.Group) else None
        if inner is None:
            raise click.UsageError(f"there is no command `{context.command_path} {word}`; see traction --help")
        context = within(context, inner, word)
    return context


def _print(found: Mapping[str, list[Setting]], limits: Mapping[str, Any], config: Config) -> None:
    shown = {f"traction {name}": rows for name, rows in found.items() if rows}
    for title, rows in shown.items():
        click.echo(f"{title}:")
        table(("setting", "value", "from"), [(one.name, _words(one.value), one.source) for one in rows])
        click.echo()
    if limits:
        click.echo("limits:")
        where = f"{config.path} [limits]"
        table(
            ("limit", "value", "from"),
            [(name, _words(value), where) for name, value in limits.items()],
        )
    elif not shown:
        click.echo("everything is as it is by default")


def _words(value: object) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else orjson.dumps(value, default=str).decode()


def _flat(limits: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """Write limits in tables with dots, as alerts and messages name them."""
    rows: list[tuple[str, Any]] = []
    for name, value in limits.items():
        rows += _flat(value, f"{before}{name}.") if isinstance(value, dict) else [(f"{before}{name}", value)]
    return rows
