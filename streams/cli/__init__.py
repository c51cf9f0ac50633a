"""The command line: the `traction` group, its settings and its exit codes. One command per file in this directory.

A command is imported only when it is run or the settings file has a table for it, so that `traction --help` answers at
once and a broken dependency of one command does not take the others down. Commands return nothing or an exit code.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import NamedTuple

import click

from streams.cli.output import OutputError, guard, tell
from streams.cli.sections import arrange
from streams.config import LIMITS_TABLE, Config, ConfigError, flag, load
from streams.masking import mask_failures, masked

VARIABLES = "TRACTION"
"""What the names of all environment variables start with."""

EXIT_INTERRUPTED = 130
"""128 + SIGINT, as a shell reports a command that Ctrl-C ended."""


class Entry(NamedTuple):
    """Where a command is and what it does, so that help needs no import."""

    target: str
    summary: str


COMMANDS = {
    "broker": Entry("streams.cli.broker:broker", "Run an Apache Kafka broker for development and tests."),
    "topics": Entry("streams.cli.topics:topics", "Create, check and compare the topics."),
    "acl": Entry("streams.cli.acl:acl", "See, create and compare who may do what on the brokers (ACLs)."),
    "worker": Entry("streams.cli.worker:worker", "Read agents' events, detect wheelspin, write alerts."),
    "escalate": Entry(
        "streams.cli.escalate:escalate", "Do what the policy says about loops, step by step, until they end."
    ),
    "ingest": Entry("streams.cli.ingest:ingest", "Take agents' events, OpenTelemetry and hooks over HTTP."),
    "bridge": Entry(
        "streams.cli.bridge:bridge", "Bring OpenTelemetry's topics of a collector onto the agents' topics."
    ),
    "follow": Entry(
        "streams.cli.follow:follow", "Send the events of transcripts as they are written, for agents without hooks."
    ),
    "connect": Entry("streams.cli.connect:connect", "Connect an agent to the gateway through its hooks."),
    "sessions": Entry("streams.cli.sessions:sessions", "See how sessions stand; resume, mute or terminate one."),
    "tasks": Entry(
        "streams.cli.tasks:tasks",
        "See which tasks flap and how far they have climbed; clear one, so that it is tried again.",
    ),
    "alerts": Entry("streams.cli.alerts:alerts", "Follow alerts as they come; say that one was wrong."),
    "forget": Entry(
        "streams.cli.forget:forget", "Have a session or task forgotten, and say what stays where and for how long."
    ),
    "dead-letters": Entry(
        "streams.cli.dead_letters:dead_letters",
        "See what was refused and why; put it back once what was wrong is mended.",
    ),
    "fitness": Entry("streams.cli.fitness:fitness", "Tell how configurations of agents fare with types of tasks."),
    "policy": Entry("streams.cli.policy:policy", "Check a policy file, and see what it says for a session."),
    "sinks": Entry("streams.cli.sinks:sinks", "See who is told, and try it out."),
    "settings": Entry(
        "streams.cli.settings:settings", "See which settings are in force for a command, and where each comes from."
    ),
    "metrics": Entry("streams.cli.metrics:metrics", "List the metrics of all processes."),
    "replay": Entry("streams.cli.replay:replay", "Run the detectors over recorded sessions, in files or directories."),
    "backtest": Entry(
        "streams.cli.backtest:backtest", "Score the detectors on recorded sessions that a person has labelled."
    ),
    "train": Entry("streams.cli.train:train", "Learn the weights of the spin score from recorded, labelled sessions."),
    "fixes": Entry("streams.cli.fixes:fixes", "Record fix attempts, and tell when the next goes round in a circle."),
    "demo": Entry("streams.cli.demo:demo", "Show Traction at work: agents that spin, and what is done about them."),
}


class LazyGroup(click.Group):
    """A group that knows its commands' names and summaries, and imports one only when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands in the order in which one meets them."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None when there is none of that name."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].target.partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        name_variables(command, f"{VARIABLES}_{cmd_name.upper().replace('-', '_')}")
        arrange(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing one."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])


def name_variables(command: click.Command, prefix: str) -> None:
    """Name the environment variables after the flags; click names them after the functions' parameters.

    Args:
        command: the command whose options get a variable.
        prefix: what their names start with.
    """
    for option in command.params:
        if isinstance(option, click.Option) and flag(option) != option.name:
            option.envvar = f"{prefix}_{flag(option).upper()}"
    for name, subcommand in command.commands.items() if isinstance(command, click.Group) else ():
        name_variables(subcommand, f"{prefix}_{name.upper()}")


@click.group(
    cls=LazyGroup,
    context_settings={
        "auto_envvar_prefix": VARIABLES,
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "show_default": True,
    },
    epilog="""\b
Settings are taken from flags, else from the environment, else from the TOML file:
  traction worker --bootstrap kafka:9092
  TRACTION_WORKER_BOOTSTRAP=kafka:9092 traction worker
  TRACTION_BOOTSTRAP=kafka:9092 traction worker        (for all commands)
  traction --config traction.toml worker

\b
traction.toml:
  [traction]                     # for all commands
  bootstrap = "kafka:9092"
  [worker]                       # one table per command: its flags, with _ for -
  ...
  [limits]                       # the detectors' limits
  ...
""",
)
@click.version_option(package_name="traction")
@click.option(
    "--config",
    "config_file",
    envvar="TRACTION_CONFIG",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.toml",
    help="Take settings from this file.  [env: TRACTION_CONFIG]",
)
@click.pass_context
def traction(ctx: click.Context, config_file: Path | None) -> None:
    """Wheelspin detection for AI agents.

    Reads what agents do as a stream of events, notices sessions that spin (the same call again and again, a circle of
    calls, failure after failure), and cuts in: warns, guides, or terminates.
    """
    config = Config() if config_file is None else load(config_file, COMMANDS)
    ctx.obj = config
    if config.path is None:
        return
    for name in COMMANDS:
        wanted = name == ctx.invoked_subcommand
        command = traction.get_command(ctx, name) if wanted or name in config.tables else None
        if command is not None and wanted:
            ctx.default_map = {name: config.defaults(name, command)}
        elif command is not None:
            config.check(name, command)
    if config.limits:
        check_limits(config)


def check_limits(config: Config) -> None:
    """Check the detectors' limits, whatever command is run.

    Raises:
        ConfigError: a limit does not exist or has a value it cannot have.
    """
    from detectors import InvalidLimits, limits_from  # noqa: PLC0415 - only for those who set limits

    try:
        limits_from([(f"{config.path}: table [{LIMITS_TABLE}]", config.limits)])
    except InvalidLimits as problem:
        raise ConfigError(str(problem)) from problem


def main() -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 wrong use, 130 interrupted, 141 nobody reads the output."""
    guard()
    mask_failures()
    try:
        code = run()
    except OutputError as problem:
        tell(problem)
        code = problem.exit_code
    sys.exit(code)


def run() -> int:
    """Run the command line and give the exit code; what is wrong is told.

    Raises:
        OutputError: what was to be told cannot be.
    """
    try:
        code = traction.main(prog_name="traction", standalone_mode=False)
    except click.ClickException as problem:
        problem.message = masked(problem.message)
        problem.show()
        return problem.exit_code
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    return code if isinstance(code, int) else 0
