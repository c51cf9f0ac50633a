"""`traction metrics`: which metrics the processes have, from their code. Only words and options here."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, get_args

import click

from streams.cli.looking import json_option, line
from streams.metric_list import Process, listed

if TYPE_CHECKING:
    from streams.metric_list import Listed


@click.command(
    epilog="""\b
Examples:
  traction metrics
  traction metrics --process worker
  traction metrics --process worker --json           one metric on each line, as JSON

\b
A label whose values are not shown takes what the deployment has: partitions, sinks, names; how many is bounded.
Topics are those of the default settings. A histogram NAME is queried as NAME_bucket, NAME_sum and NAME_count.

\b
Exit codes:
  0    done
  2    wrong use
  130  interrupted
""",
)
@click.option("--process", type=click.Choice(get_args(Process)), help="Only what is on the page of this process.")
@json_option
def metrics(*, process: Process | None, as_json: bool) -> None:
    """List the metrics of all processes.

    Names, types, labels, units, and on whose page they are. They are read from the code of this version; no process is
    asked.
    """
    for one in listed(process):
        if as_json:
            line(asdict(one))
        else:
            _tell(one)


def _tell(one: Listed) -> None:
    unit = f", {one.unit}" if one.unit else ""
    click.echo(f"{click.style(one.name, bold=True)}  ({one.type}{unit}; {', '.join(one.pages)})")
    click.echo(f"    {one.help}")
    for label, values in one.labels.items():
        click.echo(f"    {label}: {', '.join(values)}" if values else f"    {label}")
    if one.buckets:
        click.echo(f"    buckets: {', '.join(f'{edge:g}' for edge in one.buckets)}")
