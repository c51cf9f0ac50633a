"""What the commands share that look things up and write decisions: options, types of options, tables, words for errors.

Nothing in here looks anything up itself.
"""

from __future__ import annotations

import asyncio
import functools
import getpass
import re
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click
from aiokafka.errors import KafkaError

from schemas.common import MAX_ID_CHARS
from streams.cli.options import Number, kafka_options, log_options
from streams.cli.output import json_text
from streams.inspection.facts import NEEDED, OPTIONAL, Looker
from streams.inspection.story import entries, latest_report, moment, report_lines
from streams.kafka import KafkaUnavailable, unavailable
from streams.reading import DEFAULT_SECONDS, TooSlow, reading
from streams.received import is_text
from streams.timeline import plain
from streams.topics import DEFAULT_APP_ID, TopicsError, default_group, ladders_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
    from contextlib import AbstractAsyncContextManager

    from streams.cli.options import Command
    from streams.inspection.facts import Subject
    from streams.kafka import KafkaSettings
    from streams.reading import Reader

T = TypeVar("T")

EXIT_UNSEEN = 3
"""What was asked for was written, and its effect was not seen in time."""

SUGGESTED = 3
"""Ids that are suggested in place of one that is not known."""

MOST_COMPARED = 5_000
"""Ids that one which is not known is compared with: some tenths of a second."""

MOST_CELL = 60
"""Characters of an id or name in a table; whole ids are in the JSON."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line, and nothing else.")


class Duration(click.ParamType):
    """A span of time: a number and its unit, `90s`, `30m`, `2h`, `7d`, `2w`."""

    name = "duration"

    _FORM = re.compile(r"(?P<number>\d{1,6}(?:\.\d{1,3})?)(?P<unit>[smhdw])")
    _SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}  # noqa: RUF012 - never changed

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Check a value: above 0, and no more than ten years, so that adding it to a date is always defined."""
        if isinstance(value, timedelta):
            return value
        match = self._FORM.fullmatch(str(value))
        if match is None:
            self.fail(f"{value!r} is no span of time; give a number and s, m, h, d or w, for example 30m", param, ctx)
        span = timedelta(seconds=float(match["number"]) * self._SECONDS[match["unit"]])
        if not timedelta() < span <= timedelta(days=3_650):
            self.fail(f"{value!r} is not above 0 and at most 3650d", param, ctx)
        return span


class Instant(click.ParamType):
    """A point in time to come: RFC 3339, with an offset."""

    name = "instant"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Check a value."""
        instant = _parsed(str(value))
        if instant is None:
            self.fail(f"{value!r} is no time with an offset; give for example 2026-12-24T18:00:00+01:00", param, ctx)
        if not datetime.now(UTC) < instant <= datetime.now(UTC) + timedelta(days=3_650):
            self.fail(f"{value!r} is not to come, or more than 3650 days ahead", param, ctx)
        return instant


def _parsed(text: str) -> datetime | None:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if instant.tzinfo is None else instant


class Id(click.ParamType):
    """An identifier of a session, task or alert."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check a value."""
        text = str(value)
        if not 1 <= len(text) <= MAX_ID_CHARS or not is_text(text):
            self.fail(f"an id has 1 to {MAX_ID_CHARS} characters, and is UTF-8", param, ctx)
        return text


def group_option(command: Command) -> Command:
    """Give a command the group of the escalation consumer, whose ladders it reads, as its argument `group`."""

    @click.option("--app-id", default=DEFAULT_APP_ID, help="The workers' application id.")
    @click.option("--group", help="Group of traction escalate; names its ladders.  [default: APP_ID-escalation]")
    @functools.wraps(command)
    def with_group(*, app_id: str, group: str | None, **given: Any) -> Any:
        return command(group=group or default_group(app_id), **given)

    return with_group


def reading_options(command: Command) -> Command:
    """Give a command what every one of these has: how to reach Kafka, how long it may take, the log."""

    @click.option(
        "--timeout",
        default=DEFAULT_SECONDS,
        type=Number(0, 86_400, min_open=True),
        metavar="SECONDS",
        help="How long reading one topic may take.",
    )
    @kafka_options
    @log_options
    @functools.wraps(command)
    def with_reading(**given: Any) -> Any:
        return command(**given)

    return with_reading


