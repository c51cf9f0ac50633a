"""`traction replay`: recorded sessions through the detectors, here or by way of Kafka. Only words and options here."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING

import click

from streams.cli.facts import assumed_options
from streams.cli.options import Number, kafka_options, policy_option, weights_option, with_policy
from streams.cli.output import json_text
from streams.cli.recordings import EXIT_UNREADABLE, FORMATS, PAGE, Reader, limits_option, paths_argument, read_limits
from streams.kafka import KafkaSettings, KafkaUnavailable
from streams.publish import Published, publish
from streams.replay import Totals, Verdict, play, row
from streams.timeline import counted, plain, session_lines, summary_lines
from streams.topics import TopicsError

if TYPE_CHECKING:
    from pathlib import Path

    from streams.policy.conditions import Facts
    from streams.policy.policy import Policy

EXIT_ALERTED = 3


@click.command(
    epilog=f"""\b
Formats, found by content (plain, gzip or Zstandard):
{FORMATS}
{PAGE} says what they are, and the neutral form field by field.

\b
Examples:
  traction replay ~/.claude/projects
  traction replay --json --fail-on terminate runs/ > alerts.jsonl
  traction replay --policy policy.toml --repo acme/docs runs/
  traction replay --to-kafka --speed 60 ~/.codex/sessions

\b
Exit codes: 0 all was read; 1 something could not be read or published, or nothing was found
            (also when it would be 3); 2 wrong use; 3 an alert of the level of --fail-on; 130 interrupted
""",
)
@paths_argument
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per alert and line, and nothing else.")
@click.option("--all", "show_all", is_flag=True, help="Name the quiet sessions too.")
@limits_option
@weights_option
@policy_option
@assumed_options
@click.option(
    "--fail-on",
    type=click.Choice(["warn", "terminate"]),
    help="Exit with 3 when a session reaches this level, whatever the mode: the level counts, not what is done.",
)
@click.option("--to-kafka", is_flag=True, help="Publish the events to Kafka instead, for a worker to judge.")
@click.option(
    "--speed",
    type=Number(min=0, min_open=True),
    metavar="N",
    help="With --to-kafka: N times as fast as recorded, all sessions at once; else as fast as Kafka takes them.",
)
@kafka_options
@click.pass_context
def replay(
    ctx: click.Context,
    *,
    paths: tuple[Path, ...],
    as_json: bool,
    show_all: bool,
    limits_file: Path | None,
    weights_file: Path | None,
    policy_file: Path | None,
    facts: Facts,
    fail_on: Verdict | None,
    to_kafka: bool,
    speed: float | None,
    kafka: KafkaSettings,
) -> int:
    """Run the detectors over recorded sessions, in files or directories.

    Prints a timeline of every session in which something repeats, and a summary.
    """
    if speed is not None and not to_kafka:
        raise click.UsageError("--speed goes with --to-kafka: without Kafka nothing waits for anything")
    # Weights and a policy that are set for all commands are no mistake here.
    given = click.core.ParameterSource.COMMANDLINE
    judged = any(ctx.get_parameter_source(name) is given for name in ("weights_file", "policy_file"))
    if to_kafka and (as_json or show_all or fail_on or limits_file or judged):
        raise click.UsageError(
            "--to-kafka leaves the judging to the worker: drop --json, --all, --fail-on, --limits, --spin-weights, "
            "--policy"
        )
    reader = Reader(paths, facts)
    if to_kafka:
        return to_topics(kafka, reader, speed)
    limits = read_limits(ctx, limits_file, weights_file=weights_file)
    return judge(reader, with_policy(limits, policy_file), as_json=as_json, show_all=show_all, fail_on=fail_on)


def judge(reader: Reader, policy: Policy, *, as_json: bool, show_all: bool, fail_on: Verdict | None) -> int:
    """Run the detectors, print what they say, and give the exit code."""
    colour = False if os.environ.get("NO_COLOR") else None
    totals = Totals(policy.common.mode)
    for session in reader.sessions():
        played = play(session, policy)
        totals.add(played)
        if as_json:
            for alert in played.alerts:
                reader.progress.clear()
                click.echo(json_text(row(session, alert)))
        elif played.alerts or show_all:
            reader.progress.clear()
            for line in session_lines(played):
                click.echo(line, color=colour)
        reader.progress.show(f"{counted(totals.sessions, 'session')}, {counted(totals.calls, 'call')}")
    reader.progress.clear()
    if not as_json:
        for line in (*summary_lines(totals), *reader.remarks()):
            click.echo(line, color=colour)
    if reader.failed:
        return EXIT_UNREADABLE
    return EXIT_ALERTED if fail_on is not None and totals.reached(fail_on) else 0


def to_topics(kafka: KafkaSettings, reader: Reader, speed: float | None) -> int:
    """Publish the events, print how many, and give the exit code."""

    def tell(published: Published) -> None:
        reader.progress.show(f"{counted(published.total, 'event')} published")

    started = time.monotonic()
    try:
        published = asyncio.run(publish(kafka, reader.sessions(), speed=speed, tell=tell))
    except (KafkaUnavailable, TopicsError) as problem:
        reader.progress.clear()
        raise click.ClickException(str(problem)) from problem
    reader.progress.clear()
    seconds = time.monotonic() - started
    click.echo(
        f"published {counted(published.sessions, 'session')}, {counted(published.total, 'event')} "
        f"in {seconds:.1f} s ({published.total / seconds:,.0f} events/s) to {plain(kafka.bootstrap)}"
    )
    for topic, number in sorted(published.events.items()):
        click.echo(f"  {topic:<24} {number:,}")
    for event_id, reason in published.refused:
        click.echo(f"error: event {plain(event_id)} was not taken: {plain(reason)}", err=True)
    for line in reader.remarks():
        click.echo(line)
    return EXIT_UNREADABLE if reader.failed or published.refused else 0
