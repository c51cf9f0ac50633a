"""Options that many commands share, and help in sections: a command's own options first, then how it reaches Kafka.

Only where a value may come from, and the order in which options are told; it must leave none out.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any, Final

import click

from streams.config import flag

CONNECTION: Final = "Connection to Kafka"
PAGES: Final = "Pages"

_OWN: Final = "Options"


class SharedOption(click.Option):
    """An option that the environment may set for one command (TRACTION_WORKER_PREFIX) or for all (TRACTION_PREFIX).

    Attributes:
        section: title of the section in which its help stands; empty for that of the command's own.
    """

    def __init__(self, *declared: Any, section: str = "", **attributes: Any) -> None:
        super().__init__(*declared, **attributes)
        self.section = section

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """Find the option's value in the environment: the command's own variable comes first."""
        return super().resolve_envvar_value(ctx) or os.environ.get(f"TRACTION_{flag(self).upper()}") or None


def arrange(command: click.Command) -> None:
    """Have a command, and those below it, write their help in sections."""
    if isinstance(command, click.Group):
        for subcommand in command.commands.values():
            arrange(subcommand)
    else:
        command.format_options = partial(_write, command)  # type: ignore[method-assign] # a class would be for each to name


def _write(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    found: dict[str, list[tuple[str, str]]] = {_OWN: []}
    for param in command.get_params(ctx):
        record = param.get_help_record(ctx)
        if record is not None:
            found.setdefault(getattr(param, "section", "") or _OWN, []).append(record)
    for title, records in found.items():
        if records:
            with formatter.section(title):
                formatter.write_dl(records)
