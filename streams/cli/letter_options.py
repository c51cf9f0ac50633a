"""What the commands for dead letters share: how letters are named and chosen, and a word when reading takes long.

Nothing in here reads or writes.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, get_args

import click

from schemas import topics
from schemas.invalid import Reason, Stage
from streams.cli.looking import Duration
from streams.config import suggest
from streams.letters.letter import Choice
from streams.timeline import counted, plain
from streams.topics import TASK_EVENTS

if TYPE_CHECKING:
    from aiokafka.structs import ConsumerRecord

    from streams.cli.options import Command
    from streams.kafka import KafkaSettings

PROGRESS_SECONDS = 5.0
"""How often a person who waits is told how far it is; what takes less says nothing."""


class Position(click.ParamType):
    """A dead letter's partition and offset on its topic, as `3@1207`."""

    name = "position"

    _FORM = re.compile(r"(?P<partition>[0-9]{1,9})@(?P<offset>[0-9]{1,18})")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Check a position; what is there is found out when it is read."""
        if isinstance(value, tuple):
            return value
        match = self._FORM.fullmatch(str(value))
        if match is None:
            self.fail(
                f"{value!r} names no letter; give PARTITION@OFFSET as the list does, for example 3@1207", param, ctx
            )
        return int(match["partition"]), int(match["offset"])


class Progress:
    """Counts what is read, and tells now and then on standard error."""

    def __init__(self) -> None:
        self._records = self._bytes = 0
        self._due = time.monotonic() + PROGRESS_SECONDS

    def __call__(self, record: ConsumerRecord) -> None:
        """Count a record."""
        self._records += 1
        self._bytes += len(record.value or b"")
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + PROGRESS_SECONDS
            click.echo(f"read {counted(self._records, 'record')}, {self._bytes / 2**20:,.0f} MiB so far", err=True)


def choice_options(command: Command) -> Command:
    """Give a command the options that choose letters, as its argument `choice`, for `on_brokers`."""

    @click.option("--since", type=Duration(), metavar="DURATION", help="Only those refused since then, for example 2h.")
    @click.option(
        "--topic",
        "names",
        multiple=True,
        metavar="TOPIC",
        help="Only records of this topic, such as tool-calls, with or without the prefix.",
    )
    @click.option(
        "--reason",
        "reasons",
        multiple=True,
        metavar="REASON",
        type=click.Choice(get_args(Reason)),
        help="Only for this reason.",
    )
    @click.option("--stage", "stages", multiple=True, type=click.Choice(get_args(Stage)), help="Only at this stage.")
    @click.option("--group", "groups", multiple=True, metavar="GROUP", help="Only those that this group refused.")
    @functools.wraps(command)
    def with_choice(
        *,
        since: timedelta | None,
        names: tuple[str, ...],
        reasons: tuple[str, ...],
        stages: tuple[str, ...],
        groups: tuple[str, ...],
        **given: Any,
    ) -> Any:
        choice = Choice(
            topics=names,
            reasons=reasons,
            stages=stages,
            groups=groups,
            since=None if since is None else datetime.now(UTC) - since,
        )
        return command(choice=choice, **given)

    return with_choice


def on_brokers(kafka: KafkaSettings, choice: Choice) -> Choice:
    """Give a choice with the topics' names on the brokers, where the contract's were given.

    Raises:
        click.UsageError: a topic is none that letters can come from; the nearest is told.
    """
    ours = {topic.name: kafka.topic(topic) for topic in topics.TOPICS}
    known = {*ours, *ours.values()}
    for name in choice.topics:
        # The workers' own topic has the app id in its name, which nobody gives here.
        if name not in known and not name.endswith(f"-{TASK_EVENTS.name}"):
            raise click.UsageError(
                f"--topic: {plain(name)} is no topic of Traction; {suggest(name.removeprefix(kafka.prefix), ours)}"
            )
    return dataclasses.replace(choice, topics=tuple(ours.get(name, name) for name in choice.topics))
