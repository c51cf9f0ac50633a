"""`traction topics`: creates, lists, checks and compares the topics.

Only words and options here; `streams.topics` and its neighbours do it.
"""

from __future__ import annotations

import asyncio
import functools
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click
import orjson
from aiokafka.errors import KafkaError

from streams.access.roles import Names
from streams.cli.layout import layout_option, with_layout
from streams.cli.options import kafka_options, log_options
from streams.cli.partitions import plan_partitions
from streams.cli.rewind import rewind
from streams.kafka import KafkaUnavailable, unavailable
from streams.topic_check import judge
from streams.topic_diff import diff_topics, find_topics
from streams.topics import (
    DEFAULT_APP_ID,
    DEFAULT_PARTITIONS,
    Found,
    TopicsError,
    create_topics,
    default_group,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from pathlib import Path

    from streams.cli.options import Command
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


@dataclass(frozen=True, slots=True)
class Wanted:
    """The topics that are asked for: arguments of `create_topics` and `diff_topics`."""

    partitions: int
    replication: int | None
    app_id: str
    group: str | None
    config: Mapping[str, Mapping[str, str]]


def wanted_options(command: Command) -> Command:
    """Give a command the topics as they should be, as its argument `wanted`, a `Wanted`."""

    @layout_option
    @click.option(
        "--partitions",
        type=click.IntRange(1, 10_000),
        help="Of every topic with many writers: the most workers that can share the load. Cannot be raised later.  "
        f"[default: the layout's, or else {DEFAULT_PARTITIONS}]",
    )
    @click.option(
        "--replication",
        type=click.IntRange(1, 100),
        help="Copies of each partition.  "
        "[default: the layout's, or else 3, or as many as there are brokers when these are fewer]",
    )
    @app_id_option
    @group_option
    @json_option
    @kafka_options
    @log_options
    @functools.wraps(command)
    def with_wanted(
        *,
        kafka: KafkaSettings,
        layout_file: Path | None,
        partitions: int | None,
        replication: int | None,
        app_id: str,
        group: str | None,
        **others: Any,
    ) -> Any:
        said = with_layout(layout_file)
        names = Names(prefix=kafka.prefix, app_id=app_id, group=group or default_group(app_id))
        wanted = Wanted(
            _one("partitions", partitions, said.topics.partitions) or DEFAULT_PARTITIONS,
            _one("replication", replication, said.topics.replication),
            app_id,
            group,
            said.configs(names),
        )
        return command(kafka=kafka, wanted=wanted, **others)

    return with_wanted


def _one(name: str, option: int | None, layout: int | None) -> int | None:
    if option is not None and layout is not None and option != layout:
        raise click.UsageError(f"--{name} is {option}, and the layout says {layout}: leave one of them out.")
    return layout if option is None else option


@click.group(
    epilog="""\b
Exit codes:
  0  all is well
  1  topics are missing, differ or do not fit together, or Kafka cannot be used
  2  wrong use
""",
)
def topics() -> None:
    """Create, check and compare the topics.

    Neither the worker nor the escalation consumer creates a topic: one with the brokers' defaults could split sessions
    over partitions or lose state.
    """


@topics.command(
    epilog="""\b
Examples:
  traction topics create
  traction topics create --bootstrap kafka:9092 --partitions 32 --replication 3
  traction topics create --layout deploy/kafka.toml
  traction topics create --prefix staging.agent. --app-id traction-staging
""",
)
@wanted_options
def create(*, kafka: KafkaSettings, wanted: Wanted, as_json: bool) -> None:
    """Create the topics that are missing.

    Existing topics are left as they are and named; one with another number of partitions is an error.
    """
    outcomes = _run(kafka, lambda: create_topics(kafka, **asdict(wanted)), as_json=as_json)
    if as_json:
        _print({"ok": True, "topics": outcomes})
        return
    for name, outcome in outcomes.items():
        click.echo(f"{outcome:<8} {name}")


@topics.command(
    epilog="""\b
Examples:
  traction topics diff --layout deploy/kafka.toml
  traction topics diff --layout deploy/kafka.toml --bootstrap kafka:9092 --json

\b
Exit codes:
  0  the topics are as they should be
  1  they differ, or Kafka cannot be used
  2  wrong use
""",
)
@wanted_options
def diff(*, kafka: KafkaSettings, wanted: Wanted, as_json: bool) -> int:
    """Tell what on the brokers is otherwise than create would make it, and how to mend it.

    Compared are partitions, replication, what we configure, and what somebody configured besides. Whether processes can
    work with what is there, check says.
    """
    found = _run(kafka, lambda: diff_topics(kafka, **asdict(wanted)), as_json=as_json)
    if as_json:
        _print({"ok": not found.any, "missing": found.missing, "different": [asdict(one) for one in found.different]})
        return int(found.any)
    for name in found.missing:
        click.echo(f"{name}: missing, or not shown to us for want of rights")
    for one in found.different:
        click.echo(str(one))
    for remedy in found.remedies(kafka.bootstrap):
        click.echo(remedy, err=True)
    if not found.any:
        click.echo("all topics are as they should be")
    return int(found.any)


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


def _run(kafka: KafkaSettings, work: Callable[[], Coroutine[Any, Any, T]], *, as_json: bool) -> T:
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


for each in (plan_partitions, rewind):
    topics.add_command(each)


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
