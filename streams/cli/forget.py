"""`traction forget`: have a session or task forgotten wherever Traction remembers it, and say what stays.

Only words and options here; `streams.forget` knows where to look, the worker and escalation erase.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import click

from streams.cli.looking import (
    EXIT_UNSEEN,
    Id,
    decision_options,
    json_option,
    line,
    reading_options,
    run,
    table,
    unknown,
    wait_option,
)
from streams.forget.erasing import sessions_named, traces, words
from streams.forget.stays import stays
from streams.inspection.acts import Effect, remove_override, remove_termination, write
from streams.inspection.facts import NEEDED, OPTIONAL, Looker
from streams.reading import reading
from streams.timeline import plain
from streams.topics import (
    DEFAULT_APP_ID,
    SESSIONS_TABLE,
    TASKS_TABLE,
    changelog_name,
    default_group,
    ladders_name,
)

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from streams.forget.erasing import Kind, Trace
    from streams.forget.stays import Stays
    from streams.inspection.facts import Subject
    from streams.kafka import KafkaSettings
    from streams.reading import Reader

LONG_HOURS = 48
"""From here on a length is told in days."""

FORCE = "Check the id; say --force if records of it may wait that no worker has read yet."
"""What to do about an id of which nothing is known."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be forgotten, and how.

    Attributes:
        kafka: where and how to connect.
        app_id: the workers'.
        group: the escalation consumer's.
        timeout: seconds that reading one topic may take.
        kind: session or task.
        name: its id.
        sessions: whether a task's sessions are forgotten with it.
        terminations: whether orders to stop a session are removed from their topic.
    """

    kafka: KafkaSettings
    app_id: str
    group: str
    timeout: float
    kind: Kind
    name: str
    sessions: bool
    terminations: bool


@click.command(
    epilog="""\b
Examples:
  traction forget session claude-6f0e2a91 --dry-run
  traction forget session claude-6f0e2a91 --reason "asked for by its user" --wait 30
  traction forget task SHOP-412 --sessions --wait 30

\b
Exit codes:
  0    done
  1    nothing is known of it, or Kafka cannot be used
  2    wrong use
  3    written, and its effect was not seen within --wait
  130  interrupted
