"""How far verdicts are behind, where brokers answer and do not let them be read; what hangs is for whole processes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import TopicAuthorizationFailedError

from schemas.topics import TERMINATIONS
from streams.health import Health
from streams.verdicts import live as module
from streams.verdicts.live import LiveVerdicts
from streams.verdicts.watch import VERDICTS, VerdictsWatch
from tests.streams.outputs_kit import put, termination
from tests.waiting import SOON_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from schemas.events import Control
    from streams.kafka import KafkaSettings

STALL = 1.0


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(SOON_SECONDS):
        while not condition():  # noqa: ASYNC110 - health tells nobody
            await asyncio.sleep(0.02)


async def write(_: Control) -> None:
    """Write no answer."""


async def test_topics_that_may_not_be_read(kafka: KafkaSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A right that is taken away is told for as long as it is; the process is alive, since no restart would mend it."""
    refused, fetch = False, AIOKafkaConsumer.getmany

    async def refusing(self: AIOKafkaConsumer, **how: Any) -> Any:
        if refused:
            raise TopicAuthorizationFailedError(kafka.topic(TERMINATIONS))
        return await fetch(self, **how)

    monkeypatch.setattr(AIOKafkaConsumer, "getmany", refusing)
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.1)
    monkeypatch.setattr(module, "REFUSED_SECONDS", 0.3)
    health = Health((VERDICTS,), stall_seconds=STALL)
    async with LiveVerdicts(kafka, write) as live:
        refused = True
        await put(kafka, termination())
        watch = VerdictsWatch(kafka, live, health)
        watching = asyncio.create_task(watch.run())
        try:
            await eventually(lambda: "no right to read" in health.ready().checks[VERDICTS])
            await eventually(lambda: watch.behind() > 2 * STALL)
            assert health.live().ok
            assert not health.ready().ok
            refused = False
            await eventually(lambda: health.ready().ok and watch.behind() < STALL / 2)
            assert live.verdict("s1").action == "stop"
        finally:
            watching.cancel()
            await asyncio.wait({watching})
