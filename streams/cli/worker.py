"""`traction worker`: reads agents' events, runs the detectors, writes alerts."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import click
from aiokafka.errors import KafkaError

from detectors import limits_from
from streams.cli.loop import run as run_loop
from streams.cli.options import (
    Number,
    kafka_options,
    log_options,
    page_options,
    policy_option,
    weights_option,
    with_policy,
    with_weights,
)
from streams.cli.output import announce
from streams.config import Config
from streams.kafka import KafkaSettings, KafkaUnavailable, unavailable
from streams.page_settings import PageError, PageSettings
from streams.topics import DEFAULT_APP_ID, TopicsError
from streams.worker.faults import EXIT_GAP, EXIT_LOST
from streams.worker.run import run
from streams.worker.settings import StateStore, WorkerSettings
from streams.worker.stores import StoreError

DEFAULTS = WorkerSettings()
DEFAULT_PORT = 9401


@click.command(
    short_help="Read agents' events, detect wheelspin, write alerts.",
    epilog=f"""\b
Examples:
  traction worker                                          brokers on localhost:9092
  traction worker --bootstrap kafka:9092 --app-id staging
  traction worker --port 0 --log-level debug
  traction --config traction.toml worker                   limits in its table [limits]
  traction worker --state-store rocksdb --state-dir /var/lib/traction --standby-replicas 1
  traction worker --policy policy.toml                     followed while it runs; SIGHUP reads it at once

\b
When its state is back and it reads events it prints one line, and again when its partitions change:
  worker ready: partitions 0, 1, 2, 3 of 8; pages at http://127.0.0.1:{DEFAULT_PORT}
SIGTERM and Ctrl-C commit what was read and end it within seconds.

\b
Exit codes:
  0  stopped as asked
  1  failed: the log says why
  2  wrong use or settings
  {EXIT_LOST}  another worker took a partition over, or the brokers were away for too long: start it again
  {EXIT_GAP}  input would have been passed over: start it again, and report it
""",
)
@kafka_options
@click.option(
    "--app-id",
    default=DEFAULT_APP_ID,
    help="Group of workers that share the partitions; names their own topics and the transactions too.",
)
@click.option(
    "--instance-id",
    metavar="NAME",
    help="This process's lasting name among the workers: it may then restart without partitions being moved.",
)
@click.option(
    "--commit-interval",
    default=DEFAULTS.commit_interval,
    type=Number(0.01, 60),
    help="Seconds between commits of a partition; alerts are committed at once.",
)
@click.option(
    "--live-sessions",
    default=DEFAULTS.live_sessions,
    type=click.IntRange(1),
    help="Sessions and tasks kept decoded in memory; the others are kept as bytes.",
)
@click.option(
    "--session-timeout",
    default=DEFAULTS.session_timeout,
    type=Number(1, 1800),
    help="Seconds after which the group gives up a worker that shows no sign of life.",
)
@click.option(
    "--away-timeout",
    default=DEFAULTS.away_timeout,
    type=Number(1, 900),
    help="Seconds that the brokers may be away from a commit before the worker gives up.",
)
@click.option(
    "--state-store",
    default=DEFAULTS.state_store,
    type=click.Choice(get_args(StateStore)),
    help="Where states are kept besides the changelogs; rocksdb keeps them on disk, and starts again quickly.",
)
@click.option(
    "--state-dir",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of this worker's own for --state-store rocksdb; what is lost there is read back.",
)
@click.option(
    "--standby-replicas",
    default=DEFAULTS.standby_replicas,
    type=click.IntRange(0, 10),
    help="Other workers that keep a copy of each partition's states, to take over quickly.",
)
@click.option(
    "--rekey",
    is_flag=True,
    help="Write events that are in another partition than their key's again to that one, and judge them there.",
)
@weights_option
@policy_option
@page_options(DEFAULT_PORT)
@log_options
@click.pass_obj
def worker(
    config: Config | None,
    *,
    kafka: KafkaSettings,
    app_id: str,
    instance_id: str | None,
    commit_interval: float,
    live_sessions: int,
    session_timeout: float,
    away_timeout: float,
    state_store: StateStore,
    state_dir: Path | None,
    standby_replicas: int,
    rekey: bool,
    weights_file: Path | None,
    policy_file: Path | None,
    pages: PageSettings,
) -> int:
    """Read agents' events, detect wheelspin, write alerts.

    Any number of workers share the partitions. Each alert is on the alerts topic once for those who read committed
    records, whatever happens to workers in between.
    """
    if state_dir is None and state_store == "rocksdb":
        raise click.UsageError("--state-store rocksdb keeps its files in a directory: give --state-dir.")
    if state_dir is not None and state_store != "rocksdb":
        raise click.UsageError(
            f"--state-dir is for --state-store rocksdb, and the store is {state_store}: give --state-store rocksdb, or "
            "leave --state-dir out."
        )
    settings = WorkerSettings(
        kafka=kafka,
        app_id=app_id,
        instance_id=instance_id,
        commit_interval=commit_interval,
        live_sessions=live_sessions,
        session_timeout=session_timeout,
        away_timeout=away_timeout,
        state_store=state_store,
        state_dir=state_dir,
        standby_replicas=standby_replicas,
        rekey=rekey,
        policy=with_policy(with_weights(limits_from((config or Config()).layers), weights_file), policy_file),
    )
    try:
        return run_loop(run(settings, pages, announce))
    except (KafkaUnavailable, TopicsError, StoreError, PageError) as problem:
        raise click.ClickException(str(problem)) from problem
    except KafkaError as problem:  # before it has joined the group: a broker went away, or refuses something
        raise click.ClickException(str(unavailable(kafka, problem))) from problem
