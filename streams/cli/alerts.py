"""`traction alerts`: alerts as they come, and saying that one was wrong.

Only words and options here; `streams.inspection` reads and writes.
"""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, cast, get_args

import click

from schemas import topics
from schemas.common import Task
from schemas.decode import InvalidEvent, decode
from schemas.outputs import Alert, Level
from streams.cli.looking import (
    MOST_COMPARED,
    Duration,
    Id,
    decision_options,
    json_option,
    line,
    reading_options,
    run,
    unknown,
)
from streams.inspection.acts import decision, write
from streams.inspection.story import alert_text, moment
from streams.reading import reading
from streams.timeline import COLOURS, plain

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiokafka.structs import ConsumerRecord

    from streams.kafka import KafkaSettings


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which alerts are printed: those that fit everything that is given here."""

    levels: tuple[str, ...]
    detectors: tuple[str, ...]
    session_id: str | None
    task_id: str | None
    repo: str | None

    def passes(self, alert: Alert) -> bool:
        """Tell whether an alert is printed."""
        return (
            (not self.levels or alert.level in self.levels)
            and (not self.detectors or alert.detector in self.detectors)
            and self.session_id in {None, alert.session_id}
            and self.task_id in {None, alert.task_id}
            and (self.repo is None or (alert.task is not None and alert.task.repo == self.repo))
        )


@click.group(
    epilog="""\b
Examples:
  traction alerts tail
  traction alerts tail --since 1h --level terminate --repo acme/shop
  traction alerts tail --since 7d --no-follow --json > week.jsonl
  traction alerts wrong b1946ac92492d2347c6235b4d2611184 --quiet-for 7d

\b
Exit codes:
  0    done
  1    no such alert, or Kafka cannot be used
  2    wrong use
  130  interrupted, as tail is ended
""",
)
def alerts() -> None:
    """Follow alerts as they come; say that one was wrong."""


@alerts.command()
@click.option("--since", type=Duration(), metavar="DURATION", help="Those written since then first, oldest first.")
@click.option("--no-follow", is_flag=True, help="End with the latest instead of waiting for more; goes with --since.")
@click.option("--level", "levels", multiple=True, type=click.Choice(get_args(Level)), help="Only this level.")
@click.option("--detector", "detectors", multiple=True, metavar="NAME", help="Only by this detector.")
@click.option("--session", "session_id", type=Id(), metavar="ID", help="Only of this session.")
@click.option("--task", "task_id", type=Id(), metavar="ID", help="Only of this task.")
@click.option("--repo", metavar="OWNER/NAME", help="Only of tasks in this repository.")
@json_option
@reading_options
def tail(
    *,
    kafka: KafkaSettings,
    timeout: float,
    since: timedelta | None,
    no_follow: bool,
    levels: tuple[str, ...],
    detectors: tuple[str, ...],
    session_id: str | None,
    task_id: str | None,
    repo: str | None,
    as_json: bool,
) -> None:
    """Print alerts as they are written, one a line, until interrupted.

    An option that is given several times lets through what any of its values does. --json prints the alerts as they
    are on the topic.
    """
    if no_follow and since is None:
        raise click.UsageError("--no-follow goes with --since: without it there is nothing to end with")
    colour = False if os.environ.get("NO_COLOR") else None
    wanted = Wanted(levels, detectors, session_id, task_id, repo)

    def tell(at_ms: int, alert: Alert) -> None:
        if as_json:
            line(alert)
        else:
            click.echo(_line(datetime.fromtimestamp(at_ms / 1_000, UTC), alert), color=colour)

    async def follow() -> None:
        name, key = kafka.topic(topics.ALERTS), None if task_id is None else task_id.encode()
        async with reading(kafka, [name], seconds=timeout) as reader:
            ends = await reader.ends(name, key=key)
            if since is not None:
                past = reader.read(name, key=key, since=datetime.now(UTC) - since, until=ends)
                # Partitions are read as they come; a person reads by time.
                chosen = [each async for each in _read(past) if wanted.passes(each[1])]
                for at_ms, alert in sorted(chosen, key=itemgetter(0)):
                    tell(at_ms, alert)
            if not no_follow:
                click.echo(f"following {name}; end with Ctrl-C", err=True)
                async for at_ms, alert in _read(reader.follow(ends, key=key)):
                    if wanted.passes(alert):
                        tell(at_ms, alert)

    run(kafka, follow)


@alerts.command()
@click.argument("alert_id", metavar="ALERT_ID", type=Id())
@click.option(
    "--quiet-for",
    type=Duration(),
    metavar="DURATION",
    help="How long the loop is not alerted about again.  [default: as decision.false_alarm_days says, 7d]",
)
@decision_options
@reading_options
def wrong(
    *,
    kafka: KafkaSettings,
    timeout: float,
    alert_id: str,
    quiet_for: timedelta | None,
    by: str,
    reason: str | None,
) -> None:
    """Say that an alert was wrong: what was done about its loop is over, and the loop stays quiet."""

    async def find() -> Alert:
        others: deque[str] = deque(maxlen=MOST_COMPARED)
        name = kafka.topic(topics.ALERTS)
        async with reading(kafka, [name], seconds=timeout) as reader:
            async for _, alert in _read(reader.read(name)):
                if alert.alert_id == alert_id:
                    return alert
                others.append(alert.alert_id)
        raise unknown("alert", alert_id, others, "Alerts are kept for a week: `traction alerts tail --since 7d`.")

    alert = run(kafka, find)
    until = None if quiet_for is None else datetime.now(UTC) + quiet_for
    record = decision(
        "false_alarm",
        alert.session_id,
        actor=by,
        reason=reason,
        answers=alert_id,
        expires_at=until,
        task=Task(id=alert.task_id),
    )
    run(kafka, lambda: write(kafka, record))
    click.echo(f"wrote false_alarm for session {plain(alert.session_id)}, by {plain(by)}: {alert_text(alert)}")
    long = (
        "for as long as the limit decision.false_alarm_days says"
        if until is None
        else f"until {moment(until)}, by the time of its events"
    )
    click.echo(f"what was done about it is over, and {plain(alert.detector)} says nothing of this loop {long}")


async def _read(records: AsyncIterator[ConsumerRecord]) -> AsyncIterator[tuple[int, Alert]]:
    """Give alerts with the milliseconds since 1970 at which they were written; what cannot be read is left out."""
    async for record in records:
        try:
            alert = cast("Alert", decode(topics.ALERTS, record.value, record.headers))
        except InvalidEvent:
            continue
        yield record.timestamp, alert


def _line(at: datetime, alert: Alert) -> str:
    level = click.style(f"{alert.level:<9}", fg=COLOURS[alert.level])
    where = f"session {plain(alert.session_id)}, task {plain(alert.task_id)}, alert {plain(alert.alert_id)}"
    return f"{moment(at)}  {level}  {alert_text(alert).removeprefix(alert.level).strip()}  [{where}]"
