"""`traction tasks`: tasks that are known to flap or about which something is being done, and clearing one.

Only words and options here; `streams.inspection` reads and writes.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
import msgspec

from schemas import topics
from schemas.common import Task
from streams.cli.looking import (
    Id,
    decision_options,
    group_option,
    json_option,
    known,
    line,
    looking,
    reading_options,
    run,
    story,
    table,
    told,
    wait_option,
)
from streams.inspection.acts import Effect, decision, write
from streams.inspection.facts import Looker, sessions_of
from streams.inspection.rows import task_row, task_rows
from streams.inspection.story import entries, latest_report, moment
from streams.timeline import plain

if TYPE_CHECKING:
    from streams.inspection.rows import TaskRow
    from streams.kafka import KafkaSettings

EXIT_FLAPPING = 4
"""`show` found the task among those not to be tried again without a person."""

STATES = {"known_flapping": "known to flap", "climbing": "being dealt with", "quiet": "quiet"}
"""How a task stands, in words."""

UNKNOWN = "No alert, ladder or list names it."
"""What was looked at of a task that is not known."""

id_argument = click.argument("task_id", metavar="ID", type=Id())


@click.group(
    epilog="""\b
Examples:
  traction tasks list
  traction tasks show SHOP-412                         exits with 4 when it should not be tried again
  traction tasks clear SHOP-412 --reason "the test was wrong" --wait 30

\b
Exit codes:
  0    done; of show: the task may be tried again
  1    nothing is known of the task, or Kafka cannot be used
  2    wrong use
  3    written, and its effect was not seen within --wait
  4    of show: the task is known to flap, and should not be tried again without a person
  130  interrupted
""",
)
def tasks() -> None:
    """See which tasks flap and how far they have climbed; clear one, so that it is tried again."""


@tasks.command("list")
@json_option
@group_option
@reading_options
def list_tasks(*, kafka: KafkaSettings, timeout: float, group: str, as_json: bool) -> None:
    """List tasks that are known to flap, then those about which something is being done."""
    now = datetime.now(UTC)

    async def look() -> list[TaskRow]:
        async with looking(kafka, group, timeout) as reader:
            return task_rows(await Looker(kafka, reader, group).standing(), now)

    rows = run(kafka, look)
    if as_json:
        for row in rows:
            line(row)
    elif rows:
        table(
            ("TASK", "SESSIONS", "DETECTOR", "DONE", "STATE"),
            (
                (
                    row.task_id,
                    str(len(row.sessions)),
                    row.detector,
                    row.rung.replace("_", " ") or "-",
                    standing(row),
                )
                for row in rows
            ),
        )
    else:
        click.echo("no task is known to flap, and nothing is being done about one")


def standing(row: TaskRow) -> str:
    """Word how a task stands."""
    until = f" until {moment(row.until)}" if row.until else ""
    return f"{STATES[row.state]}{until}{f': {row.reason}' if row.reason else ''}"


@tasks.command()
@id_argument
@json_option
@group_option
@reading_options
def show(*, kafka: KafkaSettings, timeout: float, group: str, task_id: str, as_json: bool) -> int:
    """Tell everything that was said and done about a task and its sessions, and the latest report.

    Exits with 4 when the task is known to flap, so that a script can ask before it tries the task again.
    """
    subject = known(kafka, group, timeout, "task", task_id, why=UNKNOWN)
    row = task_row(subject.facts, task_id, datetime.now(UTC))
    code = EXIT_FLAPPING if row.state == "known_flapping" else 0
    if as_json:
        timeline, report = list(entries(subject.told)), latest_report(subject.told)
        line({"task_id": task_id, "standing": row, "timeline": timeline, "report": report})
        return code
    click.echo(f"task {plain(task_id)}: {plain(standing(row))}")
    if row.sessions:
        click.echo(f"sessions: {', '.join(map(plain, row.sessions))}")
    if row.used:
        used = (f"{rung.replace('_', ' ')} {count}x" for rung, count in row.used.items())
        click.echo(f"done: {', '.join(used)}")
    if row.tried:
        click.echo(f"tried and left: {', '.join(map(plain, row.tried))}")
    story(subject)
    return code


@tasks.command()
@id_argument
@wait_option
@decision_options
@group_option
@reading_options
def clear(
    *,
    kafka: KafkaSettings,
    timeout: float,
    group: str,
    task_id: str,
    by: str,
    reason: str | None,
    wait: float | None,
) -> int:
    """Let a task be tried again, as if nothing had been done about it or its sessions.

    It leaves the known-flapping tasks, and its ladder begins at the first step again.
    """
    subject = known(kafka, group, timeout, "task", task_id, why=UNKNOWN)
    entry, ladder = subject.facts.flapping.get(task_id), subject.facts.ladders.get(task_id)
    sessions = [entry.session_id] if entry else sorted(sessions_of(ladder))
    if not sessions:
        click.echo(f"{plain(task_id)} is not known to flap, and nothing is being done about it: nothing was written")
        return 0
    task = (entry.task if entry else None) or (ladder.task if ladder else None) or Task()
    record = decision(
        "clear", sessions[0], actor=by, reason=reason, task=msgspec.structs.replace(task, id=task_id)
    )  # fmt: skip

    async def act() -> bool:
        async with looking(kafka, group, timeout) as reader:
            effect = Effect(kafka, reader, group)
            start = await effect.ends(topics.KNOWN_FLAPPING, task_id) if entry else {}
            await write(kafka, record)
            click.echo(f"wrote clear of {plain(task_id)}, for session {plain(sessions[0])}, by {plain(by)}")
            click.echo("it leaves the known-flapping tasks, and its next loop begins at the first step of the ladder")
            if wait is None:
                return True
            if entry:
                return await effect.cleared(start, task_id, wait)
            return await effect.settled(task_id, lambda state: state is None, wait)

    done = run(kafka, act)
    return 0 if wait is None else told(done, f"{plain(task_id)} may be tried again", wait)
