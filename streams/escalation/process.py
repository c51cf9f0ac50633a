"""Runs the escalation consumer and the sinks as a process: checks, policy, pages, signals, an end within seconds.

Everything that can be expected to go wrong ends in one of the errors named here, worded for whoever runs it. What is
done about alerts is not decided here.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from schemas import topics
from streams.access.rights import check_rights
from streams.escalation.consumer import Escalation, EscalationSettings
from streams.escalation.metrics import EscalationMetrics
from streams.expiry import watch_certificates
from streams.health import Health
from streams.ownership import CONDITIONS
from streams.pages import Pages
from streams.policy.load import InvalidPolicy
from streams.policy.metrics import PolicyMetrics
from streams.policy.watch import PolicyWatch
from streams.sinks.errors import InvalidSinks
from streams.sinks.metrics import SinkMetrics
from streams.sinks.run import Sinks
from streams.sinks.settings import read_sinks
from streams.topics import check_topics, task_events_name
from streams.transaction import Fenced

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from streams.kafka import KafkaSettings
    from streams.page_settings import PageSettings
    from streams.policy.policy import Policy

logger = logging.getLogger(__name__)

TOPICS = (
    topics.ALERTS,
    topics.DIRECTIVES,
    topics.TERMINATIONS,
    topics.KNOWN_FLAPPING,
    topics.NOTIFICATIONS,
    topics.FITNESS,
    topics.DEAD_LETTERS,
)
"""What the consumer and the sinks read and write, besides topics of their own."""

STOP_SECONDS = 8.0
"""How long the transactions under way may take at the end. What is not committed then is read again: nothing is lost.
Below the 10 s that container runtimes wait before they kill."""

EXIT_FENCED = 3
"""Exit code of a process whose partition was taken over."""


async def serve(
    kafka: KafkaSettings,
    settings: EscalationSettings,
    policy: Policy,
    page_settings: PageSettings,
    tell: Callable[[str], None],
) -> int:
    """Run until SIGTERM or SIGINT.

    Args:
        kafka: where and how to connect.
        settings: see `EscalationSettings`.
        policy: what is done about loops, and who is told; followed from then on, if it was read from a file.
        page_settings: where the pages are.
        tell: is told the ready line, again after every rebalance.

    Returns:
        The exit code, 0. When another process has taken over a partition, this one ends with 3 and does not come back.

    Raises:
        InvalidSinks: the policy's sinks cannot be used.
        KafkaUnavailable: the brokers cannot be reached.
        TopicsError: a topic is missing, or topics do not fit together.
        PageError: the pages cannot be served.
        PartitionsApart, PositionMoved, UnreadableLadder: see `Escalation.run`.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    registry = CollectorRegistry()
    health = Health(CONDITIONS, stall_seconds=page_settings.stall_seconds)
    pages = Pages(page_settings, registry, health)

    def ready(partitions: list[int]) -> None:
        which = ", ".join(map(str, partitions)) or "none (other processes have them)"
        tell(f"escalation ready: partitions {which} of {kafka.topic(topics.ALERTS)}; pages at {pages.url}")

    metrics = EscalationMetrics(registry, [kafka.topic(topics.ALERTS), task_events_name(settings.app_id)])
    metrics.watch_health(health)
    watch_certificates(metrics, kafka, pages)
    of_sinks = SinkMetrics(registry, metrics.dead_letters)
    sinks = Sinks(kafka, settings.group, of_sinks, session_timeout_ms=settings.session_timeout_ms)
    _tell_whom(sinks, policy)
    await check_rights(kafka, "escalation", app_id=settings.app_id, group=settings.group)
    await check_topics(kafka, app_id=settings.app_id, group=settings.group, topics=TOPICS)
    await pages.start()
    # Not before: its client would complain where it does not come to run.
    escalation = Escalation(kafka, settings, policy, metrics=metrics, health=health, on_ready=ready)

    def apply(changed: Policy) -> None:
        path = changed.path or Path("policy")
        try:
            _tell_whom(sinks, changed)
        except InvalidSinks as problem:
            raise InvalidPolicy(path, [str(problem).removeprefix(f"{path}: ")]) from problem
        escalation.replace(changed)

    watch = PolicyWatch(policy.path, policy.base, apply, PolicyMetrics(registry))
    watching = asyncio.create_task(watch.run(), name="policy")
    telling = asyncio.create_task(sinks.run(stop), name="sinks")
    work = asyncio.create_task(escalation.run(stop), name="escalation")
    stopping = asyncio.create_task(stop.wait(), name="stop")
    try:
        await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            await asyncio.wait({work, telling}, timeout=STOP_SECONDS)
        if not (work.done() and (telling.done() or work.exception())):
            logger.warning("the brokers do not answer; leaving without them, what is not committed will be read again")
            _exit(0)  # aiokafka waits for the brokers on every orderly way out
        work.result()
    except Fenced as problem:
        logger.error("%s by another process: this one has written nothing twice and ends", problem)  # noqa: TRY400
        _exit(EXIT_FENCED)  # else aiokafka tells once more, with a traceback, of each record that was not written
    finally:
        stop.set()
        for task in (stopping, watching):
            task.cancel()
        await asyncio.wait({watching, telling}, timeout=STOP_SECONDS / 2)
        await pages.stop()
    return 0


def _tell_whom(sinks: Sinks, policy: Policy) -> None:
    where = str(policy.path or "policy")
    sinks.replace(read_sinks(policy.sinks, where), where)


def _exit(code: int) -> NoReturn:
    """End the process without tidying up."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
