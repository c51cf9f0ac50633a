"""`traction topics plan-partitions`: what more partitions would do to sessions and tasks, before anybody adds them.

Only words and options here; `streams.rehash` counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from streams.cli.looking import json_option, line, reading_options, run, table
from streams.rehash import rehash
from streams.topics import DEFAULT_APP_ID, default_group

if TYPE_CHECKING:
    from streams.kafka import KafkaSettings

EXIT_SPLIT = 1

STEPS = (
    "Do not add partitions to these topics. Make others beside them, and let these run out:",
    "  1. traction topics create --partitions {wanted}, with a --prefix and an --app-id of their own",
    "  2. start workers, escalation, gateways with these; give them the same policy and exceptions",
    "  3. have agents' new sessions go there; those under way stay where they are",
    "  4. when `traction topics plan-partitions` finds nothing remembered here, stop the old processes",
)


@click.command(
    "plan-partitions",
    epilog="""\b
Examples:
  traction topics plan-partitions 32
  traction topics plan-partitions 32 --bootstrap kafka:9092 --json

\b
Exit codes:
  0    nothing that is remembered would be split from its next event
  1    sessions or tasks would be split, the topics do not agree, or Kafka cannot be used
  2    wrong use
  130  interrupted
""",
)
@click.argument("wanted", metavar="PARTITIONS", type=click.IntRange(1, 10_000))
@json_option
@click.option("--app-id", default=DEFAULT_APP_ID, help="The workers' application id.")
@click.option("--group", help="Group of traction escalate; names its ladders.  [default: APP_ID-escalation]")
@reading_options
def plan_partitions(
    *, kafka: KafkaSettings, timeout: float, wanted: int, app_id: str, group: str | None, as_json: bool
) -> int:
    """Tell how many sessions and tasks would lose their state if there were so many partitions, and what to do instead.

    Keys move to other partitions when some are added, and what workers remember stays behind. It reads the topics of
    states and changes nothing.
    """
    told = run(
        kafka, lambda: rehash(kafka, wanted, app_id=app_id, group=group or default_group(app_id), seconds=timeout)
    )
    if as_json:
        line({"safe": told.safe, "partitions": told.partitions, "problems": told.problems, "moves": told.moves})
        return 0 if told.safe else EXIT_SPLIT
    rows = [(each.topic, str(each.kept), str(each.moved), str(each.astray)) for each in told.moves]
    table(("STATES IN", "REMEMBERED", "WOULD MOVE", "ASTRAY NOW"), rows)
    for problem in told.problems:
        click.echo(f"problem: {problem}", err=True)
    if told.safe:
        click.echo("nothing that is remembered would be split from its next event")
        return 0
    click.echo()
    for step in STEPS:
        click.echo(step.format(wanted=wanted))
    return EXIT_SPLIT
