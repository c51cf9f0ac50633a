"""The bridge as a process: each record of a collector's topics counts once, whatever is killed or frozen."""

from __future__ import annotations

import asyncio
import signal
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from schemas import topics
from streams.kafka import producer, running
from streams.metric_list import listed
from tests.kit import Wire, metrics_on
from tests.processes import TRACTION, TractionProcess
from tests.streams.gateway.test_otlp import codex, tool
from tests.streams.otlp.otlp_kit import logs_protobuf, traces_protobuf
from tests.streams.outputs_kit import make
from tests.waiting import until

SPANS = 20  # of one record
PARTITIONS = 2


@pytest.fixture
async def collector_topics(wire: Wire) -> tuple[str, str]:
    """Give a collector's topics, of another number of partitions than ours."""
    names = f"{wire.settings.prefix}spans", f"{wire.settings.prefix}logs"
    for name in names:
        await make(wire.settings, name, PARTITIONS)
    return names


@pytest.fixture
def bridge(wire: Wire, collector_topics: tuple[str, str]) -> Iterator[Callable[..., TractionProcess]]:
    """Give a starter of bridges on these topics; none outlives the test."""
    started: list[TractionProcess] = []
    spans, logs = collector_topics

    def begin() -> TractionProcess:
        started.append(
            TractionProcess(
                *(TRACTION, "bridge", "--bootstrap", wire.settings.bootstrap, "--prefix", wire.settings.prefix),
                *("--group", wire.app_id, "--spans-topic", spans, "--logs-topic", logs, "--port", "0"),
                *("--session-timeout", "6"),
            )
        )
        return started[-1]

    yield begin
    for process in started:
        process.kill()


def _spans(number: int) -> bytes:
    return traces_protobuf(*(tool(number * SPANS + each, f"s{each}") for each in range(SPANS)))


async def test_exactly_once(
    wire: Wire, collector_topics: tuple[str, str], bridge: Callable[..., TractionProcess]
) -> None:
    """One that is frozen and one that is killed at their work leave each call on the topic exactly once."""
    spans, logs = collector_topics

    async def send(numbers: range) -> None:
        async with running(producer(wire.settings), wire.settings) as client:
            for number in numbers:
                await client.send(spans, _spans(number), partition=number % PARTITIONS)
            await client.flush()

    async def calls() -> list[Any]:
        return await wire.records(wire.settings.topic(topics.TOOL_CALLS))

    async def some_more(before: int) -> bool:
        return len(await calls()) > before

    frozen = bridge()
    await frozen.ready()
    await send(range(200))
    await until(lambda: some_more(0))
    frozen.send(signal.SIGSTOP)
    killed = bridge()
    await killed.ready()
    before = len(await calls())
    await send(range(200, 400))
    await until(lambda: some_more(before))
    killed.kill()
    frozen.send(signal.SIGCONT)
    last = bridge()
    async with running(producer(wire.settings), wire.settings) as client:
        await client.send_and_wait(logs, b"no protobuf", partition=0)
        await client.send_and_wait(logs, logs_protobuf(codex(1)), partition=0)

    async def all_there() -> bool:
        return len(await calls()) >= 400 * SPANS + 1

    await until(all_there, 90)
    ids = [dict(record.headers)["ce_id"] for record in await calls()]
    assert (len(ids), len(set(ids))) == (400 * SPANS + 1, 400 * SPANS + 1)
    letters = await wire.records(wire.settings.topic(topics.DEAD_LETTERS))
    assert [dict(letter.headers)["__traction.errors.reason"] for letter in letters] == [b"not_otlp"]
    assert await frozen.exit() == 3
    url = await last.ready()
    text = await asyncio.to_thread(lambda: urllib.request.urlopen(f"{url}/metrics").read().decode())  # noqa: S310
    assert metrics_on(text) == {one.name for one in listed("bridge")}
    assert await last.end() == 0


async def test_missing_topics(wire: Wire) -> None:
    """A collector's topic that is not there is named, with what to do, before anything is read."""
    place = ("--bootstrap", wire.settings.bootstrap, "--prefix", wire.settings.prefix)
    process = TractionProcess(TRACTION, "bridge", *place, "--spans-topic", "nowhere", "--no-logs", "--port", "0")
    assert await process.exit() == 1
    assert "nowhere" in process.log
    assert "--spans-topic" in process.log
    await asyncio.sleep(0)
