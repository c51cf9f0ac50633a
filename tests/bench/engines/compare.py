"""Compares four engines that do the same job: Traction's worker, a bare loop, a Faust agent and Quix Streams.

    python -m tests.bench.engines [--rounds N] [--events N] [--engines abcd] [--workers 2] [--json]

Starts a broker of its own, publishes one load to it, and runs each engine over it in a process of its own, in turn,
several times. What each gave is compared with what the detectors alone make of the load; it ends with 1 where an engine
gave anything else. Go by the ratios, which are taken within a round: the figures themselves differ from machine to
machine.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from aiokafka.errors import KafkaError

from streams.kafka_broker import BrokerError, KafkaBroker
from tests.bench.engines.figures import summary, table
from tests.bench.engines.job import pin
from tests.bench.engines.options import read
from tests.bench.engines.process import BenchError
from tests.bench.engines.rounds import Rounds
from tests.bench.program import say, show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.bench.engines.rounds import Asked


class Teller:
    """Tells on standard error what goes on; on a terminal in one line, which is written anew."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._last = ""

    def __call__(self, what: str) -> None:
        """Tell something; elsewhere than on a terminal, nothing that is only the count of the line before."""
        shown = what.partition(": ")[0] if not self._terminal else ""
        if self._terminal:
            sys.stderr.write(f"\r\033[K{what}")
        elif shown != self._last or "events/s" in what:
            sys.stderr.write(f"{what}\n")
        self._last = shown
        sys.stderr.flush()

    def end(self) -> None:
        """End the line."""
        if self._terminal:
            sys.stderr.write("\r\033[K")


def interrupt(*_: object) -> None:
    """Have a signal end it as Ctrl-C does, so that nothing is left."""
    raise KeyboardInterrupt


async def measure(rounds: Rounds, asked: Asked, tell: Teller, *, as_json: bool) -> None:
    """Run the comparison and print its figures; those of what was measured until then also when it fails.

    Raises:
        BenchError: an engine failed, or gave something else than the detectors.
    """
    try:
        await rounds.run()
    finally:
        tell.end()
        if rounds.results.measured:
            show(summary(asked, rounds.results), table, as_json=as_json)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare and print."""
    asked, as_json, notes = read(arguments, __doc__)
    for note in notes:
        say(note)
    logging.disable(logging.ERROR)  # of aiokafka, while the broker makes topics ready
    signal.signal(signal.SIGTERM, interrupt)
    tell = Teller()
    pin(asked.cores[1])
    try:
        with tempfile.TemporaryDirectory(prefix="traction-bench-") as directory, KafkaBroker(heap="512m") as broker:
            rounds = Rounds(asked, broker.bootstrap, Path(directory), tell)
            asyncio.run(measure(rounds, asked, tell, as_json=as_json))
    except (BenchError, BrokerError, KafkaError) as problem:
        say(str(problem))
        return 1
    return 0