def decision_options(command: Command) -> Command:
    """Give a command `--by` and `--reason`: who decides and why. Such a command names one thing, and asks nothing."""

    @click.option("--by", metavar="NAME", help="Who decides.  [default: the login name]")
    @click.option("--reason", metavar="TEXT", help="Why: it is kept with the decision, for others.")
    @click.option(
        "--yes", is_flag=True, expose_value=False, help="Changes nothing: this command asks nobody, with it or without."
    )
    @functools.wraps(command)
    def with_decision(*, by: str | None, reason: str | None, **given: Any) -> Any:
        for name, text, most in (("--by", by, MAX_ID_CHARS), ("--reason", reason, 4_096)):
            if text is not None and (len(text) > most or not is_text(text)):
                raise click.UsageError(f"{name} has at most {most} characters, and is UTF-8")
        return command(by=login() if by is None else by, reason=reason, **given)

    return with_decision


wait_option = click.option(
    "--wait",
    type=Number(0, 86_400, min_open=True),
    metavar="SECONDS",
    help=f"Wait that long until the effect is seen; exit with {EXIT_UNSEEN} when it is not.",
)


def login() -> str:
    """Give the name of who runs this; `unknown` where the system has none."""
    try:
        return getpass.getuser()[:MAX_ID_CHARS]
    except (OSError, KeyError):
        return "unknown"


def looking(kafka: KafkaSettings, group: str, seconds: float) -> AbstractAsyncContextManager[Reader]:
    """Open what reads everything that is known of sessions and tasks."""
    optional = [*(kafka.topic(topic) for topic in OPTIONAL), ladders_name(group)]
    return reading(kafka, [kafka.topic(topic) for topic in NEEDED], optional=optional, seconds=seconds)


def run(kafka: KafkaSettings, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine; what is wrong with the brokers, the topics or our rights is told in words, and ends with 1."""
    try:
        return asyncio.run(work())
    except (KafkaUnavailable, TopicsError, TooSlow) as problem:
        raise click.ClickException(str(problem)) from problem
    except (KafkaError, TimeoutError) as problem:
        raise click.ClickException(str(unavailable(kafka, problem))) from problem


def unknown(kind: str, name: str, others: Collection[str], why: str) -> click.ClickException:
    """Say that nothing is known of an id, and which ones that are known look like it.

    Args:
        kind: what it would be.
        name: the id.
        others: ids that are known.
        why: a sentence: what was looked at, or what else to do.
    """
    begun = sorted(other for other in others if other.startswith(name))
    near = get_close_matches(name, sorted(others)[:MOST_COMPARED], n=SUGGESTED)
    meant = [plain(each, MAX_ID_CHARS) for each in dict.fromkeys([*begun, *near])][:SUGGESTED]
    told = f" Did you mean {' or '.join(meant)}?" if meant else ""
    return click.ClickException(f"nothing is known of {kind} {plain(name, MAX_ID_CHARS)}. {why}{told}")


def known(
    kafka: KafkaSettings,
    group: str,
    timeout: float,
    kind: Literal["session", "task"],
    name: str,
    *,
    why: str,
    force: bool = False,
) -> Subject:
    """Look up everything about a session or task.

    Args:
        kafka: where and how to connect.
        group: the escalation consumer's group.
        timeout: seconds that reading one topic may take.
        kind: which of the two.
        name: its id.
        why: said where nothing is known of it, as in `unknown`.
        force: whether it may be unknown.

    Raises:
        click.ClickException: nothing is known of it, or the topics cannot be read.
    """

    async def look() -> Subject:
        async with looking(kafka, group, timeout) as reader:
            looker = Looker(kafka, reader, group)
            return await (looker.session(name) if kind == "session" else looker.task(name))

    subject = run(kafka, look)
    if not (subject.known or force):
        raise unknown(kind, name, subject.others, why)
    return subject


def line(value: Any) -> None:
    """Print a value as one line of JSON, with escapes for what could steer a terminal or end the line."""
    click.echo(json_text(value))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows below a head, in columns as wide as they need; the last one is not filled up."""
    lines = [
        [plain(cell, MOST_CELL) if at < len(row) - 1 else plain(cell) for at, cell in enumerate(row)] for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    for cells in (head, *lines):
        click.echo("  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip())


def story(subject: Subject) -> None:
    """Print a timeline and the latest report."""
    click.echo()
    for entry in entries(subject.told):
        whose = f"{plain(entry.session_id)}: " if subject.kind == "task" and entry.session_id else ""
        click.echo(f"{moment(entry.at)}  {entry.kind:<14}  {whose}{entry.text}")
    report = latest_report(subject.told)
    if report is not None:
        click.echo()
        for text in report_lines(report):
            click.echo(text)


def told(seen: bool, text: str, seconds: float) -> int:
    """Say whether the effect was seen, and give the exit code."""
    if seen:
        click.echo(f"done: {text}")
        return 0
    click.echo(
        f"the effect was not seen within {seconds:g} s: are traction worker and traction escalate running, and is "
        "--group theirs? What was written stays, and has its effect when they are",
        err=True,
    )
    return EXIT_UNSEEN
