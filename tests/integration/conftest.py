"""Topics of a test's own, and workers on them that do not outlive it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

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
