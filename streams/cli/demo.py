"""`traction demo`: all of Traction at work on this machine. Only words and options here; `streams.demo` shows it."""

from __future__ import annotations

import click

from streams.cli.options import Number
from streams.demo.processes import ProcessFailed
from streams.demo.screen import Screen
from streams.demo.stage import Ended, perform
from streams.kafka import KafkaUnavailable
from streams.kafka_broker import BrokerError
from streams.topics import TopicsError

EXIT_TERMINATED = 143
"""128 + SIGTERM, as a shell reports it."""


@click.command(
    epilog="""\b
Starts a broker of its own with throw-away data, a worker and the escalation consumer, plays four
recorded sessions, shows what is noticed and done about it, and stops everything again.

\b
Exit codes: 0 all happened as expected; 1 it did not, or a part failed; 130 interrupted
""",
)
@click.option(
    "--speed",
    default=1.0,
    type=Number(0.1, 20),
    metavar="N",
    help="Play the sessions N times as fast; 1 takes half a minute, to be followed by eye.",
)
def demo(*, speed: float) -> int:
    """Show Traction at work: agents that spin, and what is done about them."""
    screen = Screen()
    try:
        right = perform(screen, speed=speed)
    except (BrokerError, KafkaUnavailable, ProcessFailed, TopicsError) as problem:
        raise click.ClickException(str(problem)) from problem
    except Ended:
        return EXIT_TERMINATED
    screen.step("done", "all as expected; everything is stopped" if right else "NOT all as expected: see the table")
    return 0 if right else 1
