"""`traction dead-letters`: lists and shows what was refused; putting it back is in `replaying`.

Only words and options here; `streams.letters` reads and writes. No list, and no look without `--value` or `--raw`,
tells what a record holds: it may be a secret.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from aiokafka import TopicPartition

from schemas import topics
from streams.cli.letter_options import Position, Progress, choice_options, on_brokers
from streams.cli.looking import json_option, line, reading_options, run, table
from streams.cli.replaying import replay
from streams.inspection.story import moment
from streams.letters.letter import read_letter
from streams.letters.listing import listing, row
from streams.letters.returns import WORDS, hindrance
from streams.reading import reading
from streams.timeline import counted, plain
from streams.topics import partition_counts

if TYPE_CHECKING:
    from datetime import datetime

    from streams.kafka import KafkaSettings
    from streams.letters.letter import Choice, Letter
    from streams.letters.listing import Listing
    from streams.letters.returns import Hindrance

DEFAULT_ROWS = 100
MOST_ROWS = 100_000
"""Rows that are kept in memory: a kilobyte or two each."""

MOST_SHOWN = 4_096
"""Bytes of a value or header that `--value` shows; `--raw` gives a value whole."""

_PRINTABLE = range(0x20, 0x7F)


@click.group(
    "dead-letters",
    epilog="""\b
Examples:
  traction dead-letters list --summary
  traction dead-letters list --since 1h --topic tool-calls --reason not_json
  traction dead-letters show 3@1207
  traction dead-letters show 3@1207 --raw --output refused.bin
  traction dead-letters replay --reason detector_error --dry-run
  traction dead-letters replay 3@1207 3@1210 --yes

\b
Exit codes:
  0    done
  1    no such letter, or Kafka cannot be used; of replay: ended before its work was done
  2    wrong use
  3    of replay: some letters that were meant were not put back, as it tells
  130  interrupted
