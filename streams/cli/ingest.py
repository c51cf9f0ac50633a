"""`traction ingest`: the gateway in the foreground. Only words and options here."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import click
from aiokafka.errors import KafkaError

from streams.cli.loop import run
from streams.cli.options import Number, gateway_token_option, kafka_options, log_options, page_options
from streams.cli.output import announce
from streams.gateway.process import serve
from streams.gateway.settings import MAX_BODY_BYTES, MEBIBYTE, GatewaySettings
from streams.kafka import KafkaUnavailable, unavailable
from streams.page_settings import PageError
from streams.privacy import Level
from streams.reading import TooSlow
from streams.topics import TopicsError

if TYPE_CHECKING:
    from streams.kafka import KafkaSettings
    from streams.page_settings import PageSettings

DEFAULT_PORT = 8321
DEFAULTS = GatewaySettings()


@click.command(
    epilog=f"""\b
Examples:
  traction ingest                                      on this machine, for agents on it
  traction ingest --host 0.0.0.0 --gateway-token-file tokens --page-certfile cert.pem --page-keyfile key.pem
  traction ingest --privacy digests                    no text of tool calls goes on from here
  curl -H 'Content-Type: application/json' --data @event.json http://127.0.0.1:{DEFAULT_PORT}/v1/events/tool-calls
  OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:{DEFAULT_PORT} python agent.py

\b
When it takes requests it prints one line:
  ingest ready: http://127.0.0.1:{DEFAULT_PORT}
An answer of 200 says that the brokers have what was accepted. SIGTERM and Ctrl-C end it within seconds, after what is
in flight was answered. Any number of them may run.

\b
Exit codes:
  0  told to stop
  1  Kafka cannot be used, topics or rights are missing, or the address cannot be listened on
  2  wrong use or settings
""",
)
@gateway_token_option
@click.option(
    "--without-token", is_flag=True, help="Take requests of everyone who reaches --host, also from elsewhere."
)
@click.option(
    "--host-name",
    "host_names",
    multiple=True,
    metavar="NAME",
    help="A further name by which requests may call a gateway on this machine, as behind a proxy; may be repeated.",
)
@click.option(
    "--reviews", is_flag=True, help="Take reviews too, from whoever has a token: agents could approve themselves."
)
@click.option(
    "--privacy",
    default=DEFAULTS.privacy,
    type=click.Choice(get_args(Level)),
    help="How much of tool calls' content goes on from here, at most.",
)
@click.option(
    "--max-body",
    default=DEFAULTS.max_body_bytes // MEBIBYTE,
    type=click.IntRange(1, MAX_BODY_BYTES // MEBIBYTE),
    metavar="MIB",
    help="Longest body, as it comes and unpacked, in MiB.",
)
@click.option(
    "--max-requests",
    default=DEFAULTS.max_requests,
    type=click.IntRange(1),
    help="Most requests at once; one more: 429.",
)
@click.option(
    "--max-in-flight",
    default=DEFAULTS.max_bytes // MEBIBYTE,
    type=click.IntRange(2),
    metavar="MIB",
    help="Most MiB of all requests at once, with what is not acknowledged yet; more: 429.",
)
@click.option(
    "--ack-timeout",
    default=DEFAULTS.ack_seconds,
    type=Number(0.1, 60),
    metavar="SECONDS",
    help="How long the brokers may take to acknowledge a request's events; longer: 503.",
)
@kafka_options
@page_options(DEFAULT_PORT, "the gateway and its pages /metrics, /healthz and /readyz")
@log_options
def ingest(
    *,
    kafka: KafkaSettings,
    pages: PageSettings,
    tokens: tuple[str, ...],
    without_token: bool,
    host_names: tuple[str, ...],
    reviews: bool,
    privacy: Level,
    max_body: int,
    max_requests: int,
    max_in_flight: int,
    ack_timeout: float,
) -> None:
    """Take agents' events, OpenTelemetry and hooks over HTTP.

    For whatever speaks no Kafka: events as JSON, NDJSON or CloudEvents, traces and logs of OpenTelemetry's exporters,
    hooks of coding agents. What cannot be read is refused item by item, with the reason. Answers tell what holds for
    the session: guidance, a pause, the end.
    """
    if tokens and without_token:
        raise click.UsageError("--without-token contradicts the token that is given: leave one of them out.")
    if not (tokens or without_token or pages.local):
        raise click.UsageError(
            f"everyone who reaches {pages.host} could write events: give --gateway-token-file, or --without-token if "
            "that is meant."
        )
    try:
        settings = GatewaySettings(
            tokens=tokens,
            names=host_names,
            reviews=reviews,
            privacy=privacy,
            max_body_bytes=max_body * MEBIBYTE,
            max_requests=max_requests,
            max_bytes=max_in_flight * MEBIBYTE,
            ack_seconds=ack_timeout,
        )
    except ValueError as problem:
        raise click.UsageError(str(problem)) from problem
    try:
        run(serve(kafka, settings, pages, announce))
    except (KafkaUnavailable, TopicsError, PageError, TooSlow) as problem:
        raise click.ClickException(str(problem)) from problem
    except KafkaError as problem:
        raise click.ClickException(str(unavailable(kafka, problem))) from problem
