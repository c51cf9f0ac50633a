"""An escalation consumer in a process of its own that kills or freezes itself at a named step, by patched clients.

Processes are forked from a server that has everything imported, so that a dozen of them are cheap.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from aiokafka import AIOKafkaProducer
from prometheus_client import CollectorRegistry

from streams.escalation import ownership
from streams.escalation.consumer import Escalation, EscalationSettings
from streams.escalation.metrics import EscalationMetrics
from streams.health import Health
from streams.kafka import KafkaSettings
from streams.ownership import CONDITIONS
from streams.policy.policy import Policy
from streams.transaction import Fenced

EXIT_FENCED = 3

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.streams.escalation.crash_kit"])


NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class Point(NamedTuple):
    """Where a consumer dies.

    ``step`` is fence, restore, begin, send, offsets, commit (after each of these) or before commit; ``number`` the
    how-manyth time. ``freeze``: it is frozen instead. ``now`` is what its clock shows.
    """

    step: str
    number: int = 1
    freeze: bool = False
    now: datetime = NOW


def die_at(point: Point) -> None:
    """Patch the clients so that this process is killed, or frozen once, at a point."""
    times = 0

    def reached(name: str) -> None:
        nonlocal times
        times += name == point.step
        if name == point.step and times == point.number:
            os.kill(os.getpid(), signal.SIGSTOP if point.freeze else signal.SIGKILL)

    def after(owner: Any, method: str, name: str) -> None:
        original: Callable[..., Any] = getattr(owner, method)

        async def patched(*args: Any, **kwargs: Any) -> Any:
            if name == "commit":
                reached("before commit")
            result = await original(*args, **kwargs)
            if name == "send":
                await asyncio.shield(result)  # it has arrived, not only left
            reached(name)
            return result

        setattr(owner, method, patched)

    after(AIOKafkaProducer, "start", "fence")
    after(AIOKafkaProducer, "begin_transaction", "begin")
    after(AIOKafkaProducer, "send", "send")
    after(AIOKafkaProducer, "send_offsets_to_transaction", "offsets")
    after(AIOKafkaProducer, "commit_transaction", "commit")
    after(ownership, "restore", "restore")


async def run(kafka: KafkaSettings, settings: EscalationSettings, now: datetime) -> None:
    """Run a consumer for ever, with a clock that stands still."""
    escalation = Escalation(
        kafka,
        settings,
        Policy(),
        metrics=EscalationMetrics(CollectorRegistry()),
        health=Health(CONDITIONS),
        on_ready=lambda _: None,
        clock=lambda: now,
    )
    try:
        await escalation.run(asyncio.Event())
    except Fenced:
        os._exit(EXIT_FENCED)


def consume(kafka: KafkaSettings, settings: EscalationSettings, point: Point) -> None:
    """Run a consumer until it dies at a point."""
    die_at(point)
    asyncio.run(run(kafka, settings, point.now))


def begin(kafka: KafkaSettings, settings: EscalationSettings, point: Point) -> Any:
    """Start a consumer that dies at a point; gives its process."""
    process = FORKS.Process(target=consume, args=(kafka, settings, point), daemon=True)
    process.start()
    return process
