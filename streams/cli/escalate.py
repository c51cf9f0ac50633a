"""`traction escalate`: the escalation consumer in the foreground. Only words and options here."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import click
from aiokafka.errors import KafkaError

from schemas import topics
from streams.cli.options import Number, kafka_options, log_options, page_options
from streams.cli.output import announce
from streams.escalation.consumer import EscalationSettings, PositionMoved
from streams.escalation.policy import PolicySettings
from streams.escalation.process import serve
from streams.kafka import KafkaUnavailable, unavailable
from streams.pages import PageError
from streams.topics import TopicsError

if TYPE_CHECKING:
    from streams.kafka import KafkaSettings
    from streams.pages import PageSettings

DEFAULT_PORT = 9402


@click.command(
    epilog="""\b
Examples:
  traction escalate                                    with Kafka on this machine
  traction escalate --bootstrap kafka-1:9092,kafka-2:9092 --host 0.0.0.0
  traction escalate --port 0                           beside another one, pages on any free port

\b
When it has its partitions it prints one line, and again when they change:
  escalation ready: partitions 0, 1, 2 of agent.alerts; pages at http://127.0.0.1:9402
SIGTERM and Ctrl-C end it within seconds. Run as many as there are partitions of the alerts; they share them.

\b
Exit codes:
  0  told to stop
  1  Kafka cannot be used, or topics are missing
  2  wrong use
  3  another process has taken over a partition, for example after this one was suspended: start it again
""",
)
@click.option("--group", default="traction-escalation", help="Consumer group; also begins the transactional ids.")
@click.option(
    "--guidance-minutes",
    default=15.0,
    type=Number(0, 3_650, min_open=True),
    help="How long guidance may be carried out.",
)
@click.option(
    "--flapping-days",
    default=7.0,
    type=Number(0, 3_650, min_open=True),
    help="How long a task stays listed as not to be retried without a person.",
)
@click.option(
    "--remember",
    default=10_000,
    type=click.IntRange(0),
    metavar="RECORDS",
    help="Alerts remembered per partition, so that a repeated one is dropped; read again at the start.",
)
@click.option(
    "--session-timeout",
    default=30.0,
    type=Number(1, 1800),
    metavar="SECONDS",
    help="Without a sign of life for that long, its partitions go to others.",
)
@click.option(
    "--transaction-timeout",
    default=30.0,
    type=Number(1, 900),
    metavar="SECONDS",
    help="After that long the brokers abort a transaction that was left open.",
)
@kafka_options
@page_options(DEFAULT_PORT)
@log_options
def escalate(
    *,
    kafka: KafkaSettings,
    pages: PageSettings,
    group: str,
    guidance_minutes: float,
    flapping_days: float,
    remember: int,
    session_timeout: float,
    transaction_timeout: float,
) -> int:
    """Turn alerts into directives and terminations.

    Reads the alerts. A warning becomes guidance for the agent on the topic of directives; a termination becomes a
    verdict with a report on the topic of terminations, and its task is listed as known to flap. Each happens exactly
    once for readers of committed records, whatever crashes. Alerts that are muted or only observed ask nothing of
    anyone.
    """
    settings = EscalationSettings(
        group=group,
        session_timeout_ms=round(session_timeout * 1000),
        transaction_timeout_ms=round(transaction_timeout * 1000),
        remember=remember,
    )
    policy = PolicySettings(
        control_topic=kafka.topic(topics.CONTROL),
        guidance_expires=timedelta(minutes=guidance_minutes),
        flapping_expires=timedelta(days=flapping_days),
    )
    try:
        return asyncio.run(serve(kafka, settings, policy, pages, announce))
    except (KafkaUnavailable, TopicsError, PageError, PositionMoved) as problem:
        raise click.ClickException(str(problem)) from problem
    except KafkaError as problem:  # refused for good: what can be retried is retried
        raise click.ClickException(str(unavailable(kafka, problem))) from problem
