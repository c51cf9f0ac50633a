"""`traction topics rewind`: have workers read everything again after their changelogs were lost.

Only words and options here; `streams.rewind` moves the offsets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from streams.cli.looking import json_option, line, run
from streams.cli.options import kafka_options, log_options
from streams.rewind import rewind as move
from streams.topics import DEFAULT_APP_ID

if TYPE_CHECKING:
    from streams.kafka import KafkaSettings


@click.command(
    epilog="""\b
Examples:
  traction topics rewind
  traction topics rewind --yes

\b
Exit codes:
  0    done, or told what would be done
  1    workers run, something is remembered, topics are missing, or Kafka cannot be used
  2    wrong use
  130  interrupted
""",
)
@click.option("--yes", is_flag=True, help="Do it; without this, only tell what would be read again.")
@json_option
@click.option("--app-id", default=DEFAULT_APP_ID, help="The workers' application id, which is their group's name too.")
@kafka_options
@log_options
def rewind(*, kafka: KafkaSettings, app_id: str, yes: bool, as_json: bool) -> None:
    """Have workers read their inputs from the beginning, once their changelogs were lost and created anew.

    All workers must be stopped. Alerts of what is read again come again with the ids that they had.
    """
    told = run(kafka, lambda: move(kafka, app_id, write=yes))
    if as_json:
        line({"written": yes, "again": told.again, "passed": told.passed})
        return
    for topic, count in told.again.items():
        click.echo(f"{count:>10} records of {topic} {'are' if yes else 'would be'} read again")
    click.echo(f"{told.passed:>10} records that workers told tasks {'are' if yes else 'would be'} passed over")
    if not yes:
        click.echo("nothing was written: say --yes")
