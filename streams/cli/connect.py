"""`traction connect`: writes hooks into an agent's settings, and takes them out. Only words and options here.

What is to be written where is for `streams.connect` to say.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

import click
import orjson

from streams.cli.output import agreed
from streams.connect import (
    AGENTS,
    Agent,
    Backups,
    CannotUse,
    Change,
    Connected,
    Mode,
    Scope,
    apply,
    hook_command,
    plan_connect,
    plan_undo,
)
from streams.connect.agents import COMMAND
from streams.hook_command.exchange import Gateway
from streams.privacy import Level

if TYPE_CHECKING:
    from collections.abc import Callable


_SHOWN_CHARS: Final = 2_000
"""How much of a line of the settings is shown."""


def _url(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    del context, parameter
    if value is None:
        return None
    try:
        Gateway(value)
    except ValueError as problem:
        raise click.BadParameter(str(problem)) from problem
    return value


@click.command(
    epilog="""\b
Examples:
  traction connect claude-code                          watch every session of this user
  traction connect codex --enforce                      tell the agent what was decided, too
  traction connect gemini-cli --scope project --yes     for everybody who works on this project
  traction connect claude-code --undo                   take it out again

\b
Exit codes:
  0  it is as asked, whether anything had to be changed or not
  1  it was not done: the settings cannot be read or written, or you said no
  2  wrong use
""",
)
@click.argument("agent", type=click.Choice(list(AGENTS)))
@click.option(
    "--scope",
    type=click.Choice(get_args(Scope)),
    default="user",
    show_default=True,
    help="user: all your sessions. project: those in this directory, for everybody who checks its settings out.",
)
@click.option(
    "--observe",
    "mode",
    flag_value="observe",
    default=True,
    show_default=False,
    help="Only watch: alerts are written, and nothing follows; neither the agent nor a person is told. The default.",
)
@click.option(
    "--enforce",
    "mode",
    flag_value="enforce",
    help="Give the agent guidance, deny calls that it repeats in a loop, and stop a session that was terminated.",
)
@click.option(
    "--privacy",
    type=click.Choice(get_args(Level)),
    default="digests",
    show_default=True,
    help="How much of a call's content goes on to Kafka: digests only, the beginning of each text, or all.",
)
@click.option(
    "--gateway", metavar="URL", callback=_url, help="Where the gateway is; else hooks ask TRACTION_GATEWAY_URL."
)
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the gateway's token, for --scope user. For a project, say TRACTION_GATEWAY_TOKEN_FILE.",
)
@click.option("--undo", is_flag=True, help="Take out what was put in, and nothing else.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; goes with --yes.")
def connect(
    *,
    agent: Connected,
    scope: Scope,
    mode: Mode,
    privacy: Level,
    gateway: str | None,
    token_file: Path | None,
    undo: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Connect an agent to the gateway through its hooks.

    Shows what is going to be changed in AGENT's settings and asks before it does so. What they were is kept; --undo
    takes out exactly what was put in. The agent never waits for more than a moment, and goes on when the gateway is
    away: what it did then is sent later. No token is written into the settings.

    An agent that is only observed has the role `observed`, whose mode is observe: no termination, nobody is called. A
    policy's rule for that role says otherwise; docs/connect.md shows one.
    """
    if as_json and not yes:
        raise click.UsageError("--json goes with --yes: there is nobody to ask")
    if token_file is not None and scope == "project":
        raise click.UsageError(
            "--token-file is for --scope user: others have the file elsewhere. Let everybody set "
            "TRACTION_GATEWAY_TOKEN_FILE in the environment"
        )
    known, backups = AGENTS[agent], Backups(os.environ)
    path = known.path(scope, os.environ, Path.cwd())
    try:
        if undo:
            change = plan_undo(path, known, backups=backups)
        else:
            command = hook_command(
                agent,
                _script(scope),
                mode=mode,
                privacy=privacy,
                gateway=gateway,
                token_file=None if token_file is None else str(token_file.resolve()),
            )
            change = plan_connect(path, known, mode=mode, command=command, backups=backups)
        if not _agreed(change, yes=yes, as_json=as_json):
            click.echo("Nothing was changed.", err=True)
            return 1
        apply(change, backups)
    except CannotUse as problem:
        raise click.ClickException(_shown(str(problem))) from problem
    _say(change, backups, as_json=as_json)
    return 0


def _script(scope: Scope) -> str:
    """Say how the agent finds the command: by its place for one user, by its name where others have it elsewhere."""
    beside = Path(sys.executable).parent / COMMAND
    found = str(beside) if beside.exists() else shutil.which(COMMAND)
    if scope == "project":
        return COMMAND
    if found is None:
        raise click.ClickException(f"the command {COMMAND} is not installed; install Traction again")
    return found


def _agreed(change: Change, *, yes: bool, as_json: bool) -> bool:
    """Show the change, and ask unless that was answered before or there is nothing to do."""
    if not change.needed or as_json:
        return True
    colour: Callable[[str], str] = _coloured if sys.stdout.isatty() else str
    for each in change.diff().splitlines():
        click.echo(colour(_shown(each)))
    return yes or agreed("Change it?", "say --yes, once you have seen the change above")


def _shown(text: str) -> str:
    """Give a line of the settings without what could steer a terminal."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text[:_SHOWN_CHARS].expandtabs(2))


def _coloured(text: str) -> str:
    colour = {"+": "green", "-": "red", "@": "cyan"}.get(text[:1])
    return click.style(text, fg=colour) if colour else text


def _say(change: Change, backups: Backups, *, as_json: bool) -> None:
    agent: Agent = change.agent
    copy = backups.copy_of(change.path)
    kept = None if change.undo or change.before is None else str(copy)
    if as_json:
        told = {
            "agent": agent.name,
            "file": str(change.path),
            "changed": change.needed,
            "undone": change.undo,
            "backup": kept,
            "notes": change.notes,
        }
        click.echo(orjson.dumps(told).decode())
        return
    if not change.needed:
        click.echo(f"{change.path}: nothing to change.")
    elif change.undo:
        click.echo(f"{agent.title} is no longer connected.")
    else:
        click.echo(f"{agent.title} is connected." + (f" What {change.path} was is in {kept}." if kept else ""))
    for note in change.notes:
        click.echo(note)


__all__ = ["connect"]
