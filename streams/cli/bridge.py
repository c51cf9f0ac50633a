"""`traction bridge`: the bridge from a collector's topics in the foreground. Only words and options here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import click
from aiokafka.errors import KafkaError

from streams.access.roles import DEFAULT_LOGS_TOPIC, DEFAULT_SPANS_TOPIC
from streams.cli.loop import run
from streams.cli.member import member_options
from streams.cli.options import kafka_options, log_options, page_options
from streams.cli.output import announce
from streams.gateway.bridge import BridgeSettings
from streams.gateway.bridge_process import serve_bridge
from streams.kafka import KafkaUnavailable, unavailable
from streams.otlp import Encoding, InvalidRequest
from streams.page_settings import PageError
from streams.privacy import Level
from streams.topics import DEFAULT_APP_ID, TopicsError, bridge_group
from streams.transaction import PositionMoved
from streams.worker.faults import EXIT_LOST

if TYPE_CHECKING:
    from streams.kafka import KafkaSettings
    from streams.page_settings import PageSettings

DEFAULT_PORT = 9403

CollectorEncoding = Literal["otlp_proto", "otlp_json"]

ENCODINGS: dict[CollectorEncoding, Encoding] = {"otlp_proto": "protobuf", "otlp_json": "json"}
"""Encodings as the collector's Kafka exporter calls them."""


@click.command(
    epilog=f"""\b
Examples:
  traction bridge                                      topics otlp_spans and otlp_logs, in protobuf
  traction bridge --encoding otlp_json --no-logs --spans-topic traces
  traction bridge --bootstrap kafka:9092 --privacy excerpts

\b
The collector's exporter, in its configuration:
  kafka: {{brokers: ["kafka:9092"], partition_traces_by_id: true, required_acks: all}}

\b
When it has its partitions it prints one line, and again when they change:
  bridge ready: otlp_logs-0, otlp_spans-0; pages at http://127.0.0.1:{DEFAULT_PORT}
SIGTERM and Ctrl-C end it within seconds. Any number of them share the partitions.

\b
Exit codes:
  0  told to stop
  1  Kafka cannot be used, topics or rights are missing, or records are in protobuf and it cannot be read here
  2  wrong use
  {EXIT_LOST}  another process has taken over a partition, for example after this one was suspended: start it again
""",
)
@click.option("--app-id", default=DEFAULT_APP_ID, help="The workers' application id.")
@click.option("--group", help="Consumer group; also begins the transactional ids.  [default: APP_ID-bridge]")
@click.option("--spans-topic", default=DEFAULT_SPANS_TOPIC, help="Where the collector writes traces; without --prefix.")
@click.option("--logs-topic", default=DEFAULT_LOGS_TOPIC, help="Where it writes log records; without --prefix.")
@click.option("--no-spans", is_flag=True, help="Read no traces.")
@click.option("--no-logs", is_flag=True, help="Read no log records.")
@click.option(
    "--encoding",
    default="otlp_proto",
    type=click.Choice(get_args(CollectorEncoding)),
    help="How the collector writes them; protobuf needs the extra traction[otlp].",
)
@click.option(
    "--privacy",
    default="full",
    type=click.Choice(get_args(Level)),
    help="How much of tool calls' content goes on from here.",
)
@member_options
@kafka_options
@page_options(DEFAULT_PORT)
@log_options
def bridge(
    *,
    kafka: KafkaSettings,
    pages: PageSettings,
    app_id: str,
    group: str | None,
    spans_topic: str,
    logs_topic: str,
    no_spans: bool,
    no_logs: bool,
    encoding: CollectorEncoding,
    privacy: Level,
    session_timeout_ms: int,
    transaction_timeout_ms: int,
) -> int:
    """Bring OpenTelemetry's topics of a collector onto the agents' topics.

    A collector's record holds spans of many sessions; each tool call among them becomes an event under its session's
    key. Each record counts exactly once for readers of committed records, whatever crashes; what cannot be read becomes
    a dead letter. Spans without arguments or a session are counted, and detectors that need these abstain.
    """
    if no_spans and no_logs:
        raise click.UsageError("--no-spans and --no-logs leave nothing to read: leave one of them out.")
    settings = BridgeSettings(
        group=group or bridge_group(app_id),
        spans_topic=None if no_spans else spans_topic,
        logs_topic=None if no_logs else logs_topic,
        encoding=ENCODINGS[encoding],
        privacy=privacy,
        session_timeout_ms=session_timeout_ms,
        transaction_timeout_ms=transaction_timeout_ms,
    )
    try:
        return run(serve_bridge(kafka, settings, pages, announce))
    except (KafkaUnavailable, TopicsError, PageError, PositionMoved, InvalidRequest) as problem:
        raise click.ClickException(str(problem)) from problem
    except KafkaError as problem:  # refused for good: what can be retried is retried
        raise click.ClickException(str(unavailable(kafka, problem))) from problem
