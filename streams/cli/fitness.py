"""`traction fitness`: how configurations of agents fare with types of tasks. Only words and options here."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, cast

import click

from schemas.topics import FITNESS
from streams.cli.looking import json_option, line, reading_options, run, table
from streams.client.fitness import FitnessTotals, total
from streams.client.tables import table as table_of

if TYPE_CHECKING:
    from schemas.outputs import Fitness
    from streams.kafka import KafkaSettings

SORTS = ("score", "tasks", "attempts", "converged", "flapped", "tokens", "cost_usd")
"""What may be sorted by, the highest first."""


@click.command(
    epilog="""\b
Examples:
  traction fitness
  traction fitness --task-type bugfix --sort flapped
  traction fitness --json                            the one that fares best is on the first line

\b
SCORE is the share of tasks that converged among those that converged or flapped, with one of each added: 0.5 where
nothing is known. FLAPPED are tasks about which a person was called, or that were abandoned or terminated.

\b
Exit codes:
  0    done, also when nothing was counted yet
  1    Kafka cannot be used, or the topic is missing
  2    wrong use
  130  interrupted
""",
)
@click.option("--task-type", metavar="TYPE", help="Only tasks of this type; `` for those without one.")
@click.option("--sort", default="score", type=click.Choice(SORTS), help="What comes first: the most of this.")
@json_option
@reading_options
def fitness(*, kafka: KafkaSettings, timeout: float, task_type: str | None, sort: str, as_json: bool) -> None:
    """Tell how configurations of agents fare with types of tasks.

    How many tasks converged, how many flapped, and what they cost.
    """

    async def look() -> list[FitnessTotals]:
        async with table_of(kafka, FITNESS, seconds=timeout) as records:
            return total((cast("Fitness", each) for each in (await records.latest()).values()), task_type)

    rows = sorted(run(kafka, look), key=lambda row: getattr(row, sort), reverse=True)
    if as_json:
        for row in rows:
            rates = {"score": row.score, "convergence_rate": row.convergence_rate, "flapping_rate": row.flapping_rate}
            line(asdict(row) | rates)
    elif rows:
        table(
            ("CONFIGURATION", "TASK TYPE", "TASKS", "ATTEMPTS", "CONVERGED", "FLAPPED", "SCORE", "TOKENS", "COST"),
            map(_cells, rows),
        )
    else:
        click.echo("nothing was counted yet" if task_type is None else "nothing was counted yet of this type of task")


def _cells(row: FitnessTotals) -> tuple[str, ...]:
    return (
        row.label,
        row.task_type or "-",
        f"{row.tasks:,}",
        f"{row.attempts:,}",
        f"{row.converged:,} ({row.convergence_rate:.0%})",
        f"{row.flapped:,} ({row.flapping_rate:.0%})",
        f"{row.score:.2f}",
        f"{row.tokens:,}",
        f"${row.cost_usd:,.2f}",
    )
