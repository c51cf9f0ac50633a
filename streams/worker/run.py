"""Runs a worker process: start, ready line, signals, and an end that leaves nothing uncommitted.

Faust's own `Worker` is not used: it sets the root logger to DEBUG when it is told to log warnings only, and waits
without limit at the end. What the process does in between is not decided here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from aiokafka.errors import KafkaError
from prometheus_client import CollectorRegistry

from schemas.topics import ALERTS, DEAD_LETTERS, OVERRIDES, SESSION_INPUTS
from streams.access.rights import check_rights
from streams.expiry import watch_certificates
from streams.fetching import UnreadableBatch
from streams.health import Health
from streams.kafka import unavailable
from streams.lag import LagWatch
from streams.pages import Pages
from streams.policy.metrics import PolicyMetrics
from streams.policy.watch import PolicyWatch
from streams.topic_diff import message_limits
from streams.topics import check_topics
from streams.worker.app import build
from streams.worker.faults import EXIT_FAILED, abandon, end_now
from streams.worker.garbage import spare
from streams.worker.metrics import WorkerMetrics
from streams.worker.watch import CONDITIONS, Watch, progress, under_way

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from streams.page_settings import PageSettings
    from streams.worker.app import Worker
    from streams.worker.settings import WorkerSettings

logger = logging.getLogger(__name__)

TOPICS = (*SESSION_INPUTS, OVERRIDES, ALERTS, DEAD_LETTERS)
"""What a worker reads and writes, besides the workers' own topics."""

SWITCH_SECONDS = 0.001
"""After how long a thread gives way to another that waits; Python's default is 5 ms. What fetches has a thread of its
own and waits so long at every piece of an answer that it reads, while events are applied: with the default it fell
behind, and the worker had nothing to do for a quarter of the time."""

COMMIT_SECONDS = 6.0
"""How long the last commits may take at the end."""

LEAVE_SECONDS = 2.0
"""How long leaving the group and the brokers may take after that. Together below the 10 s that container runtimes wait
before they kill."""


async def run(
    settings: WorkerSettings,
    page_settings: PageSettings,
    tell: Callable[[str], None],
) -> int:
    """Run a worker until it is told to stop by SIGTERM or SIGINT; a second signal ends it at once.

    Args:
        settings: of the worker.
        page_settings: where its HTTP pages are.
        tell: is told the ready line, again after every rebalance.

    Returns:
        The exit code, 0. When the worker must not go on, the process ends without coming back here.

    Raises:
        KafkaUnavailable: the brokers cannot be reached.
        TopicsError: topics are missing or do not fit together.
        StoreError: states cannot be stored as the settings say.
        PageError: the pages' address cannot be listened on.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    with stop_signals() as stop:
        for role in ("worker", "rekey") if settings.rekey else ("worker",):
            await check_rights(settings.kafka, role, app_id=settings.app_id)
        partitions = await check_topics(settings.kafka, app_id=settings.app_id, topics=TOPICS)
        if settings.rekey:
            # A copy that its topic does not take would fail the commit, and whoever reads it next likewise.
            names = [settings.kafka.topic(topic) for topic in SESSION_INPUTS]
            settings = replace(settings, message_bytes=await message_limits(settings.kafka, names))
        registry = CollectorRegistry()
        metrics = WorkerMetrics(registry, topics=settings.inputs)
        health = Health(CONDITIONS, stall_seconds=page_settings.stall_seconds)
        pages = Pages(page_settings, registry, health)
        metrics.watch_health(health)
        metrics.live_limit.set(settings.live_sessions)
        watch_certificates(metrics, settings.kafka, pages)
        if settings.state_dir is not None:
            metrics.watch_disk(settings.state_dir)
        await pages.start()
        worker = build(settings, partitions, metrics)  # its clients would complain where it does not come to run
        metrics.watch_states(worker.ownerships.changelogs.held)

        def ready(numbers: list[int]) -> None:
            spare()  # the states that were in memory are gone, and few are again
            which = ", ".join(map(str, numbers)) or "none (other workers have them)"
            tell(f"worker ready: partitions {which} of {partitions}; pages at {pages.url}")

        work = [
            worker.run(),
            Watch(worker, health, ready).run(),
            LagWatch(settings.kafka, metrics, health, lambda: progress(worker), taking=lambda: under_way(worker)).run(),
            PolicyWatch(
                settings.policy.path, settings.policy.base, worker.overrides.replace, PolicyMetrics(registry)
            ).run(),
        ]
        tasks = {asyncio.create_task(coroutine) for coroutine in work}
        stopping = asyncio.create_task(stop.wait(), name="stop")
        done, _ = await asyncio.wait({stopping, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        for task in done - {stopping}:
            # Nothing is tidied up: what was not committed is read again.
            problem = task.exception()
            if isinstance(problem, UnreadableBatch):
                abandon(EXIT_FAILED, str(problem))
            if isinstance(problem, KafkaError):
                abandon(EXIT_FAILED, f"the worker failed: {unavailable(settings.kafka, problem)}")
            logger.critical("the worker failed", exc_info=problem)
            abandon(EXIT_FAILED, f"the worker failed: {type(problem).__name__}, see above")
        await _stop(worker, pages, tasks)
    return 0


async def _stop(worker: Worker, pages: Pages, tasks: set[asyncio.Task[None]]) -> None:
    # Waited for, not cancelled when time is up: Faust swallows cancellation while it stops.
    logger.info("stopping: what was applied is committed")
    for task in tasks:
        task.cancel()
    releasing = asyncio.create_task(worker.ownerships.release())
    await asyncio.wait({releasing}, timeout=COMMIT_SECONDS)
    if not releasing.done():
        end_now(0, "the brokers do not answer; leaving without them, what is not committed is read again")
    releasing.result()
    leaving = asyncio.create_task(_leave(worker, pages, tasks))
    await asyncio.wait({leaving}, timeout=LEAVE_SECONDS)
    if not leaving.done():  # aiokafka sees a rebalance through before it leaves the group
        end_now(0, "all is committed; not waiting for the group")
    leaving.result()
    logger.info("stopped")


async def _leave(worker: Worker, pages: Pages, tasks: set[asyncio.Task[None]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)
    await worker.stop()
    await pages.stop()


@contextlib.contextmanager
def stop_signals() -> Iterator[asyncio.Event]:
    """Give an event that SIGTERM and SIGINT set; a second signal ends the process at once."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def on_signal(number: signal.Signals) -> None:
        if stop.is_set():
            end_now(128 + number, "ended at once by a second signal; what is not committed is read again")
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
    try:
        yield stop
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
