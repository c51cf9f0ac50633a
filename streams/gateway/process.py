"""Runs the gateway as a process: checks, addresses, signals, an end that answers what is in flight.

Everything that can be expected to go wrong ends in one of the errors named here, worded for whoever runs it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry

from schemas import topics
from streams.access.rights import check_rights
from streams.expiry import watch_certificates
from streams.gateway.gateway import Gateway
from streams.gateway.metrics import GatewayMetrics
from streams.gateway.refused import away, told
from streams.gateway.sender import BROKER, Sender
from streams.health import Health
from streams.page_server import Bounds
from streams.pages import LOCAL_NAMES, Pages
from streams.topics import check_topics
from streams.verdicts.live import LiveVerdicts
from streams.verdicts.watch import VERDICTS, VerdictsWatch
from streams.worker.faults import end_now

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from aiohttp import web

    from streams.gateway.settings import GatewaySettings
    from streams.kafka import KafkaSettings
    from streams.page_settings import PageSettings

logger = logging.getLogger(__name__)

TOPICS = (*topics.SESSION_INPUTS, topics.DIRECTIVES, topics.TERMINATIONS)
"""What the gateway reads and writes."""

STOP_SECONDS = 7.0
"""How long what is in flight may take at the end: longer than the brokers may take to acknowledge, and below the 10 s
that container runtimes wait before they kill."""

CLOSE_SECONDS = 2.0
"""How long the clients may take to end after that."""

BOUNDS = Bounds(connections=512, seconds=30.0, line_bytes=8_190, linger_seconds=1.0)
"""Connections at a time, each with a few dozen kilobytes; 30 s for a body, and between two requests of an exporter; a
line for the longest session id, each character of it quoted."""

ACTOR = "traction-gateway"
"""Who answers directives that agents were told of."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A gateway that takes requests.

    Attributes:
        gateway: all routes.
        pages: serves them.
        registry: what is measured.
    """

    gateway: Gateway
    pages: Pages
    registry: CollectorRegistry


@contextlib.asynccontextmanager
async def serving(
    kafka: KafkaSettings, settings: GatewaySettings, page_settings: PageSettings
) -> AsyncIterator[Serving]:
    """Serve a gateway, for as long as the context lasts; for arguments and errors see `serve`."""
    registry = CollectorRegistry()
    health = Health((BROKER, VERDICTS), stall_seconds=page_settings.stall_seconds)
    metrics = GatewayMetrics(registry, kafka)
    metrics.watch_health(health)
    gateway: Gateway | None = None
    known = frozenset((*LOCAL_NAMES, page_settings.host.lower(), *(name.lower() for name in settings.names)))
    names = known if page_settings.local else None

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if gateway is None:
            problem = away("this gateway is starting; send it again")
            return told(problem.status, {"error": problem.text}, headers=problem.headers)
        return await gateway.answer(request)

    await check_rights(kafka, "gateway")
    if settings.reviews:
        await check_rights(kafka, "reviews")
    # Without the role reviews that topic is hidden from us.
    await check_topics(kafka, topics=[each for each in TOPICS if settings.reviews or each is not topics.REVIEWS])
    async with contextlib.AsyncExitStack() as stack:
        pages = Pages(page_settings, registry, health, bounds=BOUNDS, others=answer, names=names)
        watch_certificates(metrics, kafka, pages)
        await pages.start()
        if not page_settings.local and page_settings.certfile is None:
            logger.warning(
                "what is sent to %s goes over the network in clear, its token too: give --page-certfile and "
                "--page-keyfile, or have something before it encrypt",
                pages.url,
            )
        stack.push_async_callback(pages.stop)
        sender = await stack.enter_async_context(Sender(kafka, settings.ack_seconds, metrics, health))
        live = await stack.enter_async_context(LiveVerdicts(kafka, sender.say, actor=ACTOR))
        health.hold(VERDICTS)
        watch = VerdictsWatch(kafka, live, health)
        metrics.watch_verdicts(watch.behind)
        await stack.enter_async_context(_beside(watch.run()))
        gateway = Gateway(kafka, settings, sender, live, metrics, names=names)
        yield Serving(gateway, pages, registry)
        await pages.stop()


@contextlib.asynccontextmanager
async def _beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Have something run for as long as the context lasts; where it fails, so does what runs in the context."""
    try:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(work)
            try:
                yield
            finally:
                task.cancel()
    except BaseExceptionGroup as problems:
        raise problems.exceptions[0] from None


async def serve(
    kafka: KafkaSettings, settings: GatewaySettings, page_settings: PageSettings, tell: Callable[[str], None]
) -> None:
    """Run until SIGTERM or SIGINT.

    Args:
        kafka: where and how to connect.
        settings: what is taken.
        page_settings: where the gateway and the pages are, and how they are encrypted.
        tell: is told the ready line.

    Raises:
        KafkaUnavailable: the brokers cannot be reached.
        TopicsError: a topic is missing, or a right.
        TooSlow: what holds for sessions could not be read.
        PageError: the address cannot be served.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    work = asyncio.create_task(_serve(kafka, settings, page_settings, tell, stop), name="gateway")
    stopping = asyncio.create_task(stop.wait(), name="stop")
    await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.wait({work}, timeout=STOP_SECONDS + CLOSE_SECONDS)
    if not work.done():  # aiokafka waits for the brokers on every orderly way out
        end_now(0, "the brokers do not answer; leaving without them")
    stopping.cancel()
    work.result()


async def _serve(
    kafka: KafkaSettings,
    settings: GatewaySettings,
    page_settings: PageSettings,
    tell: Callable[[str], None],
    stop: asyncio.Event,
) -> None:
    async with serving(kafka, settings, page_settings) as running:
        tell(f"ingest ready: {running.pages.url}")
        await stop.wait()
        await running.gateway.end(STOP_SECONDS)
