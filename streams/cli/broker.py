"""`traction broker`: an Apache Kafka broker in the foreground.

Only words and options here; `streams.kafka_broker` runs it.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streams.kafka_broker import BrokerError, KafkaBroker
from streams.kafka_broker.jars import default_cache

if TYPE_CHECKING:
    from types import FrameType


def default_data() -> Path:
    """Give the directory for the broker's data: in the user's data directory, as the platform has it."""
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return base / "traction" / "broker"


class Terminated(BaseException):
    """SIGTERM or SIGHUP came: unwinds like Ctrl-C, so that the broker is stopped on the way out."""


def terminate(number: int, frame: FrameType | None) -> None:
    """Unwind on a signal."""
    del number, frame
    raise Terminated


def heap_size(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Check a size as Java writes it."""
    del ctx, param
    if not re.fullmatch(r"[1-9]\d*[kmgKMG]", value):
        raise click.BadParameter(f"{value!r} is no size such as 256m or 1g")
    return value


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
@click.option("--heap", default="256m", metavar="SIZE", callback=heap_size, help="Java's largest heap: 256m, 1g.")
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
