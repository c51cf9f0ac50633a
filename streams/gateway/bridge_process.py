"""Runs the bridge as a process: checks, pages, signals, an end within seconds.

Everything that can be expected to go wrong ends in one of the errors named here, worded for whoever runs it.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from schemas import topics
from streams.access.rights import check_rights
from streams.access.roles import DEFAULT_LOGS_TOPIC, DEFAULT_SPANS_TOPIC
from streams.expiry import watch_certificates
from streams.gateway.bridge import Bridge
from streams.gateway.metrics import BridgeMetrics
from streams.health import Health
from streams.ownership import CONDITIONS
from streams.pages import Pages
from streams.topics import KNOWN_SECONDS, TopicsError, check_topics, partition_counts
from streams.transaction import Fenced
from streams.worker.faults import EXIT_LOST, abandon, end_now

if TYPE_CHECKING:
    from collections.abc import Callable

    from streams.gateway.bridge import BridgeSettings
    from streams.kafka import KafkaSettings
    from streams.page_settings import PageSettings

logger = logging.getLogger(__name__)

TOPICS = (topics.TOOL_CALLS, topics.SESSIONS, topics.DEAD_LETTERS)
"""What the bridge writes."""

STOP_SECONDS = 8.0
"""How long the transactions under way may take at the end. What is not committed then is read again: nothing is lost.
Below the 10 s that container runtimes wait before they kill."""


async def serve_bridge(
    kafka: KafkaSettings, settings: BridgeSettings, page_settings: PageSettings, tell: Callable[[str], None]
) -> int:
    """Run until SIGTERM or SIGINT.

    Args:
        kafka: where and how to connect.
        settings: see `BridgeSettings`.
        page_settings: where the pages are.
        tell: is told the ready line, again after every rebalance.

    Returns:
        The exit code, 0. When another process has taken over a partition, this one ends with 3 and does not come back.

    Raises:
        KafkaUnavailable: the brokers cannot be reached.
        TopicsError: a topic is missing, or a right.
        PageError: the pages cannot be served.
        PositionMoved, InvalidRequest: see `Bridge.run`.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    registry = CollectorRegistry()
    health = Health(CONDITIONS, stall_seconds=page_settings.stall_seconds)
    pages = Pages(page_settings, registry, health)

    def ready(partitions: list[str]) -> None:
        which = ", ".join(partitions) or "none (other processes have them)"
        tell(f"bridge ready: {which}; pages at {pages.url}")

    metrics = BridgeMetrics(registry, kafka, settings.topics)
    metrics.watch_health(health)
    watch_certificates(metrics, kafka, pages)
    bridge = Bridge(kafka, settings, metrics=metrics, health=health, on_ready=ready)
    await check_rights(
        kafka,
        "bridge",
        bridge_group=settings.group,
        spans_topic=settings.spans_topic or DEFAULT_SPANS_TOPIC,
        logs_topic=settings.logs_topic or DEFAULT_LOGS_TOPIC,
    )
    await check_topics(kafka, topics=TOPICS)
    await _check_inputs(kafka, settings)
    await pages.start()
    work = asyncio.create_task(bridge.run(stop), name="bridge")
    stopping = asyncio.create_task(stop.wait(), name="stop")
    try:
        await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            await asyncio.wait({work}, timeout=STOP_SECONDS)
        if not work.done():  # aiokafka waits for the brokers on every orderly way out
            end_now(0, "the brokers do not answer; leaving without them, what is not committed will be read again")
        work.result()
    except Fenced as problem:
        abandon(EXIT_LOST, f"{problem} by another process: this one has written nothing twice and ends")
    finally:
        stopping.cancel()
        await pages.stop()
    return 0


async def _check_inputs(kafka: KafkaSettings, settings: BridgeSettings) -> None:
    """See that the collector's topics are there; brokers learn of new ones with a delay."""
    deadline = time.monotonic() + KNOWN_SECONDS
    while missing := sorted(settings.topics.keys() - await partition_counts(kafka, settings.topics)):
        if time.monotonic() < deadline:
            await asyncio.sleep(0.2)
            continue
        problem = (
            f"missing, or not shown to us for want of rights: {', '.join(missing)}. They are the collector's: name "
            "those that its Kafka exporter writes with --spans-topic and --logs-topic, leave one out with --no-spans "
            "or --no-logs, or create them"
        )
        raise TopicsError([problem])
