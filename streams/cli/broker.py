"""`traction broker`: an Apache Kafka broker in the foreground.

Only words and options here; `streams.kafka_broker` runs it.
"""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streams.kafka_broker import BrokerError, KafkaBroker
from streams.kafka_broker.jars import default_cache
from streams.places import user_directory

if TYPE_CHECKING:
    from types import FrameType


def default_data() -> Path:
    """Give the directory for the broker's data: in the user's data directory, as the platform has it."""
    return user_directory("data") / "broker"


class Terminated(BaseException):
    """SIGTERM or SIGHUP came: unwinds like Ctrl-C, so that the broker is stopped on the way out."""


def terminate(number: int, frame: FrameType | None) -> None:
    """Unwind on a signal."""
    del number, frame
    raise Terminated


class HeapSize(click.ParamType):
    """A size as Java writes it, large enough for a broker to start."""

    name = "size"

    _LEAST_MIB = 64
    """With 48 MiB the broker runs out of memory while it starts."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check a size."""
        match = re.fullmatch(r"([1-9][0-9]*)([kmgKMG])", str(value))
        if match is None:
            self.fail(f"{value!r} is no size such as 256m or 1g.", param, ctx)
        mib = int(match[1]) * {"k": 1 / 1024, "m": 1, "g": 1024}[match[2].lower()]
        if mib < self._LEAST_MIB:
            self.fail(f"{value} is too small for a broker; give {self._LEAST_MIB}m or more.", param, ctx)
        return match[0]


@click.command(
    epilog="""\b
Examples:
  traction broker                           on 127.0.0.1:9092, data kept in the user's data directory
  traction broker --ephemeral --port 0      on any free port, data thrown away
  traction broker --data ./kafka --heap 1g

\b
When it accepts connections it prints one line:
  broker ready on 127.0.0.1:9092
Ctrl-C stops it. Java and Kafka come with the extra traction[broker] (make setup installs it).

\b
It is one broker without replicas, to try and to test with. Killed right after a commit was answered, it
may never mark that transaction as ended, and readers of committed records then wait in front of it.
""",
)
@click.option("--port", type=click.IntRange(0, 65535), default=9092, help="Port for clients; 0 picks a free one.")
@click.option("--host", default="127.0.0.1", help="Address to listen on, by which clients reach it.")
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help=f"Directory to keep the data in.  [default: {default_data()}]",
)
@click.option("--ephemeral", is_flag=True, help="Throw the data away when it stops.")
@click.option(
    "--cache",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help=f"Directory of Kafka's jars, fetched when missing.  [default: {default_cache()}]",
)
@click.option("--heap", default="256m", type=HeapSize(), metavar="SIZE", help="Java's largest heap: 64m or more.")
def broker(*, port: int, host: str, data: Path | None, ephemeral: bool, cache: Path | None, heap: str) -> None:
    """Run an Apache Kafka broker for development and tests.

    Needs no Java, Docker or root. It has neither encryption nor authentication and is not for production.
    """
    if ephemeral and data is not None:
        raise click.UsageError("--ephemeral throws the data away and --data keeps it; give one of them")
    for number in (signal.SIGTERM, *((signal.SIGHUP,) if sys.platform != "win32" else ())):
        signal.signal(number, terminate)
    kept = None if ephemeral else data or default_data()
    kafka = KafkaBroker(
        host=host, port=port, data=kept, cache=cache, heap=heap, tell=lambda text: click.echo(text, err=True)
    )
    try:
        with kafka:
            click.echo(
                f"data {'is thrown away in the end' if kept is None else f'in {kept}'}, log: {kafka.log}", err=True
            )
            click.echo(f"broker ready on {kafka.bootstrap}")
            kafka.wait()
    except BrokerError as problem:
        raise click.ClickException(str(problem)) from problem
    except Terminated:
        click.echo("stopped", err=True)
