"""`traction sessions`: how sessions stand, and what was said and done about one; `deciding` has its other commands.

Only words and options here; `streams.inspection` reads.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from streams.cli.deciding import id_argument, mute, resume, terminate
from streams.cli.looking import (
    Duration,
    group_option,
    json_option,
    known,
    line,
    looking,
    reading_options,
    run,
    story,
    table,
)
from streams.escalation.words import times
from streams.inspection.facts import Looker
from streams.inspection.rows import session_rows
from streams.inspection.story import age, entries, latest_report, moment
from streams.timeline import plain

if TYPE_CHECKING:
    from streams.inspection.rows import SessionRow
    from streams.kafka import KafkaSettings

STATES = {
    "waiting": "to be stopped, nobody has answered yet",
    "refused": "not stopped: refused",
    "unanswered": "to be stopped, nobody answered",
    "stopped": "stopped",
    "muted": "muted",
    "for_person": "waiting for a person",
    "cooling_down": "cooling down",
    "resumed": "resumed",
    "false_alarm": "its alert was wrong",
    "observed": "only observed",
    "noticed": "noticed",
    "warned": "warned",
    "recovered": "recovered",
    "quiet": "quiet",
}
"""How a session stands, in words."""


@click.group(
    epilog="""\b
Examples:
  traction sessions list
  traction sessions show claude-6f0e2a91
  traction sessions terminate claude-6f0e2a91 --reason "it deletes fixtures" --wait 30

\b
Exit codes:
  0    done
  1    nothing is known of the session, or Kafka cannot be used
  2    wrong use
  3    written, and its effect was not seen within --wait
  130  interrupted
""",
)
def sessions() -> None:
    """See how sessions stand; resume, mute or terminate one.

    A session of which nothing was said or done yet is not known here: a decision for it is not written unless forced,
    since an id that is misspelt would otherwise stay unnoticed.
    """


@sessions.command("list")
@click.option(
    "--since",
    type=Duration(),
    default="1d",
    metavar="DURATION",
    help="Those that were alerted about, or with which something was done, since then.",
)
@json_option
@group_option
@reading_options
def list_sessions(*, kafka: KafkaSettings, timeout: float, group: str, since: timedelta, as_json: bool) -> None:
    """List sessions that were alerted about lately, or that something is being waited for."""
    now = datetime.now(UTC)

    async def look() -> list[SessionRow]:
        async with looking(kafka, group, timeout) as reader:
            looker = Looker(kafka, reader, group)
            facts = await looker.standing()
            facts.alerts = await looker.alerts(since=now - since)
            facts.words = await looker.words(now - since)
        return session_rows(facts, now, now - since)

    rows = run(kafka, look)
    if as_json:
        for row in rows:
            line(row)
    elif rows:
        table(
            ("SESSION", "TASK", "LAST ALERT", "LEVEL", "DETECTOR", "DONE", "STATE"),
            (
                (
                    row.session_id,
                    row.task_id,
                    f"{age((now - row.last_alert).total_seconds())} ago" if row.last_alert else "-",
                    row.level,
                    row.detector,
                    row.rung.replace("_", " ") or "-",
                    standing(row),
                )
                for row in rows
            ),
        )
    else:
        click.echo("no session was alerted about in that time, and nothing is being waited for")


def standing(row: SessionRow) -> str:
    """Word how a session stands."""
    if row.state == "waiting" and row.until is not None:
        return f"{STATES['waiting']}: asked {times(row.attempt or 1)}, next at {moment(row.until)}"
    return f"{STATES[row.state]}{f' until {moment(row.until)}' if row.until else ''}"


@sessions.command()
@id_argument
@json_option
@group_option
@reading_options
def show(*, kafka: KafkaSettings, timeout: float, group: str, session_id: str, as_json: bool) -> None:
    """Tell everything that was said and done about a session, and the latest report.

    Alerts, directives, terminations, decisions and answers, exceptions, in the order in which they were written.
    """
    why = "No alert, directive, termination or decision names it."
    subject = known(kafka, group, timeout, "session", session_id, why=why)
    rows = [row for row in session_rows(subject.facts, datetime.now(UTC)) if row.session_id == session_id]
    report = latest_report(subject.told)
    if as_json:
        line(
            {
                "session_id": session_id,
                "tasks": subject.tasks,
                "standing": rows[0] if rows else None,
                "timeline": list(entries(subject.told)),
                "report": report,
            }
        )
        return
    click.echo(f"session {plain(session_id)}, task {', '.join(map(plain, subject.tasks)) or 'unknown'}")
    for row in rows:
        click.echo(f"{standing(row)}{f', agent {plain(row.agent)}' if row.agent else ''}")
    story(subject)


for each in (resume, mute, terminate):
    sessions.add_command(each)
