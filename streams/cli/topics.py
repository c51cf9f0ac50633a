"""`traction topics`: creates, lists and checks the topics. Only words and options here; `streams.topics` does it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import click
import orjson
from aiokafka.errors import KafkaError

from streams.cli.options import kafka_options, log_options
from streams.kafka import KafkaUnavailable, unavailable
from streams.topic_check import judge
from streams.topics import (
    DEFAULT_APP_ID,
    DEFAULT_PARTITIONS,
    Found,
    TopicsError,
    create_topics,
    find_topics,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from streams.kafka import KafkaSettings

T = TypeVar("T")

TELLING = ("cleanup.policy", "retention.ms", "max.message.bytes", "min.insync.replicas", "message.timestamp.type")
"""What is shown of a topic's configuration: what we set."""

TELLING_COMPACTED = ("delete.retention.ms", "max.compaction.lag.ms", "segment.bytes")
"""The same of topics that are compacted and nothing else."""

app_id_option = click.option(
    "--app-id", default=DEFAULT_APP_ID, help="The worker's application id; begins the names of its own topics."
)
group_option = click.option(
    "--group",
    help="The escalation consumer's group; begins the name of its own topic.  [default: APP_ID-escalation]",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@click.group(
    epilog="""\b
Exit codes:
  0  all is well
  1  topics are missing or do not fit together, or Kafka cannot be used
  2  wrong use
""",
)
def topics() -> None:
    """Create and check the topics.

    Neither the worker nor the escalation consumer creates a topic: one with the brokers' defaults could split sessions
    over partitions or lose state.
    """


@topics.command(
    epilog="""\b
Examples:
  traction topics create
  traction topics create --bootstrap kafka:9092 --partitions 32 --replication 3
  traction topics create --prefix staging.agent. --app-id traction-staging
""",
)
@click.option(
    "--partitions",
    default=DEFAULT_PARTITIONS,
    type=click.IntRange(1, 10_000),
    help="Of every topic with many writers: the most workers that can share the load. Cannot be raised later.",
)
@click.option(
    "--replication",
    type=click.IntRange(1, 100),
    help="Copies of each partition.  [default: 3, or as many as there are brokers when these are fewer]",
)
@app_id_option
@group_option
@json_option
@kafka_options
@log_options
def create(
    *, kafka: KafkaSettings, partitions: int, replication: int | None, app_id: str, group: str | None, as_json: bool
) -> None:
    """Create the topics that are missing.

    Existing topics are left as they are and named; one with another number of partitions is an error.
    """
    outcomes = _run(
        kafka,
        lambda: create_topics(kafka, partitions=partitions, replication=replication, app_id=app_id, group=group),
        as_json=as_json,
    )
    if as_json:
        _print({"ok": True, "topics": outcomes})
        return
    for name, outcome in outcomes.items():
        click.echo(f"{outcome:<8} {name}")


@topics.command("list")
@app_id_option
@group_option
@json_option
@kafka_options
@log_options
def list_topics(*, kafka: KafkaSettings, app_id: str, group: str | None, as_json: bool) -> None:
    """List the topics as they are."""
    found = _run(kafka, lambda: find_topics(kafka, app_id=app_id, group=group), as_json=as_json)
    if as_json:
        _print({"ok": True, "topics": {name: _builtins(topic) for name, topic in found.items()}})
        return
    width = max(map(len, found))
    for name, topic in found.items():
        click.echo(f"{name:<{width}}  {_described(topic)}")


@topics.command()
@app_id_option
@group_option
@json_option
@kafka_options
@log_options
def check(*, kafka: KafkaSettings, app_id: str, group: str | None, as_json: bool) -> int:
    """Check that the topics are there and fit together."""
    found = _run(kafka, lambda: find_topics(kafka, app_id=app_id, group=group), as_json=as_json)
    problems = judge(kafka, found, app_id, group)
    if as_json:
        _print({"ok": not problems, "problems": problems})
    else:
        for problem in problems:
            click.echo(problem, err=True)
        if not problems:
            click.echo(f"all {len(found)} topics are there and fit together")
    return 1 if problems else 0


def _run(kafka: KafkaSettings, work: Callable[[], Coroutine[Any, Any, dict[str, T]]], *, as_json: bool) -> dict[str, T]:
    """Run a coroutine; what is wrong with the topics or the brokers is told in words, and ends with 1."""
    try:
        return asyncio.run(work())
    except (KafkaUnavailable, TopicsError) as problem:
        said = str(problem)
    except (KafkaError, TimeoutError) as problem:
        said = str(unavailable(kafka, problem))
    if as_json:
        _print({"ok": False, "problems": said.splitlines()})
        raise click.exceptions.Exit(1)
    raise click.ClickException(said)


def _print(value: dict[str, Any]) -> None:
    click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())


def _builtins(topic: Found | None) -> dict[str, Any] | None:
    if topic is None:
        return None
    return {"partitions": topic.partitions, "replication": topic.replication, "config": _telling(topic)}


def _described(topic: Found | None) -> str:
    if topic is None:
        return "missing"
    config = "  ".join(f"{name}={value}" for name, value in _telling(topic).items())
    return f"partitions={topic.partitions}  replication={topic.replication}  {config}"


def _telling(topic: Found) -> dict[str, str]:
    if topic.config.get("cleanup.policy") == "compact":
        names = [name for name in TELLING if name != "retention.ms"] + list(TELLING_COMPACTED)
    else:
        names = list(TELLING)
    return {name: topic.config[name] for name in names if name in topic.config}
