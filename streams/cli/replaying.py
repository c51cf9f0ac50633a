"""`traction dead-letters replay`: puts records back onto their topics, after a look and a question.

Only words and options here; `streams.letters.replay` does it.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING

import click

from schemas.common import MAX_ID_CHARS
from streams.cli.letter_options import Position, Progress, choice_options, on_brokers
from streams.cli.looking import json_option, line, login, reading_options, run
from streams.cli.output import agreed
from streams.letters.letter import Choice
from streams.letters.replay import GO_ON, Order, Outcome, Replay, ReplayStopped
from streams.letters.returns import WORDS
from streams.received import is_text
from streams.timeline import counted, plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streams.kafka import KafkaSettings
    from streams.letters.replay import Kind, Survey
    from streams.letters.returns import Hindrance

EXIT_LEFT = 3
"""Some letters that were meant were not put back."""

MOST_KINDS_SHOWN = 50


@click.command(
    epilog="""\b
Examples:
  traction dead-letters replay --reason detector_error --since 2d --dry-run
  traction dead-letters replay --topic tool-calls --limit 10
  traction dead-letters replay 3@1207 3@1210 --yes --json
  traction dead-letters replay 3@1207 --again

\b
Exit codes:
  0    what was meant is back on its topics, or would be
  1    Kafka cannot be used, another run began, or the answer was no
  2    wrong use
  3    some letters that were meant were not put back, as it tells
  130  interrupted: what was told is put back, and a next run goes on
"""
)
@click.argument("positions", metavar="[PARTITION@OFFSET]...", nargs=-1, type=Position())
@choice_options
@click.option("--all", "everything", is_flag=True, help="All that were not put back before.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="At most N, the oldest of each partition first.")
@click.option("--again", is_flag=True, help="Letters that are named also if they were put back before.")
@click.option("--dry-run", is_flag=True, help="Tell what would be done, and do nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--by", metavar="NAME", help="Who decides, for the receipts.  [default: the login name]")
@json_option
@reading_options
def replay(
    *,
    kafka: KafkaSettings,
    timeout: float,
    positions: tuple[tuple[int, int], ...],
    choice: Choice,
    everything: bool,
    limit: int | None,
    again: bool,
    dry_run: bool,
    yes: bool,
    by: str | None,
    as_json: bool,
) -> int:
    """Put records back onto the topics and partitions that they came from: key, value and headers as they were.

    Name letters, or choose some by the options; each is put back once, however often this is run or dies, unless
    --again. Mend what was wrong first: what is refused again is a new dead letter. --json prints what became of each
    letter that is meant, and asks nothing.
    """
    _check(positions, choice, everything=everything, again=again, by=by)
    _check_asking(asks=not (yes or dry_run), as_json=as_json)
    chosen = dataclasses.replace(on_brokers(kafka, choice), names=frozenset(positions) if positions else None)
    order = Order(chosen, login() if by is None else by, again=again, limit=limit)
    done = Counter[str]()

    def tell(outcome: Outcome) -> None:
        done[outcome.what] += 1
        if as_json:
            line(_told(outcome))

    def work(order: Order) -> Replay:
        return Replay(kafka, order, timeout, Progress(), tell)

    if dry_run or not yes:
        survey = run(kafka, work(order).pretend if as_json else work(order).survey)
        meant = 0 if as_json else _show(survey, order)
        if dry_run or not meant:
            return EXIT_LEFT if _left(survey, order) else 0
        if not _confirmed(meant):
            click.echo("nothing was put back", err=True)
            return 1
        order = dataclasses.replace(order, ends=survey.ends)
    try:
        survey = run(kafka, lambda: _perform(work(order)))
    except BaseException:
        click.echo(f"put back so far: {done['replayed']:,}; {GO_ON}", err=True)
        raise
    if not as_json:
        click.echo(f"put back {counted(done['replayed'], 'record')}")
        if yes:
            _hindered(survey, order)
    return EXIT_LEFT if _left(survey, order) else 0


def _check(
    positions: tuple[tuple[int, int], ...], choice: Choice, *, everything: bool, again: bool, by: str | None
) -> None:
    """See that the options make sense together.

    Raises:
        click.UsageError: they do not.
    """
    if sum((bool(positions), choice != Choice(), everything)) != 1:
        raise click.UsageError("name letters as PARTITION@OFFSET, or choose some by options, or say --all: one of them")
    if again and not positions:
        raise click.UsageError("--again wants the letters named one by one, so that nothing comes twice by mistake")
    if by is not None and not (1 <= len(by) <= MAX_ID_CHARS and is_text(by)):
        raise click.UsageError(f"--by has 1 to {MAX_ID_CHARS} characters, and is UTF-8")


def _check_asking(*, asks: bool, as_json: bool) -> None:
    if as_json and asks:
        raise click.UsageError("--json asks nothing: say --yes or --dry-run with it")


def _confirmed(meant: int) -> bool:
    return agreed(f"put {counted(meant, 'record')} back?", "say --yes, or --dry-run")


async def _perform(work: Replay) -> Survey:
    try:
        return await work.perform()
    except ReplayStopped as problem:
        raise click.ClickException(str(problem)) from problem


def _show(survey: Survey, order: Order) -> int:
    """Show what would be put back and what not, and give how many would be."""
    counts, _ = survey.counts(again=order.again)
    free = {kind: number for kind, number in counts.items() if kind[2] is None}
    meant = sum(free.values()) if order.limit is None else min(order.limit, sum(free.values()))
    click.echo(f"to be put back: {meant:,}{'' if meant == sum(free.values()) else f' of {sum(free.values()):,}'}")
    for (topic, reason, _), number in _shown(free):
        click.echo(f"  {number:,} to {plain(topic)}, refused as {plain(reason)}")
    _hindered(survey, order)
    return meant


def _hindered(survey: Survey, order: Order) -> None:
    """Tell of letters that stay where they are, and why."""
    counts, before = survey.counts(again=order.again)
    hindered: Counter[Hindrance] = Counter()
    for (_, _, why), number in counts.items():
        if why is not None:
            hindered[why] += number
    for why, number in hindered.most_common():
        click.echo(f"not put back: {number:,}: {WORDS[why]}")
    if before:
        again = (
            "; name them and say --again if they are to come twice" if order.choice.names is None else "; say --again"
        )
        click.echo(f"put back before, and not again: {before:,}{again}")
    missing = survey.missing(order.choice)
    if missing:
        click.echo(f"no dead letter is at {', '.join(missing)}")


def _left(survey: Survey, order: Order) -> bool:
    """Tell whether something that was meant stays: hindered, not there, or named and put back before."""
    counts, before = survey.counts(again=order.again)
    named = order.choice.names is not None
    return any(why is not None for _, _, why in counts) or bool(survey.missing(order.choice)) or (named and before > 0)


def _shown(counts: Mapping[Kind, int]) -> list[tuple[Kind, int]]:
    return Counter(counts).most_common(MOST_KINDS_SHOWN)


def _told(outcome: Outcome) -> dict[str, object]:
    letter = outcome.letter
    told: dict[str, object] = {"letter": letter.name, "outcome": outcome.what}
    told |= {"topic": letter.topic, "partition": letter.from_partition, "reason": letter.reason}
    if outcome.why is not None:
        told |= {"hindrance": outcome.why, "remedy": WORDS[outcome.why]}
    if outcome.offset is not None:
        told["offset"] = outcome.offset
    return told