""",
)
def dead_letters() -> None:
    """See what was refused and why; put it back once what was wrong is mended."""


@dead_letters.command("list")
@choice_options
@click.option(
    "--limit",
    default=DEFAULT_ROWS,
    type=click.IntRange(1, MOST_ROWS),
    metavar="N",
    help="Show the newest N; all are counted.",
)
@click.option("--summary", is_flag=True, help="Count by topic and reason instead, all of them.")
@json_option
@reading_options
def list_letters(
    *, kafka: KafkaSettings, timeout: float, choice: Choice, limit: int, summary: bool, as_json: bool
) -> None:
    """List what was refused, newest last, without what it holds."""
    name, chosen = kafka.topic(topics.DEAD_LETTERS), on_brokers(kafka, choice)

    async def look() -> Listing:
        async with reading(kafka, [name], seconds=timeout) as reader:
            return await listing(reader, name, chosen, 0 if summary else limit, Progress())

    found = run(kafka, look)
    if as_json:
        for each in found.sums if summary else found.rows:
            line(each)
        return
    if found.foreign:
        click.echo(f"{counted(found.foreign, 'record')} on {name} left out: no dead letters of Traction", err=True)
    if not found.total:
        click.echo("no dead letter fits")
    elif summary:
        _sums(found)
    else:
        _rows(found)


def _sums(found: Listing) -> None:
    table(
        ("LETTERS", "REPLAYED", "REASON", "TOPIC", "BYTES", "FIRST", "LAST"),
        (
            (
                *(f"{each.letters:,}", f"{each.replayed:,}", each.reason, each.topic, f"{each.bytes:,}"),
                *(_moment(each.first_at), _moment(each.last_at)),
            )
            for each in found.sums
        ),
    )


def _rows(found: Listing) -> None:
    table(
        ("LETTER", "WHEN", "FROM", "REASON", "BYTES", "REPLAYED", "MESSAGE"),
        (
            (
                *(each.letter, _moment(each.written_at), f"{each.topic}-{each.partition}@{each.offset}"),
                *(each.reason, f"{each.bytes:,}", "yes" if each.replayed else "-", each.message),
            )
            for each in found.rows
        ),
    )
    if found.total > len(found.rows):
        click.echo(
            f"the newest {len(found.rows):,} of {found.total:,}; see --summary, choose fewer, or say --limit", err=True
        )


def _moment(at: datetime | None) -> str:
    return "-" if at is None else moment(at)


@dead_letters.command()
@click.argument("position", metavar="PARTITION@OFFSET", type=Position())
@click.option("--value", "with_value", is_flag=True, help="Show key, headers and value too: they may be secret.")
@click.option("--raw", is_flag=True, help="Write the value's bytes as they came, and nothing else.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where --raw writes to: a new file, for you alone to read.  [default: standard output]",
)
@json_option
@reading_options
def show(
    *,
    kafka: KafkaSettings,
    timeout: float,
    position: tuple[int, int],
    with_value: bool,
    raw: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    """Tell everything of one letter: where the record stood, why it was refused, and what to do.

    What it holds is shown with --value alone, up to 4,096 bytes of each part and with control characters escaped.
    """
    if output is not None and not raw:
        raise click.UsageError("--output goes with --raw")
    if raw and (with_value or as_json):
        raise click.UsageError("--raw excludes --value and --json: it writes the value's bytes and nothing else")
    if raw and output is None and sys.stdout.isatty():
        raise click.UsageError("--raw would have the bytes steer this terminal: say --output FILE, or pipe them")
    letter, why = run(kafka, lambda: _find(kafka, timeout, *position))
    if letter is None:
        raise click.ClickException(
            f"there is no dead letter at {position[0]}@{position[1]}: it may have been deleted, or be no letter; see "
            "traction dead-letters list"
        )
    if raw:
        _write(letter, output)
    elif as_json:
        shown = msgspec.to_builtins(row(letter))
        del shown["replayed"]  # the receipt, if there is one, stands elsewhere
        line({**shown, "hindrance": why, **(_content(letter) if with_value else {})})
    else:
        _tell(letter, why, with_value=with_value)


async def _find(
    kafka: KafkaSettings, seconds: float, partition: int, offset: int
) -> tuple[Letter | None, Hindrance | None]:
    """Read one letter, with what would keep it from being put back."""
    name = kafka.topic(topics.DEAD_LETTERS)
    tp = TopicPartition(name, partition)
    async with reading(kafka, [name], seconds=seconds) as reader:
        if offset < (await reader.ends(name)).get(tp, 0):
            async for record in reader.read(name, start={tp: offset}, until={tp: offset + 1}):
                letter = read_letter(record)
                if letter is not None:
                    return letter, hindrance(kafka, await partition_counts(kafka, {letter.topic}), letter)
    return None, None


def _tell(letter: Letter, why: Hindrance | None, *, with_value: bool) -> None:
    told = row(letter)
    problem, _, remedy = letter.message.rpartition("; ")
    attempts = f"put back {counted(letter.attempts, 'time')} before, and refused again" if letter.attempts else "none"
    rows = [
        ("letter", f"{letter.name}, written {_moment(told.written_at)}"),
        ("refused by", f"group {letter.group}, stage {letter.stage}"),
        ("came from", f"{letter.source}, recorded there {_moment(told.recorded_at)}"),
        ("reason", letter.reason),
        ("problem", problem or letter.message),
        ("what to do", remedy),
        ("attempts", attempts),
        ("replay", "possible" if why is None else f"not possible: {WORDS[why]}"),
        ("key", _sized(letter.key)),
        ("value", _sized(letter.value)),
        ("headers", ", ".join(f"{name} ({_sized(value)})" for name, value in letter.headers) or "none"),
    ]
    for name, text in rows:
        click.echo(f"{name:<11} {plain(text, 2_000)}")
    if with_value:
        parts = [("key", letter.key), *((f"header {plain(name)}", value) for name, value in letter.headers)]
        for name, value in (*parts, ("value", letter.value)):
            click.echo(f"--- {name}\n{'none' if value is None else _escaped(value)}")


def _sized(value: bytes | None) -> str:
    return "none" if value is None else counted(len(value), "byte")


def _content(letter: Letter) -> dict[str, Any]:
    return {
        "key": _escaped(letter.key),
        "headers": [{"name": name, "value": _escaped(value)} for name, value in letter.headers],
        "value": _escaped(letter.value),
    }


def _escaped(value: bytes | None) -> str | None:
    r"""Show bytes so that nothing acts: what is not printable ASCII as ``\x1b``, and a backslash doubled."""
    if value is None:
        return None
    shown = "".join(
        "\\\\" if byte == ord("\\") else chr(byte) if byte in _PRINTABLE else f"\\x{byte:02x}"
        for byte in value[:MOST_SHOWN]
    )
    return shown if len(value) <= MOST_SHOWN else f"{shown} ... of {len(value):,} bytes; see --raw"


def _write(letter: Letter, output: Path | None) -> None:
    content = letter.value or b""
    if output is None:
        stream = click.get_binary_stream("stdout")
        stream.write(content)
        stream.flush()
        return
    try:
        # New, and for its owner alone: what was refused may hold a secret.
        number = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(number, "wb") as file:  # noqa: PTH123 - of a descriptor
            file.write(content)
    except OSError as problem:
        raise click.ClickException(
            f"--output: {output} cannot be written ({problem.strerror}); name a new file"
        ) from problem
    click.echo(f"wrote {counted(len(content), 'byte')} to {output}", err=True)


dead_letters.add_command(replay)