""",
)
@click.argument("kind", type=click.Choice(["session", "task"]))
@click.argument("name", metavar="ID", type=Id())
@click.option("--sessions", is_flag=True, help="Of a task: forget the sessions too that are known to work for it.")
@click.option(
    "--terminations",
    is_flag=True,
    help="Of a session: write an empty record over its termination. Every reader of them must take one.",
)
@click.option("--force", is_flag=True, help="Do it where nothing is known of the id, too.")
@click.option("--dry-run", is_flag=True, help="Write nothing: say what would be forgotten and what would stay.")
@wait_option
@decision_options
@json_option
@click.option("--app-id", default=DEFAULT_APP_ID, help="The workers' application id.")
@click.option("--group", help="Group of traction escalate; names its ladders.  [default: APP_ID-escalation]")
@reading_options
def forget(
    *,
    kafka: KafkaSettings,
    timeout: float,
    app_id: str,
    group: str | None,
    kind: Kind,
    name: str,
    sessions: bool,
    terminations: bool,
    force: bool,
    dry_run: bool,
    wait: float | None,
    by: str,
    reason: str | None,
    as_json: bool,
) -> int:
    """Have a session or task forgotten, and say what stays where and for how long.

    Forgotten is what workers and escalation remember of it, and its exception. Its next event, if any comes, begins it
    anew. What agents sent and what was told of it stays on topics that only age. It is done at once, and nobody
    is asked: look with --dry-run first.
    """
    if (sessions and kind == "session") or (terminations and kind == "task"):
        raise click.UsageError("--sessions goes with a task, --terminations with a session")
    asked = Asked(kafka, app_id, group or default_group(app_id), timeout, kind, name, sessions, terminations)
    subject, stored = run(kafka, partial(_look, asked))
    if not (subject.known or stored or force):
        raise unknown(kind, name, subject.others, FORCE)
    each: list[tuple[Kind, str]] = [(kind, name)]
    each += [("session", session) for session in (sessions_named(subject) if sessions else ())]
    if not dry_run:
        for one, its_name in each:
            run(kafka, partial(_write, asked, one, its_name, subject, by=by, reason=reason))
    seen = None if dry_run or wait is None else run(kafka, partial(_wait, asked, each, subject, wait))
    left = run(kafka, partial(stays, kafka, app_id, asked.group, kind, name))
    if as_json:
        forgotten = [{"kind": one, "id": its_name} for one, its_name in each]
        line({"forgotten": forgotten, "written": not dry_run, "seen": seen, "stays": left})
    else:
        _tell(each, left, by, dry_run=dry_run, seen=seen)
    if seen is False:
        click.echo(
            f"the effect was not seen within {wait:g} s: are traction worker and traction escalate running, and are "
            "--app-id and --group theirs? What was written stays, and has its effect when they are",
            err=True,
        )
        return EXIT_UNSEEN
    return 0


async def _look(asked: Asked) -> tuple[Subject, bool]:
    """Look up what is known, and whether workers have a state of it."""
    async with _reading(asked) as reader:
        looker = Looker(asked.kafka, reader, asked.group)
        subject = await (looker.session(asked.name) if asked.kind == "session" else looker.task(asked.name))
        stored = False
        for trace in traces(asked.kafka, asked.app_id, asked.group, asked.kind, asked.name):
            latest = None
            async for record in reader.read(trace.topic, key=trace.key.encode()):
                latest = record.value
            stored = stored or latest is not None
        return subject, stored or f"{asked.kind}:{asked.name}" in subject.facts.overrides


async def _write(asked: Asked, kind: Kind, name: str, subject: Subject, *, by: str, reason: str | None) -> None:
    for record in words(kind, name, tasks=subject.tasks, actor=by, reason=reason):
        await write(asked.kafka, record)
    if f"{kind}:{name}" in subject.facts.overrides:
        await remove_override(asked.kafka, f"{kind}:{name}")
    if kind == "session" and asked.terminations:
        await remove_termination(asked.kafka, name)


async def _wait(asked: Asked, each: list[tuple[Kind, str]], subject: Subject, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    async with _reading(asked) as reader:
        effect = Effect(asked.kafka, reader, asked.group)
        for kind, name in each:
            for trace in traces(asked.kafka, asked.app_id, asked.group, kind, name, tasks=subject.tasks):
                left = deadline - time.monotonic()
                if reader.has(trace.topic) and not (left > 0 and await _stands(effect, trace, left)):
                    return False
    return True


async def _stands(effect: Effect, trace: Trace, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await effect.stands(trace.topic, trace.key, trace.gone, seconds)
    except TimeoutError:
        return False


def _reading(asked: Asked) -> AbstractAsyncContextManager[Reader]:
    kafka = asked.kafka
    own = [changelog_name(asked.app_id, name) for name in (SESSIONS_TABLE, TASKS_TABLE)]
    optional = [*(kafka.topic(topic) for topic in OPTIONAL), ladders_name(asked.group), *own]
    return reading(kafka, [kafka.topic(topic) for topic in NEEDED], optional=optional, seconds=asked.timeout)


def _tell(each: list[tuple[Kind, str]], left: list[Stays], by: str, *, dry_run: bool, seen: bool | None) -> None:
    for kind, name in each:
        click.echo(f"{'would forget' if dry_run else 'wrote forget of'} {kind} {plain(name)}, by {plain(by)}")
    if seen:
        click.echo("done: workers and escalation remember nothing of it")
    click.echo()
    click.echo("What stays until the brokers delete or compact it:")
    rows = (
        (
            stay.topic,
            "any" if stay.partition is None else str(stay.partition),
            _kept(stay),
            stay.holds,
        )
        for stay in left
    )
    table(("TOPIC", "PARTITION", "KEPT", "WHAT"), rows)
    if not all(stay.known for stay in left):
        click.echo("?: the brokers do not show us that topic; so `traction topics create` makes it")
    click.echo()
    click.echo("Untouched: spools of emitters, hooks and sinks, what sinks delivered, recordings, backups.")


def _kept(stay: Stays) -> str:
    if stay.hours is None:
        return "for ever"
    hours = stay.hours
    told = f"{hours / 24:g} d" if hours >= LONG_HOURS else f"{hours:g} h"
    return told if stay.known else f"{told}?"
