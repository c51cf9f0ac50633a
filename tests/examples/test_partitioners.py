"""librdkafka's default partitioner, by kcat: what it leads astray is counted, and put right if asked for."""

from __future__ import annotations

import asyncio
import shutil
import subprocess

import pytest

from schemas import topics
from schemas.encode import encode
from streams.kafka import KafkaSettings
from streams.topics import create_topics
from tests.examples.conftest import PARTITIONS, astray
from tests.kit import Wire, WorkerProcess, tool_call

pytestmark = pytest.mark.tools

SESSION = astray("two-clients")
RIGHT = ("-X", "topic.partitioner=murmur2_random")


@pytest.fixture
async def wire(bootstrap: str, prefix: str) -> Wire:
    """Give topics with a loop of five calls of one session on them, written by two clients in turn."""
    kafka = KafkaSettings(bootstrap=bootstrap, prefix=prefix)
    app_id = prefix.rstrip(".")
    await create_topics(kafka, partitions=PARTITIONS, replication=1, app_id=app_id)
    kcat = shutil.which("kcat")
    assert kcat, "kcat is needed: install it"
    for number in range(5):
        call = tool_call(SESSION, number, arguments={"path": "a"}, result="the same")
        command = [kcat, "-P", "-b", bootstrap, "-t", kafka.topic(topics.TOOL_CALLS), "-k", SESSION]
        command += RIGHT if number % 2 else ()
        await asyncio.to_thread(subprocess.run, command, input=encode(call), check=True, timeout=60)
    return Wire(kafka, app_id, PARTITIONS)


@pytest.mark.parametrize(
    ("flags", "levels", "result"), [((), ["warn"], "applied"), (("--rekey",), ["warn", "terminate"], "rekeyed")]
)
async def test_a_session_in_two_partitions(wire: Wire, flags: tuple[str, ...], levels: list[str], result: str) -> None:
    """It is judged as two halves, or as a whole whose loop is found once; what is astray is counted either way."""
    worker = WorkerProcess(wire, *flags)
    try:
        await worker.ready(PARTITIONS)
        await wire.until_applied()
        metrics = await worker.metrics()
        assert [alert.level for alert in await wire.alerts()] == levels
    finally:
        worker.kill()
    name = wire.settings.topic(topics.TOOL_CALLS)
    assert metrics["traction_misrouted_events_total", name] == 3
    assert metrics["traction_events_total", result, name] == (3 if result == "rekeyed" else 5)
    assert metrics["traction_events_total", "applied", name] == 5
