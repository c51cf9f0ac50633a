"""The gateway as a process: brokers that go away, kill -9 of either under load, and how it starts and ends."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from schemas import topics
from schemas.decode import decode
from streams.kafka import KafkaSettings
from streams.kafka_broker import KafkaBroker
from streams.topics import create_topics
from tests.kit import Wire
from tests.processes import TRACTION, TractionProcess
from tests.waiting import until

CALLS = "/v1/events/tool-calls"
CLIENTS = 4
EVENTS = 10  # of one post


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaBroker]:
    """Give a broker of the test's own, which it may kill and start."""
    with KafkaBroker(data=tmp_path / "broker") as running:
        yield running


@pytest.fixture
async def wire(broker: KafkaBroker) -> Wire:
    """Give topics on that broker."""
    name = f"t{uuid.uuid4().hex[:12]}"
    settings = KafkaSettings(bootstrap=broker.bootstrap, prefix=f"{name}.")
    await create_topics(settings, partitions=2, replication=1, app_id=name)
    return Wire(settings, name, 2)


@pytest.fixture
def ingest(wire: Wire) -> Iterator[Callable[..., TractionProcess]]:
    """Give a starter of gateways on the test's topics; none outlives the test."""
    started: list[TractionProcess] = []
    place = ("--bootstrap", wire.settings.bootstrap, "--prefix", wire.settings.prefix)

    def begin(*flags: str) -> TractionProcess:
        started.append(TractionProcess(TRACTION, "ingest", *place, *flags))
        return started[-1]

    yield begin
    for process in started:
        process.kill()


class Load:
    """Clients that post without a pause, and post again what was not acknowledged, as emitters do."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.acknowledged: set[str] = set()
        self.statuses: Counter[int] = Counter()
        self.retry_after: set[str | None] = set()
        self._stop = asyncio.Event()
        self._tasks = [asyncio.create_task(self._client(f"s{number}")) for number in range(CLIENTS)]

    async def end(self) -> None:
        """Have each client finish what it is at."""
        self._stop.set()
        await asyncio.gather(*self._tasks)

    async def more(self, count: int = 200) -> None:
        """Wait until so many events more were acknowledged."""
        wanted = len(self.acknowledged) + count

        async def there() -> bool:
            for task in self._tasks:
                if task.done():
                    task.result()
            return len(self.acknowledged) >= wanted

        await until(there, 90)

    async def _client(self, name: str) -> None:
        number = 0
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session:
            while not self._stop.is_set():
                events = [_call(name, number + each) for each in range(EVENTS)]
                if await self._post(session, events):
                    self.acknowledged.update(event["event_id"] for event in events)
                    number += EVENTS
                else:
                    await asyncio.sleep(0.1)

    async def _post(self, session: aiohttp.ClientSession, events: list[dict[str, Any]]) -> bool:
        try:
            async with session.post(self.url + CALLS, json=events) as answer:
                told = await answer.json()
        except aiohttp.ClientError:  # it was killed
            return False
        self.statuses[answer.status] += 1
        if answer.status != 200:
            self.retry_after.add(answer.headers.get("Retry-After"))
            return False
        assert (told["accepted"], told["refused"]) == (EVENTS, [])
        return True


def _call(session: str, number: int) -> dict[str, Any]:
    return {
        "event_id": f"{session}-{number}",
        "session_id": session,
        "occurred_at": "2026-01-01T00:00:00Z",
        "tool": "read",
        "arguments": {"number": number},
    }


def _free_port() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return str(taken.getsockname()[1])


async def test_kills_under_load(wire: Wire, broker: KafkaBroker, ingest: Callable[..., TractionProcess]) -> None:
    """SIGKILL of gateway and broker loses no acknowledged event, and what is posted again is no other event.

    While the broker is away posts are answered with 503 and when to come again, and the gateway says it is not ready.
    """
    port = _free_port()
    flags = ("--port", port, "--ack-timeout", "2")
    gateway = ingest(*flags)
    load = Load(await gateway.ready())
    await load.more()

    async def refused() -> bool:
        return load.statuses[503] >= 3 * CLIENTS

    assert broker.pid is not None
    os.kill(broker.pid, signal.SIGSTOP)  # so that whatever would be answered too early is lost with the gateway
    await until(refused, 60)
    gateway.kill()
    os.kill(broker.pid, signal.SIGCONT)
    gateway = ingest(*flags)
    await gateway.ready()
    await load.more()
    os.kill(broker.pid, signal.SIGKILL)
    load.statuses.clear()
    await until(refused, 60)
    assert load.retry_after == {"3"}
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{load.url}/readyz") as page:
            assert page.status == 503
        async with session.get(f"{load.url}/healthz") as page:
            assert page.status == 200
    await asyncio.to_thread(broker.stop)  # forgets the one that is gone
    await asyncio.to_thread(broker.start)
    await load.more()
    await load.end()
    assert await gateway.end() == 0
    records = await wire.records(wire.settings.topic(topics.TOOL_CALLS))
    values: dict[str, set[bytes]] = {}
    for record in records:
        event = decode(topics.TOOL_CALLS, record.value, record.headers)
        values.setdefault(event.event_id, set()).add(record.value)  # type: ignore[attr-defined]
    assert load.acknowledged <= values.keys()
    assert {len(same) for same in values.values()} == {1}
    assert set(load.statuses) <= {200, 503}


async def test_end_while_brokers_are_away(broker: KafkaBroker, ingest: Callable[..., TractionProcess]) -> None:
    """SIGTERM ends a gateway also when the broker hangs and requests wait for it, which get an answer before."""
    gateway = ingest("--port", "0", "--ack-timeout", "2")
    url = await gateway.ready()
    assert broker.pid is not None
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        async with aiohttp.ClientSession() as session:
            posting = asyncio.create_task(session.post(url + CALLS, json=_call("s", 1)))

            async def in_flight() -> bool:
                async with session.get(f"{url}/metrics") as page:
                    return "traction_gateway_in_flight_requests 1.0" in await page.text()

            await until(in_flight)
            assert await gateway.end() == 0
            assert (await posting).status == 503
    finally:
        os.kill(broker.pid, signal.SIGCONT)


def test_wrong_use(tmp_path: Path) -> None:
    """An address that others reach needs a token or a word; what contradicts itself or cannot be used is wrong use."""
    tokens = tmp_path / "tokens"
    tokens.write_text("first\nsecond\n")
    for flags, said in (
        (("--host", "0.0.0.0"), "--gateway-token-file"),  # noqa: S104 - what this is about
        (("--without-token", "--gateway-token-file", str(tokens)), "contradicts"),
        (("--max-body", "8", "--max-in-flight", "8"), "room twice"),
    ):
        result = subprocess.run([TRACTION, "ingest", *flags], capture_output=True, text=True, check=False, timeout=60)
        assert (result.returncode, said in result.stderr) == (2, True)
    away = ("--host", "0.0.0.0", "--without-token", "--bootstrap", f"127.0.0.1:{_free_port()}")  # noqa: S104
    result = subprocess.run([TRACTION, "ingest", *away], capture_output=True, text=True, check=False, timeout=60)
    assert (result.returncode, "cannot be used" in result.stderr) == (1, True)
