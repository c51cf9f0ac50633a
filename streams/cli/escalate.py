"""`traction escalate`: the escalation consumer in the foreground. Only words and options here."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click
from aiokafka.errors import KafkaError

from detectors import limits_from
from streams.cli.member import member_options
from streams.cli.options import kafka_options, log_options, page_options, policy_option, with_policy
from streams.cli.output import announce
from streams.config import Config
from streams.escalation.consumer import EscalationSettings
from streams.escalation.ownership import PartitionsApart
from streams.escalation.process import serve
from streams.escalation.restore import UnreadableLadder
from streams.kafka import KafkaUnavailable, unavailable
from streams.page_settings import PageError
from streams.sinks.errors import InvalidSinks
from streams.topics import DEFAULT_APP_ID, TopicsError, default_group
from streams.transaction import PositionMoved

if TYPE_CHECKING:
    from pathlib import Path

    from streams.kafka import KafkaSettings
    from streams.page_settings import PageSettings

DEFAULT_PORT = 9402


@click.command(
    epilog="""\b
Examples:
  traction escalate                                    with Kafka on this machine
  traction escalate --policy policy.toml               responses and sinks of one's own; the file may change any time
  traction escalate --bootstrap kafka-1:9092,kafka-2:9092 --host 0.0.0.0
  traction escalate --port 0                           beside another one, pages on any free port

\b
When it has its partitions it prints one line, and again when they change:
  escalation ready: partitions 0, 1, 2 of agent.alerts; pages at http://127.0.0.1:9402
SIGTERM and Ctrl-C end it within seconds, SIGHUP has it read the policy again at once. Run as many as there are
partitions of the alerts; they share them.

\b
Exit codes:
  0  told to stop
  1  Kafka cannot be used, topics are missing, or what was done about a task cannot be read
  2  wrong use, a policy that cannot be used among it
  3  another process has taken over a partition, for example after this one was suspended: start it again
""",
)
@click.option(
    "--group",
    help="Consumer group; also begins the transactional ids, and the name of the topic that keeps what was done.  "
    "[default: APP_ID-escalation]",
)
@click.option("--app-id", default=DEFAULT_APP_ID, help="The workers' application id: whose answers are read.")
@policy_option
@member_options
@kafka_options
@page_options(DEFAULT_PORT)
@log_options
@click.pass_obj
def escalate(
    config: Config | None,
    *,
    kafka: KafkaSettings,
    pages: PageSettings,
    group: str | None,
    app_id: str,
    policy_file: Path | None,
    session_timeout_ms: int,
    transaction_timeout_ms: int,
) -> int:
    """Do what the policy says about loops, step by step, until they end.

    Reads alerts, and what people and orchestrators answer. Warnings climb a ladder: guidance, a cooldown, another
    strategy, a person's help. A termination becomes a verdict with a report, is repeated until it is answered, and its
    task is listed as known to flap. People are told by the sinks of the policy. Each happens exactly once for readers
    of committed records, whatever crashes. Alerts that are muted or only observed ask nothing of anyone.
    """
    settings = EscalationSettings(
        group=group or default_group(app_id),
        app_id=app_id,
        session_timeout_ms=session_timeout_ms,
        transaction_timeout_ms=transaction_timeout_ms,
    )
    policy = with_policy(limits_from((config or Config()).layers), policy_file)
    try:
        return asyncio.run(serve(kafka, settings, policy, pages, announce))
    except InvalidSinks as problem:
        raise click.UsageError(f"--policy {problem}") from problem
    except (
        KafkaUnavailable,
        TopicsError,
        PageError,
        PartitionsApart,
        PositionMoved,
        UnreadableLadder,
    ) as problem:
        raise click.ClickException(str(problem)) from problem
    except KafkaError as problem:  # refused for good: what can be retried is retried
        raise click.ClickException(str(unavailable(kafka, problem))) from problem
