"""Notifications to deliver, receivers that misbehave as they are told, and time that passes as fast as it is read."""

from __future__ import annotations

import asyncio
import contextlib
import random
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, Self

import msgspec
import pytest
from aiohttp import web

from schemas.common import Agent, Task
from schemas.outputs import Notification, Report
from streams.kafka import KafkaSettings
from streams.sinks.delivery import Timing
from streams.topics import create_topics
from tests.waiting import SOON_SECONDS, until

HERE = Path(__file__).parent
ISSUED = datetime(2026, 11, 30, 9, 15, 41, tzinfo=UTC)
PARTITIONS = 2


class MakeNotification(Protocol):
    """Builds a notification; fields go by name."""

    def __call__(self, notification_id: str = "n1", **fields: Any) -> Notification:
        """Build it."""


def build(notification_id: str = "n1", **fields: Any) -> Notification:
    """Build a notification: of a termination, unless told otherwise."""
    defaults: dict[str, Any] = {
        "kind": "terminate",
        "severity": "critical",
        "incident_id": "i1",
        "session_id": "s1",
        "task_id": "SHOP-412",
        "alert_id": "a1",
        "loop_id": "l1",
        "detector": "identical",
        "agent": Agent(name="claude-code", model="claude-opus-4", role="code"),
        "task": Task(id="SHOP-412", repo="acme/shop"),
        "issued_at": ISSUED,
        "text": "Session s1 is to be terminated.",
        "report": Report(
            title="identical: 5 times in session s1",
            tried=("bash(pytest tests/test_cart.py)",),
            times=5,
            recurring_failure="AssertionError: assert <n> == <n>",
            look_at="Reproduce the recurring failure by hand.",
            tokens_wasted=5_000,
            cost_wasted=1.25,
            markdown="# identical: 5 times in session s1\n",
        ),
    }
    return Notification(notification_id=notification_id, **{**defaults, **fields})


@pytest.fixture
def notification() -> MakeNotification:
    """Give a builder of notifications."""
    return build


def hostile() -> Notification:
    """Give a notification that is as long and as nasty as the contract lets it be."""
    nasty = '<!channel> <https://evil.test|here> & `*_~ @everyone \u202e\u200b"\\\r\n\x00 ```--> '
    names = (nasty * 10)[:256]
    report = Report(
        title=nasty * 100,
        tried=(nasty * 200,) * 100,
        times=1e300,
        recurring_failure=nasty * 200,
        look_at=nasty * 200,
        tokens_wasted=2**62,
        commands=(nasty * 200, *("<&`" * 100, "<&" * 200) * 100),
        markdown=nasty * 5_000,
    )
    ids = dict.fromkeys(("incident_id", "session_id", "task_id", "alert_id", "loop_id", "detector"), names)
    return build(
        ("\x01" * 256),
        **ids,
        text=nasty * 100,
        report=report,
        agent=Agent(id=names, role=names, name=names, model=names, config=names),
        task=Task(id=names, type=names, repo="acme/shop", ref=names, paths=(nasty * 10,) * 1_000),
    )


@dataclass
class Received:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Its body."""
        return msgspec.json.decode(self.body)


Reply = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Receiver:
    """A server on this machine that answers as it is told, one reply a request and 200 after them."""

    replies: list[Reply] = field(default_factory=list)
    handler: Reply | None = None
    certificate: str | None = None
    received: list[Received] = field(default_factory=list)
    url: str = ""

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", self._answer)
        context = None
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(HERE / "tls" / f"{self.certificate}.pem")
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context).start()
        scheme, host = ("https", "localhost") if context else ("http", "127.0.0.1")
        self.url = f"{scheme}://{host}:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.received.append(Received(request.method, request.path_qs, dict(request.headers), body))
        if self.replies:
            return await self.replies.pop(0)(request)
        if self.handler:
            return await self.handler(request)
        return web.Response(text="ok")

    def count(self, header: str = "webhook-id") -> Counter[str]:
        """Count the requests by their idempotency key."""
        return Counter(each.headers.get(header, "") for each in self.received)

    async def until(self, count: int, seconds: float = SOON_SECONDS) -> None:
        """Wait until so many requests have come."""
        await until(lambda: len(self.received) >= count, seconds)


def status(code: int, text: str = "", **headers: str) -> Reply:
    """Give a reply with a status."""

    async def reply(request: web.Request) -> web.StreamResponse:
        del request
        return web.Response(status=code, text=text, headers={name.replace("_", "-"): v for name, v in headers.items()})

    return reply


async def hang(request: web.Request) -> web.StreamResponse:
    """Never answer."""
    del request
    await asyncio.sleep(600)
    raise AssertionError


async def reset(request: web.Request) -> web.StreamResponse:
    """Close the connection without an answer."""
    assert request.transport
    request.transport.abort()
    return web.Response()


async def huge(request: web.Request, code: int = 200) -> web.StreamResponse:
    """Answer with a status and then without an end."""
    response = web.StreamResponse(status=code)
    await response.prepare(request)
    with contextlib.suppress(ConnectionError):
        while True:
            await response.write(b"x" * 65_536)
    return response


async def trickle(request: web.Request) -> web.StreamResponse:
    """Answer byte by byte, and never to the end of the headers."""
    assert request.transport
    for byte in b"HTTP/1.1 200 OK\r\nX: " + b"y" * 10_000:
        request.transport.write(bytes([byte]))
        await asyncio.sleep(0.02)
    return web.Response()


class Clock:
    """Time that passes only by sleeping, and chance that is seeded."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.slept: list[float] = []
        self.random = random.Random(7)  # noqa: S311 - pauses are no secret

    async def sleep(self, seconds: float) -> None:
        """Pass some seconds at once."""
        self.slept.append(seconds)
        self.now += max(0.0, seconds)
        await asyncio.sleep(0)

    @property
    def timing(self) -> Timing:
        """Give it to what is tested."""
        return Timing(lambda: self.now, self.sleep, lambda most: self.random.uniform(0, most))


@pytest.fixture
def clock() -> Clock:
    """Give a clock."""
    return Clock()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """Give a receiver that takes everything."""
    async with Receiver() as running:
        yield running


@pytest.fixture
async def kafka(bootstrap: str, prefix: str) -> KafkaSettings:
    """Give a broker with all topics, under a prefix of the test's own."""
    settings = KafkaSettings(bootstrap=bootstrap, prefix=prefix)
    await create_topics(settings, partitions=PARTITIONS, replication=1, app_id=prefix.rstrip("."))
    return settings
