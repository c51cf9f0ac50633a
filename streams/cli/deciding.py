"""What a person decides for a session: the commands resume, mute and terminate of `traction sessions`.

Only words and options here; `streams.inspection` reads and writes.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import click

from schemas import topics
from schemas.common import Task
from streams.cli.looking import (
    Duration,
    Id,
    Instant,
    decision_options,
    group_option,
    known,
    looking,
    reading_options,
    run,
    told,
    wait_option,
)
from streams.inspection.acts import Effect, decision, muted, remove_override, unmuted, write
from streams.inspection.story import moment
from streams.timeline import plain

if TYPE_CHECKING:
    from streams.escalation.state import LadderState
    from streams.kafka import KafkaSettings

FORCE = "Check the id with `traction sessions list`; say --force if it was never spoken of."
"""What to do about a session that is not known."""

id_argument = click.argument("session_id", metavar="ID", type=Id())
force_option = click.option("--force", is_flag=True, help="Do it for a session of which nothing is known, too.")


@click.command()
@id_argument
@force_option
@wait_option
@decision_options
@group_option
@reading_options
def resume(
    *,
    kafka: KafkaSettings,
    timeout: float,
    group: str,
    session_id: str,
    by: str,
    reason: str | None,
    wait: float | None,
    force: bool,
) -> int:
    """Let a session go on: its loops are settled, and what was done about them is over.

    Counting begins anew, its step of the ladder is forgotten, and its task may be tried again.
    """
    subject = known(kafka, group, timeout, "session", session_id, why=FORCE, force=force)
    for task_id in subject.tasks or (None,):  # it may have gone from one to another
        task = None if task_id is None else Task(id=task_id)
        record = decision("resume", session_id, actor=by, reason=reason, task=task)
        run(kafka, partial(write, kafka, record))
    click.echo(f"wrote resume of {plain(session_id)}, by {plain(by)}")
    click.echo("its loops are settled: the worker counts anew, and its next loop begins at the first step again")
    if wait is None:
        return 0

    def over(state: LadderState | None) -> bool:
        return state is None or not (session_id in state.climbs or state.flapping_ms)

    async def follow() -> bool:
        async with looking(kafka, group, timeout) as reader:
            effect = Effect(kafka, reader, group)
            return all([await effect.settled(task_id, over, wait) for task_id in subject.tasks])

    return told(run(kafka, follow), "its ladder is taken down", wait)


@click.command()
@id_argument
@click.option("--for", "span", type=Duration(), metavar="DURATION", help="How long, for example 2h.")
@click.option("--until", type=Instant(), metavar="TIME", help="Until when, RFC 3339 with an offset.")
@click.option("--off", is_flag=True, help="Let it be heard again.")
@force_option
@decision_options
@group_option
@reading_options
def mute(
    *,
    kafka: KafkaSettings,
    timeout: float,
    group: str,
    session_id: str,
    span: timedelta | None,
    until: datetime | None,
    off: bool,
    by: str,
    reason: str | None,
    force: bool,
) -> None:
    """Record a session's alerts and ask nothing of anyone about them, for a time or until told otherwise.

    Writes an exception for the session. What another one says of it, limits or a mode, stays, and then holds for as
    long as this.
    """
    if sum((span is not None, until is not None, off)) > 1:
        raise click.UsageError("--for, --until and --off exclude each other: give one of them, or none for good")
    subject = known(kafka, group, timeout, "session", session_id, why=FORCE, force=force)
    scope = f"session:{session_id}"
    held = subject.facts.overrides.get(scope)
    if off:
        if held is None or not held.mute:
            click.echo(f"{plain(session_id)} is not muted by an exception of its own: nothing was written")
            return
        left = unmuted(held, actor=by, reason=reason)
        if left is None:
            run(kafka, lambda: remove_override(kafka, scope))
            click.echo(f"removed the exception {plain(scope)}: from now on its alerts count again")
        else:
            run(kafka, lambda: write(kafka, left))
            click.echo(
                f"wrote the exception {plain(scope)} without muting: its alerts count again, all else in it stays"
            )
        return
    ends = datetime.now(UTC) + span if span is not None else until
    record = muted(held, session_id, until=ends, actor=by, reason=reason)
    run(kafka, lambda: write(kafka, record))
    when = f"until {moment(ends)}, by the time of its events" if ends is not None else "until `--off`"
    click.echo(f"wrote the exception {plain(scope)}: muted {when}")
    click.echo("its alerts are recorded, marked as muted, and nothing is asked of anyone")
    if record.limits or record.mode:
        click.echo("the exception's other settings are kept, and end at the same time")


@click.command()
@id_argument
@force_option
@wait_option
@decision_options
@group_option
@reading_options
def terminate(
    *,
    kafka: KafkaSettings,
    timeout: float,
    group: str,
    session_id: str,
    by: str,
    reason: str | None,
    wait: float | None,
    force: bool,
) -> int:
    """Have orchestrators stop a session, whatever it does: a termination, and its task is listed as known to flap."""
    subject = known(kafka, group, timeout, "session", session_id, why=FORCE, force=force)
    for task_id in subject.tasks:
        ladder = subject.facts.ladders.get(task_id)
        climb = ladder.climbs.get(session_id) if ladder else None
        if climb is not None and climb.pending is not None:
            click.echo(
                f"{plain(session_id)} is to be stopped already: termination {plain(climb.pending.termination_id)}, "
                f"attempt {climb.pending.attempt}, waits for an answer; nothing was written"
            )
            return 0

    async def act() -> str | None:
        async with looking(kafka, group, timeout) as reader:
            effect = Effect(kafka, reader, group)
            start = await effect.ends(topics.TERMINATIONS, session_id)
            await write(kafka, decision("terminate", session_id, actor=by, reason=reason))
            click.echo(f"wrote terminate of {plain(session_id)}, by {plain(by)}")
            click.echo("a termination follows, which orchestrators obey and answer; people are told if nobody does")
            found = None if wait is None else await effect.termination(start, session_id, wait)
            return None if found is None else found.termination_id

    found = run(kafka, act)
    return 0 if wait is None else told(found is not None, f"termination {plain(found or '')} was written", wait)
