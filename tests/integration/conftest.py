"""Topics of a test's own, and workers on them that do not outlive it."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import click
import pytest
from click.testing import CliRunner

from streams.cli import traction
from streams.kafka import KafkaSettings
from streams.topics import create_topics
from tests.kit import Wire, WorkerProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PARTITIONS = 4


@pytest.fixture
async def wire(bootstrap: str, prefix: str) -> Wire:
    """Give a way to write events and read what became of them, on topics of the test's own."""
    settings = KafkaSettings(bootstrap=bootstrap, prefix=prefix)
    app_id = prefix.rstrip(".")
    await create_topics(settings, partitions=PARTITIONS, replication=1, app_id=app_id)
    return Wire(settings, app_id, PARTITIONS)


@pytest.fixture
def start(wire: Wire) -> Iterator[Callable[..., WorkerProcess]]:
    """Give a starter of worker processes on the test's topics; none outlives the test."""
    started: list[WorkerProcess] = []

    def begin(*flags: str, config: Path | None = None, program: str | None = None) -> WorkerProcess:
        process = WorkerProcess(wire, *flags, config=config, program=program)
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()


async def run(wire: Wire, *words: str, code: int = 0) -> Any:
    """Run a command of ours on the test's topics with --json, and give what it tells; of one that fails the error.

    In a thread of this process, since it has an event loop of its own and a process would cost a second.
    """
    settings = wire.settings
    command = [*words, "--json", "--app-id", wire.app_id, "--prefix", settings.prefix]
    command += ["--bootstrap", settings.bootstrap, "--log-level", "error"]
    ran = await asyncio.to_thread(lambda: CliRunner().invoke(traction, command, standalone_mode=False))
    if isinstance(ran.exception, click.ClickException):
        assert ran.exception.exit_code == code, ran.exception.message
        return ran.exception.message
    assert ((ran.return_value or 0), ran.exception) == (code, None), ran.output
    return json.loads(ran.stdout)
